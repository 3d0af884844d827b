"""Writers that know what was acknowledged to them, and what has to be in the store afterwards.

Each writer has a client of its own and writes rows with ids of its own, numbered upwards, one durable write at a time:
inserts of one and of a hundred, updates, deletions. What a server that is killed has not answered may be there or not;
everything else is as it was acknowledged, in the collection and in each of its indexes.
"""
import random
import threading

from pymongo import ASCENDING, MongoClient, WriteConcern
from pymongo.errors import ConnectionFailure, PyMongoError

DURABLE = WriteConcern(w="majority", j=True)
# What a server that is ending says: it shuts down, it steps down, it is in its quiet time.
ENDING = {91, 189, 10107, 11600, 11602, 13435, 13436}
IDS_PER_WRITER = 10_000_000
INDEXES = (("a", ASCENDING),), (("text", ASCENDING), ("a", ASCENDING)), (("list", ASCENDING),)


class Writer(threading.Thread):
    """One connection that writes until it is told to stop or the server has gone."""

    def __init__(self, uri, place, rows, first):
        super().__init__(daemon=True)
        self.uri, self.place, self.rows = uri, place, rows
        self.random = random.Random(place)
        self.next = first
        self.is_told = threading.Event()
        # Ids whose last write was not answered.
        self.unsure = set()
        self.acknowledged = 0
        self.error = None

    def run(self):
        try:
            with MongoClient(self.uri, retryWrites=False, serverSelectionTimeoutMS=2000) as client:
                collection = client.release.get_collection("rows", write_concern=DURABLE)
                while not self.is_told.is_set():
                    self.write(collection)
        except PyMongoError as error:
            if not isinstance(error, ConnectionFailure) and not is_ending(error):
                self.error = error

    def write(self, collection):
        known = [id for id in self.rows if id not in self.unsure]
        kind = self.random.randrange(10) if known else 0
        if kind < 3:
            self.insert(collection, 1)
        elif kind < 4:
            self.insert(collection, 100)
        elif kind < 8:
            self.change(collection, self.random.choice(known))
        else:
            self.remove(collection, self.random.choice(known))

    def insert(self, collection, count):
        ids = range(self.next, self.next + count)
        self.next += count
        self.unsure.update(ids)
        collection.insert_many([row(id, 0) for id in ids])
        self.rows.update((id, 0) for id in ids)
        self.done(ids)

    def change(self, collection, id):
        self.unsure.add(id)
        count = self.rows[id] + 1
        outcome = collection.replace_one({"_id": id}, row(id, count))
        assert outcome.matched_count == 1, f"{id} was acknowledged, and is not there"
        self.rows[id] = count
        self.done([id])

    def remove(self, collection, id):
        self.unsure.add(id)
        assert collection.delete_one({"_id": id}).deleted_count == 1, f"{id} was acknowledged, and is not there"
        del self.rows[id]
        self.done([id])

    def done(self, ids):
        self.unsure.difference_update(ids)
        self.acknowledged += len(ids)


def is_ending(error):
    details = getattr(error, "details", None) or {}
    concerns = [*details.get("writeConcernErrors", []), details.get("writeConcernError"), details]
    return any(each and each.get("code") in ENDING for each in concerns)


def row(id, count):
    """What a row has after so many changes."""
    return {"_id": id, "count": count, "a": (id * 31 + count) % 97, "text": f"{id % 13} {'x' * 100}", "list": [id % 7, count]}


class Load:
    """Writers on one server, again and again, and what is known of the rows."""

    def __init__(self, writers=4):
        self.rows = [{} for _ in range(writers)]
        self.firsts = [(place + 1) * IDS_PER_WRITER for place in range(writers)]
        self.unsure = set()
        self.writers = []
        self.acknowledged = 0

    def begin(self, uri):
        with MongoClient(uri) as client:
            for keys in INDEXES:
                client.release.rows.create_index(list(keys))
        known = zip(self.rows, self.firsts)
        self.writers = [Writer(uri, place + 1, rows, first) for place, (rows, first) in enumerate(known)]
        for writer in self.writers:
            writer.start()

    def end(self):
        """Tells the writers to stop, and takes over what they know."""
        for writer in self.writers:
            writer.is_told.set()
        for writer in self.writers:
            writer.join(60)
            if writer.is_alive() or writer.error:
                raise AssertionError(f"a writer hangs or was refused: {writer.error}")
            self.unsure |= writer.unsure
            self.firsts[writer.place - 1] = writer.next
            self.acknowledged += writer.acknowledged

    def check(self, uri):
        """Everything that was acknowledged is there, nothing else is, and each index says the same."""
        with MongoClient(uri) as client:
            collection = client.release.rows
            there = {each["_id"]: each for each in collection.find()}
            self.settle(there)
            wanted = {id: row(id, count) for rows in self.rows for id, count in rows.items()}
            lost, wrong = wanted.keys() - there.keys(), there.keys() - wanted.keys()
            assert not lost and not wrong, f"lost {sorted(lost)[:5]}, not to be there {sorted(wrong)[:5]}"
            changed = [id for id, each in wanted.items() if there[id] != each]
            assert not changed, f"{changed[0]}: {there[changed[0]]} instead of {wanted[changed[0]]}"
            told = client.release.command("validate", "rows", full=True)
            assert told["valid"] and not told["errors"], told
            assert told["nrecords"] == len(wanted) and len(told["keysPerIndex"]) == 1 + len(INDEXES), told
            for keys in INDEXES:
                found = collection.find({}, {"_id": 1}).hint(list(keys))
                assert {each["_id"] for each in found} == wanted.keys(), keys

    def settle(self, there):
        """What was not answered is as it is found; it is known from now on."""
        for id in self.unsure:
            rows = self.rows[id // IDS_PER_WRITER - 1]
            if id in there:
                rows[id] = there[id]["count"]
            else:
                rows.pop(id, None)
        self.unsure.clear()
