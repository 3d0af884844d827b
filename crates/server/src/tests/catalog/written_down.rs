//! What becomes of collections, indexes and databases is in the log, and nothing that did not become so.

use super::super::node::node;
use super::super::*;

#[test]
fn u11_changes_of_collections_are_lines_of_the_log() {
    run(async {
        let mut node = node().await;
        node.ok(doc! { "create": "one", "capped": true, "size": 4096 }).await;
        node.insert(vec![doc! { "_id": 1, "a": 1 }]).await;
        let index = doc! { "key": { "a": 1 }, "name": "by_a" };
        node.ok(doc! { "createIndexes": "c", "indexes": [(index)] }).await;
        node.ok(doc! { "collMod": "c", "index": { "name": "by_a", "hidden": true } }).await;
        node.ok(doc! { "dropIndexes": "c", "index": "by_a" }).await;
        node.ok_on("admin", doc! { "renameCollection": "d.c", "to": "d.renamed" }).await;
        node.ok(doc! { "drop": "renamed" }).await;
        assert!(number(&node.run(doc! { "create": "one", "size": 1 }).await, "ok") == 0.0);
        node.ok(doc! { "dropDatabase": 1 }).await;
        let told = node.ok_on("admin", doc! { "getLog": "global" }).await;
        let lines = told.get("log").and_then(|lines| lines.as_array()).expect("lines");
        let lines: Vec<String> = lines.values().filter_map(|line| line.as_str().map(str::to_owned)).collect();
        let count = |parts: &[&str]| lines.iter().filter(|line| parts.iter().all(|part| line.contains(part))).count();
        for parts in [
            &["\"id\":20320", "\"namespace\":\"d.one\"", "\"capped\":true"][..],
            &["\"id\":20320", "\"namespace\":\"d.c\""],
            &["\"id\":5324200", "d.c", "by_a"],
            &["\"id\":51806", "d.c", "by_a"],
            &["\"id\":20319", "\"fromName\":\"d.c\"", "\"toName\":\"d.renamed\""],
            &["\"id\":20318", "d.renamed"],
            &["\"id\":20318", "d.one"],
            &["\"id\":20336", "\"db\":\"d\""],
            &["\"id\":21358", "\"newState\":\"PRIMARY\""],
            // As it was initiated, and as the election has marked it with its term.
            &["\"id\":21392", "\"version\":1,\"term\":0"],
            &["\"id\":21392", "\"version\":1,\"term\":1"],
            &["\"id\":21331"],
        ] {
            assert_eq!(count(parts), 1, "{parts:?} in {lines:#?}");
        }
    });
}
