//! Cluster times where clients log in: signed for those who may not move the clock, and checked when they bring them back.

use super::*;
use pando_base::Timestamp;

fn time_of(reply: &Doc) -> Doc {
    reply.get("$clusterTime").and_then(|time| time.as_document()).unwrap_or_else(|| panic!("no time: {reply}")).to_doc()
}

fn ping(time: &Doc) -> Doc {
    doc! { "ping": 1, "$clusterTime": time, "$db": "admin" }
}

#[test]
fn s13_times_are_signed_and_forged_ones_are_refused() {
    run(async {
        let (fixture, mut root) = with_root().await;
        root.ok("admin", doc! { "createUser": "reader", "pwd": "reader", "roles": ["read"] }).await;
        root.ok("admin", doc! { "createUser": "mover", "pwd": "mover", "roles": ["__system"] }).await;
        let mut mover = fixture.connect_as("mover").await;
        let keys = mover.ok("admin", doc! { "find": "system.keys", "sort": { "expiresAt": 1 } }).await;
        let keys = super::super::node::batch(&keys, "firstBatch");
        assert_eq!(keys.len(), 2, "one for now and one for after that");
        let mut reader = fixture.connect_as("reader").await;
        let told = time_of(&reader.ok("admin", doc! { "ping": 1 }).await);
        let signature = told.get("signature").and_then(|signature| signature.as_document()).unwrap().to_doc();
        assert_eq!(signature.get("keyId"), keys[0].get("_id"));
        assert_ne!(signature.get("hash"), Some(Value::Binary { subtype: 0, bytes: &[0; 20] }));
        assert_eq!(number(&reader.ask(ping(&told)).await, "ok"), 1.0, "what was given out is taken back");
        // A later time with the same proof, without one, and with somebody else's key.
        let later =
            Timestamp::new(told.get("clusterTime").and_then(|time| time.as_timestamp()).unwrap().seconds() + 60, 1);
        let forged = doc! { "clusterTime": later, "signature": &signature };
        assert_eq!(number(&reader.ask(ping(&forged)).await, "code"), 204.0);
        assert_eq!(number(&reader.ask(ping(&doc! { "clusterTime": later })).await, "code"), 204.0);
        let hash = Value::Binary { subtype: 0, bytes: &[1; 20] };
        let unknown = doc! { "clusterTime": later, "signature": { "hash": hash, "keyId": 1_i64 } };
        assert_eq!(number(&reader.ask(ping(&unknown)).await, "code"), 211.0);
        // A stranger is not listened to.
        let mut stranger = fixture.connect().await;
        let hello = doc! { "hello": 1, "$clusterTime": { "clusterTime": later }, "$db": "admin" };
        let heard = stranger.ask(hello).await;
        assert_eq!(number(&heard, "ok"), 1.0);
        assert!(time_of(&heard).get("clusterTime").and_then(|time| time.as_timestamp()) < Some(later));
        // Who may move the clock needs no proof, but not even they move it to the far future.
        assert_eq!(number(&mover.ask(ping(&doc! { "clusterTime": later })).await, "ok"), 1.0);
        let unsigned = time_of(&mover.ok("admin", doc! { "ping": 1 }).await);
        let signature = unsigned.get("signature").and_then(|signature| signature.as_document()).unwrap();
        assert_eq!(signature.get("keyId"), Some(Value::Int64(0)));
        let far = Timestamp::new(u32::MAX, 1);
        assert_eq!(number(&mover.ask(ping(&doc! { "clusterTime": far })).await, "code"), 205.0);
    });
}
