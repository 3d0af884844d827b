//! One sample: what commands that tell about the node answer, each with the time before and after it.

use bytes::Bytes;
use pando_base::{DatabaseName, Error, Result};
use pando_commands::{ConnectionState, GenericArguments, Invocation, Node};
use pando_doc::{Doc, DocBuilder, Value, doc};
use pando_env::Address;
use pando_wire::{Command, Compressors, MsgFlags, RequestBuilder};
use std::sync::Arc;

/// What is asked every time: the name in the sample, the database, the command.
fn questions(node: &Node) -> Vec<(&'static str, &'static str, Doc)> {
    let mut questions = vec![(
        "serverStatus",
        "admin",
        doc! { "serverStatus": 1, "sharding": false, "timing": false, "defaultRWConcern": false },
    )];
    if node.replication.is_replica_set() {
        questions.push(("replSetGetStatus", "admin", doc! { "replSetGetStatus": 1 }));
        let oplog = doc! { "collStats": "oplog.rs", "waitForLock": false, "numericOnly": true };
        questions.push(("local.oplog.rs.stats", "local", oplog));
    }
    questions
}

/// What opens each file of the archive.
pub(super) async fn facts(node: &Arc<Node>) -> Doc {
    let questions = vec![
        ("buildInfo", "admin", doc! { "buildInfo": 1 }),
        ("getCmdLineOpts", "admin", doc! { "getCmdLineOpts": 1 }),
        ("hostInfo", "admin", doc! { "hostInfo": 1 }),
    ];
    asked(node, questions).await
}

/// Asks everything once.
pub(crate) async fn take_sample(node: &Arc<Node>) -> Doc {
    asked(node, questions(node)).await
}

async fn asked(node: &Arc<Node>, questions: Vec<(&'static str, &'static str, Doc)>) -> Doc {
    let mut sample = DocBuilder::with_capacity(16 * 1024);
    sample.append("start", Value::DateTime(node.now_ms()));
    for (name, database, command) in questions {
        let start_ms = node.now_ms();
        // What cannot be answered now is left out.
        let Ok(answer) = ask(node, database, &command).await else { continue };
        sample.document(name, |part| {
            part.append("start", Value::DateTime(start_ms));
            part.append_all(answer.view());
            part.append("end", Value::DateTime(node.now_ms()));
        });
    }
    sample.append("end", Value::DateTime(node.now_ms()));
    sample.finish()
}

/// Runs a command of the node's for itself, past everything that clients pass.
pub(crate) async fn ask(node: &Arc<Node>, database: &str, command: &Doc) -> Result<Doc> {
    let mut body = DocBuilder::new();
    body.append_all(command.view());
    body.append("$db", database);
    let message = RequestBuilder::new(MsgFlags::NONE, Vec::new()).body(body.finish().view()).finish(0, None)?;
    let request = Command::decode(Bytes::from(message), &Compressors::default()).map_err(|refusal| refusal.error)?;
    let entry = node.table.find(request.name()).ok_or_else(|| Error::internal("a command of ours is missing"))?;
    let connection = Arc::new(ConnectionState::new(0, Address::Unix(None), Address::Unix(None)));
    let context = node.operations.start(&connection.client);
    let generic = GenericArguments::parse(&request, true)?;
    let database = DatabaseName::new(database)?;
    let invocation = Invocation::new(Arc::clone(node), connection, context, entry.row, request, database, generic);
    let mut reply = DocBuilder::new();
    (entry.row.run)(&invocation, &mut reply).await?;
    Ok(reply.finish())
}
