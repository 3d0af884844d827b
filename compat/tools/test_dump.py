"""mongodump and mongorestore: what they send, sent by us."""
import threading

import bson

import sample
from dump import Dump
from node import WithNodes, catalog, hashes
from restore import Restore


class Replay(WithNodes):
    NODES = ("source", "target")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        sample.fill(cls.source)
        cls.dump = Dump(cls.source)

    def check_equal(self, database=sample.NAME):
        wanted, found = hashes(self.source, sample.NAME), hashes(self.target, database)
        if database != sample.NAME:
            # Views are stored under their whole names.
            self.assertNotEqual(wanted.pop("system.views"), found.pop("system.views"))
        self.assertEqual(wanted, found)
        self.assertEqual(catalog(self.source, sample.NAME).keys(), catalog(self.target, database).keys())

    def test_1_a_restored_database_has_equal_hashes_options_indexes_and_users(self):
        Restore(self.target, self.dump)
        self.check_equal()
        self.assertEqual(hashes(self.source, "admin"), hashes(self.target, "admin"))
        wanted, found = catalog(self.source, sample.NAME), catalog(self.target, sample.NAME)
        for name, described in wanted.items():
            self.assertEqual(described, found[name], name)
        for name in ("threes", "few", "weather"):
            here, there = (list(client[sample.NAME][name].find()) for client in (self.source, self.target))
            self.assertEqual(here, there)
        for _, there in self.dump.collections.items():
            self.assertEqual(there["type"] == "view", "viewOn" in there["options"])

    def test_2_restoring_again_replaces_what_is_there(self):
        shop = self.target[sample.NAME]
        shop.items.delete_many({"a": 3})
        shop.command("createUser", "guest", pwd="password of guest", roles=[])
        Restore(self.target, self.dump, drop=True)
        self.check_equal()
        self.assertEqual(hashes(self.source, "admin"), hashes(self.target, "admin"))

    def test_3_a_dump_can_go_under_another_name(self):
        Restore(self.target, self.dump, renamed=lambda name: f"{name}-copy")
        self.check_equal(f"{sample.NAME}-copy")

    def test_4_every_value_comes_back_as_the_bytes_it_was(self):
        here = [document.raw for document in Dump.find(self.dump, sample.NAME, "types", sort={"_id": 1})]
        self.assertEqual(len(here), len(sample.VALUES))
        again = Dump(self.target)
        there = [document.raw for document in again.find(sample.NAME, "types", sort={"_id": 1})]
        self.assertEqual(here, there)


class WithOplog(WithNodes):
    NODES = ("source", "target")

    def test_a_dump_taken_under_writes_restores_to_one_point_in_time(self):
        bank = self.source.bank
        bank.accounts.insert_many([{"_id": number, "balance": 100, "moves": []} for number in range(200)])
        bank.doomed.insert_one({"_id": 1})
        with Writer(bank) as writer:
            dump = Dump(self.source, with_oplog=True, meanwhile=lambda: self.change_catalog(bank, writer))
        self.assertGreater(len(dump.oplog), 100)
        Restore(self.target, dump)
        self.assertEqual(self.state_at(dump.oplog[-1]["ts"]), self.state_of(self.target.bank))
        names = sorted(bank.list_collection_names())
        self.assertEqual(sorted(self.target.bank.list_collection_names()), names)
        self.assertEqual(catalog(self.target, "bank"), catalog(self.source, "bank"))

    def change_catalog(self, bank, writer):
        """While documents are written: a collection comes, another one goes, an index is built."""
        bank.create_collection("born", collation={"locale": "en"})
        bank.born.insert_one({"_id": 1, "is": "new"})
        bank.doomed.drop()
        bank.accounts.create_index("balance")
        writer.wait_for_more()

    def state_of(self, database):
        names = (name for name in database.list_collection_names())
        return {name: {each["_id"]: each for each in database[name].find()} for name in names}

    def state_at(self, last):
        """What the entries of the source's oplog come to, read by us."""
        state = {}
        for entry in self.source.local["oplog.rs"].find({"ts": {"$lte": last}, "ns": {"$regex": "^bank\\."}}):
            name, change = entry["ns"].partition(".")[2], entry["o"]
            documents = state.setdefault(name, {})
            if entry["op"] == "i":
                documents[change["_id"]] = change
            elif entry["op"] == "d":
                documents.pop(change["_id"])
            elif entry["op"] == "u":
                documents[entry["o2"]["_id"]] = patched(documents[entry["o2"]["_id"]], change)
            elif "drop" in change:
                state.pop(change["drop"])
        state.pop("$cmd")
        return state


def patched(document, change):
    """A document after the change of an oplog entry: a replacement, or a diff of top-level fields."""
    if "$v" not in change:
        return change
    after = dict(document)
    for section, fields in change["diff"].items():
        if section == "d":
            for field in fields:
                after.pop(field)
        elif section in ("u", "i"):
            after.update(fields)
        else:
            # "s" and the field: an array that grew by elements "u0", "u1", ...
            assert section.startswith("s") and fields.pop("a"), change
            array = list(after[section[1:]])
            for place, value in fields.items():
                assert place.startswith("u"), change
                array[int(place[1:]) : int(place[1:]) + 1] = [value]
            after[section[1:]] = array
    return after


class Writer(threading.Thread):
    """Writes as long as it is entered: moves money, replaces, adds and removes documents."""

    def __init__(self, bank):
        super().__init__(daemon=True)
        self.bank, self.number, self.is_over = bank, 0, threading.Event()
        self.has_written = threading.Condition()

    def __enter__(self):
        self.start()
        self.wait_for_more()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.join()

    def wait_for_more(self):
        with self.has_written:
            wanted = self.number + 30
            assert self.has_written.wait_for(lambda: self.number >= wanted, 60), "nothing is written any more"

    def run(self):
        accounts, news = self.bank.accounts, self.bank.news
        while not self.is_over.is_set():
            number = self.number + 1
            source, target = number % 200, number * 7 % 200
            accounts.update_one({"_id": source}, {"$inc": {"balance": -1}, "$push": {"moves": number}})
            accounts.update_one({"_id": target}, {"$inc": {"balance": 1}, "$set": {"last": number}})
            accounts.update_one({"_id": target}, {"$unset": {"last": 1}})
            accounts.replace_one({"_id": number * 3 % 200}, {"balance": 100, "moves": [], "round": number})
            news.insert_one({"_id": number, "bytes": bson.Binary(b"x" * (number % 50))})
            news.delete_one({"_id": number - 20})
            with self.has_written:
                self.number = number
                self.has_written.notify_all()
