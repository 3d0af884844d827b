//! The write concern: checked before the command, waited for after it, also after one that failed: it may have written before,
//! or have failed for what others wrote.

use super::stage::{Entered, Stage};
use pando_base::{Category, Error, Result};
use pando_commands::{Invocation, reply as replies, write_concern_labels};
use pando_doc::DocBuilder;
use pando_env::BoxedFuture;
use pando_repl::write_concern::WriteConcern;
use pando_repl::{ReplGate, WriteConcernOutcome};
use pando_session::TransactionState;

/// Waits until what was written is acknowledged as the client asked.
pub(crate) struct AwaitWriteConcern;

impl Stage for AwaitWriteConcern {
    fn name(&self) -> &'static str {
        "write concern"
    }

    fn enter<'a>(&'a self, invocation: &'a Invocation) -> Entered<'a> {
        check(invocation).into()
    }

    fn fail<'a>(
        &'a self,
        invocation: &'a Invocation,
        error: &'a Error,
        beside: &'a mut DocBuilder,
    ) -> Option<BoxedFuture<'a, ()>> {
        let is_over = [Category::Interruption, Category::NotPrimaryError, Category::ShutdownError];
        let waits = takes_part(invocation) && !is_over.into_iter().any(|category| error.is(category));
        waits.then(|| -> BoxedFuture<'a, ()> {
            Box::pin(async move {
                // What the client hears of is the command's error; what went wrong with waiting is told beside it.
                if let Ok(Some((concern, outcome))) = outcome(invocation).await
                    && let Some(document) = outcome.error_document(&concern)
                {
                    beside.append("writeConcernError", &document);
                }
            })
        })
    }

    fn leave<'a>(
        &'a self,
        invocation: &'a Invocation,
        reply: &'a mut DocBuilder,
    ) -> Option<BoxedFuture<'a, Result<()>>> {
        if !takes_part(invocation) {
            return None;
        }
        Some(Box::pin(wait(invocation, reply)))
    }
}

/// Has the command written something to be waited for? What a statement of a transaction writes, its commit waits for.
fn takes_part(invocation: &Invocation) -> bool {
    let is_over = match invocation.transaction() {
        None => true,
        Some(statement) => invocation.row.ends_transaction && statement.state() != TransactionState::InProgress,
    };
    invocation.row.takes_write_concern && invocation.has_written() && is_over
}

fn check(invocation: &Invocation) -> Result<()> {
    if invocation.generic.write_concern.is_none() || !invocation.row.takes_write_concern {
        return Ok(());
    }
    match (invocation.given_write_concern()?, &invocation.node.data) {
        (Some(concern), Some(data)) => data.replication.check_write_concern(concern),
        _ => Ok(()),
    }
}

/// Waits as the client asked; none if it wants no answer.
async fn outcome(invocation: &Invocation) -> Result<Option<(WriteConcern, WriteConcernOutcome)>> {
    let data = invocation.data()?;
    let replication = &data.replication;
    let concern = match invocation.given_write_concern()? {
        Some(concern) => concern.clone(),
        // A node that was a member and stands alone now has nobody to wait for.
        None => match data.settings.default_write_concern().filter(|_| replication.is_replicated()) {
            Some(concern) => concern,
            None => replication.default_write_concern(),
        },
    };
    if concern.is_unacknowledged() {
        return Ok(None);
    }
    let last_commit = invocation.last_commit();
    let before_ns = invocation.context.now_ns();
    let outcome = replication.wait_for_write_concern(&invocation.context, &concern, last_commit).await;
    if concern.needs_members() {
        let waited_ms = invocation.context.now_ns().saturating_sub(before_ns) / 1_000_000;
        let timed_out = matches!(outcome, WriteConcernOutcome::Failed { timed_out: true, .. });
        invocation.node.counters.write_concerns.waited(waited_ms, timed_out);
    }
    Ok(Some((concern, outcome)))
}

async fn wait(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let Some((concern, outcome)) = outcome(invocation).await? else { return Ok(()) };
    if let Some(document) = outcome.error_document(&concern) {
        reply.append("writeConcernError", &document);
    }
    if let WriteConcernOutcome::Failed { error, .. } = &outcome {
        let labels = write_concern_labels(error.code(), invocation.row, &invocation.generic);
        replies::append_labels(&labels, None, reply);
    }
    Ok(())
}
