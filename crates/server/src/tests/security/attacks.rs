//! What attackers try: refused, and without a trace in memory.

use super::*;

#[test]
fn u10_a_proof_cannot_be_replayed() {
    run(async {
        let (fixture, _root) = with_root().await;
        let mut honest = fixture.connect().await;
        let login = Login::new("root", "secret");
        let (mut scram, start) = login.begin();
        let answer = honest.ok("admin", start.clone()).await;
        let proof = scram.prove(&payload(&answer)).unwrap();
        honest.ok("admin", next(proof.as_bytes())).await;
        // The same words on another connection, and on the same one.
        let mut thief = fixture.connect().await;
        thief.ok("admin", start.clone()).await;
        assert_eq!(thief.code("admin", next(proof.as_bytes())).await, 18);
        assert!(thief.who().await.is_empty());
        assert_eq!(thief.code("admin", next(proof.as_bytes())).await, 17);
        assert_eq!(
            thief.code("admin", doc! { "saslContinue": 1, "conversationId": 2, "payload": (binary(b"")) }).await,
            17
        );
    });
}

#[test]
fn u10_another_channel_and_another_mechanism_are_refused() {
    run(async {
        let (fixture, _root) = with_root().await;
        let mut client = fixture.connect().await;
        let bound = doc! { "saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": (binary(b"p=tls-unique,,n=root,r=abcdef")) };
        assert_eq!(client.code("admin", bound).await, 18);
        for mechanism in ["PLAIN", "GSSAPI", "MONGODB-CR", "SCRAM-SHA-256-PLUS", ""] {
            let start = doc! { "saslStart": 1, "mechanism": mechanism, "payload": (binary(b"n,,n=root,r=abcdef")) };
            assert_eq!(client.code("admin", start).await, 334, "{mechanism}");
        }
        assert_eq!(client.code("admin", doc! { "authenticate": 1, "mechanism": "MONGODB-X509" }).await, 17);
        let x509 = doc! { "authenticate": 1, "mechanism": "MONGODB-X509", "user": "CN=root" };
        assert_eq!(client.code("$external", x509).await, 18);
        // A mechanism that the node does not take cannot be forced on it.
        let mut options = secured();
        options.parameters.push(("authenticationMechanisms".into(), "SCRAM-SHA-256".into()));
        let fixture = start_secured(options).await;
        let mut client = fixture.connect().await;
        client.ok("admin", doc! { "createUser": "root", "pwd": "secret", "roles": ["root"] }).await;
        let reply = client.ok("admin", doc! { "hello": 1, "saslSupportedMechs": "admin.root" }).await;
        assert_eq!(reply.get("saslSupportedMechs").unwrap().as_array().unwrap().len(), 1);
        let login = Login { mechanism: Mechanism::ScramSha1, ..Login::new("root", "secret") };
        assert_eq!(number(&login.run(&mut client).await, "code"), 18.0);
    });
}

#[test]
fn u10_payloads_that_make_no_sense_are_refused_and_the_connection_lives() {
    run(async {
        let (fixture, _root) = with_root().await;
        let mut client = fixture.connect().await;
        let long = vec![b'x'; 10_000];
        let start = |payload: Value<'_>| doc! { "saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": (payload) };
        for bytes in [&b""[..], b"\0\0\0\0", b"n,,n=,r=", b"\xff\xfe", b"n,,n=root,r=a", &long] {
            let reply = client.on("admin", start(binary(bytes))).await;
            assert_eq!(number(&reply, "ok"), 0.0);
        }
        for value in [Value::Int32(1), Value::Null, Value::Bool(true), Value::String("?".into())] {
            assert_eq!(number(&client.on("admin", start(value)).await, "ok"), 0.0);
        }
        for payload in [&b"c=biws,r=x,p=AAAA"[..], b"", b",,,,", &long] {
            client.ok("admin", start(binary(b"n,,n=root,r=abcdef"))).await;
            let reply = client.on("admin", next(payload)).await;
            assert_eq!(number(&reply, "ok"), 0.0);
        }
        client.log_in("root", "secret").await;
    });
}

#[test]
fn u10_ten_thousand_failed_logins_leave_nothing_behind() {
    run(async {
        let (fixture, mut root) = with_root().await;
        let known = || fixture.server.node().security.cache.len();
        let before = known();
        let mut client = fixture.connect().await;
        for attempt in 0..10_000 {
            let user = format!("nobody{attempt}");
            let first = format!("n,,n={user},r=abcdef");
            let start = doc! { "saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": (binary(first.as_bytes())) };
            client.ok("admin", start).await;
            assert_eq!(client.code("admin", next(b"c=biws,r=abcdef,p=AAAA")).await, 18);
        }
        assert_eq!(known(), before);
        let status = root.ok("admin", doc! { "serverStatus": 1 }).await;
        let path = ["security", "authentication", "mechanisms", "SCRAM-SHA-256", "authenticate"];
        let counted =
            path.iter().fold(status, |section, name| section.get(name).unwrap().as_document().unwrap().to_doc());
        assert_eq!((number(&counted, "received"), number(&counted, "successful")), (10_001.0, 1.0));
        client.log_in("root", "secret").await;
    });
}

#[test]
fn u10_passwords_are_shown_nowhere() {
    run(async {
        let (fixture, mut root) = with_root().await;
        root.make_user("weak", roles(&[])).await;
        let mut weak = fixture.connect_as("weak").await;
        let reply = weak.on("d", doc! { "createUser": "u", "pwd": "hush-hush", "roles": [] }).await;
        assert_eq!(number(&reply, "code"), 13.0);
        assert!(!reply.to_string().contains("hush") && text(&reply, "errmsg").contains("xxx"), "{reply}");
        let create = root.on("d", doc! { "createUser": "u", "pwd": "hush-hush", "roles": ["nonsense"] }).await;
        assert!(!create.to_string().contains("hush"), "{create}");
        let log = root.ok("admin", doc! { "getLog": "global" }).await;
        assert!(!log.to_string().contains("hush"));
    });
}

#[test]
fn u10_javascript_reaches_nothing_but_its_document() {
    run(async {
        let (_fixture, mut root) = with_root().await;
        root.ok("d", doc! { "insert": "c", "documents": [{ "_id": 1 }] }).await;
        let find = |code: &str| doc! { "find": "c", "filter": { "$where": code } };
        // Whatever a host could offer is not there, by whichever way it is looked for.
        for name in
            ["process", "require", "std", "os", "load", "db", "Deno", "WebAssembly", "Worker", "fetch", "scriptArgs"]
        {
            for way in [
                format!("typeof {name} !== 'undefined'"),
                format!("typeof this.constructor.constructor('return this')().{name} !== 'undefined'"),
                format!("typeof (function() {{ return this }})().{name} !== 'undefined'"),
                format!("(0, eval)('typeof {name}') !== 'undefined'"),
            ] {
                let reply = root.on("d", find(&way)).await;
                let is_refused = number(&reply, "ok") == 0.0;
                assert!(is_refused || batch(&reply).is_empty(), "{way}: {reply}");
            }
        }
        for code in ["import('fs')", "import 'os'", "return import.meta.url"] {
            let reply = root.on("d", find(code)).await;
            assert!(number(&reply, "ok") == 0.0 || batch(&reply).len() <= 1, "{code}: {reply}");
        }
        // What one request does to the built-in objects is gone with it.
        let pollute = "Object.prototype.admin = true; Array.prototype.join = null; globalThis.seen = 1; return true";
        root.ok("d", find(pollute)).await;
        let look = "return ({}).admin === true || [1].join === null || typeof seen !== 'undefined'";
        assert_eq!(batch(&root.ok("d", find(look)).await), Vec::<Doc>::new());
        // What does not end by itself is ended.
        let deep = find("function f() { return f() + 1 } return f() > 0");
        assert_eq!(number(&root.on("d", deep).await, "ok"), 0.0);
        root.ok("admin", doc! { "ping": 1 }).await;
    });
}
