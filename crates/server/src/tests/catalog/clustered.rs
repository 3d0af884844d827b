//! Clustered collections: ranges of `_id` are ranges of records.

use super::*;
use pando_doc::Value;

const CLUSTERED: fn() -> Doc = || doc! { "key": { "_id": 1 }, "unique": true };

/// The stage at the bottom of a find's plan, and what running it cost.
async fn scan(node: &mut Node, find: Doc) -> (Doc, Doc) {
    let explained = node.ok(doc! { "explain": find, "verbosity": "executionStats" }).await;
    let below = |name: &str, path: &str| {
        let part = explained.get(name).unwrap().as_document().unwrap().get(path).unwrap();
        part.as_document().unwrap().to_doc()
    };
    let mut stage = below("queryPlanner", "winningPlan");
    while let Some(Value::Document(inner)) = stage.get("inputStage") {
        stage = inner.to_doc();
    }
    (stage.clone(), explained.get("executionStats").unwrap().as_document().unwrap().to_doc())
}

fn mixed_ids() -> Vec<Doc> {
    let mut documents: Vec<Doc> = (0..20).map(|id| doc! { "_id": id, "a": (-id) }).collect();
    documents.extend([
        doc! { "_id": null },
        doc! { "_id": (f64::NAN) },
        doc! { "_id": (f64::INFINITY) },
        doc! { "_id": "a" },
        doc! { "_id": "b" },
        doc! { "_id": "" },
        doc! { "_id": { "x": 1 } },
        doc! { "_id": true },
        doc! { "_id": (Value::DateTime(5)) },
        doc! { "_id": (Value::MinKey) },
        doc! { "_id": (Value::MaxKey) },
    ]);
    documents
}

#[test]
fn x28_filters_on_a_clustered_collection_find_what_they_find_elsewhere() {
    run(async {
        let mut node = node().await;
        node.ok(doc! { "create": "k", "clusteredIndex": (CLUSTERED()) }).await;
        node.insert_into("k", &mixed_ids()).await;
        node.insert_into("c", &mixed_ids()).await;
        for filter in [
            doc! { "_id": 5 },
            doc! { "_id": { "$lt": 5 } },
            doc! { "_id": { "$lte": 5.5 } },
            doc! { "_id": { "$gt": 5, "$lt": 9 } },
            doc! { "_id": { "$gte": 5 }, "a": { "$lt": (-7) } },
            doc! { "_id": { "$gte": (f64::NAN) } },
            doc! { "_id": { "$in": [3, "b", null] } },
            doc! { "_id": { "$in": [3, 700] } },
            doc! { "_id": { "$gt": "a" } },
            doc! { "_id": { "$lte": null } },
            doc! { "_id": { "$gte": { "x": 0 } } },
            doc! { "_id": { "$lt": (Value::MaxKey) } },
            doc! { "_id": { "$gte": (Value::MinKey) } },
            doc! { "_id": { "$ne": 5 } },
            doc! { "_id": { "$exists": true } },
            doc! { "$or": [{ "_id": 3 }, { "a": (-4) }] },
            doc! { "_id": { "$gt": 9, "$lt": 5 } },
            doc! {},
        ] {
            for direction in [1, -1] {
                let find = |name: &str| doc! { "find": name, "filter": &filter, "sort": { "_id": direction } };
                assert_eq!(node.find(find("k")).await, node.find(find("c")).await, "{filter} {direction}");
            }
            let count = |name: &str| doc! { "count": name, "query": &filter };
            let (here, there) = (node.ok(count("k")).await, node.ok(count("c")).await);
            assert_eq!(number(&here, "n"), number(&there, "n"), "{filter}");
        }
    });
}

#[test]
fn x28_explain_shows_bounded_scans() {
    run(async {
        let mut node = node().await;
        node.ok(doc! { "create": "k", "clusteredIndex": (CLUSTERED()) }).await;
        let documents: Vec<Doc> = (0..100).map(|id| doc! { "_id": id, "a": id }).collect();
        node.insert_into("k", &documents).await;
        let (stage, stats) = scan(&mut node, doc! { "find": "k", "filter": { "_id": 5 } }).await;
        assert_eq!(text(&stage, "stage"), "CLUSTERED_IXSCAN");
        assert_eq!((number(&stage, "minRecord"), number(&stage, "maxRecord")), (5.0, 5.0));
        assert_eq!((number(&stats, "nReturned"), number(&stats, "totalDocsExamined")), (1.0, 2.0));
        let range = doc! { "_id": { "$gte": 20, "$lt": 40 } };
        let (stage, stats) = scan(&mut node, doc! { "find": "k", "filter": &range, "sort": { "_id": (-1) } }).await;
        assert_eq!((text(&stage, "stage"), text(&stage, "direction")), ("CLUSTERED_IXSCAN".into(), "backward".into()));
        assert_eq!(number(&stats, "nReturned"), 20.0);
        let (stage, _) = scan(&mut node, doc! { "find": "k", "filter": { "a": 3 }, "sort": { "_id": 1 } }).await;
        assert_eq!((text(&stage, "stage"), stage.view().contains("minRecord")), ("COLLSCAN".into(), false));
        let natural = |way: i32| doc! { "find": "k", "hint": { "$natural": way }, "sort": { "_id": 1 } };
        for (way, is_sorted) in [(1, false), (-1, true)] {
            let explained = node.ok(doc! { "explain": (natural(way)) }).await;
            assert_eq!(explained.to_string().contains("\"SORT\""), is_sorted, "{explained}");
        }
        // Keys that the client gives bound as well; the second is left out.
        let given = doc! { "find": "k", "hint": { "_id": 1 }, "min": { "_id": 10 }, "max": { "_id": 13 } };
        assert_eq!(node.find(given.clone()).await.len(), 3);
        assert_eq!(text(&scan(&mut node, given).await.0, "stage"), "CLUSTERED_IXSCAN");
        let wrong = doc! { "find": "k", "hint": { "_id": 1 }, "min": { "b": 10 } };
        assert!(node.code(wrong).await > 0);
        // An id that no record can have.
        let long = "x".repeat(9 << 20);
        let reply = node.ok(doc! { "insert": "k", "documents": [{ "_id": long }] }).await;
        assert!(reply.to_string().contains("5894900"));
        let index = |key: Doc| doc! { "createIndexes": "k", "indexes": [{ "key": key, "name": "n", "clustered": true, "unique": true }] };
        assert_eq!(node.code(index(doc! { "a": 1 })).await, 6243700);
        node.ok(index(doc! { "_id": 1 })).await;
    });
}

#[test]
fn x28_what_clustered_collections_cannot_be_is_refused() {
    run(async {
        let mut node = node().await;
        let create = |more: Doc| {
            let mut command = DocBuilder::new();
            command.append("create", "k");
            command.append("clusteredIndex", CLUSTERED());
            command.append_all(more.view());
            command.finish()
        };
        assert_eq!(node.code(create(doc! { "viewOn": "c" })).await, 6026500);
        assert_eq!(node.code(create(doc! { "autoIndexId": false })).await, 6026501);
        node.ok(create(doc! { "capped": true, "expireAfterSeconds": 10 })).await;
        let index =
            doc! { "createIndexes": "k", "indexes": [{ "key": { "a": 1 }, "name": "a", "expireAfterSeconds": 1 }] };
        assert_eq!(node.code(index).await, 6049202);
        let english = doc! { "locale": "en_US" };
        let id_index = doc! { "key": { "_id": 1 }, "name": "_id_", "collation": &english };
        node.ok(doc! { "create": "e", "collation": &english, "idIndex": id_index }).await;
    });
}

/// The code of the first error of a write to `local`.
async fn local_write_error(node: &mut Node, command: Doc) -> Option<i64> {
    let reply = node.ok_on("local", command).await;
    let error = reply.get("writeErrors")?.as_array()?.get(0)?.as_document()?.get("code")?;
    error.to_i64_exact()
}

#[test]
fn x28_what_is_not_replicated_may_be_clustered_by_any_field() {
    run(async {
        let mut node = node_with(&[("supportArbitraryClusterKeyIndex", "true")]).await;
        let create = |key: Doc| doc! { "create": "k", "clusteredIndex": { "key": key, "unique": true } };
        assert_eq!(node.code(create(doc! { "at": 1 })).await, 5979701);
        for (key, code) in
            [(doc! { "at": 1, "b": 1 }, 6053700), (doc! { "at.b": 1 }, 6053701), (doc! { "at": (-1) }, 6053702)]
        {
            assert_eq!(node.code_on("local", create(key)).await, code);
        }
        node.ok_on("local", create(doc! { "at": 1 })).await;
        let indexes = batch(&node.ok_on("local", doc! { "listIndexes": "k" }).await, "firstBatch");
        assert_eq!(indexes.len(), 1);
        assert_eq!(text(&indexes[0], "name"), "at_1");
        let insert = |document: Doc| doc! { "insert": "k", "documents": [document] };
        for at in [7, 3, 9, 5] {
            assert_eq!(local_write_error(&mut node, insert(doc! { "_id": 1, "at": at })).await, None);
        }
        assert_eq!(local_write_error(&mut node, insert(doc! { "at": 3.0 })).await, Some(11000));
        assert_eq!(local_write_error(&mut node, insert(doc! { "b": 1 })).await, Some(2));
        assert_eq!(local_write_error(&mut node, insert(doc! { "at": [1, 2] })).await, Some(2));
        let moved = doc! { "update": "k", "updates": [{ "q": { "at": 3 }, "u": { "$set": { "at": 4 } } }] };
        assert_eq!(local_write_error(&mut node, moved).await, Some(66));
        // Documents lie by the field, and several have one id.
        let found = node.find_on("local", doc! { "find": "k", "filter": { "at": { "$gt": 3 } } }).await;
        let places: Vec<f64> = found.iter().map(|document| number(document, "at")).collect();
        assert_eq!(places, [5.0, 7.0, 9.0]);
        assert_eq!(node.find_on("local", doc! { "find": "k", "filter": { "_id": 1 } }).await.len(), 4);
        let explained = node.ok_on("local", doc! { "explain": { "find": "k", "filter": { "at": 5 } } }).await;
        assert!(explained.to_string().contains("CLUSTERED_IXSCAN"), "{explained}");
        let sorted = node.ok_on("local", doc! { "explain": { "find": "k", "sort": { "at": (-1) } } }).await;
        assert!(!sorted.to_string().contains("\"SORT\""), "{sorted}");
        assert_eq!(node.code_on("local", doc! { "dropIndexes": "k", "index": { "at": 1 } }).await, 5979800);
        let checked = node.ok_on("local", doc! { "validate": "k" }).await;
        assert_eq!(checked.get("valid"), Some(Value::Bool(true)), "{checked}");
        let mut usual = super::node().await;
        assert_eq!(usual.code_on("local", create(doc! { "at": 1 })).await, 197);
    });
}

#[test]
fn x28_an_order_needs_no_sort_where_no_strings_are() {
    run(async {
        let mut node = node().await;
        node.ok(doc! { "create": "k", "clusteredIndex": (CLUSTERED()), "collation": { "locale": "en" } }).await;
        let explain = |filter: Doc| {
            let find = doc! { "find": "k", "filter": filter, "sort": { "_id": 1 }, "collation": { "locale": "fr" } };
            doc! { "explain": find }
        };
        for (filter, is_sorted) in [
            (doc! { "_id": { "$gt": 5 } }, false),
            (doc! { "_id": { "$in": [1, 2] } }, false),
            (doc! { "_id": { "$eq": { "a": 5 } } }, false),
            (doc! { "_id": { "$in": [1, "2"] } }, true),
            (doc! { "_id": { "$gt": "a" } }, true),
            (doc! {}, true),
        ] {
            let explained = node.ok(explain(filter)).await;
            assert_eq!(explained.to_string().contains("\"SORT\""), is_sorted, "{explained}");
        }
    });
}
