//! Plans over the wire: wildcard indexes, the plan cache, index filters, what queries know beside fields, resumed scans.

use super::node::{Node, batch, node, part};
use super::*;
use pando_doc::Value;

async fn filled() -> Node {
    let mut node = node().await;
    node.insert((0..20).map(|id| doc! { "_id": id, "a": (id % 4), "b": id, "c": { "d": (id % 3) } }).collect()).await;
    node
}

async fn index(node: &mut Node, key: Doc, name: &str) {
    node.ok(doc! { "createIndexes": "c", "indexes": [{ "key": key, "name": name }] }).await;
}

/// The stages of a plan from its root down one line.
fn stages(plan: &Doc) -> Vec<String> {
    let mut names = vec![text(plan, "stage").to_owned()];
    if let Some(Value::Document(below)) = plan.get("inputStage") {
        names.extend(stages(&below.to_doc()));
    }
    names
}

async fn winning(node: &mut Node, find: Doc) -> Doc {
    let explained = node.ok(doc! { "explain": find, "verbosity": "queryPlanner" }).await;
    part(&part(&explained, "queryPlanner"), "winningPlan")
}

#[test]
fn u7_wildcard_indexes_serve_every_path_below_them() {
    run(async {
        let mut node = filled().await;
        index(&mut node, doc! { "$**": 1 }, "all").await;
        let plan = winning(&mut node, doc! { "find": "c", "filter": { "c.d": 2 } }).await;
        assert_eq!(stages(&plan), ["FETCH", "IXSCAN"]);
        let scan = part(&plan, "inputStage");
        assert_eq!(part(&scan, "keyPattern"), doc! { "$_path": 1, "c.d": 1 });
        let bounds = doc! { "$_path": ["[\"c.d\", \"c.d\"]"], "c.d": ["[2, 2]"] };
        assert_eq!(part(&scan, "indexBounds"), bounds);
        assert_eq!(node.find(doc! { "find": "c", "filter": { "c.d": 2 } }).await.len(), 6);
        let there = doc! { "find": "c", "filter": { "c": { "$exists": true } } };
        let plan = winning(&mut node, there.clone()).await;
        let bounds = part(&part(&plan, "inputStage"), "indexBounds");
        let paths = bounds.get("$_path").and_then(|paths| paths.as_array()).unwrap();
        let paths: Vec<&str> = paths.values().filter_map(|path| path.as_str()).collect();
        assert_eq!(paths, ["[\"c\", \"c\"]", "[\"c.\", \"c/\")"]);
        assert_eq!(node.find(there).await.len(), 20, "a record with several keys below the path is found once");
        let plan = winning(&mut node, doc! { "find": "c", "filter": { "c": { "d": 1 } } }).await;
        assert_eq!(stages(&plan), ["COLLSCAN"], "whole documents have no keys");
        assert_eq!(node.code(doc! { "find": "c", "hint": "all" }).await, 291);
        node.ok(doc! { "update": "c", "updates": [{ "q": { "_id": 1 }, "u": { "$set": { "c.d": [7, 8] } } }] }).await;
        assert_eq!(node.find(doc! { "find": "c", "filter": { "c.d": 8 }, "hint": "all" }).await.len(), 1);
        let checked = node.ok(doc! { "validate": "c" }).await;
        assert_eq!(checked.get("valid"), Some(Value::Bool(true)), "{checked}");
    });
}

#[test]
fn u7_wildcard_indexes_that_make_no_sense_are_refused() {
    run(async {
        let mut node = node().await;
        let with = |key: Doc, projection: Doc| {
            doc! { "createIndexes": "c", "indexes": [{ "key": key, "name": "w", "wildcardProjection": projection }] }
        };
        for (command, code) in [
            (doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1, "a.$**": 1 }, "name": "w" }] }, 7246204),
            (doc! { "createIndexes": "c", "indexes": [{ "key": { "a.$**": 1, "b.$**": 1 }, "name": "w" }] }, 7246201),
            (with(doc! { "$**": 1, "c": 1 }, doc! { "a.b": 1, "a.b.c": 1 }), 7246200),
            (with(doc! { "a": 1, "$**": 1 }, doc! { "a": 1 }), 7246208),
            (with(doc! { "$**": 1, "c": 1 }, doc! { "_id": 0, "a": 0, "b": 1 }), 7246211),
            (with(doc! { "a": 1, "b": 1, "$**": 1 }, doc! { "b": 0 }), 7246209),
            (with(doc! { "a": 1, "$**": 1 }, doc! { "_id": 0 }), 7246210),
        ] {
            assert_eq!(node.code(command.clone()).await, code, "{command}");
        }
        node.ok(with(doc! { "$**": 1, "c": 1 }, doc! { "_id": 0, "b": 1 })).await;
    });
}

#[test]
fn u8_the_plan_cache_is_shown_and_cleared() {
    run(async {
        let mut node = filled().await;
        index(&mut node, doc! { "a": 1 }, "a_1").await;
        index(&mut node, doc! { "b": 1 }, "b_1").await;
        let find = doc! { "find": "c", "filter": { "a": 1, "b": { "$gt": 3 } } };
        let stats = doc! { "aggregate": "c", "pipeline": [{ "$planCacheStats": {} }], "cursor": {} };
        let explained = node.ok(doc! { "explain": (&find) }).await;
        assert_eq!(node.find(stats.clone()).await.len(), 0, "an explain leaves no traces");
        node.find(find.clone()).await;
        let entries = node.find(stats.clone()).await;
        let [entry] = &entries[..] else { panic!("{entries:?}") };
        assert_eq!(entry.get("isActive"), Some(Value::Bool(false)));
        assert_eq!(text(entry, "planCacheKey"), text(&part(&explained, "queryPlanner"), "planCacheKey"));
        assert_eq!(part(&part(entry, "createdFromQuery"), "query"), doc! { "a": 1, "b": { "$gt": 3 } });
        assert_eq!(entry.get("creationExecStats").and_then(|stats| stats.as_array()).unwrap().values().count(), 2);
        node.find(find.clone()).await;
        assert_eq!(node.find(stats.clone()).await[0].get("isActive"), Some(Value::Bool(true)));
        node.ok(doc! { "planCacheClear": "c", "query": { "a": 9, "b": { "$gt": 9 } } }).await;
        assert_eq!(node.find(stats.clone()).await.len(), 0);
        assert_eq!(node.code(doc! { "planCacheClear": "c", "query": 1 }).await, 2);
        assert_eq!(node.code(doc! { "planCacheClear": "c", "sort": {} }).await, 2);
    });
}

#[test]
fn u8_index_filters_leave_other_indexes_out() {
    run(async {
        let mut node = filled().await;
        index(&mut node, doc! { "a": 1 }, "a_1").await;
        index(&mut node, doc! { "b": 1 }, "b_1").await;
        let set = doc! { "planCacheSetFilter": "c", "query": { "a": 1, "b": 1 }, "indexes": [{ "b": 1 }] };
        assert_eq!(node.code(doc! { "planCacheSetFilter": "none", "query": {}, "indexes": ["x"] }).await, 2);
        node.ok(set).await;
        let find = doc! { "find": "c", "filter": { "a": 3, "b": 3 }, "hint": "a_1" };
        let explained = node.ok(doc! { "explain": find }).await;
        let planner = part(&explained, "queryPlanner");
        assert_eq!(planner.get("indexFilterSet"), Some(Value::Bool(true)));
        assert_eq!(text(&part(&part(&planner, "winningPlan"), "inputStage"), "indexName"), "b_1");
        let listed = node.ok(doc! { "planCacheListFilters": "c" }).await;
        let filters = listed.get("filters").and_then(|filters| filters.as_array()).unwrap();
        assert_eq!(filters.values().count(), 1);
        node.ok(doc! { "planCacheClearFilters": "c" }).await;
        let explained = node.ok(doc! { "explain": { "find": "c", "filter": { "a": 3, "b": 3 } } }).await;
        assert_eq!(part(&explained, "queryPlanner").get("indexFilterSet"), Some(Value::Bool(false)));
    });
}

#[test]
fn u6_what_a_query_knows_beside_fields() {
    run(async {
        let mut node = filled().await;
        index(&mut node, doc! { "a": 1 }, "a_1").await;
        let meta = |kind: &str| doc! { "$meta": kind };
        let found = node
            .find(doc! { "find": "c", "filter": { "a": 1 }, "sort": { "a": 1, "b": -1 }, "limit": 1,
            "projection": { "_id": 1, "key": meta("sortKey"), "where": meta("recordId"), "index": meta("indexKey") } })
            .await;
        assert_eq!(found[0].get("key").unwrap().to_string(), "[ 1, 17 ]");
        assert_eq!(found[0].get("where"), Some(Value::Int64(18)));
        assert_eq!(part(&found[0], "index"), doc! { "a": 1 });
        let pipeline = doc! { "aggregate": "c", "cursor": {}, "pipeline": [
        { "$addFields": { "where": meta("recordId"), "all": "$$ROOT" } }, { "$match": { "where": 3 } } ] };
        let found = batch(&node.ok(pipeline).await, "firstBatch");
        assert_eq!((found.len(), number(&found[0], "_id")), (1, 2.0));
        assert_eq!(part(&found[0], "all").view().first().unwrap().name, "_id", "$$ROOT shows fields only");
        for (projection, code) in [(meta("nonsense"), 17308), (meta("sortKey"), 2), (meta("textScore"), 40218)] {
            let find = doc! { "find": "c", "projection": { "x": projection } };
            assert_eq!(node.code(find.clone()).await, code, "{find}");
        }
        index(&mut node, doc! { "t": "text" }, "text").await;
        node.insert(vec![doc! { "_id": 100, "t": "tea" }]).await;
        let pipeline = doc! { "aggregate": "c", "cursor": {}, "pipeline": [
        { "$match": { "$text": { "$search": "tea" } } }, { "$project": { "_id": 1, "s": meta("textScore") } },
        { "$group": { "_id": { "$gt": ["$s", 1] } } } ] };
        assert_eq!(batch(&node.ok(pipeline).await, "firstBatch"), [doc! { "_id": true }]);
    });
}

#[test]
fn u3_scans_go_on_where_a_token_says() {
    run(async {
        let mut node = filled().await;
        let find = doc! { "find": "c", "hint": { "$natural": 1 }, "batchSize": 5, "$_requestResumeToken": true };
        let reply = node.ok(find).await;
        let token = part(&part(&reply, "cursor"), "postBatchResumeToken");
        let again = |token: Doc, field: &str| {
            doc! { "find": "c", "hint": { "$natural": 1 }, "$_requestResumeToken": true, (field): token }
        };
        let rest = node.find(again(token.clone(), "$_resumeAfter")).await;
        assert_eq!((rest.len(), number(&rest[0], "_id")), (15, 5.0));
        node.ok(doc! { "delete": "c", "deletes": [{ "q": { "_id": 4 }, "limit": 1 }] }).await;
        assert_eq!(node.code(again(token.clone(), "$_resumeAfter")).await, 211);
        assert_eq!(node.find(again(token, "$_startAt")).await.len(), 15);
        let bytes = doc! { "$recordId": Value::Binary { subtype: 0, bytes: &[1] } };
        assert_eq!(node.code(again(bytes, "$_resumeAfter")).await, 7738600);
        assert_eq!(node.code(doc! { "find": "c", "$_requestResumeToken": true }).await, 2);
    });
}

#[test]
fn u3_distinct_values_are_read_from_keys_that_a_filter_bounds() {
    run(async {
        let mut node = filled().await;
        index(&mut node, doc! { "a": 1, "b": 1 }, "ab").await;
        let distinct = doc! { "distinct": "c", "key": "a", "query": { "a": { "$gt": 1 } } };
        let reply = node.ok(distinct.clone()).await;
        assert_eq!(reply.get("values").unwrap().to_string(), "[ 2, 3 ]");
        let explained = node.ok(doc! { "explain": distinct }).await;
        let plan = part(&part(&explained, "queryPlanner"), "winningPlan");
        assert_eq!(stages(&plan), ["PROJECTION_COVERED", "DISTINCT_SCAN"]);
        let count = node.ok(doc! { "explain": { "count": "c", "query": { "a": 1 } } }).await;
        let plan = part(&part(&part(&count, "queryPlanner"), "winningPlan"), "inputStage");
        let bounds = part(&plan, "indexBounds");
        assert_eq!(part(&bounds, "startKey"), doc! { "a": 1, "b": Value::MinKey });
    });
}

#[test]
fn u7_sparse_and_hashed_indexes_have_what_must_be_there() {
    run(async {
        let mut node = node().await;
        let rows = [doc! { "_id": 1, "a": [{ "b": 1 }, { "c": 1 }] }, doc! { "_id": 2, "a": [{ "b": Value::Null }] }];
        node.insert(rows.into_iter().chain([doc! { "_id": 3, "h": 1 }]).collect()).await;
        let indexes = [
            doc! { "key": { "a.b": 1 }, "name": "ab", "sparse": true },
            doc! { "key": { "h": "hashed" }, "name": "h", "sparse": true },
        ];
        for index in indexes {
            node.ok(doc! { "createIndexes": "c", "indexes": [index] }).await;
        }
        let there = doc! { "find": "c", "filter": { "a": { "$elemMatch": { "b": { "$ne": Value::Null } } } } };
        assert_eq!(stages(&winning(&mut node, there.clone()).await), ["FETCH", "IXSCAN"]);
        assert_eq!(node.find(there).await.len(), 1);
        let nothing = doc! { "find": "c", "filter": { "a": { "$elemMatch": { "b": Value::Null } } } };
        assert_eq!(stages(&winning(&mut node, nothing.clone()).await), ["COLLSCAN"]);
        assert_eq!(node.find(nothing).await.len(), 2);
        let hashed = doc! { "find": "c", "filter": { "h": { "$exists": true } } };
        assert_eq!(stages(&winning(&mut node, hashed.clone()).await), ["FETCH", "IXSCAN"]);
        assert_eq!(node.find(hashed).await.len(), 1);
        // An array inside of the element: null may be among its values.
        node.insert(vec![doc! { "_id": 4, "a": [{ "b": [1, Value::Null] }] }]).await;
        let there = doc! { "find": "c", "filter": { "a": { "$elemMatch": { "b": { "$ne": Value::Null } } } } };
        assert_eq!(stages(&winning(&mut node, there.clone()).await), ["COLLSCAN"]);
        assert_eq!(node.find(there).await.len(), 1);
    });
}

#[test]
fn u7_hashes_of_values_are_found_in_hashed_indexes() {
    run(async {
        let mut node = node().await;
        node.insert((0..5).map(|id| doc! { "_id": id, "a": id }).collect()).await;
        index(&mut node, doc! { "a": "hashed" }, "a").await;
        let reply = node.ok(doc! { "_hashBSONElement": 3 }).await;
        let Some(Value::Int64(hash)) = reply.get("out") else { panic!("{reply}") };
        let filters = [
            doc! { "a": { "$_internalEqHash": hash } },
            doc! { "$expr": { "$eq": [{ "$toHashedIndexKey": "$a" }, hash] } },
        ];
        for filter in filters {
            let find = doc! { "find": "c", "filter": filter };
            assert_eq!(stages(&winning(&mut node, find.clone()).await), ["FETCH", "IXSCAN"]);
            assert_eq!(node.find(find).await, [doc! { "_id": 3, "a": 3 }]);
        }
    });
}

#[test]
fn u7_explain_says_what_is_sorted_and_how_keys_become_fields() {
    run(async {
        let mut node = filled().await;
        index(&mut node, doc! { "a": 1, "b": 1 }, "ab").await;
        index(&mut node, doc! { "c.d": 1 }, "cd").await;
        let of_keys = doc! {
            "find": "c", "filter": { "a": { "$gt": 0 } }, "projection": { "_id": 0, "a": 1, "b": 1 },
            "sort": { "b": 1 }, "hint": "ab",
        };
        let plan = winning(&mut node, of_keys).await;
        assert_eq!(stages(&plan), ["PROJECTION_COVERED", "SORT", "IXSCAN"]);
        assert_eq!(text(&part(&plan, "inputStage"), "type"), "default");
        let plan = winning(&mut node, doc! { "find": "c", "sort": { "b": 1 }, "hint": { "$natural": 1 } }).await;
        assert_eq!(text(&plan, "type"), "simple");
        let dotted = doc! { "find": "c", "filter": { "c.d": 1 }, "projection": { "_id": 0, "c.d": 1 } };
        let plan = winning(&mut node, dotted).await;
        assert_eq!(stages(&plan), ["PROJECTION_DEFAULT", "IXSCAN"]);
    });
}
