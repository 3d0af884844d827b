//! What has become of retryable writes and of multi-document transactions: both have numbers of sessions.

use super::StatusSection;
use crate::Invocation;
use pando_doc::{Doc, DocBuilder, Value};
use pando_repl::ReplGate;
use pando_repl::write_concern::WriteConcern;
use std::sync::atomic::{AtomicU64, Ordering};

/// The section `transactions`.
pub(super) struct Transactions;

impl StatusSection for Transactions {
    fn name(&self) -> &'static str {
        "transactions"
    }

    fn fill(&self, invocation: &Invocation, wish: Option<Value<'_>>, section: &mut DocBuilder) {
        let Some(data) = invocation.node.data.as_ref().filter(|data| data.replication.is_replicated()) else { return };
        let counters = data.sessions.transactions();
        let read = |counter: &AtomicU64| long(counter.load(Ordering::Relaxed));
        section.append("retriedCommandsCount", read(&counters.retried_commands));
        section.append("retriedStatementsCount", read(&counters.retried_statements));
        section.append("transactionsCollectionWriteCount", read(&counters.records_written));
        let (open, active) = (read(&counters.open), read(&counters.active));
        section.append("currentActive", active.min(open));
        section.append("currentInactive", open - active.min(open));
        section.append("currentOpen", open);
        section.append("totalAborted", read(&counters.aborted));
        section.append("totalCommitted", read(&counters.committed));
        section.append("totalStarted", read(&counters.started));
        section.append("totalPrepared", read(&counters.prepared));
        section.append("totalPreparedThenCommitted", read(&counters.prepared_then_committed));
        section.append("totalPreparedThenAborted", read(&counters.prepared_then_aborted));
        section.append("currentPrepared", read(&counters.currently_prepared));
        let last = counters.last_committed.lock().clone().filter(|_| wants_last_committed(wish));
        let Some(last) = last else { return };
        let open = section.begin_document("lastCommittedTransaction");
        section.append("operationCount", long(last.operation_count));
        section.append("oplogOperationBytes", long(last.operation_bytes));
        let write_concern = last.write_concern.view();
        let read = WriteConcern::parse(write_concern).ok().filter(|_| !write_concern.is_empty());
        section.append("writeConcern", read.map_or_else(Doc::new, |concern| concern.to_doc()));
        section.end(open);
    }
}

fn wants_last_committed(wish: Option<Value<'_>>) -> bool {
    match wish {
        Some(Value::Document(wish)) => wish.get("includeLastCommitted").is_some_and(|value| value.is_true()),
        _ => true,
    }
}

fn long(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
