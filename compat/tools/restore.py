"""What mongorestore sends to a server: the same commands with the same options, in the same order."""
import bson

from dump import stored_in

MAJORITY = {"w": "majority"}
BATCH_COUNT = 1000
# Entries of the oplog that say nothing to another server.
SILENT = ("startIndexBuild", "abortIndexBuild", "setMultikeyMetadata", "dropIdent")


class Restore:
    """Brings a dump to a server."""

    def __init__(self, client, dump, drop=False, renamed=lambda database: database, keeps_uuids=False):
        self.client, self.dump, self.drop, self.renamed = client, dump, drop, renamed
        self.keeps_uuids = keeps_uuids
        # What the indexes of each collection will be, when the oplog has been replayed.
        self.indexes = {}
        client.admin.command("getParameter", 1, authSchemaVersion=1)
        for (database, name), found in dump.collections.items():
            self.create(renamed(database), name, found)
        self.restore_users()
        if dump.oplog:
            for entry in dump.oplog:
                self.handle(bson.decode(entry.raw))
        for (database, name), indexes in self.indexes.items():
            self.make_indexes(database, name, indexes)

    def create(self, database, name, found):
        target = self.client[database]
        known = target.command("listCollections", filter={}, cursor={})["cursor"]["firstBatch"]
        if self.drop and name in [collection["name"] for collection in known]:
            target.command("drop", name, writeConcern=MAJORITY)
        options = dict(found["options"])
        by_name = {index["name"]: dict(index) for index in found["indexes"]}
        identity = by_name.pop("_id_", None)
        if identity and "clusteredIndex" not in options:
            if not self.keeps_uuids:
                identity.pop("v")
            options["idIndex"] = {**identity, "ns": f"{database}.{name}"}
        if self.keeps_uuids and "uuid" in found:
            self.apply({"op": "c", "ns": f"{database}.$cmd", "o": {"create": name, **options}, "ui": found["uuid"]})
        else:
            target.command({"create": name, **options, "writeConcern": MAJORITY})
        self.indexes[(database, name)] = {
            each: index for each, index in by_name.items() if not index.get("clustered")
        }
        self.insert(database, stored_in(name, found), found["documents"])

    def insert(self, database, name, documents):
        for first in range(0, len(documents), BATCH_COUNT):
            batch = documents[first : first + BATCH_COUNT]
            reply = self.client[database].command(
                "insert", name, documents=batch, ordered=True, bypassEmptyTsReplacement=True, writeConcern=MAJORITY
            )
            assert reply["n"] == len(batch) and "writeErrors" not in reply, reply

    def restore_users(self):
        admin, merge = self.client.admin, {"_mergeAuthzCollections": 1}
        sources = [("tempUsersCollection", "tempusers", self.dump.users)]
        sources.append(("tempRolesCollection", "temproles", self.dump.roles))
        for field, name, documents in sources:
            if documents:
                self.insert("admin", name, documents)
                merge[field] = f"admin.{name}"
        if len(merge) > 1:
            admin.command({**merge, "drop": self.drop, "db": "", "writeConcern": MAJORITY})
        for _, name, documents in sources:
            if documents:
                admin.command("drop", name, writeConcern=MAJORITY)

    def make_indexes(self, database, name, indexes):
        wanted = []
        for index in indexes.values():
            index.pop("v", None)
            wanted.append({**index, "ns": f"{database}.{name}"})
        if wanted:
            self.client[database].command(
                "createIndexes", name, indexes=wanted, ignoreUnknownIndexOptions=True
            )

    def handle(self, entry):
        """One entry of the oplog: most are applied, those about indexes are remembered until the end."""
        database, command = entry["ns"].partition(".")[0], next(iter(entry["o"]), None)
        if entry["op"] == "n" or database == "config" or (entry["op"] == "c" and command in SILENT):
            return
        if not self.keeps_uuids:
            entry.pop("ui", None)
            entry["o"].pop("dropTarget", None)
        if entry["op"] == "c":
            place = (database, entry["o"][command])
            if command == "applyOps":
                for inner in entry["o"]["applyOps"]:
                    self.handle(inner)
                return
            if command == "commitIndexBuild":
                for index in entry["o"]["indexes"]:
                    self.indexes.setdefault(place, {})[index["name"]] = index
                return
            if command == "createIndexes":
                index = {field: value for field, value in entry["o"].items() if field != "createIndexes"}
                self.indexes.setdefault(place, {})[index["name"]] = index
                return
            if command in ("dropIndexes", "deleteIndexes"):
                self.indexes.get(place, {}).pop(entry["o"]["index"], None)
                return
            if command == "drop":
                self.indexes.pop(place, None)
        self.apply(entry)

    def apply(self, entry):
        fields = ("op", "ns", "o", "o2", "ui", "lsid", "txnNumber", "prevOpTime", "multiOpType")
        known = {field: entry[field] for field in fields if field in entry}
        whole = {"ts": entry.get("ts", bson.Timestamp(0, 0)), "t": entry.get("t"), "v": entry.get("v", 0), **known}
        self.client.admin.command({"applyOps": [whole], "bypassDocumentValidation": False})
