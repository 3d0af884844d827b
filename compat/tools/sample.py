"""A database with a bit of everything: types of values, options of collections, kinds of indexes, users and roles."""
import datetime
import uuid

from bson import Binary, Code, DBRef, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp

NAME = "shop"
COUNT = 2000
VALUES = [
    1.5,
    float("nan"),
    float("-inf"),
    -0.0,
    "text \u00e4\U0001f332",
    "",
    {"a": {"b": {}}},
    [1, [2, []]],
    Binary(b"\0\xff", 0),
    Binary(b"own", 128),
    Binary(b"\1" * 16, 5),
    Binary(uuid.UUID(int=7).bytes, 4),
    ObjectId("0123456789abcdef01234567"),
    True,
    datetime.datetime(1969, 12, 31),
    None,
    Regex("^a.*", "ims"),
    DBRef("items", 1, "shop"),
    Code("function() { return 1; }"),
    Code("x", {"x": 1}),
    5,
    -(2**31),
    Timestamp(0, 0),
    Timestamp(5, 6),
    Int64(7),
    Int64(2**63 - 1),
    Decimal128("1.20"),
    Decimal128("NaN"),
    MinKey(),
    MaxKey(),
]


def fill(client):
    """Makes the database, which must not be there."""
    shop = client[NAME]
    # Timestamp(0, 0) at the top of a document would become the present one.
    shop.types.insert_many([{"_id": place, "value": {"is": value}} for place, value in enumerate(VALUES)])
    shop.items.insert_many([item(number) for number in range(COUNT)])
    make_indexes(shop.items)
    shop.create_collection("capped", capped=True, size=100_000, max=50)
    shop.capped.insert_many([{"_id": number} for number in range(60)])
    shop.create_collection(
        "checked", validator={"a": {"$type": "int"}}, validationLevel="moderate", validationAction="warn"
    )
    shop.checked.insert_one({"_id": 1, "a": "not a number"})
    shop.create_collection("german", collation={"locale": "de", "strength": 1})
    shop.german.create_index("name")
    shop.german.insert_many([{"_id": name, "name": name} for name in ("\u00c4rger", "arg", "Zorn")])
    shop.create_collection("clustered", clusteredIndex={"key": {"_id": 1}, "unique": True, "name": "by _id"})
    shop.clustered.insert_many([{"_id": number} for number in range(30)])
    shop.create_collection("images", changeStreamPreAndPostImages={"enabled": True})
    make_series(shop)
    shop.create_collection("threes", viewOn="items", pipeline=[{"$match": {"a": 3}}, {"$project": {"b": 1}}])
    shop.create_collection("few", viewOn="threes", pipeline=[{"$sort": {"_id": 1}}, {"$limit": 3}])
    shop.command("createRole", "buyer", privileges=[privilege("items", "find", "insert")], roles=["read"])
    shop.command("createUser", "joe", pwd="password of joe", roles=["buyer"], customData={"since": 2020})
    client.admin.command("createUser", "keeper", pwd="password of keeper", roles=["root"])


def make_series(shop):
    """A time-series collection with buckets of several sources, and an index of its own."""
    options = {"timeField": "at", "metaField": "sensor", "granularity": "minutes"}
    shop.create_collection("weather", timeseries=options, expireAfterSeconds=10**9)
    shop.weather.create_index([("sensor.place", 1), ("at", -1)])
    begin = datetime.datetime(2024, 2, 29)
    shop.weather.insert_many(
        {
            "at": begin + datetime.timedelta(minutes=number), "_id": number, "celsius": number / 8,
            "sensor": {"place": number % 5, "kind": "thermometer"},
        }
        for number in range(500)
    )


def item(number):
    place = {"type": "Point", "coordinates": [number % 180, number % 80]}
    return {
        "_id": number, "a": number % 7, "b": str(number), "text": f"the quick fox {number}", "size": number / 4,
        "flat": [number % 90, number % 80], "round": place, "more": {"x": number, "y": [number % 3]},
    }


def privilege(collection, *actions):
    return {"resource": {"db": NAME, "collection": collection}, "actions": list(actions)}


def make_indexes(items):
    items.create_index("a")
    items.create_index([("b", -1), ("a", 1)], unique=True, name="descending b")
    items.create_index("x", sparse=True)
    items.create_index("y", partialFilterExpression={"a": {"$gt": 2}})
    items.create_index("seen", expireAfterSeconds=3600)
    items.create_index([("hash", "hashed")])
    items.create_index([("text", "text")], default_language="french", weights={"text": 3})
    items.create_index("b", name="folded b", collation={"locale": "en", "strength": 2})
    items.create_index("hidden", hidden=True)
    items.create_index([("flat", "2d")], bits=20, min=-200, max=200)
    items.create_index([("round", "2dsphere"), ("a", 1)])
    items.create_index([("more.$**", 1)])
    items.create_index([("$**", 1)], wildcardProjection={"text": 0, "round": 0, "flat": 0}, name="all but text")
    items.create_index("size", storageEngine={"wiredTiger": {"configString": ""}})
