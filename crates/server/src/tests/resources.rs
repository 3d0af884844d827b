//! What operations take of storage: with each of them, by database, and not at all unless somebody asks for it.

use super::node::{Node, node, node_with};
use super::*;

const BOTH: &[(&str, &str)] =
    &[("aggregateOperationResourceConsumptionMetrics", "true"), ("profileOperationResourceConsumptionMetrics", "true")];

async fn measuring() -> Node {
    node_with(BOTH).await
}

async fn sums(node: &mut Node, stage: Doc) -> Vec<Doc> {
    let pipeline = doc! { "aggregate": 1, "pipeline": [{ "$operationMetrics": stage }], "cursor": {} };
    super::node::batch(&node.ok_on("admin", pipeline).await, "firstBatch")
}

/// What the last profiled operation of this kind took.
async fn taken(node: &mut Node, op: &str) -> Doc {
    let find =
        doc! { "find": "system.profile", "filter": { "op": op, "ns": "d.c" }, "sort": { "$natural": -1 }, "limit": 1 };
    let found = node.find(find).await;
    found[0].get("operationMetrics").unwrap().as_document().unwrap().to_doc()
}

fn counts<const N: usize>(document: &Doc, names: [&str; N]) -> [f64; N] {
    names.map(|name| number(document, name))
}

#[test]
fn x27_operations_tell_what_they_took() {
    run(async {
        let mut node = measuring().await;
        node.ok(doc! { "create": "c" }).await;
        node.ok(doc! { "profile": 2 }).await;
        node.insert(vec![doc! { "_id": 1.0, "a": 0.0 }]).await;
        let insert = taken(&mut node, "insert").await;
        let written = ["docBytesWritten", "docUnitsWritten", "idxEntryBytesWritten", "idxEntryUnitsWritten"];
        assert_eq!(counts(&insert, written), [29.0, 1.0, 3.0, 1.0]);
        let read = ["docBytesRead", "docUnitsRead", "idxEntryBytesRead", "cursorSeeks", "docUnitsReturned"];
        assert_eq!((counts(&insert, read), number(&insert, "totalUnitsWritten")), ([0.0; 5], 1.0));

        node.find(doc! { "find": "c", "filter": { "_id": 1 } }).await;
        assert_eq!(counts(&taken(&mut node, "query").await, read), [29.0, 1.0, 3.0, 2.0, 1.0]);
        node.find(doc! { "find": "c", "filter": { "a": 0 }, "sort": { "a": 1 } }).await;
        let find = taken(&mut node, "query").await;
        assert_eq!(
            (counts(&find, read), counts(&find, ["keysSorted", "sorterSpills"])),
            ([29.0, 1.0, 0.0, 0.0, 1.0], [1.0, 0.0])
        );
        node.ok(doc! { "delete": "c", "deletes": [{ "q": { "_id": 1 }, "limit": 1 }] }).await;
        let delete = taken(&mut node, "remove").await;
        assert_eq!((counts(&delete, written), counts(&delete, read)[0]), ([29.0, 1.0, 3.0, 1.0], 29.0));
        assert_eq!((counts(&delete, ["totalUnitsWritten", "cursorSeeks"])), [1.0, 3.0]);

        node.insert(vec![doc! { "_id": 2.0, "a": 0.0 }]).await;
        let explained = node.ok(doc! { "explain": { "find": "c" }, "verbosity": "executionStats" }).await;
        let stats = explained.get("executionStats").unwrap().as_document().unwrap().to_doc();
        let used = stats.get("operationMetrics").unwrap().as_document().unwrap().to_doc();
        assert_eq!(counts(&used, ["docBytesRead", "docUnitsReturned"]), [29.0, 0.0]);
    });
}

#[test]
fn x27_sums_are_kept_by_database_until_they_are_cleared() {
    run(async {
        let mut node = measuring().await;
        node.ok_on("e", doc! { "insert": "c", "documents": [{ "_id": 1 }] }).await;
        for _ in 0..3 {
            node.ok_on("e", doc! { "find": "c" }).await;
        }
        node.ok_on("admin", doc! { "insert": "c", "documents": [{ "_id": 1 }] }).await;
        let found = sums(&mut node, doc! {}).await;
        let names: Vec<String> = found.iter().map(|document| text(document, "db")).collect();
        assert_eq!(names, ["e"]);
        let primary = found[0].get("primaryMetrics").unwrap().as_document().unwrap().to_doc();
        // Making the collection reads and writes the catalog too.
        assert!(number(&primary, "docUnitsReturned") == 3.0 && number(&primary, "docUnitsRead") >= 3.0, "{primary}");
        let secondary = found[0].get("secondaryMetrics").unwrap().as_document().unwrap().to_doc();
        assert_eq!(counts(&secondary, ["docUnitsRead", "docUnitsReturned"]), [0.0, 0.0]);
        assert!(number(&found[0], "docUnitsWritten") >= 1.0 && found[0].view().contains("cpuNanos"));
        let section = node.ok_on("admin", doc! { "serverStatus": 1 }).await;
        let section = section.get("resourceConsumption").unwrap().as_document().unwrap().to_doc();
        assert_eq!(number(&section, "numMetrics"), 1.0);
        assert_eq!(sums(&mut node, doc! { "clearMetrics": true }).await.len(), 1);
        assert!(sums(&mut node, doc! {}).await.is_empty());

        let stage = |stage: Doc| doc! { "aggregate": 1, "pipeline": [{ "$operationMetrics": stage }], "cursor": {} };
        assert_eq!(node.code_on("admin", stage(doc! { "x": 1 })).await, 2);
        assert_eq!(node.code_on("e", stage(doc! {})).await, 73);
    });
}

#[test]
fn x27_nothing_is_measured_unless_somebody_asks() {
    run(async {
        let mut node = node().await;
        node.ok(doc! { "profile": 2 }).await;
        node.insert(vec![doc! { "_id": 1 }]).await;
        let found = node.find(doc! { "find": "system.profile", "filter": { "op": "insert" } }).await;
        assert!(!found[0].view().contains("operationMetrics"));
        let stage = doc! { "aggregate": 1, "pipeline": [{ "$operationMetrics": {} }], "cursor": {} };
        assert_eq!(node.code_on("admin", stage).await, 115);
        let status = node.ok_on("admin", doc! { "serverStatus": 1 }).await;
        assert!(!status.view().contains("resourceConsumption"));
        let set = doc! { "setParameter": 1, "profileOperationResourceConsumptionMetrics": true };
        assert!(node.code_on("admin", set).await > 0);
    });
}

#[test]
fn memory_is_told_by_owner() {
    run(async {
        let mut node = node().await;
        node.ok(doc! { "create": "c" }).await;
        let status = node.ok_on("admin", doc! { "serverStatus": 1 }).await;
        let memory = status.get("memory").unwrap().as_document().unwrap().to_doc();
        let owners = memory.get("owners").unwrap().as_document().unwrap().to_doc();
        let sum: f64 = owners.elements().map(|element| element.value.to_i64_or_zero() as f64).sum();
        assert!(number(&owners, "catalogBytes") > 0.0 && owners.view().contains("tableBytes"), "{memory}");
        assert!(number(&memory, "accountedBytes") == sum, "{memory}");
        assert_eq!(number(&memory, "anonymousBytes"), sum + number(&memory, "unaccountedBytes"), "{memory}");
    });
}
