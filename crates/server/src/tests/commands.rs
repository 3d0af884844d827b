//! Commands that need no storage, and what is refused before any command runs.

use super::*;
use pando_doc::{DocRef, Value};

#[test]
fn requests_that_make_no_sense_are_refused_in_mongodbs_words() {
    run(async {
        let fixture = start().await;
        let mut client = fixture.connect().await;
        client.expect_error(doc! { "ping": 1 }, 40571, "OP_MSG requests require a $db argument").await;
        client
            .expect_error(
                doc! { "ping": 1, "$db": 1 },
                14,
                "BSON field 'ping.$db' is the wrong type 'int', expected type 'string'",
            )
            .await;
        for name in ["", "a/b", "a b", "a.b"] {
            let reason = format!("Invalid database name: '{name}'");
            client.expect_error(doc! { "ping": 1, "$db": name }, 73, &reason).await;
        }
        let unknown = client
            .expect_error(doc! { "atlasVersion": 1, "$db": "admin" }, 59, "no such command: 'atlasVersion'")
            .await;
        assert_eq!(text(&unknown, "codeName"), "CommandNotFound");
        client.expect_error(doc! { "isdbgrid": 1, "$db": "admin" }, 59, "no such command: 'isdbgrid'").await;
        client.expect_error(doc! {}, 59, "no such command: ''").await;
        client
            .expect_error(doc! { "ping": 1, "foo": 1, "$db": "x" }, 40415, "BSON field 'ping.foo' is an unknown field.")
            .await;
        client
            .expect_error(
                doc! { "getCmdLineOpts": 1, "$db": "x" },
                13,
                "getCmdLineOpts may only be run against the admin database.",
            )
            .await;
        client
            .expect_error(
                doc! { "ping": 1, "writeConcern": { "w": 1 }, "$db": "x" },
                72,
                "Command does not support writeConcern",
            )
            .await;
        client.expect_error(doc! { "ping": 1, "apiVersion": "3", "$db": "x" }, 322, "API version must be \"1\"").await;
        let strict = client.ask(doc! { "serverStatus": 1, "apiVersion": "1", "apiStrict": true, "$db": "x" }).await;
        assert_eq!(number(&strict, "code"), 323.0);
        let id = Value::Binary { subtype: 4, bytes: &[1; 16] };
        client
            .expect_error(
                doc! { "ping": 1, "lsid": { "id": id }, "txnNumber": 1_i64, "$db": "x" },
                20,
                "Transaction numbers are only allowed on a replica set member or mongos",
            )
            .await;
        assert!(number(&client.admin(doc! { "ping": 1, "lsid": { "id": id }, "comment": "c" }).await, "ok") == 1.0);
    });
}

#[test]
fn what_shells_ask_when_they_connect_is_answered() {
    run(async {
        let fixture = start().await;
        let mut client = fixture.connect().await;
        let build = client.admin(doc! { "buildInfo": 1 }).await;
        assert!(text(&build, "version").starts_with("7.0."));
        assert_eq!(build.get("versionArray").unwrap().as_array().unwrap().len(), 4);
        assert!(build.get("pando").is_some());
        assert_eq!(client.admin(doc! { "buildinfo": 1 }).await.get("bits"), Some(Value::Int32(64)));
        let options = client.admin(doc! { "getCmdLineOpts": 1 }).await;
        assert_eq!(options.get("argv").unwrap().as_array().unwrap().len(), 3);
        assert!(options.get("parsed").unwrap().as_document().unwrap().contains("replication"));
        for name in ["global", "startupWarnings"] {
            assert!(client.admin(doc! { "getLog": name }).await.get("totalLinesWritten").is_some());
        }
        assert_eq!(client.admin(doc! { "getLog": "*" }).await.get("names").unwrap().as_array().unwrap().len(), 2);
        client.expect_error(doc! { "getLog": "x", "$db": "admin" }, 96, "No log named 'x'").await;
        let host = client.admin(doc! { "hostInfo": 1 }).await;
        assert_eq!(host.get("system").unwrap().as_document().unwrap().get("memSizeMB"), Some(Value::Int64(1024)));
        assert_eq!(
            text(&client.admin(doc! { "whatsmyuri": 1 }).await, "you"),
            client.stream.local_address().unwrap().to_string()
        );
        assert!(client.admin(doc! { "connectionStatus": 1, "showPrivileges": true }).await.get("authInfo").is_some());
        let commands = client.admin(doc! { "listCommands": 1 }).await;
        assert!(commands.get("commands").unwrap().as_document().unwrap().contains("ping"));
        client.admin(doc! { "features": 1 }).await;
        client.admin(doc! { "endSessions": [{ "id": Value::Binary { subtype: 4, bytes: &[1; 16] } }] }).await;
        let help = client.admin(doc! { "ping": 1, "help": true }).await;
        assert!(text(&help, "help").contains("ping"));
    });
}

#[test]
fn parameters_are_shown_and_set() {
    run(async {
        let fixture = start().await;
        let mut client = fixture.connect().await;
        let one = client.admin(doc! { "getParameter": 1, "logLevel": 1, "unknown": 1 }).await;
        assert_eq!(one.get("logLevel"), Some(Value::Int32(0)));
        client
            .expect_error(doc! { "getParameter": 1, "unknown": 1, "$db": "admin" }, 72, "no option found to get")
            .await;
        let all = client.admin(doc! { "getParameter": "*" }).await;
        let compatibility = all.get("featureCompatibilityVersion").unwrap().as_document().unwrap();
        assert_eq!(compatibility.get("version").unwrap().as_str(), Some("7.0"));
        assert!(all.get("failpoint.failCommand").is_some());
        let detailed = client.admin(doc! { "getParameter": { "showDetails": true, "allParameters": true } }).await;
        let details = detailed.get("enableTestCommands").unwrap().as_document().unwrap();
        assert_eq!(
            (details.get("value"), details.get("settableAtRuntime")),
            (Some(Value::Bool(true)), Some(Value::Bool(false)))
        );
        assert_eq!(client.admin(doc! { "setParameter": 1, "logLevel": 2 }).await.get("was"), Some(Value::Int32(0)));
        assert!(fixture.server.node().log.is_enabled(pando_base::Component::Query, pando_base::Severity::Debug(2)));
        client
            .expect_error(
                doc! { "setParameter": 1, "enableTestCommands": true, "$db": "admin" },
                20,
                "not allowed to change [enableTestCommands] at runtime",
            )
            .await;
        let empty = "no option found to set, use help:true to see options ";
        client.expect_error(doc! { "setParameter": 1, "$db": "admin" }, 72, empty).await;
    });
}

#[test]
fn server_status_has_its_sections() {
    run(async {
        let fixture = start_with(options(ReplicationMode::OneMember("rs0".into()))).await;
        let mut client = fixture.connect().await;
        client.admin(doc! { "ping": 1 }).await;
        let status = client.admin(doc! { "serverStatus": 1 }).await;
        let section = |name: &str| -> DocRef<'_> { status.get(name).unwrap().as_document().unwrap() };
        assert_eq!((text(&status, "process"), text(&status, "host")), ("mongod".into(), "node1".into()));
        assert_eq!(section("connections").get("current"), Some(Value::Int32(1)));
        assert_eq!(section("connections").get("active"), Some(Value::Int32(1)));
        assert_eq!(section("network").get("numRequests"), Some(Value::Int64(2)));
        assert_eq!(section("opcounters").get("command"), Some(Value::Int64(2)));
        assert!(section("repl").contains("setName") && section("mem").contains("resident"));
        let commands = section("metrics").get("commands").unwrap().as_document().unwrap();
        assert_eq!(commands.get("ping").unwrap().as_document().unwrap().get("total"), Some(Value::Int64(1)));
        let less = client.admin(doc! { "serverStatus": 1, "metrics": 0, "network": false }).await;
        assert!(less.get("metrics").is_none() && less.get("network").is_none() && less.get("mem").is_some());
        let only = client.admin(doc! { "serverStatus": 1, "none": 1, "mem": 1 }).await;
        assert!(only.get("network").is_none() && only.get("mem").is_some());
    });
}

#[test]
fn operations_are_listed_and_killed() {
    run(async {
        let fixture = start().await;
        let (mut waiting, mut client) = (fixture.connect().await, fixture.connect().await);
        let never = doc! { "waitForFailPoint": "waitInHello", "timesEntered": 1_000_000, "$db": "admin" };
        waiting.send(MsgFlags::NONE, &never).await;
        let mut found = None;
        while found.is_none() {
            tokio::task::yield_now().await;
            let filter = doc! { "currentOp": 1, "command.waitForFailPoint": "waitInHello" };
            let operations = client.admin(filter).await;
            let first = operations.get("inprog").unwrap().as_array().unwrap().get(0);
            found = first.map(|operation| operation.as_document().unwrap().to_doc());
        }
        let operation = found.unwrap();
        assert_eq!((text(&operation, "op"), text(&operation, "ns")), ("command".into(), "admin.$cmd".into()));
        let id = operation.get("opid").unwrap();
        assert_eq!(text(&client.admin(doc! { "killOp": 1, "op": id }).await, "info"), "attempting to kill op");
        let killed = waiting.read().await.unwrap().body().to_doc();
        assert_eq!((number(&killed, "code"), text(&killed, "codeName")), (11601.0, "Interrupted".into()));
        client.admin(doc! { "killOp": 1, "op": 123_456 }).await;
    });
}

#[test]
fn a_command_that_waits_is_stopped_by_its_deadline() {
    run(async {
        let fixture = start().await;
        let mut client = fixture.connect().await;
        let never =
            doc! { "waitForFailPoint": "waitInHello", "timesEntered": 1_000_000, "maxTimeMS": 50, "$db": "admin" };
        client.expect_error(never, 50, "operation exceeded time limit").await;
        assert!(fixture.env.clock().monotonic_ns() >= 50_000_000);
    });
}

#[test]
fn requests_without_reply_are_run_all_the_same() {
    run(async {
        let fixture = start().await;
        let mut client = fixture.connect().await;
        client.send(MsgFlags::MORE_TO_COME, &doc! { "setParameter": 1, "logLevel": 1, "$db": "admin" }).await;
        client.send(MsgFlags::MORE_TO_COME, &doc! { "nonsense": 1, "$db": "admin" }).await;
        assert_eq!(
            client.admin(doc! { "getParameter": 1, "logLevel": 1 }).await.get("logLevel"),
            Some(Value::Int32(1))
        );
    });
}

#[test]
fn u18_test_commands_are_there_only_if_enabled() {
    run(async {
        let fixture =
            start_with(ServerOptions { parameters: Vec::new(), ..options(ReplicationMode::StandAlone) }).await;
        let mut client = fixture.connect().await;
        let configure = doc! { "configureFailPoint": "failCommand", "mode": "off", "$db": "admin" };
        client.expect_error(configure, 59, "no such command: 'configureFailPoint'").await;
    });
}
