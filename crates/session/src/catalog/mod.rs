//! The sessions of this node and who has them checked out.
//!
//! An operation with a `txnNumber` checks its session out before it runs and back in when it ends; meanwhile others of the
//! same session wait, first come, first served. A child is checked out with its parent: they share one permit.
//!
//! An operation that has begun a retryable write carries its session with it ([`writing_session`]): that is how the
//! observer that writes the oplog learns whose statements it writes down.
//!
//! Killing a session interrupts the operation that has it; ordinary check-outs wait until the killer has checked it out
//! in turn and is done.
//!
//! Lock order: a shard of sessions, then a session's runtime. A participant's lock is taken last and held for a few
//! instructions. No lock is held over an await.

mod entry;
mod family;

use crate::account::TransactionAccount;
use crate::history::History;
use crate::id::{LogicalSessionId, SessionHasher};
use crate::participant::{Participant, Purpose};
use crate::table::{RecordPlace, SessionTable};
use crate::transaction::{OpenTransaction, TransactionCounters, TransactionState};
use entry::{CheckOut, Entry};
pub use family::Family;
use pando_base::{Error, ErrorCode, FailPoint, OperationContext, Result};
use pando_operation::{Operation, Stash};
use pando_oplog::OpTime;
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// A request has found that it has to wait for the end of a prepared transaction.
pub static BLOCKED_BEHIND_PREPARED: FailPoint = FailPoint::new("waitAfterNewStatementBlocksBehindPrepare");

/// Rests before a retryable write waits for the end of a transaction that carries it out.
pub static BLOCKED_BEHIND_INTERNAL: FailPoint =
    FailPoint::new("waitAfterNewStatementBlocksBehindOpenInternalTransactionForRetryableWrite");

/// Sessions are looked up by every retryable write; shards keep them from queueing for one lock.
const SHARD_COUNT: usize = 16;

type Shard = Mutex<HashMap<LogicalSessionId, Arc<Entry>, SessionHasher>>;

/// The sessions of this node. Clones are of the same catalog.
#[derive(Clone)]
pub struct SessionCatalog(Arc<Catalog>);

struct Catalog {
    shards: [Shard; SHARD_COUNT],
    hasher: SessionHasher,
    transactions: Arc<TransactionCounters>,
}

/// A session whose state the operation that has it checked out may use.
pub struct ActiveSession {
    /// Which one.
    pub session: LogicalSessionId,
    /// Its id as oplog entries have it.
    pub document: pando_doc::Doc,
    participant: Mutex<Participant>,
    /// Its transaction in progress, unless a statement has taken it up.
    open: Mutex<Option<OpenTransaction>>,
    /// What is told of its transaction.
    account: Mutex<Option<TransactionAccount>>,
    /// Tells when a transaction has ended.
    ended: Notify,
    /// Where its record is in `config.transactions`.
    pub record_place: RecordPlace,
}

impl ActiveSession {
    pub(crate) fn new(session: LogicalSessionId) -> ActiveSession {
        let participant = Mutex::new(Participant::new(session));
        let document = session.to_doc();
        let (open, account, ended) = (Mutex::new(None), Mutex::new(None), Notify::new());
        let record_place = RecordPlace::default();
        ActiveSession { session, document, participant, open, account, ended, record_place }
    }

    /// Its state. Nobody else uses it while it is checked out.
    pub fn participant(&self) -> MutexGuard<'_, Participant> {
        self.participant.lock()
    }

    /// What is told of its transaction; none between transactions.
    pub fn account(&self) -> MutexGuard<'_, Option<TransactionAccount>> {
        self.account.lock()
    }

    /// Leaves the transaction for its next statement.
    pub fn park(&self, open: OpenTransaction) {
        *self.open.lock() = Some(open);
    }

    /// Has it a transaction in progress without a statement that runs?
    pub fn has_open(&self) -> bool {
        self.open.lock().is_some()
    }

    /// The transaction has ended: whoever waits for that may go on.
    pub fn tell_ended(&self) {
        self.ended.notify_waiters();
    }

    /// Ends with the transaction in progress. To be made while the session is checked out, so that no end falls between.
    pub fn ended(&self) -> Notified<'_> {
        self.ended.notified()
    }

    /// Is its transaction prepared?
    pub fn is_prepared(&self) -> bool {
        matches!(self.participant.lock().transaction(), TransactionState::Prepared(_))
    }

    /// Lets go of what the transaction has in memory: the node ends. What is prepared is made anew at the next start.
    fn release(&self) {
        let open = self.open.lock().take();
        drop(open);
    }

    /// Aborts the transaction that is in progress, if there is one without a statement that runs and that is not prepared.
    pub fn abort_open(&self) {
        if self.is_prepared() {
            return;
        }
        let open = self.open.lock().take();
        if let Some(open) = open {
            let mut participant = self.participant.lock();
            let number = participant.txn_number();
            participant.transaction_ended(number, TransactionState::Aborted, None);
            drop(participant);
            *self.account.lock() = None;
            let (stash, open) = open.take_up();
            open.aborted();
            drop(stash);
            self.tell_ended();
        }
    }
}

/// What there is to tell of a session.
#[derive(Clone, Debug)]
pub struct SessionInfo {
    /// The session that the client knows.
    pub session: LogicalSessionId,
    /// The number of the operation that has it.
    pub operation_id: Option<u32>,
    /// When it was last checked out, on the clock that was given.
    pub last_checkout_ms: i64,
    /// Operations that wait for it.
    pub waiting: usize,
}

impl SessionCatalog {
    /// Without sessions.
    pub fn new() -> SessionCatalog {
        let (hasher, transactions) = (SessionHasher::default(), Arc::default());
        SessionCatalog(Arc::new(Catalog { shards: Default::default(), hasher, transactions }))
    }

    /// Waits until the session is free and takes it. `now_ms` is kept as the time of its last use.
    pub async fn check_out(
        &self,
        context: &OperationContext,
        session: LogicalSessionId,
        now_ms: i64,
    ) -> Result<CheckedOutSession> {
        loop {
            if let Some(checked_out) = self.check_out_at_once(context, session, now_ms)? {
                return Ok(checked_out);
            }
            let entry = self.entry(session.parent());
            let permit = context.interruptible(entry.acquire()).await?;
            match entry.check_out(context, session, now_ms) {
                CheckOut::Done(active) => {
                    return Ok(CheckedOutSession { active, _held: Held { entry, _permit: permit } });
                }
                CheckOut::Reaped => {}
                CheckOut::Killed => {
                    drop(permit);
                    context.interruptible(entry.killed()).await?;
                }
            }
        }
    }

    /// The session, if nobody has it and nothing has to be waited for.
    pub fn check_out_at_once(
        &self,
        context: &OperationContext,
        session: LogicalSessionId,
        now_ms: i64,
    ) -> Result<Option<CheckedOutSession>> {
        context.check()?;
        let entry = self.entry(session.parent());
        let Some(permit) = entry.try_acquire() else { return Ok(None) };
        match entry.check_out(context, session, now_ms) {
            CheckOut::Done(active) => Ok(Some(CheckedOutSession { active, _held: Held { entry, _permit: permit } })),
            CheckOut::Reaped | CheckOut::Killed => Ok(None),
        }
    }

    /// The same for a request with a number: one that would leave a prepared transaction behind waits for its end first.
    pub async fn check_out_for(
        &self,
        context: &OperationContext,
        session: LogicalSessionId,
        now_ms: i64,
        txn_number: i64,
        purpose: Option<Purpose>,
    ) -> Result<CheckedOutSession> {
        loop {
            let checked_out = self.check_out(context, session, now_ms).await?;
            if !checked_out.active().participant().waits_for_prepared(txn_number, purpose) {
                return Ok(checked_out);
            }
            // Made while the session is held, so that no end falls between.
            let active = Arc::clone(checked_out.active());
            let ended = active.ended();
            drop(checked_out);
            BLOCKED_BEHIND_PREPARED.rest(context).await?;
            context.interruptible(ended).await?;
        }
    }

    /// Puts a prepared transaction that was made anew into its session.
    pub fn enter_prepared(
        &self,
        session: LogicalSessionId,
        entry: OpTime,
        mut account: TransactionAccount,
        stash: Stash,
    ) {
        let active = self.entry(session.parent()).active(session);
        active.participant().rebuilt(account.number, entry);
        let now_ns = account.started_ns;
        account.pause(now_ns);
        account.prepare(now_ns);
        *active.account() = Some(account);
        active.park(OpenTransaction::rebuilt(stash, self.transactions()));
    }

    /// Tells whoever has the session to stop. The token checks it out for what is left to do; as long as it lives nobody
    /// else gets the session. None if there is no such session.
    pub fn kill(&self, session: LogicalSessionId, code: ErrorCode) -> Option<KillToken> {
        let entry = Arc::clone(self.shard(session.parent()).lock().get(&session.parent())?);
        entry.request_kill(code);
        Some(KillToken { entry })
    }

    /// Makes the state of every session invalid, and interrupts those that are in use: after a rollback, or when
    /// `config.transactions` was changed by hand.
    pub fn invalidate_all(&self, code: ErrorCode) {
        for entry in self.entries() {
            entry.interrupt(code);
            entry.invalidate();
        }
    }

    /// True if there is a prepared transaction.
    pub fn has_prepared(&self) -> bool {
        self.entries().iter().any(|entry| entry.members().iter().any(|active| active.is_prepared()))
    }

    /// Forgets sessions that nobody uses or waits for and that were last used before this time, if the function agrees.
    pub fn reap(&self, last_use_before_ms: i64, mut agrees: impl FnMut(LogicalSessionId) -> bool) -> usize {
        let mut reaped = 0;
        for shard in &self.0.shards {
            shard.lock().retain(|session, entry| {
                let gone = entry.is_idle_since(last_use_before_ms) && agrees(*session) && entry.reap();
                reaped += usize::from(gone);
                !gone
            });
        }
        reaped
    }

    /// What has become of the transactions.
    pub fn transactions(&self) -> &Arc<TransactionCounters> {
        &self.0.transactions
    }

    /// Aborts the transactions whose time is over: statements that run are told to stop, what nobody works on is rolled back.
    /// Gives the sessions that had them.
    pub fn abort_expired(&self, now_ns: u64) -> Vec<LogicalSessionId> {
        let mut aborted = Vec::new();
        for entry in self.entries() {
            if entry.has_expired(now_ns) {
                entry.abort_or_interrupt(ErrorCode::TransactionExceededLifetimeLimitSeconds);
                aborted.push(entry.info().session);
            }
        }
        aborted
    }

    /// Aborts every transaction: the node stops, or may not write any more.
    pub fn abort_all(&self, code: ErrorCode) {
        self.entries().iter().for_each(|entry| entry.abort_or_interrupt(code));
    }

    /// Lets go of every transaction, prepared ones too: the node ends.
    pub fn release_all(&self) {
        self.entries().iter().for_each(|entry| entry.release());
    }

    /// A session that is in use here.
    pub fn find(&self, session: LogicalSessionId) -> Option<Arc<ActiveSession>> {
        let entry = Arc::clone(self.shard(session.parent()).lock().get(&session.parent())?);
        entry.members().into_iter().find(|active| active.session == session)
    }

    /// The sessions with a transaction that nobody works on just now.
    pub fn idle_transactions(&self) -> Vec<Arc<ActiveSession>> {
        self.entries().iter().flat_map(|entry| entry.members()).filter(|active| active.has_open()).collect()
    }

    /// The sessions that have had a transaction which is told of, whether a statement of it runs or not.
    pub fn accounted_transactions(&self) -> Vec<Arc<ActiveSession>> {
        let members = self.entries().into_iter().flat_map(|entry| entry.members());
        members.filter(|active| active.account().is_some()).collect()
    }

    /// What there is to tell of every session.
    pub fn list(&self) -> Vec<SessionInfo> {
        self.entries().iter().map(|entry| entry.info()).collect()
    }

    /// How much memory they take, nearly: what a session keeps of its transaction is the transaction's.
    pub fn size_bytes(&self) -> usize {
        let each = size_of::<(LogicalSessionId, Entry)>() + size_of::<(LogicalSessionId, ActiveSession)>();
        self.0.shards.iter().map(|shard| shard.lock().len() * each).sum()
    }

    fn entries(&self) -> Vec<Arc<Entry>> {
        self.0.shards.iter().flat_map(|shard| shard.lock().values().cloned().collect::<Vec<_>>()).collect()
    }

    fn entry(&self, parent: LogicalSessionId) -> Arc<Entry> {
        let mut shard = self.shard(parent).lock();
        Arc::clone(shard.entry(parent).or_insert_with(|| Arc::new(Entry::new(parent))))
    }

    fn shard(&self, parent: LogicalSessionId) -> &Shard {
        let hash = self.0.hasher.hash_one(parent);
        &self.0.shards[hash as usize % SHARD_COUNT]
    }
}

impl Default for SessionCatalog {
    fn default() -> SessionCatalog {
        SessionCatalog::new()
    }
}

/// The permit of a session. Dropping it lets the next one have it.
struct Held {
    entry: Arc<Entry>,
    _permit: entry::Permit,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.entry.checked_in();
    }
}

/// A session that an operation has checked out. Dropping it checks it in.
pub struct CheckedOutSession {
    active: Arc<ActiveSession>,
    _held: Held,
}

impl CheckedOutSession {
    /// Lets go of the session and waits for the end of a relative that is in the middle of the same write.
    pub async fn give_way(self, context: &OperationContext, busy: &ActiveSession) -> Result<()> {
        // Made while the session is held, so that no end falls between.
        let ended = busy.ended();
        drop(self);
        BLOCKED_BEHIND_INTERNAL.rest(context).await?;
        context.interruptible(ended).await
    }

    /// The session.
    pub fn active(&self) -> &Arc<ActiveSession> {
        &self.active
    }

    /// Reads the state if it is not known, and begins the retryable write of this number or goes on with it. From then on
    /// what the operation writes with statement ids belongs to the session.
    pub fn begin_or_continue(
        &self,
        operation: &mut Operation,
        table: &dyn SessionTable,
        history: &History,
        txn_number: i64,
    ) -> Result<()> {
        self.learn(operation, table, history)?;
        self.active.participant().begin_or_continue(txn_number)?;
        // It is a newer number than that of a transaction in progress, or it would have been refused.
        self.active.abort_open();
        operation.extensions.insert(WritingSession(Arc::clone(&self.active)));
        Ok(())
    }

    /// Is the session's state in memory?
    pub fn is_known(&self) -> bool {
        self.active.participant().is_valid()
    }

    /// Reads the session's state if it is not known.
    pub fn learn(&self, operation: &mut Operation, table: &dyn SessionTable, history: &History) -> Result<()> {
        if !self.is_known() {
            let record = table.load(operation, &self.active.session)?;
            self.active.participant().refresh(record, history)?;
        }
        Ok(())
    }

    /// Begins a transaction, goes on with it or ends it. Gives what it has kept since its last statement: nothing, if it begins or
    /// has committed before. The session's state must be known.
    pub fn begin_or_continue_transaction(&self, txn_number: i64, purpose: Purpose) -> Result<Option<OpenTransaction>> {
        let is_newer = txn_number > self.active.participant().txn_number();
        if is_newer && purpose == Purpose::Start {
            self.active.abort_open();
        }
        let mut participant = self.active.participant();
        participant.begin_or_continue_transaction(txn_number, purpose)?;
        let open = self.active.open.lock().take();
        let is_lost = open.is_none() && purpose != Purpose::Start;
        if is_lost && participant.transaction().is_open() {
            participant.transaction_ended(txn_number, TransactionState::Aborted, None);
            let reason = format!(
                "Transaction with {{ txnNumber: {txn_number} }} has been aborted because an earlier command in this \
                 transaction failed."
            );
            return Err(Error::new(ErrorCode::NoSuchTransaction, reason));
        }
        Ok(open)
    }

    /// What the operation writes from now on is not the session's.
    pub fn leave(&self, operation: &mut Operation) {
        operation.extensions.remove::<WritingSession>();
    }
}

/// What an operation carries while it writes in a session.
struct WritingSession(Arc<ActiveSession>);

/// The session in which an operation carries out a retryable write.
pub fn writing_session(operation: &Operation) -> Option<&Arc<ActiveSession>> {
    operation.extensions.get::<WritingSession>().map(|writing| &writing.0)
}

/// Says that a session is being killed. Nobody gets it until the token goes.
pub struct KillToken {
    entry: Arc<Entry>,
}

impl KillToken {
    /// The session that is killed.
    pub fn session(&self) -> LogicalSessionId {
        self.entry.session()
    }

    /// Waits until the operation that had the session has given it back, and aborts what is left: a transaction without an
    /// operation.
    pub async fn check_out(&self, context: &OperationContext) -> Result<()> {
        let permit = context.interruptible(self.entry.acquire()).await?;
        self.entry.abort_open();
        drop(permit);
        Ok(())
    }
}

impl Drop for KillToken {
    fn drop(&mut self) {
        self.entry.kill_done();
    }
}
