//! `testInternalTransactions`: runs commands in a transaction of the server's own.

use crate::transaction_api::{InternalTransaction, TransactionBody, run_transaction};
use crate::{Access, CommandRow, Invocation, SecondaryOk, run_boxed};
use pando_base::{Error, Result};
use pando_doc::{Doc, DocBuilder, DocRef, Value};
use pando_env::BoxedFuture;

pub(super) const ROW: CommandRow = CommandRow {
    name: "testInternalTransactions",
    help: "Internal command for testing internal transactions",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    is_admin_only: true,
    secondary_ok: SecondaryOk::Never,
    is_for_tests: true,
    is_retryable_write: true,
    takes_write_concern: true,
    takes_read_concern: true,
    privileges: Access::Nothing,
    ..CommandRow::DEFAULT
};

crate::arguments! {
    /// What testInternalTransactions takes.
    struct Arguments<'a> of "testInternalTransactions" {
        /// The commands.
        command_infos: pando_doc::ArrayRef<'a> = "commandInfos",
        /// Whether they go through a router; there is none.
        _use_cluster_client: Option<bool> = "useClusterClient",
    }
}

/// One of the commands.
struct Statement<'a> {
    database: &'a str,
    command: DocRef<'a>,
    must_succeed: bool,
    exhausts_cursor: bool,
}

impl<'a> Statement<'a> {
    fn parse(value: Value<'a>) -> Result<Statement<'a>> {
        let missing = |name: &str| {
            let reason =
                format!("BSON field 'testInternalTransactions.commandInfos.{name}' is missing but a required field");
            Error::location(40414, reason)
        };
        let info = value.as_document().ok_or_else(|| Error::type_mismatch("commandInfos has documents"))?;
        let flag = |name: &str, default: bool| info.get(name).map_or(default, |value| value.is_true());
        Ok(Statement {
            database: info.get("dbName").and_then(|name| name.as_str()).ok_or_else(|| missing("dbName"))?,
            command: info.get("command").and_then(|command| command.as_document()).ok_or_else(|| missing("command"))?,
            must_succeed: flag("assertSucceeds", true),
            exhausts_cursor: flag("exhaustCursor", false),
        })
    }
}

struct Statements<'a> {
    statements: Vec<Statement<'a>>,
    responses: Vec<Doc>,
}

async fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let arguments = Arguments::parse(&invocation.request)?;
    let statements = arguments.command_infos.values().map(Statement::parse).collect::<Result<Vec<_>>>()?;
    let mut body = Statements { statements, responses: Vec::new() };
    run_transaction(invocation, &mut body).await?;
    reply.array("responses", |responses| body.responses.iter().for_each(|response| responses.push(response)));
    Ok(())
}

impl TransactionBody for Statements<'_> {
    fn run<'a>(&'a mut self, transaction: &'a mut InternalTransaction<'_>) -> BoxedFuture<'a, Result<()>> {
        Box::pin(async move {
            self.responses.clear();
            for statement in &self.statements {
                let response = match statement.must_succeed {
                    true => transaction.run(statement.database, statement.command).await?,
                    false => transaction.run_unchecked(statement.database, statement.command).await?,
                };
                let response = match statement.exhausts_cursor {
                    true => exhaust(transaction, statement.database, response).await?,
                    false => response,
                };
                // A retryable write that was carried out before: so was everything that belonged to it.
                let is_retried = ["retriedStmtIds", "retriedStmtId"].iter().any(|name| response.get(name).is_some());
                self.responses.push(response);
                if is_retried {
                    break;
                }
            }
            Ok(())
        })
    }
}

/// Reads a cursor to its end; the reply with all documents in its first batch.
async fn exhaust(transaction: &mut InternalTransaction<'_>, database: &str, response: Doc) -> Result<Doc> {
    let mut documents = Vec::new();
    let (mut id, namespace) = take_batch(&response, "firstBatch", &mut documents);
    let collection = namespace.split_once('.').map_or("", |(_, name)| name).to_owned();
    while id != 0 {
        let more = pando_doc::doc! { "getMore": id, "collection": (collection.as_str()) };
        let next = transaction.run(database, more.view()).await?;
        id = take_batch(&next, "nextBatch", &mut documents).0;
    }
    let mut whole = DocBuilder::new();
    whole.document("cursor", |cursor| {
        cursor.array("firstBatch", |batch| documents.iter().for_each(|document| batch.push(document)));
        cursor.append("id", 0_i64);
        cursor.append("ns", namespace.as_str());
    });
    whole.append("ok", 1.0);
    Ok(whole.finish())
}

fn take_batch(response: &Doc, name: &str, documents: &mut Vec<Doc>) -> (i64, String) {
    let Some(cursor) = response.get("cursor").and_then(|cursor| cursor.as_document()) else {
        return (0, String::new());
    };
    if let Some(batch) = cursor.get(name).and_then(|batch| batch.as_array()) {
        documents.extend(batch.values().filter_map(|value| value.as_document()).map(DocRef::to_doc));
    }
    let id = match cursor.get("id") {
        Some(Value::Int64(id)) => id,
        _ => 0,
    };
    let namespace = cursor.get("ns").and_then(|ns| ns.as_str().map(str::to_owned)).unwrap_or_default();
    (id, namespace)
}
