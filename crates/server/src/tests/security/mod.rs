//! A node with authentication: logging in, users and roles, who may run what, and what attackers try.

mod access;
mod attacks;
mod attempts;
mod before_login;
mod cluster_time;
mod doubled;
mod login;
mod matrix;
mod tls;
mod users;

use super::*;
use crate::SecurityOptions;
use pando_doc::{DocBuilder, Value};
use pando_engine_model::{Mode, ModelDisk, ModelEngine};
use pando_security::scram::{Mechanism, ScramClient, digested_password};

fn secured() -> ServerOptions {
    let mut options = options(ReplicationMode::OneMember("rs0".into()));
    options.security.is_enabled = true;
    options.parameters.push(("scramIterationCount".into(), "5000".into()));
    options.parameters.push(("scramSHA256IterationCount".into(), "5000".into()));
    options
}

async fn start_secured(options: ServerOptions) -> Fixture {
    let engine: Arc<dyn Engine> = ModelEngine::open(&ModelDisk::new(), Mode::ReplicaSet).unwrap();
    start_on(Some(engine), options).await
}

/// A node with the user "root", who may do everything, logged in.
async fn with_root() -> (Fixture, Client) {
    let fixture = start_secured(secured()).await;
    let mut client = fixture.connect().await;
    client.ok("admin", doc! { "createUser": "root", "pwd": "secret", "roles": ["root"] }).await;
    client.log_in("root", "secret").await;
    (fixture, client)
}

impl Fixture {
    async fn connect_as_root(&self) -> Client {
        let mut client = self.connect().await;
        client.log_in("root", "secret").await;
        client
    }

    /// A connection of a user of the database "admin", whose password is the name.
    async fn connect_as(&self, user: &str) -> Client {
        let mut client = self.connect().await;
        client.log_in(user, user).await;
        client
    }
}

/// The proof of a password, step by step.
struct Login<'a> {
    user: &'a str,
    password: &'a str,
    database: &'a str,
    mechanism: Mechanism,
    skips_empty_exchange: bool,
}

impl<'a> Login<'a> {
    fn new(user: &'a str, password: &'a str) -> Login<'a> {
        Login { user, password, database: "admin", mechanism: Mechanism::ScramSha256, skips_empty_exchange: true }
    }

    fn begin(&self) -> (ScramClient, Doc) {
        let password = match self.mechanism {
            Mechanism::ScramSha1 => digested_password(self.user, self.password),
            Mechanism::ScramSha256 => self.password.to_owned(),
        };
        let (client, first) = ScramClient::begin(self.mechanism, self.user, &password, "nonce-of-client");
        let start = doc! {
            "saslStart": 1, "mechanism": (self.mechanism.name()), "payload": (binary(first.as_bytes())),
            "options": { "skipEmptyExchange": (self.skips_empty_exchange) },
        };
        (client, start)
    }

    /// The reply to the last message, whatever it says.
    async fn run(&self, client: &mut Client) -> Doc {
        let (mut scram, start) = self.begin();
        let answer = client.on(self.database, start).await;
        if number(&answer, "ok") == 0.0 {
            return answer;
        }
        let proof = scram.prove(&payload(&answer)).unwrap();
        let answer = client.on(self.database, next(proof.as_bytes())).await;
        if number(&answer, "ok") == 0.0 {
            return answer;
        }
        scram.verify(&payload(&answer)).unwrap();
        match self.skips_empty_exchange {
            true => answer,
            false => {
                assert_eq!(answer.get("done"), Some(Value::Bool(false)));
                client.on(self.database, next(b"")).await
            }
        }
    }
}

fn binary(bytes: &[u8]) -> Value<'_> {
    Value::Binary { subtype: 0, bytes }
}

fn next(payload: &[u8]) -> Doc {
    doc! { "saslContinue": 1, "conversationId": 1, "payload": (binary(payload)) }
}

fn payload(answer: &Doc) -> String {
    match answer.get("payload") {
        Some(Value::Binary { bytes, .. }) => String::from_utf8(bytes.to_vec()).unwrap(),
        other => panic!("no payload: {other:?}"),
    }
}

impl Client {
    async fn on(&mut self, database: &str, body: Doc) -> Doc {
        let mut with_database = DocBuilder::new();
        with_database.append_all(body.view());
        with_database.append("$db", database);
        self.ask(with_database.finish()).await
    }

    async fn ok(&mut self, database: &str, body: Doc) -> Doc {
        let reply = self.on(database, body).await;
        assert_eq!(number(&reply, "ok"), 1.0, "{reply}");
        reply
    }

    async fn code(&mut self, database: &str, body: Doc) -> i32 {
        let reply = self.on(database, body).await;
        assert_eq!(number(&reply, "ok"), 0.0, "{reply}");
        number(&reply, "code") as i32
    }

    async fn log_in(&mut self, user: &str, password: &str) {
        let answer = Login::new(user, password).run(self).await;
        assert_eq!(answer.get("done"), Some(Value::Bool(true)), "{answer}");
    }

    /// Makes a user of the database "admin" whose password is the name.
    async fn make_user(&mut self, name: &str, roles: pando_doc::Array) {
        self.ok("admin", doc! { "createUser": name, "pwd": name, "roles": (roles) }).await;
    }

    /// Whom the node takes the client for.
    async fn who(&mut self) -> Vec<String> {
        let reply = self.ok("admin", doc! { "connectionStatus": 1 }).await;
        let info = reply.get("authInfo").unwrap().as_document().unwrap();
        let users = info.get("authenticatedUsers").unwrap().as_array().unwrap();
        users
            .values()
            .map(|user| user.as_document().unwrap().get("user").unwrap().as_str().unwrap().to_owned())
            .collect()
    }
}

/// An array of roles.
fn roles(given: &[(&str, &str)]) -> pando_doc::Array {
    let mut array = pando_doc::ArrayBuilder::new();
    for (role, database) in given {
        array.push(&doc! { "role": (*role), "db": (*database) });
    }
    array.finish()
}

/// The documents of a first batch.
fn batch(reply: &Doc) -> Vec<Doc> {
    let cursor = reply.get("cursor").unwrap().as_document().unwrap();
    let batch = cursor.get("firstBatch").unwrap().as_array().unwrap();
    batch.values().map(|value| value.as_document().unwrap().to_doc()).collect()
}
