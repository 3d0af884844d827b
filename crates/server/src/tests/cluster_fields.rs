//! Fields that travel in clusters, or to tenants, on a node that is neither.

use super::node::{Node, node, node_as, with_database};
use super::*;
use pando_base::Timestamp;
use pando_doc::{ObjectId, Value};

fn database_version() -> Doc {
    doc! { "timestamp": (Value::Timestamp(Timestamp::new(5, 1))), "lastMod": 1 }
}

fn shard_version() -> Doc {
    doc! {
        "e": (Value::ObjectId(ObjectId::from_bytes([1; 12]))), "t": (Value::Timestamp(Timestamp::new(5, 1))),
        "v": (Value::Timestamp(Timestamp::new(1, 0)))
    }
}

async fn refused(node: &mut Node, fields: &[(Doc, i32, &str)]) {
    for (field, code, reason) in fields {
        let mut body = pando_doc::DocBuilder::new();
        body.append("find", "c");
        body.append_all(field.view());
        node.client.expect_error(with_database(&body.finish(), "d"), *code, reason).await;
    }
}

#[test]
fn u12_what_only_clusters_and_tenants_understand_is_refused() {
    run(async {
        let mut node = node().await;
        node.insert(vec![doc! { "_id": 1 }]).await;
        let fields = [
            (doc! { "$tenant": 1 }, 72, "Multitenancy not enabled, cannot set $tenant in command body"),
            (
                doc! { "expectPrefix": "x" },
                14,
                "BSON field 'find.expectPrefix' is the wrong type 'string', expected type 'bool'",
            ),
            (doc! { "shardVersion": 1 }, 13111, "wrong type for field (shardVersion) int != object"),
            (
                doc! { "shardVersion": { "t": (Value::Timestamp(Timestamp::new(5, 1))) } },
                40414,
                "BSON field 'ShardVersion.e' is missing but a required field",
            ),
            (doc! { "databaseVersion": "x" }, 13111, "wrong type for field (databaseVersion) string != object"),
            (
                doc! { "databaseVersion": { "lastMod": 1 } },
                40414,
                "BSON field 'DatabaseVersion.timestamp' is missing but a required field",
            ),
            (doc! { "databaseVersion": (database_version()) }, 249, "No cached info for the database d"),
            (doc! { "mayBypassWriteBlocking": 1 }, 13111, "wrong type for field (mayBypassWriteBlocking) int != bool"),
        ];
        refused(&mut node, &fields).await;
        // Where nothing is sharded any version of a collection is the current one, and names begin as they do.
        for field in [doc! { "shardVersion": (shard_version()) }, doc! { "expectPrefix": false }] {
            let mut body = pando_doc::DocBuilder::new();
            body.append("find", "c");
            body.append_all(field.view());
            assert_eq!(node.find(body.finish()).await, vec![doc! { "_id": 1 }]);
        }
        // A command that is about no collection of the database does not look at its placement.
        node.ok(doc! { "ping": 1, "databaseVersion": (database_version()) }).await;
        let id = pando_base::Uuid::from_random([7; 16]);
        let start = doc! {
            "find": "c", "lsid": { "id": (Value::Binary { subtype: 4, bytes: id.as_bytes() }) }, "txnNumber": (Value::Int64(1)),
            "autocommit": false, "startTransaction": true, "coordinator": true
        };
        node.error(start, 10107, "Transaction coordinator is not a primary").await;
    });
}

#[test]
fn u12_a_node_that_stands_alone_is_no_shard_either() {
    run(async {
        let mut node = node_as(ReplicationMode::StandAlone).await;
        let fields = [(doc! { "databaseVersion": (database_version()) }, 249, "No cached info for the database d")];
        refused(&mut node, &fields).await;
    });
}
