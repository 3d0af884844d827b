//! The first words of a connection.

use super::*;
use pando_doc::{ObjectId, Value};
use pando_wire::{Compressor, legacy_request};

fn metadata() -> Doc {
    doc! { "application": { "name": "app" }, "driver": { "name": "d", "version": "1" }, "os": { "type": "Linux" } }
}

fn topology_of(hello: &Doc) -> (ObjectId, i64) {
    let version = hello.get("topologyVersion").unwrap().as_document().unwrap();
    (version.get("processId").unwrap().as_object_id().unwrap(), version.get("counter").unwrap().to_i64_exact().unwrap())
}

#[test]
fn u2_a_node_that_stands_alone_says_so() {
    run(async {
        let fixture = start().await;
        let mut client = fixture.connect().await;
        let hello = client.admin(doc! { "hello": 1, "helloOk": true, "client": metadata() }).await;
        assert_eq!(hello.get("isWritablePrimary"), Some(Value::Bool(true)));
        assert_eq!(hello.get("helloOk"), Some(Value::Bool(true)));
        assert_eq!(hello.get("maxBsonObjectSize"), Some(Value::Int32(16 * 1024 * 1024)));
        assert_eq!(hello.get("maxMessageSizeBytes"), Some(Value::Int32(48_000_000)));
        assert_eq!(hello.get("maxWriteBatchSize"), Some(Value::Int32(100_000)));
        assert_eq!((number(&hello, "minWireVersion"), number(&hello, "maxWireVersion")), (0.0, 21.0));
        assert_eq!(hello.get("connectionId"), Some(Value::Int32(1)));
        assert_eq!(hello.get("readOnly"), Some(Value::Bool(false)));
        assert_eq!(hello.get("ok"), Some(Value::Double(1.0)));
        assert!(hello.get("setName").is_none() && hello.get("operationTime").is_none());
        for name in ["isMaster", "ismaster"] {
            let legacy = client.admin(doc! { (name): 1 }).await;
            assert_eq!(legacy.get("ismaster"), Some(Value::Bool(true)));
            assert!(legacy.get("isWritablePrimary").is_none() && legacy.get("helloOk").is_none());
        }
    });
}

#[test]
fn u2_a_set_of_one_names_the_address_that_was_reached() {
    run(async {
        let fixture = start_with(options(ReplicationMode::OneMember("rs0".into()))).await;
        let mut client = fixture.connect().await;
        let hello = client.admin(doc! { "hello": 1 }).await;
        let here = client.stream.peer_address().unwrap().to_string();
        assert_eq!(
            (text(&hello, "setName"), text(&hello, "me"), text(&hello, "primary")),
            ("rs0".into(), here.clone(), here.clone())
        );
        assert_eq!(hello.get("hosts"), Some(Value::Array(pando_doc::array![&here].view())));
        assert_eq!(hello.get("secondary"), Some(Value::Bool(false)));
        assert!(hello.get("operationTime").unwrap().as_timestamp().is_some());
        let failed = client.expect_error(doc! { "nothing": 1, "$db": "x" }, 59, "no such command: 'nothing'").await;
        let cluster_time = failed.get("$clusterTime").unwrap().as_document().unwrap();
        let signature = cluster_time.get("signature").unwrap().as_document().unwrap();
        assert_eq!(signature.get("keyId"), Some(Value::Int64(0)));
        assert_eq!(signature.get("hash"), Some(Value::Binary { subtype: 0, bytes: &[0; 20] }));
    });
}

#[test]
fn u1_u2_the_first_hello_may_be_an_op_query() {
    run(async {
        let fixture = start().await;
        let mut client = fixture.connect().await;
        let hello = doc! { "isMaster": 1, "helloOk": true, "client": metadata() };
        client.send_bytes(&legacy_request("admin", hello.view(), 5).unwrap()).await;
        let reply = client.read().await.unwrap();
        assert_eq!((reply.header().response_to, reply.header().op_code.number()), (5, 1));
        assert_eq!(reply.body().get("helloOk"), Some(Value::Bool(true)));
        client.send_bytes(&legacy_request("admin", doc! { "ping": 1 }.view(), 6).unwrap()).await;
        let refused = client.read().await.unwrap();
        assert_eq!(refused.body().get("code"), Some(Value::Int32(352)));
        client.admin(doc! { "ping": 1 }).await;
    });
}

#[test]
fn u2_metadata_are_said_once() {
    run(async {
        let fixture = start().await;
        let mut client = fixture.connect().await;
        client
            .expect_error(
                doc! { "hello": 1, "client": { "os": { "type": "x" } }, "$db": "admin" },
                183,
                "Missing required sub-document 'driver' in the client metadata document",
            )
            .await;
        client.admin(doc! { "hello": 1, "client": metadata() }).await;
        let again = "The client metadata document may only be sent in the first hello";
        client.expect_error(doc! { "hello": 1, "client": metadata(), "$db": "admin" }, 186, again).await;
        client.admin(doc! { "hello": 1 }).await;
        let operations = client.admin(doc! { "currentOp": 1 }).await;
        let own = operations.get("inprog").unwrap().as_array().unwrap().get(0).unwrap().as_document().unwrap().to_doc();
        assert_eq!(text(&own, "appName"), "app");
        assert_eq!(own.get("clientMetadata"), Some(Value::Document(metadata().view())));
    });
}

#[test]
fn u2_a_hello_waits_for_another_topology() {
    run(async {
        let fixture = start().await;
        let mut client = fixture.connect().await;
        let (process_id, counter) = topology_of(&client.admin(doc! { "hello": 1 }).await);
        let began_ns = fixture.env.clock().monotonic_ns();
        let ask = |id: ObjectId, counter: i64, wait_ms: i32| {
            doc! { "hello": 1, "topologyVersion": { "processId": id, "counter": counter }, "maxAwaitTimeMS": wait_ms }
        };
        client.admin(ask(process_id, counter, 10_000)).await;
        assert_eq!(fixture.env.clock().monotonic_ns() - began_ns, 10_000_000_000);
        client.admin(ask(ObjectId::from_bytes([1; 12]), counter, 10_000)).await;
        assert_eq!(fixture.env.clock().monotonic_ns() - began_ns, 10_000_000_000);
        let with_db = |body: Doc| {
            let mut builder = pando_doc::DocBuilder::new();
            builder.append_all(body.view());
            builder.append("$db", "admin");
            builder.finish()
        };
        let newer =
            "Received a topology version with counter: 9 which is greater than the server topology version counter: 0";
        client.expect_error(with_db(ask(process_id, 9, 1)), 51764, newer).await;
        client
            .expect_error(with_db(ask(process_id, -1, 1)), 31372, "topologyVersion must have a non-negative counter")
            .await;
        client
            .expect_error(
                with_db(ask(process_id, 0, -1)),
                51024,
                "BSON field 'maxAwaitTimeMS' value must be >= 0, actual value '-1'",
            )
            .await;
        client
            .expect_error(
                doc! { "hello": 1, "maxAwaitTimeMS": 1, "$db": "admin" },
                31368,
                "A request with 'maxAwaitTimeMS' must include a 'topologyVersion'",
            )
            .await;
    });
}

#[test]
fn u2_hellos_stream() {
    run(async {
        let fixture = start().await;
        let mut client = fixture.connect().await;
        let (process_id, counter) = topology_of(&client.admin(doc! { "hello": 1 }).await);
        let streaming = doc! {
            "hello": 1, "topologyVersion": { "processId": process_id, "counter": counter }, "maxAwaitTimeMS": 500,
            "$db": "admin"
        };
        client.send(MsgFlags::EXHAUST_ALLOWED, &streaming).await;
        let mut answers_to = client.last_id;
        for _ in 0..5 {
            let reply = client.read().await.unwrap();
            assert!(reply.more_to_come());
            assert_eq!(reply.header().response_to, answers_to);
            assert_eq!(reply.body().get("isWritablePrimary"), Some(Value::Bool(true)));
            answers_to = reply.header().request_id;
        }
        let mut other = fixture.connect().await;
        other.send(MsgFlags::EXHAUST_ALLOWED, &doc! { "hello": 1, "$db": "admin" }).await;
        let refused = other.read().await.unwrap();
        assert_eq!((refused.more_to_come(), refused.body().get("code")), (false, Some(Value::Int32(51756))));
    });
}

#[test]
fn u2_compressors_are_agreed_on() {
    run(async {
        let fixture = start().await;
        let mut client = fixture.connect().await;
        assert!(client.admin(doc! { "hello": 1 }).await.get("compression").is_none());
        let agreed = client.admin(doc! { "hello": 1, "compression": ["zlib", "lzma", "snappy"] }).await;
        assert_eq!(agreed.get("compression"), Some(Value::Array(pando_doc::array!["zlib", "snappy"].view())));
        assert!(client.admin(doc! { "hello": 1 }).await.get("compression").is_some());
        let ping = doc! { "ping": 1, "$db": "admin" };
        let request = RequestBuilder::new(MsgFlags::NONE, Vec::new()).body(ping.view());
        client.send_bytes(&request.finish(9, Some(Compressor::Zlib)).unwrap()).await;
        assert_eq!(client.read().await.unwrap().body().get("ok"), Some(Value::Double(1.0)));
        assert!(client.admin(doc! { "hello": 1, "compression": [] }).await.get("compression").is_none());
    });
}

#[test]
fn u2_the_mechanisms_of_a_user_who_is_not_there_are_not_told() {
    run(async {
        let fixture = start().await;
        let hello = fixture.connect().await.admin(doc! { "hello": 1, "saslSupportedMechs": "admin.x" }).await;
        assert_eq!(hello.get("saslSupportedMechs"), None);
    });
}
