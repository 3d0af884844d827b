//! The fail point `failCommand`. It belongs to the process: one test goes through all of it, and with an application's name
//! of its own, so that no other test meets it.

use super::*;
use pando_doc::Value;

const FAILING: &str = "Failing command via 'failCommand' failpoint";

const APPLICATION: &str = "fails";

/// Sets the fail point for this test's clients.
async fn configure(client: &mut Client, mode: Value<'_>, data: Doc) -> Doc {
    let mut ours = pando_doc::DocBuilder::new();
    ours.append_all(data.view());
    if data.get("appName").is_none() {
        ours.append("appName", APPLICATION);
    }
    client.admin(doc! { "configureFailPoint": "failCommand", "mode": mode, "data": ours.finish() }).await
}

async fn connect(fixture: &Fixture) -> Client {
    let mut client = fixture.connect().await;
    let driver = doc! { "name": "d", "version": "1" };
    let metadata = doc! { "application": { "name": APPLICATION }, "driver": driver, "os": { "type": "x" } };
    client.admin(doc! { "hello": 1, "client": metadata }).await;
    client
}

fn ping() -> Doc {
    doc! { "ping": 1, "$db": "x" }
}

fn times(count: i32) -> Doc {
    doc! { "times": count }
}

#[test]
fn u18_commands_fail_as_configured() {
    run(async {
        let fixture = start().await;
        let mut client = connect(&fixture).await;
        errors_and_their_labels(&mut client).await;
        modes(&mut client).await;
        choosers(&fixture, &mut client).await;
        closing_and_blocking(&fixture, &mut client).await;
        bad_configurations(&mut client).await;
        configure(&mut client, Value::String("off".into()), doc! {}).await;
    });
}

async fn errors_and_their_labels(client: &mut Client) {
    let data = doc! { "failCommands": ["ping"], "errorCode": 10107, "errorLabels": ["A", "B"] };
    configure(client, Value::Document(times(2).view()), data).await;
    for _ in 0..2 {
        let reply = client.expect_error(ping(), 10107, FAILING).await;
        assert_eq!(reply.get("errorLabels"), Some(Value::Array(pando_doc::array!["A", "B"].view())));
        assert_eq!(text(&reply, "codeName"), "NotWritablePrimary");
    }
    assert_eq!(number(&client.ask(ping()).await, "ok"), 1.0);
    let data = doc! { "failCommands": ["ping"], "errorCode": 13388, "errorExtraInfo": { "ns": "a.b" } };
    configure(client, Value::Document(times(1).view()), data).await;
    let reply = client.expect_error(ping(), 13388, FAILING).await;
    assert_eq!((text(&reply, "ns"), reply.get("errorLabels")), ("a.b".into(), None));
}

async fn modes(client: &mut Client) {
    let data = doc! { "failCommands": ["ping"], "errorCode": 2 };
    configure(client, Value::Document(doc! { "skip": 2 }.view()), data.clone()).await;
    for _ in 0..2 {
        assert_eq!(number(&client.ask(ping()).await, "ok"), 1.0);
    }
    for _ in 0..3 {
        client.expect_error(ping(), 2, FAILING).await;
    }
    configure(client, Value::Document(doc! { "activationProbability": 0.5 }.view()), data).await;
    let mut failed = 0;
    for _ in 0..200 {
        failed += i32::from(number(&client.ask(ping()).await, "ok") == 0.0);
    }
    assert!((50..150).contains(&failed), "{failed} of 200");
    let before = configure(client, Value::String("off".into()), doc! {}).await;
    assert!(number(&before, "count") >= f64::from(failed));
    assert_eq!(number(&client.ask(ping()).await, "ok"), 1.0);
}

async fn choosers(fixture: &Fixture, client: &mut Client) {
    let always = || Value::String("alwaysOn".into());
    let mut other = connect(fixture).await;
    configure(client, always(), doc! { "failAllCommands": true, "errorCode": 2, "appName": "another" }).await;
    assert_eq!(number(&client.ask(ping()).await, "ok"), 1.0);
    configure(client, always(), doc! { "failAllCommands": true, "errorCode": 2 }).await;
    client.expect_error(ping(), 2, FAILING).await;
    client.expect_error(doc! { "buildInfo": 1, "$db": "x" }, 2, FAILING).await;
    configure(client, always(), doc! { "failCommands": ["ping"], "errorCode": 2, "threadName": "conn2" }).await;
    assert_eq!(number(&client.ask(ping()).await, "ok"), 1.0);
    other.expect_error(ping(), 2, FAILING).await;
    configure(client, always(), doc! { "failCommands": ["ping"], "errorCode": 2, "namespace": "y" }).await;
    assert_eq!(number(&client.ask(ping()).await, "ok"), 1.0);
    client.expect_error(doc! { "ping": 1, "$db": "y" }, 2, FAILING).await;
    configure(client, always(), doc! { "failCommands": ["ismaster"], "errorCode": 2 }).await;
    client.expect_error(doc! { "isMaster": 1, "$db": "x" }, 2, FAILING).await;
    other.admin(doc! { "hello": 1, "internalClient": { "maxWireVersion": 21 } }).await;
    configure(client, always(), doc! { "failCommands": ["ping"], "errorCode": 2 }).await;
    assert_eq!(number(&other.ask(ping()).await, "ok"), 1.0, "servers of ours are spared");
    configure(client, always(), doc! { "failCommands": ["ping"], "errorCode": 2, "failInternalCommands": true }).await;
    other.expect_error(ping(), 2, FAILING).await;
}

async fn closing_and_blocking(fixture: &Fixture, client: &mut Client) {
    let once = times(1);
    configure(client, Value::Document(once.view()), doc! { "failCommands": ["ping"], "closeConnection": true }).await;
    let mut other = connect(fixture).await;
    assert!(other.try_ask(ping()).await.is_none());
    assert_eq!(number(&client.ask(ping()).await, "ok"), 1.0);
    let data = doc! { "failCommands": ["ping"], "blockConnection": true, "blockTimeMS": 700, "errorCode": 2 };
    configure(client, Value::Document(once.view()), data).await;
    let began_ns = fixture.env.clock().monotonic_ns();
    client.expect_error(ping(), 2, FAILING).await;
    assert_eq!(fixture.env.clock().monotonic_ns() - began_ns, 700_000_000);
    let data = doc! { "failCommands": ["insert"], "blockConnection": true, "blockTimeMS": 700 };
    configure(client, Value::Document(once.view()), data).await;
    let began_ns = fixture.env.clock().monotonic_ns();
    let insert = doc! { "insert": "late", "documents": [{}], "maxTimeMS": 100, "$db": "x" };
    assert_eq!(number(&client.ask(insert).await, "code"), 50.0, "the pause counts");
    assert_eq!(fixture.env.clock().monotonic_ns() - began_ns, 100_000_000);
    configure(client, Value::Document(once.view()), doc! { "failCommands": ["ping"], "blockConnection": true }).await;
    client.expect_error(ping(), 72, "must specify 'blockTimeMS' when 'blockConnection' is true").await;
}

async fn bad_configurations(client: &mut Client) {
    let ask = |mode: Value<'_>| doc! { "configureFailPoint": "failCommand", "mode": mode, "$db": "admin" };
    client.expect_error(ask(Value::String("on".into())), 2, "unknown mode: on").await;
    client.expect_error(ask(Value::Int32(1)), 14, "'mode' must be a string or JSON object").await;
    client
        .expect_error(ask(Value::Document(doc! { "times": -1 }.view())), 2, "'times' option to 'mode' must be positive")
        .await;
    client
        .expect_error(
            doc! { "configureFailPoint": "failCommand", "$db": "admin" },
            20,
            "When setting a failpoint, you must supply a 'mode'",
        )
        .await;
    client
        .expect_error(doc! { "configureFailPoint": "none", "mode": "off", "$db": "admin" }, 266, "none not found")
        .await;
}
