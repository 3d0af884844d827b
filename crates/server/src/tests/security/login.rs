//! Proving who one is.

use super::*;

#[test]
fn u10_the_first_user_is_made_from_this_machine_and_then_all_have_to_log_in() {
    run(async {
        let fixture = start_secured(secured()).await;
        let mut client = fixture.connect().await;
        assert_eq!(client.code("d", doc! { "find": "c" }).await, 13);
        assert_eq!(client.code("d", doc! { "createUser": "u", "pwd": "p", "roles": [] }).await, 13);
        client.ok("admin", doc! { "createUser": "root", "pwd": "secret", "roles": ["root"] }).await;
        // The exception is over.
        assert_eq!(client.code("admin", doc! { "createUser": "x", "pwd": "p", "roles": [] }).await, 13);
        let reason = "Command find requires authentication";
        client.expect_error(doc! { "find": "c", "$db": "d" }, 13, reason).await;
        for open in ["hello", "ping", "buildInfo", "connectionStatus", "whatsmyuri"] {
            client.ok("admin", doc! { (open): 1 }).await;
        }
        client.log_in("root", "secret").await;
        assert_eq!(client.who().await, ["root"]);
        client.ok("d", doc! { "find": "c" }).await;
        client.ok("admin", doc! { "logout": 1 }).await;
        assert!(client.who().await.is_empty());
        assert_eq!(client.code("d", doc! { "find": "c" }).await, 13);
    });
}

#[test]
fn u10_without_the_exception_nobody_makes_the_first_user() {
    run(async {
        let mut options = secured();
        options.parameters.push(("enableLocalhostAuthBypass".into(), "false".into()));
        let fixture = start_secured(options).await;
        let mut client = fixture.connect().await;
        assert_eq!(client.code("admin", doc! { "createUser": "u", "pwd": "p", "roles": [] }).await, 13);
    });
}

#[test]
fn u10_both_mechanisms_and_both_lengths_of_the_exchange_work() {
    run(async {
        let (fixture, _root) = with_root().await;
        for mechanism in Mechanism::ALL {
            for skips_empty_exchange in [false, true] {
                let mut client = fixture.connect().await;
                let login = Login { mechanism, skips_empty_exchange, ..Login::new("root", "secret") };
                let answer = login.run(&mut client).await;
                assert_eq!(answer.get("done"), Some(Value::Bool(true)), "{answer}");
                assert_eq!(client.who().await, ["root"]);
            }
        }
    });
}

#[test]
fn u10_a_wrong_password_and_a_user_who_is_not_there_look_alike() {
    run(async {
        let (fixture, _root) = with_root().await;
        for mechanism in Mechanism::ALL {
            let mut shapes = Vec::new();
            for (user, password) in [("root", "wrong"), ("nobody", "secret")] {
                let mut client = fixture.connect().await;
                let login = Login { mechanism, ..Login::new(user, password) };
                let first = client.on("admin", login.begin().1).await;
                let again = client.on("admin", login.begin().1).await;
                let salt = |answer: &Doc| payload(answer).split(",s=").nth(1).unwrap().to_owned();
                assert_eq!(salt(&first), salt(&again));
                shapes.push((number(&first, "ok") as i32, payload(&first).len()));
                let answer = login.run(&mut client).await;
                assert_eq!((number(&answer, "code"), text(&answer, "errmsg")), (18.0, "Authentication failed.".into()));
                assert!(client.who().await.is_empty());
            }
            assert_eq!(shapes[0], shapes[1]);
        }
    });
}

#[test]
fn u10_hello_begins_the_proof_and_tells_the_mechanisms() {
    run(async {
        let (fixture, mut root) = with_root().await;
        let only = doc! { "createUser": "one", "pwd": "one", "roles": [], "mechanisms": ["SCRAM-SHA-1"] };
        root.ok("admin", only).await;
        let mut client = fixture.connect().await;
        let (mut scram, start) = Login::new("root", "secret").begin();
        let mut speculative = DocBuilder::new();
        speculative.append_all(start.view());
        speculative.append("db", "admin");
        let hello =
            doc! { "hello": 1, "speculativeAuthenticate": (speculative.finish()), "saslSupportedMechs": "admin.root" };
        let reply = client.ok("admin", hello).await;
        let mechanisms = reply.get("saslSupportedMechs").unwrap().as_array().unwrap();
        assert_eq!(
            mechanisms.values().map(|name| name.as_str().unwrap()).collect::<Vec<_>>(),
            ["SCRAM-SHA-1", "SCRAM-SHA-256"]
        );
        let answer = reply.get("speculativeAuthenticate").unwrap().as_document().unwrap().to_doc();
        let proof = scram.prove(&payload(&answer)).unwrap();
        let answer = client.ok("admin", next(proof.as_bytes())).await;
        scram.verify(&payload(&answer)).unwrap();
        assert_eq!(client.who().await, ["root"]);

        let mut client = fixture.connect().await;
        let reply = client.ok("admin", doc! { "hello": 1, "saslSupportedMechs": "admin.one" }).await;
        assert_eq!(reply.get("saslSupportedMechs").unwrap().as_array().unwrap().len(), 1);
        let reply = client.ok("admin", doc! { "hello": 1, "saslSupportedMechs": "admin.nobody" }).await;
        assert!(reply.get("saslSupportedMechs").is_none());
        // What makes no sense is as if it had not come.
        let nonsense = doc! { "hello": 1, "speculativeAuthenticate": { "saslStart": 1, "db": "admin" } };
        assert!(client.ok("admin", nonsense).await.get("speculativeAuthenticate").is_none());
        assert_eq!(client.code("admin", Login::new("one", "one").begin().1).await, 334);
    });
}

#[test]
fn u10_a_connection_belongs_to_one_user() {
    run(async {
        let (fixture, mut root) = with_root().await;
        root.make_user("other", roles(&[])).await;
        let answer = Login::new("root", "secret").run(&mut root).await;
        assert_eq!(number(&answer, "ok"), 1.0);
        let answer = Login::new("other", "other").run(&mut root).await;
        assert_eq!(number(&answer, "code"), 18.0);
        assert_eq!(root.who().await, ["root"]);
        fixture.connect_as("other").await;
    });
}

#[test]
fn u10_users_come_only_from_where_they_may() {
    run(async {
        let (fixture, mut root) = with_root().await;
        for (name, source) in [("here", "127.0.0.0/8"), ("there", "192.168.0.0/16")] {
            let restrictions = doc! { "clientSource": [source] };
            let create = doc! {
                "createUser": name, "pwd": name, "roles": [], "authenticationRestrictions": [restrictions],
            };
            root.ok("admin", create).await;
        }
        let mut here = fixture.connect_as("here").await;
        let answer = Login::new("there", "there").run(&mut fixture.connect().await).await;
        assert_eq!(number(&answer, "code"), 18.0);
        // A restriction that comes later holds for those who are there already.
        let elsewhere = doc! { "updateUser": "here", "authenticationRestrictions": [{ "clientSource": ["10.0.0.1"] }] };
        root.ok("admin", elsewhere).await;
        assert_eq!(here.code("admin", doc! { "find": "c" }).await, 13);
        assert!(here.who().await.is_empty());
    });
}

#[test]
fn u10_members_log_in_with_their_key_also_while_it_changes() {
    run(async {
        let mut options = secured();
        let key_file = pando_security::KeyFile::read("- newkey\n- oldkey").unwrap();
        options.security = SecurityOptions { is_enabled: true, key_file: Some(key_file) };
        let fixture = start_secured(options).await;
        for mechanism in Mechanism::ALL {
            for (key, is_good) in [("newkey", true), ("oldkey", true), ("anykey", false)] {
                let mut client = fixture.connect().await;
                let login = Login { mechanism, database: "local", ..Login::new("__system", key) };
                let answer = login.run(&mut client).await;
                assert_eq!(number(&answer, "ok") == 1.0, is_good, "{answer}");
                if is_good {
                    client.ok("admin", doc! { "replSetGetRBID": 1 }).await;
                }
            }
        }
        let (fixture, mut root) = with_root().await;
        assert_eq!(root.code("admin", doc! { "replSetGetRBID": 1 }).await, 13);
        let mut client = fixture.connect().await;
        let login = Login { database: "local", ..Login::new("__system", "anykey") };
        assert_eq!(number(&login.run(&mut client).await, "code"), 18.0);
    });
}

#[test]
fn u10_connections_notice_when_users_and_roles_change() {
    run(async {
        let (fixture, mut root) = with_root().await;
        root.make_user("u", roles(&[("read", "d")])).await;
        let mut user = fixture.connect_as("u").await;
        user.ok("d", doc! { "find": "c" }).await;
        let insert = doc! { "insert": "c", "documents": [{ "_id": 1 }] };
        assert_eq!(user.code("d", insert.clone()).await, 13);
        root.ok("admin", doc! { "grantRolesToUser": "u", "roles": (roles(&[("readWrite", "d")])) }).await;
        user.ok("d", insert).await;
        // Also when the document is written by hand.
        root.make_user("hand", roles(&[("__system", "admin")])).await;
        let mut hand = fixture.connect_as("hand").await;
        let update = doc! { "update": "system.users", "updates": [
            { "q": { "_id": "admin.u" }, "u": { "$set": { "roles": [] } } }
        ] };
        hand.ok("admin", update).await;
        assert_eq!(user.code("d", doc! { "find": "c" }).await, 13);
        root.ok("admin", doc! { "dropUser": "u" }).await;
        assert_eq!(user.code("admin", doc! { "currentOp": 1, "$ownOps": true }).await, 13);
        assert!(user.who().await.is_empty());
        // One who comes after with the same name is somebody else.
        let mut hand_again = fixture.connect_as("hand").await;
        root.ok("admin", doc! { "dropUser": "hand" }).await;
        root.make_user("hand", roles(&[("root", "admin")])).await;
        assert_eq!(hand_again.code("d", doc! { "find": "c" }).await, 13);
    });
}

#[test]
fn u10_what_changes_during_the_proof_counts_after_it() {
    run(async {
        let (fixture, mut root) = with_root().await;
        root.make_user("reader", roles(&[("readAnyDatabase", "admin")])).await;
        let mut client = fixture.connect().await;
        let (mut scram, start) = Login::new("reader", "reader").begin();
        let answer = client.ok("admin", start).await;
        root.ok("admin", doc! { "updateUser": "reader", "roles": [] }).await;
        let proof = scram.prove(&payload(&answer)).unwrap();
        client.ok("admin", next(proof.as_bytes())).await;
        assert_eq!(client.who().await, ["reader"]);
        assert_eq!(client.code("d", doc! { "find": "c" }).await, 13);
    });
}
