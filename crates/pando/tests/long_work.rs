//! More work than there are processors, none of which ends by itself, and a server that answers
//! everybody else all the same.
//!
//! Nothing here measures time: a worker that is kept would be kept for good, and the test with it.

mod support;

use pando_doc::{Array, ArrayBuilder, Doc, DocBuilder, doc};
use pando_env::{Env, ThreadHandle};
use std::sync::mpsc;
use support::{Client, Scratch, Server, batch, block_on, free_port, number};

/// Of each kind, so many at once.
const EACH: usize = 3;
/// Killed by somebody.
const INTERRUPTED: i64 = 11601;
/// Past its deadline.
const EXPIRED: i64 = 50;

fn array(documents: impl IntoIterator<Item = Doc>) -> Array {
    let mut array = ArrayBuilder::new();
    documents.into_iter().for_each(|document| array.push(&document));
    array.finish()
}

/// Pipelines that would go on for years: documents that come out of others without anything being
/// read, queries inside queries, joins of a collection with itself, and a scan between whose
/// documents others may run.
fn endless() -> Vec<Doc> {
    let spread = |name: &str| {
        let field = format!("${name}");
        [doc! { "$set": { (name): { "$range": [0, 100_000] } } }, doc! { "$unwind": field }]
    };
    let never = doc! { "$match": { "nothing": 1 } };
    let sum = |name: &str| doc! { "$group": { "_id": null, "sum": { "$sum": (name) } } };
    let unwound: Vec<Doc> = ["a", "b", "c"].iter().flat_map(|name| spread(name)).chain([sum("$c")]).collect();
    let joined = |inner: Vec<Doc>| doc! { "$lookup": { "from": "numbers", "let": { "v": "$_id" }, "pipeline": (array(inner)), "as": "o" } };
    let greater = doc! { "$match": { "$expr": { "$gte": ["$_id", "$$v"] } } };
    let mut nested = vec![greater.clone(), never];
    for _ in 0..6 {
        nested = vec![greater.clone(), joined(nested), doc! { "$project": { "_id": 1 } }];
    }
    let products: Vec<Doc> = (0..6)
        .flat_map(|_| [doc! { "$lookup": { "from": "numbers", "pipeline": [], "as": "o" } }, doc! { "$unwind": "$o" }])
        .chain([sum("$o._id")])
        .collect();
    [unwound, vec![joined(nested)], products]
        .into_iter()
        .map(|pipeline| doc! { "aggregate": "numbers", "pipeline": (array(pipeline)), "cursor": {}, "comment": "endless" })
        .collect()
}

/// Somebody who waits for an answer that does not come by itself: the code that it comes with.
fn wait_for(env: &Env, address: &str, body: Doc, codes: &mpsc::Sender<i64>) -> Box<dyn ThreadHandle> {
    let (env_of, address, codes) = (env.clone(), address.to_owned(), codes.clone());
    let wait = move || {
        let reply = block_on(async {
            let mut client = Client::connect(&env_of, &address).await.expect("a connection");
            client.ask(&body).await.expect("a reply")
        });
        _ = codes.send(reply.get("code").map_or(0, |_| number(&reply, "code")));
    };
    env.tasks().spawn_thread("waiter", Box::new(wait)).expect("a thread")
}

/// The numbers of the endless ones that are there.
async fn running(client: &mut Client) -> Vec<i64> {
    let pipeline = [
        doc! { "$currentOp": { "allUsers": true } },
        doc! { "$match": { "command.comment": "endless" } },
        doc! { "$project": { "opid": 1 } },
    ];
    let asked = doc! { "aggregate": 1, "pipeline": (array(pipeline)), "cursor": {} };
    let reply = client.ask_on("admin", &asked).await.expect("a reply");
    batch(&reply, "firstBatch").1.iter().map(|found| number(found, "opid")).collect()
}

async fn ask(client: &mut Client, body: Doc) -> Doc {
    let reply = client.ask_on("admin", &body).await.expect("a reply");
    assert_eq!(number(&reply, "ok"), 1, "{body}: {reply}");
    reply
}

/// What everybody may ask at any time, each on a new connection and on one that has asked for other
/// things before.
async fn ask_what_must_be_answered(env: &Env, address: &str, used: &mut Client) {
    for body in [doc! { "hello": 1 }, doc! { "ping": 1 }, doc! { "currentOp": 1 }] {
        let mut client = Client::connect(env, address).await.expect("a connection");
        ask(&mut client, body.clone()).await;
        ask(used, body).await;
    }
    for number in 0..100 {
        let found = used.ok(doc! { "find": "numbers", "filter": { "_id": (number % 40) } }).await;
        assert_eq!(batch(&found, "firstBatch").1.len(), 1);
    }
    used.ok(doc! { "insert": "others", "documents": [{ "a": 1 }] }).await;
}

#[test]
fn work_that_never_ends_keeps_nobody_waiting_and_can_be_killed() {
    let env = Env::real();
    let scratch = Scratch::new(&env);
    let port = block_on(free_port(&env));
    let address = format!("127.0.0.1:{port}");
    let server = Server::start(&env, &scratch.0, port, &[]);
    let (say, hear) = mpsc::channel();
    let mut client = block_on(async {
        let mut client = Client::connect(&env, &address).await.expect("a connection");
        let documents = (0..40).map(|number: i32| doc! { "_id": number });
        client.ok(doc! { "insert": "numbers", "documents": (array(documents)) }).await;
        client
    });
    let count = EACH * endless().len();
    let kinds = || (0..EACH).flat_map(|_| endless());
    let waiting: Vec<_> = kinds().map(|body| wait_for(&env, &address, body, &say)).collect();
    block_on(async {
        while running(&mut client).await.len() < count {}
        ask_what_must_be_answered(&env, &address, &mut client).await;
        let status = ask(&mut client, doc! { "serverStatus": 1 }).await;
        let metrics = status.get("metrics").and_then(|metrics| metrics.as_document()).expect("metrics").to_doc();
        let workers = metrics.get("workers").and_then(|workers| workers.as_document()).expect("figures").to_doc();
        assert!(number(&workers, "paused") > 0, "{workers}");
        for operation in running(&mut client).await {
            ask(&mut client, doc! { "killOp": 1, "op": operation }).await;
        }
    });
    waiting.into_iter().for_each(|thread| thread.join().expect("no panic"));
    assert_eq!(hear.try_iter().collect::<Vec<_>>(), vec![INTERRUPTED; count]);
    // A deadline ends them as well.
    let limited = |body: Doc| {
        let mut limited = DocBuilder::new();
        limited.append_all(body.view());
        limited.append("maxTimeMS", 50);
        limited.finish()
    };
    let waiting: Vec<_> = kinds().map(limited).map(|body| wait_for(&env, &address, body, &say)).collect();
    waiting.into_iter().for_each(|thread| thread.join().expect("no panic"));
    assert_eq!(hear.try_iter().collect::<Vec<_>>(), vec![EXPIRED; count]);
    assert!(server.terminate(), "it ends as it should");
}
