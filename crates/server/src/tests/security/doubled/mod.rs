//! Whoever may use one collection only gets nothing else by saying things twice, in another order
//! or as another type.
//!
//! A user may do everything with d.c1 and d.v1. What each request names is doubled, field by field,
//! with the forbidden value on either side: c2 for c1, true for false, root for the user. Then
//! requests are changed by chance. Whatever the node answers, the answer has nothing of d.c2 in it
//! nor of what users prove themselves with, and what the user may not change is as before.

mod known;
mod mutation;
mod requests;

use super::*;
use mutation::Node;
use pando_doc::OwnedValue;
use pando_env::Random;
use pando_env::simulated::SimulatedRandom;
use requests::requests;

/// What is in d.c2, and in no request.
const CLASSIFIED: &str = "classified-7f3a";
/// What nobody may read of users.
const KEYS: &str = "storedKey";

/// So many requests are sent to one node.
const WORLD_SEEDS: u64 = 500;

struct Limited {
    fixture: Fixture,
    root: Client,
    limited: Client,
    before: String,
}

async fn limited() -> Limited {
    let (fixture, mut root) = with_root().await;
    let on = |collection: &str| doc! { "resource": { "db": "d", "collection": collection }, "actions": ["anyAction"] };
    let cluster = doc! { "resource": { "cluster": true }, "actions": ["applyOps", "useUUID", "forceUUID"] };
    let role = doc! { "createRole": "limited", "privileges": [(on("c1")), (on("v1")), cluster], "roles": [] };
    root.ok("admin", role).await;
    root.make_user("limited", roles(&[("limited", "admin")])).await;
    root.ok("d", doc! { "insert": "c2", "documents": [{ "_id": CLASSIFIED, "one": 1, "place": [0, 0] }] }).await;
    root.ok("d", doc! { "createIndexes": "c2", "indexes": [{ "key": { "place": "2d" }, "name": "place" }] }).await;
    let limited = fixture.connect_as("limited").await;
    let mut world = Limited { fixture, root, limited, before: String::new() };
    world.restore().await;
    world.before = world.forbidden_state().await;
    world
}

impl Limited {
    /// What the user may change is as it was.
    async fn restore(&mut self) {
        self.root.on("d", doc! { "drop": "v1" }).await;
        self.root.on("d", doc! { "drop": "c1" }).await;
        let allowed = doc! { "insert": "c1", "documents": [{ "_id": "open", "one": 1, "place": [0, 0] }] };
        self.root.ok("d", allowed).await;
        let index = doc! { "createIndexes": "c1", "indexes": [{ "key": { "place": "2d" }, "name": "place" }] };
        self.root.ok("d", index).await;
    }

    /// All that the user may not change, as text.
    async fn forbidden_state(&mut self) -> String {
        let mut told = String::new();
        for (database, collection) in [("d", "c2"), ("admin", "system.users"), ("admin", "system.roles")] {
            let found = self.root.ok(database, doc! { "find": collection, "sort": { "_id": 1 } }).await;
            told += &batch(&found).iter().map(Doc::to_string).collect::<String>();
            let indexes = self.root.ok(database, doc! { "listIndexes": collection }).await;
            told += &batch(&indexes).iter().map(Doc::to_string).collect::<String>();
        }
        for database in ["d", "admin", "local", "e"] {
            let listed = self.root.ok(database, doc! { "listCollections": 1, "nameOnly": true }).await;
            let mut names: Vec<String> = batch(&listed).iter().map(|one| text(one, "name")).collect();
            names.retain(|name| database != "d" || !["c1", "v1", "system.views"].contains(&name.as_str()));
            names.sort();
            told += &format!("{database}: {names:?}");
        }
        told
    }

    /// Sends a request and looks at what the answer tells, and at what a view that it may have made
    /// shows.
    async fn send(&mut self, database: &str, request: &Doc) -> Doc {
        let reply = self.limited.on(database, request.clone()).await;
        self.look(request, &reply);
        if number(&reply, "ok") == 1.0 && request.view().get("viewOn").is_some() {
            let shown = self.limited.on("d", doc! { "find": "v1" }).await;
            self.look(request, &shown);
        }
        reply
    }

    fn look(&self, request: &Doc, reply: &Doc) {
        let told = reply.to_string();
        let keys_are_own = !told.contains(KEYS) || is_about_oneself(reply);
        assert!(!told.contains(CLASSIFIED) && keys_are_own, "{request} tells {reply}");
    }

    async fn is_as_before(&mut self, request: &Doc) {
        let now = self.forbidden_state().await;
        assert_eq!(now, self.before, "after {request}");
    }

    /// Brings back what a request needs that was sent in the form in which it is allowed.
    async fn prepare(&mut self, request: &Doc) {
        let first = request.view().first().map(|first| first.name.to_string()).unwrap_or_default();
        let text = request.to_string();
        if text.contains("\"v1\"") || text.contains("d.v1") || text.contains("c1") && is_destructive(&first) {
            self.restore().await;
        }
        if first == "collMod" && text.contains("viewOn") {
            self.root.ok("d", doc! { "create": "v1", "viewOn": "c1", "pipeline": [] }).await;
        }
    }
}

/// True for an answer with nobody's users but the own one, of whom everything may be asked.
fn is_about_oneself(reply: &Doc) -> bool {
    let own = doc! { "user": "limited", "db": "admin" };
    let is_own = |user: Value<'_>| {
        user.as_document().is_some_and(|user| ["user", "db"].iter().all(|name| user.get(name) == own.get(name)))
    };
    let users = reply.get("users").and_then(|users| users.as_array());
    users.is_some_and(|users| users.values().all(is_own))
}

fn is_destructive(command: &str) -> bool {
    !matches!(command, "find" | "count" | "distinct" | "aggregate" | "explain" | "insert" | "update")
}

/// What stands in place of something in a request that the user must not do.
fn forbidden(node: &Node) -> Node {
    match node {
        Node::Document(fields) => {
            Node::Document(fields.iter().map(|(name, value)| (name.clone(), forbidden(value))).collect())
        }
        Node::Array(values) => Node::Array(values.iter().map(forbidden).collect()),
        Node::Leaf(value) => Node::Leaf(match value {
            OwnedValue::Bool(on) => OwnedValue::Bool(!on),
            OwnedValue::String(_) => match value.view().as_str().unwrap_or_default() {
                "c1" | "v1" => "c2".into(),
                "d.c1" | "d.v1" => "d.c2".into(),
                "d.$cmd" => "admin.$cmd".into(),
                "d" => "admin".into(),
                "limited" => "root".into(),
                "keepExisting" | "fail" => "replace".into(),
                other => other.into(),
            },
            other => other.clone(),
        }),
    }
}

fn database_of(row: &pando_commands::CommandRow, request: &Doc) -> &'static str {
    let text = request.to_string();
    match row.is_admin_only || text.contains("\"aggregate\": 1") || text.contains("usersInfo") {
        true => "admin",
        false => "d",
    }
}

fn rows(fixture: &Fixture) -> Vec<&'static pando_commands::CommandRow> {
    let entries = fixture.server.node().table.entries().iter().map(|entry| entry.row);
    // These end the connection, or wait.
    entries.filter(|row| !["logout", "shutdown", "sleep", "waitForFailPoint"].contains(&row.name)).collect()
}

#[test]
fn u10_a_field_that_stands_twice_gets_nobody_what_is_not_theirs() {
    run(async {
        let mut world = limited().await;
        let (mut sent, mut refused_as_doubled, mut allowed) = (0, 0, 0);
        for row in rows(&world.fixture) {
            for request in requests(row.name) {
                let database = database_of(row, &request);
                world.prepare(&request).await;
                let reply = world.send(database, &request).await;
                allowed += usize::from(number(&reply, "ok") == 1.0);
                let tree = Node::of(request.view());
                for field in 0..tree.field_count() {
                    for is_before in [false, true] {
                        let Some(doubled) = tree.doubled(field, forbidden, is_before) else { continue };
                        let doubled = doubled.to_doc();
                        world.prepare(&doubled).await;
                        let reply = world.send(database, &doubled).await;
                        sent += 1;
                        let code = reply.get("code").and_then(|code| code.to_i64_exact());
                        refused_as_doubled += usize::from(matches!(code, Some(9 | 40413 | 40323 | 12_735_700)));
                    }
                }
                world.is_as_before(&request).await;
            }
        }
        assert!(sent > 800 && refused_as_doubled > sent / 2 && allowed > 60, "{sent} {refused_as_doubled} {allowed}");
    });
}

/// How many seeds are played: the default number, scaled by `PANDO_SEEDS` (500 is the usual number,
/// 10,000 the long one).
fn seed_count(default: u64) -> u64 {
    let chosen: Option<u64> = std::env::var("PANDO_SEEDS").ok().and_then(|text| text.parse().ok());
    chosen.map_or(default, |chosen| (default * chosen / 500).max(1))
}

/// `PANDO_FIRST_SEED`: where a long run goes on.
fn first_seed() -> u64 {
    std::env::var("PANDO_FIRST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// What any command may carry.
fn general_fields() -> Doc {
    doc! {
        "$db": "d", "$tenant": "x", "readConcern": { "level": "local" }, "writeConcern": { "w": 1 },
        "comment": "c1", "let": { "c1": "c1" }, "collation": { "locale": "simple" }, "$readPreference": { "mode": "primary" },
        "maxTimeMS": 10_000, "apiVersion": "1", "apiStrict": false, "txnNumber": 1_i64, "autocommit": false,
        "startTransaction": true, "bypassDocumentValidation": false, "collectionUUID": "c1", "hint": { "_id": 1 },
        "pipeline": [{ "$unionWith": "c1" }], "cursor": {}, "from": "c1", "coll": "c1", "into": "c1", "ns": "d.c1",
        "$audit": { "$impersonatedUsers": [{ "user": "limited", "db": "admin" }] }, "fromRouter": false,
        "runtimeConstants": { "userRoles": [] }, "mayBypassWriteBlocking": false,
    }
}

#[test]
fn u10_requests_changed_by_chance_get_nobody_what_is_not_theirs() {
    run(async {
        let mut world = limited().await;
        let all: Vec<(&pando_commands::CommandRow, Doc)> = rows(&world.fixture)
            .into_iter()
            .flat_map(|row| requests(row.name).into_iter().map(move |request| (row, request)))
            .collect();
        let first = first_seed();
        for seed in first..first + seed_count(1500) {
            // What is remembered of a world slows it down.
            if seed % WORLD_SEEDS == WORLD_SEEDS - 1 {
                world = limited().await;
            }
            if seed % 5000 == 4999 {
                eprintln!("seed {seed}");
            }
            let random = SimulatedRandom::new(seed);
            let (row, request) = &all[random.below(all.len() as u64) as usize];
            let (_, stranger) = &all[random.below(all.len() as u64) as usize];
            let mut tree = Node::of(request.view());
            for _ in 0..=random.below(3) {
                match random.below(8) {
                    0 => tree.take(&random, &Node::of(stranger.view()), forbidden),
                    1 => tree.take(&random, &Node::of(general_fields().view()), forbidden),
                    _ => tree.change(&random, forbidden),
                }
            }
            let changed = tree.to_doc();
            world.prepare(request).await;
            world.send(database_of(row, request), &changed).await;
            if seed % 8 == 7 {
                world.is_as_before(&changed).await;
            }
        }
        let last = doc! { "ping": 1 };
        world.is_as_before(&last).await;
    });
}
