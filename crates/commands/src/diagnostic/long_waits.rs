//! What the log says of those who wait: who has waited long for a lock and who holds it, and which prepared transactions nobody
//! ends.
//!
//! Nobody is made to give up. A client that went away with a lock (`fsyncLock`, a transaction that keeps its locks) or with a
//! prepared transaction, whose coordinator is to decide, would otherwise make others wait without a word. Each is told of once it
//! is old enough, and again whenever twice the time has passed.

use super::lock_info::{names, shown};
use crate::Data;
use pando_base::{Component, LogValue, OperationContext, Severity, log};
use pando_doc::{Doc, DocBuilder, JsonFormat, doc_to_json};
use pando_locks::{LockInfo, RequestInfo, ResourceId};
use pando_session::ActiveSession;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// Who waits for so long is told of.
const LONG_MS: u64 = 5_000;

/// What was seen when it was looked for the last time.
#[derive(Default)]
pub struct LongWaits {
    seen: Mutex<HashMap<Wait, Seen>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Wait {
    /// A locker's number, and what it waits for.
    Lock(u64, ResourceId),
    /// The operation that a prepared transaction began with.
    Prepared(u32),
}

#[derive(Clone, Copy)]
struct Seen {
    since_ns: u64,
    /// Told when it has lasted for so long.
    next_ms: u64,
}

/// Something to tell.
#[derive(Clone, Debug, PartialEq)]
pub enum LongWait {
    /// A lock that is waited for.
    Lock {
        /// What is locked.
        resource: String,
        /// In which mode it is wanted.
        mode: &'static str,
        /// How long at least.
        waited_ms: u64,
        /// Who waits.
        waiter: Doc,
        /// Who holds it.
        holders: Vec<Doc>,
    },
    /// A prepared transaction.
    Prepared {
        /// Since when.
        prepared_ms: u64,
        /// Whose it is.
        holder: Doc,
    },
}

impl LongWaits {
    /// Looks, and writes what there is to tell to the log.
    pub fn tell(&self, data: &Data) {
        let log = &data.services.log;
        for wait in self.look(data) {
            match wait {
                LongWait::Lock { resource, mode, waited_ms, waiter, holders } => {
                    let holders = holders.iter().map(json).collect::<Vec<_>>().join(",");
                    log!(
                        log,
                        Severity::Warning,
                        Component::Control,
                        9_201_001,
                        "A lock has been waited for a long time",
                        "resource" = resource,
                        "mode" = mode,
                        "waitedMillis" = waited_ms,
                        "waiter" = LogValue::Json(json(&waiter)),
                        "holders" = LogValue::Json(format!("[{holders}]"))
                    );
                }
                LongWait::Prepared { prepared_ms, holder } => {
                    log!(
                        log,
                        Severity::Warning,
                        Component::Transaction,
                        9_201_002,
                        "A prepared transaction waits for its commit or abort, and whoever needs what it wrote waits with it",
                        "preparedMillis" = prepared_ms,
                        "transaction" = LogValue::Json(json(&holder))
                    );
                }
            }
        }
    }

    /// What there is to tell that was not told, or not for so long.
    pub fn look(&self, data: &Data) -> Vec<LongWait> {
        let now_ns = data.services.env.clock().monotonic_ns();
        let before = std::mem::take(&mut *self.seen.lock());
        let mut round = Round { before, now_ns, seen: HashMap::new() };
        let mut told = locks(data, &mut round);
        told.extend(data.sessions.idle_transactions().iter().filter_map(|session| prepared(session, &mut round)));
        // What has come to its end is forgotten.
        *self.seen.lock() = round.seen;
        told
    }
}

/// One look.
struct Round {
    before: HashMap<Wait, Seen>,
    now_ns: u64,
    seen: HashMap<Wait, Seen>,
}

impl Round {
    /// How long it has lasted, if that is to be told now.
    fn is_due(&mut self, wait: Wait, began_ns: Option<u64>) -> Option<u64> {
        let new = Seen { since_ns: began_ns.unwrap_or(self.now_ns), next_ms: LONG_MS };
        let mut seen = self.before.get(&wait).copied().unwrap_or(new);
        let lasted_ms = self.now_ns.saturating_sub(seen.since_ns) / 1_000_000;
        let is_due = lasted_ms >= seen.next_ms;
        if is_due {
            seen.next_ms = lasted_ms.saturating_mul(2);
        }
        self.seen.insert(wait, seen);
        is_due.then_some(lasted_ms)
    }
}

fn locks(data: &Data, round: &mut Round) -> Vec<LongWait> {
    let infos = data.services.locks.lock_info();
    let is_waited_for = |info: &&LockInfo| {
        !info.pending.is_empty() || info.granted.iter().any(|request| request.convert_mode.is_some())
    };
    let waited_for: Vec<&LockInfo> = infos.iter().filter(is_waited_for).collect();
    if waited_for.is_empty() {
        return Vec::new();
    }
    let sessions = data.sessions.accounted_transactions();
    let (owners, names) = (Owners::of(data, &sessions), names(&data.catalog.latest()));
    let mut told = Vec::new();
    for info in waited_for {
        let converting = info.granted.iter().filter(|request| request.convert_mode.is_some());
        for request in info.pending.iter().chain(converting) {
            let wait = Wait::Lock(request.locker.number(), info.resource);
            let Some(waited_ms) = round.is_due(wait, None) else { continue };
            let holders = info.granted.iter().filter(|holder| holder.locker != request.locker);
            told.push(LongWait::Lock {
                resource: shown(info.resource, &names),
                mode: request.convert_mode.unwrap_or(request.mode).name(),
                waited_ms,
                waiter: owners.describe(request),
                holders: holders.map(|holder| owners.describe(holder)).collect(),
            });
        }
    }
    told
}

fn prepared(session: &ActiveSession, round: &mut Round) -> Option<LongWait> {
    if !session.is_prepared() {
        return None;
    }
    let account = session.account().clone()?;
    let prepared_ms = account.times(round.now_ns).prepared_micros? / 1000;
    let began_ns = round.now_ns.saturating_sub(prepared_ms.saturating_mul(1_000_000));
    let lasted_ms = round.is_due(Wait::Prepared(account.operation_id), Some(began_ns))?;
    Some(LongWait::Prepared { prepared_ms: lasted_ms, holder: of_session(session).finish() })
}

/// The operations and the transactions whose lockers these are. Those of a transaction are of the operation that it began with.
struct Owners<'a> {
    operation_of_locker: HashMap<u64, u32>,
    operations: HashMap<u32, OperationContext>,
    transactions: HashMap<u32, &'a ActiveSession>,
}

impl<'a> Owners<'a> {
    fn of(data: &Data, sessions: &'a [Arc<ActiveSession>]) -> Owners<'a> {
        let operations = data.services.operations.list().into_iter();
        let lockers = data.services.locks.lockers().into_iter();
        let transactions = sessions.iter().filter_map(|session| {
            let operation = session.account().as_ref()?.operation_id;
            Some((operation, &**session))
        });
        Owners {
            operation_of_locker: lockers.map(|report| (report.locker.number(), report.operation)).collect(),
            operations: operations.map(|context| (context.id(), context)).collect(),
            transactions: transactions.collect(),
        }
    }

    fn describe(&self, request: &RequestInfo) -> Doc {
        let operation = self.operation_of_locker.get(&request.locker.number());
        let transaction = operation.and_then(|operation| self.transactions.get(operation));
        let mut out = match transaction {
            Some(session) => of_session(session),
            None => DocBuilder::new(),
        };
        if let Some(context) = operation.and_then(|operation| self.operations.get(operation)) {
            let description = context.description();
            out.append("desc", context.client().description());
            out.append("client", context.client().remote());
            out.append("opid", i64::from(context.id()));
            out.append("ns", description.namespace.as_ref().map_or("", |namespace| namespace.as_str()));
        }
        out.append("mode", request.mode.name());
        out.finish()
    }
}

fn of_session(session: &ActiveSession) -> DocBuilder {
    let mut out = DocBuilder::new();
    out.append("lsid", &session.document);
    if let Some(account) = &*session.account() {
        out.append("txnNumber", account.number);
        out.append("client", account.client.remote());
    }
    out.append("prepared", session.is_prepared());
    out
}

fn json(document: &Doc) -> String {
    doc_to_json(document.view(), JsonFormat::Relaxed)
}
