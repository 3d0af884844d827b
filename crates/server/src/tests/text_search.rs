//! Text indexes and searches, over the wire.

use super::node::Node;
use super::*;
use pando_doc::Value;

async fn library() -> Node {
    let mut node = super::node::node().await;
    let key = doc! { "key": { "title": "text", "body": "text" }, "name": "t", "weights": { "title": 10 } };
    node.ok(doc! { "createIndexes": "c", "indexes": [key] }).await;
    node.insert(vec![
        doc! { "_id": 1, "title": "Coffee", "body": "dark roast and coffee shops", "kind": "drink" },
        doc! { "_id": 2, "title": "Tea", "body": "Green leaves, no coffee", "kind": "drink" },
        doc! { "_id": 3, "title": "Running", "body": "The runner's café", "kind": "sport" },
    ])
    .await;
    node
}

async fn ids(node: &mut Node, search: Doc) -> Vec<i32> {
    let found = node.find(doc! { "find": "c", "filter": { "$text": search }, "sort": { "_id": 1 } }).await;
    found.iter().map(|document| number(document, "_id") as i32).collect()
}

#[test]
fn u7_text_is_found_by_words_phrases_and_negations() {
    run(async {
        let mut node = library().await;
        assert_eq!(ids(&mut node, doc! { "$search": "coffee" }).await, [1, 2]);
        assert_eq!(ids(&mut node, doc! { "$search": "SHOP runs" }).await, [1, 3]);
        assert_eq!(ids(&mut node, doc! { "$search": "coffee -leaves" }).await, [1]);
        assert_eq!(ids(&mut node, doc! { "$search": "\"no coffee\"" }).await, [2]);
        assert_eq!(ids(&mut node, doc! { "$search": "cafe" }).await, [3]);
        assert_eq!(ids(&mut node, doc! { "$search": "cafe", "$diacriticSensitive": true }).await, [0_i32; 0]);
        assert_eq!(ids(&mut node, doc! { "$search": "Coffee", "$caseSensitive": true }).await, [1]);
        assert_eq!(ids(&mut node, doc! { "$search": "the" }).await, [0_i32; 0]);
        assert_eq!(ids(&mut node, doc! { "$search": "running", "$language": "none" }).await, [0_i32; 0]);
        let beside = doc! { "find": "c", "filter": { "$text": { "$search": "coffee" }, "_id": { "$gt": 1 } } };
        assert_eq!(node.find(beside).await.len(), 1);
        node.ok(doc! { "update": "c", "updates": [{ "q": { "_id": 2 }, "u": { "$set": { "body": "water" } } }] }).await;
        assert_eq!(ids(&mut node, doc! { "$search": "coffee water" }).await, [1, 2]);
        node.ok(doc! { "delete": "c", "deletes": [{ "q": { "$text": { "$search": "coffee" } }, "limit": 0 }] }).await;
        assert_eq!(ids(&mut node, doc! { "$search": "coffee water" }).await, [2]);
        let count = doc! { "aggregate": "c", "pipeline": [{ "$match": { "$text": { "$search": "water" } } }, { "$count": "n" }], "cursor": {} };
        assert_eq!(super::node::batch(&node.ok(count).await, "firstBatch")[0].get("n"), Some(Value::Int32(1)));
        let checked = node.ok(doc! { "validate": "c" }).await;
        assert_eq!(checked.get("valid"), Some(Value::Bool(true)), "{checked}");
    });
}

#[test]
fn u7_text_scores_are_shown_and_sorted_by() {
    run(async {
        let mut node = library().await;
        let score = doc! { "$meta": "textScore" };
        let found = node
            .find(
                doc! { "find": "c", "filter": { "$text": { "$search": "coffee" } }, "projection": { "score": (&score) },
                "sort": { "score": (&score) } },
            )
            .await;
        let shown: Vec<(f64, f64)> = found.iter().map(|found| (number(found, "_id"), number(found, "score"))).collect();
        let [(one, best), (two, worst)] = shown[..] else { panic!("{found:?}") };
        assert_eq!((one, two, worst), (1.0, 2.0, 0.5 / 3.0 + 0.5));
        assert!((best - (10.0 + 0.5 / 4.0 + 0.5)).abs() < 1e-9, "{best}");
        assert_eq!(text(&found[0], "kind"), "drink", "the other fields stay");
        assert_eq!(node.code(doc! { "find": "c", "projection": { "score": (&score) } }).await, 40218);
        assert_eq!(node.code(doc! { "find": "c", "sort": { "score": (&score) } }).await, 40218);
        let by_both = doc! { "kind": 1, "score": (&score) };
        let filter = doc! { "$text": { "$search": "coffee running" } };
        let found = node.find(doc! { "find": "c", "filter": (&filter), "sort": by_both }).await;
        assert_eq!(found.iter().map(|found| number(found, "_id")).collect::<Vec<_>>(), [1.0, 2.0, 3.0]);
        let stages = doc! { "aggregate": "c", "pipeline": [{ "$match": (&filter) }, { "$sort": { "s": (&score) } }], "cursor": {} };
        let found = super::node::batch(&node.ok(stages).await, "firstBatch");
        assert_eq!(found.iter().map(|found| number(found, "_id")).collect::<Vec<_>>(), [1.0, 3.0, 2.0]);
    });
}

#[test]
fn u7_text_searches_that_cannot_be_are_refused() {
    run(async {
        let mut node = library().await;
        let find = |filter: Doc| doc! { "find": "c", "filter": filter };
        for (filter, code) in [
            (doc! { "$text": 5 }, 2),
            (doc! { "$text": {} }, 4),
            (doc! { "$text": { "$search": 5 } }, 14),
            (doc! { "$text": { "$search": "x", "$language": "klingon" } }, 2),
            (doc! { "$text": { "$search": "x", "other": 1 } }, 2),
            (doc! { "a": { "$elemMatch": { "$text": { "$search": "x" } } } }, 2),
            (doc! { "$nor": [{ "$text": { "$search": "x" } }] }, 2),
            (doc! { "$or": [{ "$text": { "$search": "x" } }, { "a": 1 }] }, 291),
        ] {
            assert_eq!(node.code(find(filter.clone())).await, code, "{filter}");
        }
        assert_eq!(node.code(doc! { "find": "none", "filter": { "$text": { "$search": "x" } } }).await, 27);
        let late = doc! { "aggregate": "c", "pipeline": [{ "$skip": 1 }, { "$match": { "$text": { "$search": "x" } } }], "cursor": {} };
        assert_eq!(node.code(late).await, 17313);
        let second = doc! { "createIndexes": "c", "indexes": [{ "key": { "kind": "text" }, "name": "u" }] };
        assert_eq!(node.code(second).await, 85, "one text index is enough");
        node.ok(doc! { "dropIndexes": "c", "index": "t" }).await;
        assert_eq!(node.code(find(doc! { "$text": { "$search": "x" } })).await, 27);
        let compound =
            doc! { "createIndexes": "c", "indexes": [{ "key": { "kind": 1, "title": "text" }, "name": "k" }] };
        node.ok(compound).await;
        assert_eq!(node.code(find(doc! { "$text": { "$search": "tea" } })).await, 291, "the prefix is missing");
        let found = node.find(find(doc! { "$text": { "$search": "tea coffee" }, "kind": "drink" })).await;
        assert_eq!(found.len(), 2);
    });
}

#[test]
fn u13_a_search_may_be_one_of_several_alternatives() {
    run(async {
        let mut node = super::node::node().await;
        node.insert(vec![
            doc! { "_id": 1, "a": 0, "t": "foo" },
            doc! { "_id": 2, "a": 0, "t": "bar" },
            doc! { "_id": 3, "a": 1, "t": "foo" },
            doc! { "_id": 4, "a": 0, "t": "none" },
        ])
        .await;
        node.ok(doc! { "createIndexes": "c", "indexes": [{ "key": { "t": "text" }, "name": "t" }] }).await;
        let search = || doc! { "$text": { "$search": "foo" } };
        let ids = |found: Vec<Doc>| {
            let mut ids: Vec<String> = found.iter().map(|row| row.get("_id").unwrap().to_string()).collect();
            ids.sort_unstable();
            ids.join(" ")
        };
        let either = doc! { "find": "c", "filter": { "$or": [{ "_id": 2 }, (search())] } };
        assert_eq!(ids(node.find(either.clone()).await), "1 2 3");
        assert_eq!(
            ids(node.find(doc! { "find": "c", "filter": { "a": 0, "$or": [{ "_id": 2 }, (search())] } }).await),
            "1 2"
        );
        let counted = doc! { "count": "c", "query": { "a": 0, "$or": [{ "_id": 2 }, (search())] } };
        assert_eq!(node.ok(counted).await.get("n").unwrap().to_string(), "2");
        let unindexed = doc! { "find": "c", "filter": { "$or": [{ "a": 1 }, (search())] } };
        assert_eq!(node.code(unindexed).await, 291);
    });
}
