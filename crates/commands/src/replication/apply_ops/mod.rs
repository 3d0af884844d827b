//! `applyOps`: carries out operations as the oplog has them, each with an entry of its own in this node's oplog.
//!
//! Tools send it to bring back what they have dumped. Operations are carried out in their order. A document that cannot be
//! changed is told as false among the results and the others go on; a command that fails, and what makes no sense, ends
//! the whole. Everything that was done before stays: the operations are not one transaction.
//!
//! Inserts of documents that are there, and deletes of what is not, are as good as done, so that a log can be played again.

mod command;
mod document;
mod request;

pub(crate) use request::{UuidUse, read_operation, uuid_use};

use crate::arguments::SafeLong;
use crate::{Access, Class, CommandRow, Invocation, SecondaryOk, arguments, run_boxed};
use pando_base::{Component, Error, ErrorCode, Namespace, Result, Severity, bail, ensure, log};
use pando_doc::{ArrayRef, Doc, DocBuilder, DocRef, Value};
use pando_env::Place;
use pando_oplog::{OpKind, Operation as OplogOperation};
use std::pin::Pin;

pub(super) const ROW: CommandRow = CommandRow {
    name: "applyOps",
    help: "internal command to apply oplog entries\n{ applyOps : [ ] }",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    class: Class::Write,
    secondary_ok: SecondaryOk::Never,
    takes_write_concern: true,
    privileges: Access::Checked(crate::access::may_apply),
    place: Place::Lanes,
    ..CommandRow::DEFAULT
};

arguments! {
    pub(crate) struct ApplyOpsArguments<'a> of "applyOps" lenient {
        always_upsert: bool = "alwaysUpsert" or true,
        pre_condition: Option<ArrayRef<'a>> = "preCondition",
        prepare: Option<bool> = "prepare",
        partial_transaction: Option<bool> = "partialTxn",
        count: Option<SafeLong> = "count",
        mode: Option<&'a str> = "oplogApplicationMode",
        bypass_validation: Option<Value<'a>> = "bypassDocumentValidation",
    }
}

/// How operations are carried out.
#[derive(Clone, Copy)]
struct Manner {
    /// Updates insert what they do not find.
    always_upsert: bool,
    /// Validators are not asked.
    bypass_validation: bool,
    /// As a client's command, not in place of replication: then indexes are not built.
    is_for_client: bool,
}

async fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    request::check_nesting(invocation.body())?;
    let operations = request::check_operations(invocation.target())?;
    let arguments = ApplyOpsArguments::parse_document(invocation.body())?;
    let is_for_client = match arguments.mode {
        None | Some("ApplyOps") => true,
        Some("InitialSync" | "UnstableRecovering" | "StableRecovering" | "Secondary") => false,
        Some(other) => bail!(
            ErrorCode::FailedToParse,
            "Could not parse oplogApplicationMode :: caused by :: Invalid oplog application mode provided: {other}"
        ),
    };
    let manner = Manner {
        always_upsert: true,
        bypass_validation: arguments.bypass_validation.is_some_and(|on| on.is_true()),
        is_for_client,
    };
    apply_all(invocation, operations, &arguments, manner, reply).await
}

/// Carries out the operations of a request, or of an operation that is itself a list of them.
async fn apply_all(
    invocation: &Invocation,
    operations: ArrayRef<'_>,
    arguments: &ApplyOpsArguments<'_>,
    manner: Manner,
    reply: &mut DocBuilder,
) -> Result<()> {
    let location = |code: i32| ErrorCode::location(code);
    ensure!(
        arguments.pre_condition.is_none(),
        location(6711600),
        "applyOps command no longer supports the 'preCondition' option"
    );
    ensure!(arguments.prepare.is_none(), ErrorCode::BadValue, "applyOps command can't have 'prepare' field");
    ensure!(
        arguments.partial_transaction.is_none(),
        location(31056),
        "applyOps command can't have 'partialTxn' field."
    );
    ensure!(arguments.count.is_none(), location(31240), "applyOps command can't have 'count' field.");
    let operations: Vec<DocRef<'_>> = operations.values().filter_map(|value| value.as_document()).collect();
    ensure!(
        operations.len() == 1 || !operations.iter().any(|operation| request::is_command(*operation, "dropDatabase")),
        location(6275900),
        "dropDatabase in an applyOps must be the only entry"
    );
    let manner = Manner { always_upsert: arguments.always_upsert, ..manner };
    let mut results: Vec<bool> = Vec::with_capacity(operations.len());
    for operation in operations {
        match apply(invocation, operation, manner).await {
            Ok(Outcome::Ignored) => {}
            Ok(Outcome::Done) => results.push(true),
            Ok(Outcome::Failed(error)) => {
                let log = &invocation.node.log;
                log!(log, Severity::Info, Component::Command, 21064, "applyOps error applying", "error" = &error);
                results.push(false);
            }
            Err(error) => {
                results.push(false);
                return Err(error.with_details(summary(&results).into_bytes().to_vec()));
            }
        }
    }
    let summary = summary(&results);
    if results.contains(&false) {
        let error = Error::new(ErrorCode::UnknownError, "applyOps had one or more errors applying ops");
        return Err(error.with_details(summary.into_bytes().to_vec()));
    }
    reply.append_all(summary.view());
    Ok(())
}

/// What became of an operation that may fail alone.
enum Outcome {
    /// It is none that does anything.
    Ignored,
    /// It is carried out.
    Done,
    /// It could not be; the next ones are tried.
    Failed(Error),
}

fn summary(results: &[bool]) -> Doc {
    let mut summary = DocBuilder::new();
    summary.append("applied", i32::try_from(results.len()).unwrap_or(i32::MAX));
    summary.array("results", |array| results.iter().for_each(|result| array.push(*result)));
    summary.finish()
}

/// Boxed, because an operation can be a list of operations.
fn apply<'a>(
    invocation: &'a Invocation,
    operation: DocRef<'a>,
    manner: Manner,
) -> Pin<Box<dyn Future<Output = Result<Outcome>> + Send + 'a>> {
    Box::pin(async move {
        let Some(operation) = read_operation(operation)? else { return Ok(Outcome::Ignored) };
        match operation.kind {
            OpKind::Noop => Ok(Outcome::Ignored),
            OpKind::Insert | OpKind::Update | OpKind::Delete => {
                let namespace = valid_namespace(&operation)?;
                document::apply(invocation, &operation, &namespace, manner).await
            }
            OpKind::Command => command::apply(invocation, &operation, manner).await.map(|()| Outcome::Done),
            OpKind::InsertGlobalIndexKey | OpKind::DeleteGlobalIndexKey => {
                bail!(ErrorCode::CommandNotSupported, "keys of global indexes are not applied by applyOps")
            }
        }
    })
}

fn valid_namespace(operation: &OplogOperation<'_>) -> Result<Namespace> {
    let invalid = || Error::new(ErrorCode::InvalidNamespace, format!("invalid ns: {}", operation.ns));
    let namespace = operation.namespace().map_err(|_| invalid())?;
    if namespace.collection().is_empty() || !namespace.is_valid() {
        return Err(invalid());
    }
    Ok(namespace)
}
