//! Requests that one may send who may do everything with d.c1 and d.v1 and nothing with anything
//! else: for each command those that have something to decide, and one for each stage.

use pando_doc::{Doc, DocBuilder, Value, doc};

/// Stages that name collections or ask for more than they need.
pub(super) fn stages() -> Vec<Doc> {
    let join = |options: Doc| doc! { "$lookup": options };
    vec![
        join(doc! { "from": "c1", "localField": "_id", "foreignField": "_id", "as": "o" }),
        join(doc! { "from": "c1", "let": { "x": 1 }, "pipeline": [{ "$match": {} }], "as": "o" }),
        join(
            doc! { "from": "c1", "pipeline": [{ "$lookup": { "from": "c1", "pipeline": [], "as": "i" } }], "as": "o" },
        ),
        join(doc! { "from": "c1", "pipeline": [{ "$documents": [{ "a": 1 }] }, { "$unionWith": "c1" }], "as": "o" }),
        doc! { "$graphLookup": {
            "from": "c1", "startWith": 1, "connectFromField": "one", "connectToField": "one", "as": "o", "maxDepth": 1,
            "depthField": "depth", "restrictSearchWithMatch": {},
        } },
        doc! { "$unionWith": "c1" },
        doc! { "$unionWith": { "coll": "c1", "pipeline": [{ "$match": {} }] } },
        doc! { "$facet": { "a": [{ "$lookup": { "from": "c1", "pipeline": [], "as": "o" } }], "b": [{ "$limit": 1 }] } },
        doc! { "$match": { "a": { "$exists": false } } },
        doc! { "$project": { "one": 1 } },
        doc! { "$addFields": { "x": "$one" } },
        doc! { "$set": { "x": "$one" } },
        doc! { "$unset": "x" },
        doc! { "$group": { "_id": "$one", "n": { "$sum": 1 } } },
        doc! { "$sort": { "one": 1 } },
        doc! { "$limit": 1 },
        doc! { "$skip": 0 },
        doc! { "$unwind": { "path": "$one", "preserveNullAndEmptyArrays": true } },
        doc! { "$count": "c1" },
        doc! { "$sortByCount": "$one" },
        doc! { "$replaceRoot": { "newRoot": { "a": "$one" } } },
        doc! { "$replaceWith": { "a": "$one" } },
        doc! { "$bucket": { "groupBy": "$one", "boundaries": [0, 5], "default": "c1", "output": { "n": { "$sum": 1 } } } },
        doc! { "$bucketAuto": { "groupBy": "$one", "buckets": 1 } },
        doc! { "$setWindowFields": { "sortBy": { "one": 1 }, "output": { "n": { "$sum": 1, "window": { "documents": [0, 1] } } } } },
        doc! { "$densify": { "field": "one", "range": { "step": 1, "bounds": "full" } } },
        doc! { "$fill": { "output": { "x": { "value": 1 } } } },
        doc! { "$sample": { "size": 1 } },
        doc! { "$redact": "$$KEEP" },
        doc! { "$geoNear": { "near": [0, 0], "distanceField": "x", "key": "place" } },
        doc! { "$out": "v1" },
        doc! { "$out": { "db": "d", "coll": "v1" } },
        doc! { "$merge": "v1" },
        doc! { "$merge": { "into": { "db": "d", "coll": "v1" }, "on": "_id", "whenMatched": "keepExisting", "whenNotMatched": "insert" } },
        doc! { "$merge": { "into": "v1", "whenMatched": "fail", "whenNotMatched": "insert" } },
        doc! { "$collStats": { "count": {}, "storageStats": {}, "latencyStats": { "histograms": false } } },
        doc! { "$indexStats": {} },
        doc! { "$planCacheStats": {} },
        doc! { "$listCatalog": {} },
        doc! { "$changeStream": { "allChangesForCluster": false, "showExpandedEvents": false } },
        doc! { "$currentOp": { "allUsers": false, "idleCursors": true } },
        doc! { "$listLocalSessions": { "users": [{ "user": "limited", "db": "admin" }] } },
        doc! { "$listSessions": { "allUsers": false } },
        doc! { "$_internalInhibitOptimization": {} },
        doc! { "$backupCursor": {} },
        doc! { "$operationMetrics": {} },
    ]
}

/// A pipeline in all the places where one can be.
fn with_stage(stage: &Doc) -> Vec<Doc> {
    let aggregate = doc! { "aggregate": "c1", "pipeline": [(stage.clone())], "cursor": { "batchSize": 100 } };
    vec![
        doc! { "explain": (aggregate.clone()), "verbosity": "executionStats" },
        aggregate,
        doc! { "aggregate": 1, "pipeline": [(stage.clone())], "cursor": {} },
        doc! { "aggregate": "c1", "pipeline": [{ "$match": {} }, { "$lookup": { "from": "c1", "pipeline": [(stage.clone())], "as": "o" } }], "cursor": {} },
        doc! { "create": "v1", "viewOn": "c1", "pipeline": [(stage.clone())] },
        doc! { "collMod": "v1", "viewOn": "c1", "pipeline": [(stage.clone())] },
    ]
}

fn with_operation(operation: Doc) -> Vec<Doc> {
    let listed = doc! { "applyOps": [(operation)], "alwaysUpsert": false };
    vec![doc! { "applyOps": [{ "op": "c", "ns": "d.$cmd", "o": (listed.clone()) }] }, listed]
}

/// What the command of this name is sent with.
pub(super) fn requests(name: &str) -> Vec<Doc> {
    match name {
        "aggregate" => stages().iter().flat_map(with_stage).collect(),
        "find" => vec![doc! { "find": "c1", "filter": {}, "limit": 5, "singleBatch": true, "showRecordId": false }],
        "count" => vec![doc! { "count": "c1", "query": {}, "limit": 0 }],
        "distinct" => vec![doc! { "distinct": "c1", "key": "_id", "query": {} }],
        "insert" => vec![doc! { "insert": "c1", "documents": [{ "_id": 9 }], "bypassDocumentValidation": false }],
        "update" => vec![
            doc! { "update": "c1", "updates": [{ "q": { "_id": 9 }, "u": { "$set": { "x": 1 } }, "upsert": false, "multi": false }] },
        ],
        "delete" => vec![doc! { "delete": "c1", "deletes": [{ "q": { "_id": 9 }, "limit": 1 }] }],
        "findAndModify" => vec![
            doc! { (name): "c1", "query": { "_id": 9 }, "update": { "$set": { "x": 1 } }, "upsert": false, "new": true },
            doc! { (name): "c1", "query": { "_id": 9 }, "remove": true },
        ],
        "explain" => vec![
            doc! { (name): { "find": "c1", "filter": {} }, "verbosity": "executionStats" },
            doc! { (name): { "update": "c1", "updates": [{ "q": {}, "u": {}, "upsert": false }] } },
            doc! { (name): { "explain": { "find": "c1" } } },
        ],
        "mapReduce" => {
            let reduce = |out: Value<'_>| {
                doc! { (name): "c1", "map": "function() { emit(1, this._id) }", "reduce": "function(k, v) { return v[0] }", "out": out }
            };
            let named = [doc! { "replace": "v1", "db": "d" }, doc! { "merge": "v1" }, doc! { "inline": 1 }];
            let named = named.iter().map(|out| reduce(Value::Document(out.view())));
            named.chain([reduce(Value::String("v1".into()))]).collect()
        }
        "create" => vec![doc! { "create": "v1" }, doc! { "create": "v1", "capped": true, "size": 4096 }],
        "collMod" => vec![doc! { "collMod": "c1", "validationLevel": "off", "validator": {} }],
        "createIndexes" => vec![
            doc! { (name): "c1", "indexes": [{ "key": { "x": 1 }, "name": "x", "unique": false }], "commitQuorum": 0 },
        ],
        "dropIndexes" => vec![doc! { (name): "c1", "index": "x" }],
        "renameCollection" => vec![doc! { (name): "d.c1", "to": "d.v1", "dropTarget": true }],
        "cloneCollectionAsCapped" => vec![doc! { (name): "c1", "toCollection": "v1", "size": 4096 }],
        "dataSize" => vec![doc! { (name): "d.c1", "keyPattern": { "_id": 1 } }],
        "filemd5" => vec![doc! { (name): 1, "root": "c1" }],
        "listCollections" => vec![doc! { (name): 1, "nameOnly": true, "authorizedCollections": true }],
        "listDatabases" => vec![doc! { (name): 1, "nameOnly": true, "authorizedDatabases": true }],
        "getMore" => vec![doc! { (name): 1_i64, "collection": "c1" }],
        "killCursors" => vec![doc! { (name): "c1", "cursors": [1_i64] }],
        "currentOp" => vec![doc! { (name): 1, "$ownOps": true, "$all": false }],
        "killOp" => vec![doc! { (name): 1, "op": 1 }],
        "profile" => vec![doc! { (name): -1, "slowms": 100 }],
        "usersInfo" => vec![doc! { (name): { "user": "limited", "db": "admin" }, "showCredentials": false, "showPrivileges": false }],
        "rolesInfo" => vec![doc! { (name): { "role": "limited", "db": "admin" }, "showPrivileges": false }],
        "updateUser" => vec![doc! { (name): "limited", "customData": { "a": 1 }, "roles": [] }],
        "createUser" => vec![doc! { (name): "other", "pwd": "x", "roles": [{ "role": "limited", "db": "admin" }] }],
        "grantRolesToUser" => vec![doc! { (name): "limited", "roles": [{ "role": "limited", "db": "admin" }] }],
        "createRole" => vec![doc! {
            (name): "other", "roles": [],
            "privileges": [{ "resource": { "db": "d", "collection": "c1" }, "actions": ["find"] }],
        }],
        "validateDBMetadata" => vec![doc! { (name): 1, "db": "d", "collection": "c1", "apiParameters": { "version": "1" } }],
        "applyOps" => [
            doc! { "op": "i", "ns": "d.c1", "o": { "_id": 9 } },
            doc! { "op": "u", "ns": "d.c1", "o2": { "_id": 9 }, "o": { "$v": 2, "diff": { "u": { "x": 2 } } }, "b": false },
            doc! { "op": "d", "ns": "d.c1", "o": { "_id": 9 } },
            doc! { "op": "n", "ns": "d.c1", "o": {} },
            doc! { "op": "c", "ns": "d.$cmd", "o": { "create": "v1" } },
            doc! { "op": "c", "ns": "d.$cmd", "o": { "create": "v1", "viewOn": "c1", "pipeline": [{ "$unionWith": "c1" }] } },
            doc! { "op": "c", "ns": "d.$cmd", "o": { "drop": "c1" } },
            doc! { "op": "c", "ns": "d.$cmd", "o": { "collMod": "c1", "validationLevel": "off" } },
            doc! { "op": "c", "ns": "d.$cmd", "o": { "renameCollection": "d.c1", "to": "d.v1", "dropTarget": true } },
            doc! { "op": "c", "ns": "d.$cmd", "o": { "convertToCapped": "c1", "size": 4096 } },
            doc! { "op": "c", "ns": "d.$cmd", "o": { "dropDatabase": 1 } },
        ]
        .into_iter()
        .flat_map(with_operation)
        .collect(),
        _ => {
            // Without anything else to decide: the collection, and an option.
            let mut request = DocBuilder::new();
            request.append(name, "c1");
            request.append("comment", "x");
            vec![request.finish()]
        }
    }
}
