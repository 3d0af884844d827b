"""What mongodump asks of a server: the same commands with the same options, in the same order."""
from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument

RAW = CodecOptions(document_class=RawBSONDocument)
# Where the documents of a time-series collection are.
BUCKETS = "system.buckets."
# Not restored: each server has its own.
LEFT_OUT = ("local", "config")


def stored_in(name, found):
    """The collection that has the documents of a collection."""
    return BUCKETS + name if found["type"] == "timeseries" else name


class Dump:
    """Everything that was read, by database and collection; documents as the bytes they were."""

    def __init__(self, client, with_oplog=False, meanwhile=lambda: None):
        """`meanwhile` is called between the catalog and the documents."""
        self.client = client
        self.collections = {}
        self.users, self.roles, self.oplog = [], [], []
        admin = client.admin
        admin.command("buildInfo")
        admin.command({"atlasVersion": 1}, check=False, allowable_errors=[59])
        begin = self.first_timestamp() if with_oplog else None
        for database in admin.command("listDatabases", nameOnly=True)["databases"]:
            if database["name"] not in LEFT_OUT:
                self.read_catalog(database["name"])
        meanwhile()
        self.read_users()
        for (database, name), found in self.collections.items():
            if found["type"] != "view":
                source = stored_in(name, found)
                client[database].command("count", source)
                found["documents"] = self.find(database, source, hint={"$natural": 1})
        if with_oplog:
            self.read_oplog(begin)

    def find(self, database, name, **options):
        def ask(command):
            return self.client[database].command(command, codec_options=RAW)["cursor"]

        reply = ask({"find": name, "filter": options.pop("filter", {}), **options})
        found, cursor = list(reply["firstBatch"]), reply["id"]
        while cursor:
            reply = ask({"getMore": cursor, "collection": name})
            found += reply["nextBatch"]
            cursor = reply["id"]
        return found

    def read_catalog(self, database):
        listed = self.client[database].command("listCollections", filter={}, cursor={})["cursor"]
        assert listed["id"] == 0
        for collection in listed["firstBatch"]:
            name = collection["name"]
            # What stands in system.views comes back with each view, buckets with their time series; users and roles have
            # their own way.
            own = name == "system.views" or name.startswith(BUCKETS)
            if own or (database == "admin" and name.startswith("system.")):
                continue
            found = {"options": collection["options"], "type": collection["type"], "indexes": [], "documents": []}
            if collection["type"] == "collection":
                found["uuid"] = collection["info"]["uuid"]
            if collection["type"] != "view":
                indexes = self.client[database].command("listIndexes", name, cursor={})["cursor"]
                found["indexes"] = indexes["firstBatch"]
            self.collections[(database, name)] = found

    def read_users(self):
        schema = [{"$match": {"_id": "authSchema"}}, {"$group": {"_id": 1, "n": {"$sum": 1}}}]
        counted = list(self.client.admin["system.version"].aggregate(schema))
        if not counted:
            return
        self.users = self.find("admin", "system.users", hint={"$natural": 1})
        self.roles = self.find("admin", "system.roles", hint={"$natural": 1})
        self.find("admin", "system.version", hint={"$natural": 1})

    def first_timestamp(self):
        """From where the oplog is needed: the oldest transaction under way, or the newest entry."""
        assert "hosts" in self.client.admin.command("isMaster")
        open_states = {"state": {"$in": ["prepared", "inProgress"]}}
        self.find(
            "config", "transactions", filter=open_states, sort={"startOpTime": 1}, limit=1, singleBatch=True,
            readConcern={"level": "local"},
        )
        return self.oplog_end(-1)

    def oplog_end(self, direction):
        found = self.find("local", "oplog.rs", sort={"$natural": direction}, limit=1, singleBatch=True)
        return found[0]["ts"]

    def read_oplog(self, begin):
        end = self.oplog_end(-1)
        between = {"$and": [{"ts": {"$gte": begin}}, {"ts": {"$lte": end}}]}
        self.oplog = self.find("local", "oplog.rs", filter=between, oplogReplay=True)
        assert self.oplog_end(1) <= begin, "the oplog has lost what is needed"
