"""A small store that has a bit of everything, and the check that it is still as it was written."""
import datetime

import bson
from pymongo import ASCENDING, DESCENDING, MongoClient

ROWS = 500
BEGIN = datetime.datetime(2026, 1, 1)


def row(number):
    return {
        "_id": number,
        "double": number / 7,
        "text": f"name {number % 17}",
        "list": [number % 5, number % 3, {"deep": number}],
        "when": BEGIN + datetime.timedelta(minutes=number),
        "decimal": bson.Decimal128(f"{number}.25"),
        "bytes": bytes([number % 256]) * 20,
        "place": {"type": "Point", "coordinates": [number % 90, number % 45]},
    }


def fill(uri):
    with MongoClient(uri) as client:
        database = client.kept
        database.rows.insert_many([row(number) for number in range(ROWS)])
        database.rows.create_index([("text", ASCENDING), ("when", DESCENDING)])
        database.rows.create_index("list")
        database.rows.create_index([("place", "2dsphere")])
        database.rows.create_index("decimal", unique=True, partialFilterExpression={"_id": {"$gte": 100}})
        database.create_collection("capped", capped=True, size=1 << 20, max=50)
        database.capped.insert_many([{"_id": number} for number in range(80)])
        database.create_collection("clustered", clusteredIndex={"key": {"_id": 1}, "unique": True})
        database.clustered.insert_many([{"_id": number} for number in range(80)])
        database.create_collection("points", timeseries={"timeField": "at", "metaField": "who"})
        points = [{"at": BEGIN + datetime.timedelta(seconds=n), "who": n % 3, "value": n} for n in range(300)]
        database.points.insert_many(points)
        database.create_collection("seen", viewOn="rows", pipeline=[{"$match": {"text": "name 3"}}])
        database.rows.update_many({"_id": {"$lt": 50}}, {"$set": {"changed": True}})
        database.rows.delete_many({"_id": {"$gte": ROWS - 10}})
        with client.start_session() as session, session.start_transaction():
            database.rows.insert_one({"_id": "of a transaction"}, session=session)
            database.clustered.insert_one({"_id": "of a transaction"}, session=session)


def check(uri):
    """Raises if something is missing, wrong, or not valid. Leaves the store as it was."""
    with MongoClient(uri) as client:
        database = client.kept
        wanted = {number: row(number) | ({"changed": True} if number < 50 else {}) for number in range(ROWS - 10)}
        wanted["of a transaction"] = {"_id": "of a transaction"}
        assert {each["_id"]: each for each in database.rows.find()} == wanted
        assert [each["_id"] for each in database.capped.find()] == list(range(30, 80))
        assert database.clustered.count_documents({"_id": {"$gte": 40}}) == 40
        assert database.clustered.count_documents({"_id": "of a transaction"}) == 1
        summed = database.points.aggregate([{"$group": {"_id": "$who", "sum": {"$sum": "$value"}}}])
        assert {each["_id"]: each["sum"] for each in summed} == {who: sum(range(who, 300, 3)) for who in range(3)}
        named = sum(1 for each in wanted.values() if each.get("text") == "name 3")
        assert database.seen.count_documents({}) == named
        assert database.rows.count_documents({"text": "name 3"}, hint="text_1_when_-1") == named
        near = {"place": {"$geoWithin": {"$centerSphere": [[3, 3], 0.0001]}}}
        assert database.rows.count_documents(near) == sum(1 for n in range(ROWS - 10) if n % 90 == 3 and n % 45 == 3)
        for name in ("rows", "capped", "clustered", "points"):
            told = database.command("validate", name, full=True)
            assert told["valid"] and not told["errors"], told
        database.rows.insert_one({"_id": "new", "decimal": bson.Decimal128("-1")})
        database.rows.delete_one({"_id": "new"})
