//! One statement of a transaction, from the check-out of its session to its end.
//!
//! The transaction is in one of three places: in its session between statements, here before and after the command's operation,
//! or in that operation. Wherever it is dropped without having been put back, it is rolled back, and the session knows that it
//! was aborted. One that is prepared is always put back.

use crate::locking::lock_for_note;
use crate::session::close_cursors_of_transaction;
use crate::{Data, Invocation};
use pando_base::{Error, ErrorCode, OperationContext, Result, Timestamp, bail, ensure};
use pando_locks::Wait;
use pando_operation::{Operation, Stash, UnitOfWork};
use pando_oplog::OpTime;
use pando_repl::read_concern::{Level, ReadConcern};
use pando_repl::{CommittedChain, TRANSACTION_OPERATIONS_IN_ENTRY_MAX, TransactionOf};
use pando_session::{
    ActiveSession, CheckedOutSession, Family, LogicalSessionId, MAX_TRANSACTION_LOCK_REQUEST_TIMEOUT_MILLIS, Open,
    OpenTransaction, Purpose, TRANSACTION_LIFETIME_LIMIT_SECONDS, TransactionAccount, TransactionState,
};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A statement whose session is checked out.
pub struct TransactionStatement {
    session: CheckedOutSession,
    number: i64,
    /// None of a transaction that has committed before.
    open: Mutex<Option<Open>>,
    stash: Mutex<Option<Stash>>,
    data: Arc<Data>,
}

impl TransactionStatement {
    /// Checks the session out and takes its transaction up, if nothing of it has to be waited for: what nearly all statements
    /// after the first meet. None if something has to be; then nothing has happened.
    pub fn begin_at_once(invocation: &Invocation) -> Result<Option<TransactionStatement>> {
        let data = invocation.data()?;
        let Asked { purpose, session, number } = Asked::of(invocation)?;
        if purpose == Purpose::Start {
            return Ok(None);
        }
        let (context, now_ms) = (&invocation.context, invocation.begun_ms());
        let Some(session) = data.sessions.check_out_at_once(context, session, now_ms)? else { return Ok(None) };
        if !session.is_known() {
            return Ok(None);
        }
        let open = session.begin_or_continue_transaction(number, purpose)?;
        let statement = TransactionStatement::checked_out(data, session, number);
        if let Some(open) = open {
            let mut stash = statement.resume(context, open);
            let outcome = match takes_ticket(purpose) {
                true => stash.retake_ticket(&Wait::of(context)),
                false => Ok(true),
            };
            *statement.stash.lock() = Some(stash);
            if !outcome? {
                statement.park();
                return Ok(None);
            }
        }
        statement.check_read_concern(invocation)?;
        Ok(Some(statement))
    }

    /// Checks the session out, and takes its transaction up or begins it.
    pub async fn begin(invocation: &Invocation) -> Result<TransactionStatement> {
        let data = invocation.data()?;
        let Asked { purpose, session, number } = Asked::of(invocation)?;
        let context = &invocation.context;
        let session = check_out(invocation, session, number, purpose).await?;
        if !session.is_known() {
            let mut operation = data.services.operation_of(context.clone());
            session.learn(&mut operation, &*data.session_table, &data.history)?;
        }
        let open = session.begin_or_continue_transaction(number, purpose)?;
        let statement = TransactionStatement::checked_out(data, session, number);
        match open {
            Some(open) => {
                let mut stash = statement.resume(context, open);
                let outcome = match takes_ticket(purpose) {
                    true => stash.reacquire_ticket(&Wait::of(context)).await,
                    false => Ok(()),
                };
                *statement.stash.lock() = Some(stash);
                outcome?;
            }
            None if purpose == Purpose::Start => statement.start(invocation).await?,
            None => {}
        }
        statement.check_read_concern(invocation)?;
        Ok(statement)
    }

    /// A statement of a session that is checked out.
    fn checked_out(data: &Arc<Data>, session: CheckedOutSession, number: i64) -> TransactionStatement {
        data.sessions.transactions().active.fetch_add(1, Ordering::Relaxed);
        let (open, stash) = (Mutex::new(None), Mutex::new(None));
        TransactionStatement { session, number, open, stash, data: Arc::clone(data) }
    }

    /// Takes up what the transaction has kept since its last statement.
    fn resume(&self, context: &OperationContext, open: OpenTransaction) -> Stash {
        if let Some(account) = &mut *self.session().account() {
            account.resume(context.client(), self.now_ns());
        }
        let (stash, open) = open.take_up();
        *self.open.lock() = Some(open);
        stash
    }

    /// Begins the transaction: its unit of work is open from now on, and what it reads is of one moment.
    async fn start(&self, invocation: &Invocation) -> Result<()> {
        let data = &self.data;
        let mut operation = Box::new(data.services.operation_of(invocation.context.clone()));
        let concern = read_concern(invocation)?;
        self.await_previous_write(invocation, &concern).await?;
        // It may write later, and a lock that was shared is not made exclusive without the danger of a deadlock.
        lock_for_note(&mut operation).await?;
        let ready = data.replication.prepare_transaction_read(&mut operation, &concern, data.oplog_writer()).await;
        if let Err(error) = ready.and_then(|()| data.catalog.establish_for_transaction(&mut operation)) {
            operation.locker.unlock_everything();
            return Err(error);
        }
        let seconds = data.services.parameters.get(&TRANSACTION_LIFETIME_LIMIT_SECONDS);
        let lifetime_ns = seconds.unsigned_abs().saturating_mul(1_000_000_000);
        let expires_ns = data.services.env.clock().monotonic_ns().saturating_add(lifetime_ns);
        self.session.active().participant().set_expiry(expires_ns);
        self.begin_account(invocation, seconds, operation.recovery_unit.read_timestamp());
        UnitOfWork::begin(&mut operation).release();
        operation.locker.set_shared_two_phase(true);
        data.oplog_writer().begin_transaction(&mut operation);
        let stash = operation.stash();
        let (stash, open) = OpenTransaction::begin(stash, data.sessions.transactions()).take_up();
        *self.open.lock() = Some(open);
        *self.stash.lock() = Some(stash);
        Ok(())
    }

    /// A snapshot has nothing behind a hole of the oplog. What the session has written before must be in it: the commit replaces
    /// the session's record, and would conflict with the newer one.
    async fn await_previous_write(&self, invocation: &Invocation, concern: &ReadConcern) -> Result<()> {
        let previous = self.session().participant().previous_write().timestamp;
        let Some(oplog) = self.data.services.engine.oplog() else { return Ok(()) };
        if concern.level != Level::Snapshot || concern.at_cluster_time.is_some() || previous <= oplog.visible() {
            return Ok(());
        }
        Ok(invocation.context.interruptible(oplog.wait_visible(previous.previous())).await??)
    }

    /// What changes the catalog does not go with a snapshot of it.
    fn check_read_concern(&self, invocation: &Invocation) -> Result<()> {
        if !invocation.row.needs_local_transaction {
            return Ok(());
        }
        let account = self.session().account();
        let concern = account.as_ref().map(|account| account.read_concern.clone()).unwrap_or_default();
        let is_local = concern.get("level").is_none_or(|level| level.as_str() == Some("local"));
        ensure!(
            is_local,
            ErrorCode::InvalidOptions,
            "Command {} does not support this transaction's {{ readConcern: {concern} }} :: caused by :: read concern not \
             supported",
            invocation.row.name
        );
        Ok(())
    }

    /// True if the transaction began with the read concern "snapshot".
    pub fn wants_snapshot(&self) -> bool {
        let account = self.session().account();
        let level = account.as_ref().and_then(|account| account.read_concern.get("level"));
        level.is_some_and(|level| level.as_str() == Some("snapshot"))
    }

    fn begin_account(&self, invocation: &Invocation, seconds: i64, read_timestamp: Option<Timestamp>) {
        let (context, now_ms) = (&invocation.context, invocation.node.now_ms());
        let client = Arc::clone(context.client());
        let mut account = TransactionAccount::begin(self.number, context.id(), client, self.now_ns(), now_ms);
        account.read_concern = invocation.generic.read_concern.clone().unwrap_or_default();
        account.read_timestamp = read_timestamp.unwrap_or_default();
        account.expires_ms = now_ms.saturating_add(seconds.saturating_mul(1000));
        *self.session().account() = Some(account);
    }

    fn now_ns(&self) -> u64 {
        self.data.services.env.clock().monotonic_ns()
    }

    /// The session.
    pub fn session(&self) -> &ActiveSession {
        self.session.active()
    }

    /// The transaction's number.
    pub fn number(&self) -> i64 {
        self.number
    }

    /// How far the transaction has come.
    pub fn state(&self) -> TransactionState {
        self.session.active().participant().transaction()
    }

    /// True if it has committed.
    pub fn is_committed(&self) -> bool {
        self.state() == TransactionState::Committed
    }

    /// Whose it is, for its entries in the oplog.
    pub(crate) fn of(&self) -> TransactionOf<'_> {
        let operations_max = self.data.services.parameters.get(&TRANSACTION_OPERATIONS_IN_ENTRY_MAX);
        TransactionOf {
            session: self.session(),
            number: self.number,
            operations_in_entry_max: usize::try_from(operations_max).unwrap_or(1),
        }
    }

    /// The command's operation, which has the transaction.
    pub(crate) fn take_up(&self, context: OperationContext) -> Result<Box<Operation>> {
        let stash = self.stash.lock().take();
        let over = || Error::new(ErrorCode::NoSuchTransaction, "the transaction is over");
        let mut operation = self.data.services.resumed(context, stash.ok_or_else(over)?);
        let limit_ms = i64::from(self.data.services.parameters.get(&MAX_TRANSACTION_LOCK_REQUEST_TIMEOUT_MILLIS));
        operation.lock_wait_max = u64::try_from(limit_ms).ok().map(Duration::from_millis);
        Ok(operation)
    }

    /// Takes it back from the command's operation.
    pub(crate) fn put_down(&self, operation: Box<Operation>) {
        let stash = match operation.recovery_unit.in_unit_of_work() {
            true => Some(operation.stash()),
            // It has committed, or was rolled back by a commit that failed.
            false => {
                operation.locker.unlock_everything();
                None
            }
        };
        *self.stash.lock() = stash;
    }

    /// The transaction is prepared, by this entry.
    pub(crate) fn prepared(&self, entry: OpTime) {
        if let Some(open) = &*self.open.lock() {
            open.prepared();
        }
        self.session().participant().transaction_prepared(self.number, entry);
        if let Some(account) = &mut *self.session().account() {
            account.prepare(self.now_ns());
        }
    }

    /// The transaction has committed; what it has left.
    pub(crate) fn committed(&self, chain: Option<CommittedChain>) {
        let open = self.open.lock().take();
        if let Some(open) = &open {
            open.committed();
        }
        let was_prepared = matches!(self.state(), TransactionState::Prepared(_));
        if let Some(chain) = &chain {
            self.session().participant().statements_committed(self.number, &chain.statements);
        }
        self.end(TransactionState::Committed, chain.map(|chain| chain.last));
        if was_prepared && self.session().session.txn_number.is_some() {
            // Its statements are in the entries that prepared it: they are read when somebody asks.
            self.session().participant().invalidate();
        }
    }

    /// The retryable write that it is carried out for: its number in the parent's session.
    pub(crate) fn retryable_write(&self) -> Option<i64> {
        self.session().session.txn_number
    }

    /// The session, for those who keep it.
    pub(crate) fn active_session(&self) -> &Arc<ActiveSession> {
        self.session.active()
    }

    /// The prepared transaction was aborted, by this entry.
    pub(crate) fn prepared_aborted(&self, entry: OpTime) {
        let open = self.open.lock().take();
        if let Some(open) = &open {
            open.aborted();
        }
        self.end(TransactionState::Aborted, Some(entry));
    }

    /// The statement has failed, and the transaction with it; one that is prepared goes on waiting for its end.
    pub fn fail(&self) {
        match self.state() {
            TransactionState::Prepared(_) => self.park(),
            _ => self.abort(),
        }
    }

    /// Rolls the transaction back.
    pub(crate) fn abort(&self) {
        let stash = self.stash.lock().take();
        drop(stash);
        let open = self.open.lock().take();
        let Some(open) = &open else { return };
        open.aborted();
        self.end(TransactionState::Aborted, None);
    }

    fn end(&self, state: TransactionState, last: Option<OpTime>) {
        let active = self.session.active();
        if let Some(account) = &*active.account() {
            self.data.sessions.transactions().latencies.record(account.times(self.now_ns()).open_micros);
        }
        active.participant().transaction_ended(self.number, state, last);
        *active.account() = None;
        active.tell_ended();
        close_cursors_of_transaction(&self.data, active.session, self.number);
    }

    /// The statement is over: leaves the transaction in its session.
    pub fn park(&self) {
        if let Some(account) = &mut *self.session().account() {
            account.pause(self.now_ns());
        }
        let (stash, open) = (self.stash.lock().take(), self.open.lock().take());
        match (stash, open) {
            (Some(stash), Some(open)) => self.session.active().park(OpenTransaction::put_down(stash, open)),
            // Of what is prepared nothing is lost in memory that the oplog does not have.
            (None, Some(_)) if matches!(self.state(), TransactionState::Prepared(_)) => {}
            (None, Some(open)) => {
                *self.open.lock() = Some(open);
                self.abort();
            }
            _ => {}
        }
    }
}

impl Drop for TransactionStatement {
    fn drop(&mut self) {
        // Whatever was not parked or ended is undone: the client went away in the middle.
        self.fail();
        // It may have failed before there was anything to undo.
        let active = self.session.active();
        if !active.has_open() && !active.is_prepared() {
            active.participant().transaction_ended(self.number, TransactionState::Aborted, None);
            active.tell_ended();
        }
        self.data.sessions.transactions().active.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An end takes nothing new, and gives back what others may wait for who have all the tickets.
fn takes_ticket(purpose: Purpose) -> bool {
    match purpose {
        Purpose::Start | Purpose::Continue => true,
        Purpose::Prepare | Purpose::Commit | Purpose::Abort => false,
    }
}

/// What a request asks of which transaction.
struct Asked {
    purpose: Purpose,
    session: LogicalSessionId,
    number: i64,
}

impl Asked {
    fn of(invocation: &Invocation) -> Result<Asked> {
        let purpose = purpose(invocation)?;
        check_request(invocation, purpose)?;
        let generic = &invocation.generic;
        let (Some(session), Some(number)) = (&generic.session, generic.transaction_number) else {
            return Err(Error::new(ErrorCode::InvalidOptions, "a transaction needs a session and a number"));
        };
        let session = LogicalSessionId::from_client(session.document.view(), invocation.user_digest())?;
        Ok(Asked { purpose, session, number })
    }
}

/// Checks the session out. One that is to carry out a retryable write waits for others who are in the middle of it.
async fn check_out(
    invocation: &Invocation,
    session: LogicalSessionId,
    number: i64,
    purpose: Purpose,
) -> Result<CheckedOutSession> {
    let (data, context, now_ms) = (invocation.data()?, &invocation.context, invocation.begun_ms());
    let (table, history) = (&*data.session_table, &data.history);
    loop {
        let checked_out = data.sessions.check_out_for(context, session, now_ms, number, Some(purpose)).await?;
        let Some(write) = session.txn_number.filter(|_| purpose == Purpose::Start) else { return Ok(checked_out) };
        let mut operation = data.services.operation_of(context.clone());
        let busy = match data.sessions.family(&mut operation, table, history, session, write)? {
            Family::Settled(_) => return Ok(checked_out),
            Family::Busy(busy) => busy,
        };
        drop(operation);
        checked_out.give_way(context, &busy).await?;
    }
}

fn purpose(invocation: &Invocation) -> Result<Purpose> {
    let name = invocation.row.name;
    let refused = |reason: &str| Err(Error::new(ErrorCode::OperationNotSupportedInTransaction, reason));
    match (name, invocation.generic.start_transaction) {
        ("killCursors", Some(true)) => {
            refused("Cannot run killCursors as the first operation in a multi-document transaction.")
        }
        ("prepareTransaction", Some(true)) => refused("Cannot start a transaction with a prepare"),
        ("commitTransaction", Some(true)) => refused("Cannot start a transaction with a commit"),
        ("abortTransaction", Some(true)) => refused("Cannot start a transaction with an abort"),
        ("prepareTransaction", _) => Ok(Purpose::Prepare),
        ("commitTransaction", _) => Ok(Purpose::Commit),
        ("abortTransaction", _) => Ok(Purpose::Abort),
        (_, Some(true)) => Ok(Purpose::Start),
        _ => Ok(Purpose::Continue),
    }
}

/// May this be asked inside a transaction?
fn check_request(invocation: &Invocation, purpose: Purpose) -> Result<()> {
    let (generic, namespace) = (&invocation.generic, &invocation.namespace);
    let ends = matches!(purpose, Purpose::Prepare | Purpose::Commit | Purpose::Abort);
    ensure!(
        ends || generic.write_concern.is_none(),
        ErrorCode::InvalidOptions,
        "writeConcern is not allowed within a multi-statement transaction"
    );
    ensure!(
        purpose == Purpose::Start || generic.read_concern.is_none() || invocation.row.name == "getMore",
        ErrorCode::InvalidOptions,
        "Only the first command in a transaction may specify a readConcern"
    );
    let refused = match namespace.database() {
        database @ "local" => format!("'{database}' database"),
        "config" => "config database".to_owned(),
        _ if namespace.collection() == "system.profile" => format!("'{namespace}' collection"),
        _ => return Ok(()),
    };
    bail!(ErrorCode::OperationNotSupportedInTransaction, "Cannot run command against the {refused} in a transaction.")
}

fn read_concern(invocation: &Invocation) -> Result<ReadConcern> {
    let given = invocation.generic.read_concern.as_ref().filter(|concern| !concern.is_empty());
    let concern = given.map(|concern| ReadConcern::parse(concern.view())).transpose()?.unwrap_or_default();
    ensure!(
        matches!(concern.level, Level::Local | Level::Majority | Level::Snapshot),
        ErrorCode::InvalidOptions,
        "The readConcern level must be either 'local' (default), 'majority' or 'snapshot' in order to run in a transaction"
    );
    Ok(concern)
}
