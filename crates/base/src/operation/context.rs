//! The handle of an operation.

use super::client::Client;
use super::description::OperationDescription;
use super::registry::{MonotonicClock, Registered};
use super::resources::ResourceMeter;
use super::slice::Slices;
use super::state::State;
use super::statistics::OperationStatistics;
use super::time_points::{ALWAYS_TIMES_OUT, NEVER_TIMES_OUT};
use crate::metrics::{SHARD_COUNT, thread_shard};
use crate::{Category, Error, ErrorCode, Result};
use parking_lot::Mutex;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, OnceLock, Weak};
use std::task::Poll;
use tokio::sync::Notify;

/// No deadline.
const NEVER: u64 = u64::MAX;

/// The handle of an operation; clones are of the same one. The last to go takes it from the registry.
#[derive(Clone)]
pub struct OperationContext(Arc<Operation>);

/// An operation that may be over: for what is made by one and outlives it.
#[derive(Clone)]
pub struct WeakOperation(Weak<Operation>);

impl WeakOperation {
    /// The operation, unless it is over.
    pub fn upgrade(&self) -> Option<OperationContext> {
        OperationContext::upgrade(&self.0)
    }
}

/// What the handles share.
pub(super) struct Operation {
    id: u32,
    client: Arc<Client>,
    clock: MonotonicClock,
    start_ns: u64,
    state: State,
    stopped: Notify,
    deadline_ns: AtomicU64,
    /// What passing the deadline means.
    timeout_code: AtomicI32,
    /// How many scopes have set the deadline: then passing it is an error, but does not kill.
    scoped_deadlines: AtomicU64,
    /// From how long on details are told of it.
    details_after_ns: AtomicU64,
    children: Mutex<Vec<Weak<Operation>>>,
    description: Mutex<OperationDescription>,
    statistics: OperationStatistics,
    /// Measures what it takes of storage, if anybody accounts for that.
    meter: OnceLock<Arc<ResourceMeter>>,
    registered: Option<Registered>,
}

impl OperationContext {
    pub(super) fn create(
        id: u32,
        client: Arc<Client>,
        clock: MonotonicClock,
        registered: Option<Registered>,
    ) -> OperationContext {
        OperationContext(Arc::new(Operation {
            id,
            client,
            start_ns: clock(),
            clock,
            state: State::default(),
            stopped: Notify::new(),
            deadline_ns: AtomicU64::new(NEVER),
            timeout_code: AtomicI32::new(ErrorCode::MaxTimeMSExpired.number()),
            scoped_deadlines: AtomicU64::new(0),
            details_after_ns: AtomicU64::new(NEVER),
            children: Mutex::new(Vec::new()),
            description: Mutex::new(OperationDescription::default()),
            statistics: OperationStatistics::default(),
            meter: OnceLock::new(),
            registered,
        }))
    }

    /// An operation that no registry knows, with a clock that stands still: for start-up, recovery and tests.
    pub fn detached() -> OperationContext {
        OperationContext::create(0, Arc::new(Client::internal("detached")), Arc::new(|| 0), None)
    }

    /// The operation of what lies still until somebody works on it: no registry knows it, and all that lies still share it, or a
    /// few: threads that count its users at the same time would disturb each other.
    pub fn nobody() -> OperationContext {
        static NOBODIES: LazyLock<[OperationContext; SHARD_COUNT]> =
            LazyLock::new(|| std::array::from_fn(|_| OperationContext::detached()));
        NOBODIES[thread_shard()].clone()
    }

    /// A part of this operation: it is stopped when this one is, within the same deadline, and counts for itself.
    pub fn child(&self) -> OperationContext {
        let registered = self.0.registered.as_ref().map(Registered::of_part);
        let child =
            OperationContext::create(self.0.id, Arc::clone(&self.0.client), Arc::clone(&self.0.clock), registered);
        child.0.deadline_ns.store(self.0.deadline_ns.load(Ordering::Relaxed), Ordering::Relaxed);
        child.0.timeout_code.store(self.0.timeout_code.load(Ordering::Relaxed), Ordering::Relaxed);
        if let Some(meter) = self.meter() {
            child.measure_resources(Arc::clone(meter));
        }
        let mut children = self.0.children.lock();
        children.retain(|child| child.strong_count() != 0);
        children.push(Arc::downgrade(&child.0));
        // Looked at after the child is known: a kill either finds the child or is seen here.
        if self.0.state.interruption() == Some(ErrorCode::InterruptedAtShutdown) {
            child.shut_down();
        }
        if let Some(code) = self.0.state.killed_with() {
            child.kill(code);
        }
        drop(children);
        child
    }

    /// The number that killOp takes. A child has its parent's.
    pub fn id(&self) -> u32 {
        self.0.id
    }

    /// Who asked for it.
    pub fn client(&self) -> &Arc<Client> {
        &self.0.client
    }

    /// When it began, on the monotonic clock.
    pub fn start_ns(&self) -> u64 {
        self.0.start_ns
    }

    /// The monotonic clock's time now.
    pub fn now_ns(&self) -> u64 {
        (self.0.clock)()
    }

    /// How long it has been going on.
    pub fn elapsed_ns(&self) -> u64 {
        self.now_ns().saturating_sub(self.0.start_ns)
    }

    /// Changes what it says of itself.
    pub fn describe(&self, change: impl FnOnce(&mut OperationDescription)) {
        change(&mut self.0.description.lock());
    }

    /// What it says of itself.
    pub fn description(&self) -> OperationDescription {
        self.0.description.lock().clone()
    }

    /// Says that details are told of it once it has taken so long; zero for at once.
    pub fn want_details_after(&self, duration_ns: u64) {
        self.0.details_after_ns.store(duration_ns, Ordering::Relaxed);
    }

    /// True if whoever has done a part of it should tell the details: it is slow, or watched.
    pub fn wants_details(&self) -> bool {
        match self.0.details_after_ns.load(Ordering::Relaxed) {
            0 => true,
            NEVER => false,
            duration_ns => self.elapsed_ns() >= duration_ns,
        }
    }

    /// The same for whoever has just looked at the clock.
    pub fn wants_details_at(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.0.start_ns) >= self.0.details_after_ns.load(Ordering::Relaxed)
    }

    /// True if details are told however long it takes.
    pub fn is_watched(&self) -> bool {
        self.0.details_after_ns.load(Ordering::Relaxed) == 0
    }

    /// Who sees to it that it works in slices, if anybody does.
    pub(super) fn slices(&self) -> Option<&dyn Slices> {
        self.0.registered.as_ref()?.slices()
    }

    /// What it has done so far.
    pub fn statistics(&self) -> &OperationStatistics {
        &self.0.statistics
    }

    /// Measures what the operation takes of storage from now on. The first meter stays.
    pub fn measure_resources(&self, meter: Arc<ResourceMeter>) {
        // A second one would split the account.
        let _ = self.0.meter.set(meter);
    }

    /// What measures it, if anybody accounts for it.
    pub fn meter(&self) -> Option<&Arc<ResourceMeter>> {
        self.0.meter.get()
    }

    /// Fails if the operation has to stop. Cheap enough for every row.
    #[inline]
    pub fn check(&self) -> Result<()> {
        if self.0.state.is_plain() && self.0.deadline_ns.load(Ordering::Relaxed) == NEVER {
            return Ok(());
        }
        self.check_closely()
    }

    #[cold]
    fn check_closely(&self) -> Result<()> {
        if let Some(code) = self.0.state.interruption() {
            return Err(interrupted(code));
        }
        if self.is_past_deadline() && !self.0.state.is_ignoring() {
            let code = self.timeout_code();
            if self.0.scoped_deadlines.load(Ordering::Relaxed) == 0 {
                self.kill(code);
            }
            return Err(interrupted(code));
        }
        Ok(())
    }

    /// Tells it to stop with this code. The first kill wins; false tells that there was one before.
    pub fn kill(&self, code: ErrorCode) -> bool {
        self.0.kill(code)
    }

    /// Tells it to stop because the server does.
    pub fn shut_down(&self) {
        self.0.shut_down();
    }

    /// The code it was killed with, also while it ignores that.
    pub fn killed_with(&self) -> Option<ErrorCode> {
        self.0.state.killed_with()
    }

    /// Ends when the operation has to stop, with the error to stop with. It knows nothing of the deadline: who waits for
    /// long waits for that as well.
    pub async fn killed(&self) -> Error {
        loop {
            // Made before the look, so that no kill falls between.
            let stopped = self.0.stopped.notified();
            if let Some(code) = self.0.state.interruption() {
                return interrupted(code);
            }
            stopped.await;
        }
    }

    /// Runs the future until it is done or the operation has to stop, whichever is first.
    pub async fn interruptible<T>(&self, future: impl Future<Output = T>) -> Result<T> {
        self.check()?;
        let (mut future, mut killed) = (pin!(future), pin!(self.killed()));
        poll_fn(|context| {
            if let Poll::Ready(value) = future.as_mut().poll(context) {
                return Poll::Ready(Ok(value));
            }
            killed.as_mut().poll(context).map(Err)
        })
        .await
    }

    /// Until the scope goes, nothing but shutdown stops the operation, not even its deadline.
    #[must_use = "the scope ends when it is dropped"]
    pub fn ignore_interrupts(&self) -> IgnoreInterruptsScope {
        self.0.state.enter_ignore();
        IgnoreInterruptsScope(self.clone())
    }

    /// Sets the deadline of maxTimeMS, before any scope sets one. A deadline in force is never put off.
    pub fn set_deadline(&self, deadline_ns: u64) {
        debug_assert!(self.0.scoped_deadlines.load(Ordering::Relaxed) == 0, "the scope would forget it");
        self.0.deadline_ns.fetch_min(deadline_ns, Ordering::Relaxed);
    }

    /// Sets the deadline to so long after now.
    pub fn set_deadline_after(&self, duration_ns: u64) {
        self.set_deadline(self.now_ns().saturating_add(duration_ns));
    }

    /// The time at which it has to stop, on the monotonic clock.
    pub fn deadline_ns(&self) -> Option<u64> {
        let deadline_ns = self.0.deadline_ns.load(Ordering::Relaxed);
        (deadline_ns != NEVER && !NEVER_TIMES_OUT.should_fail()).then_some(deadline_ns)
    }

    /// How long it still may go on; `None` for ever.
    pub fn remaining_ns(&self) -> Option<u64> {
        self.deadline_ns().map(|deadline_ns| deadline_ns.saturating_sub(self.now_ns()))
    }

    /// Until the scope goes, the deadline is no later than this one, and passing it fails with this code but does not kill.
    #[must_use = "the scope ends when it is dropped"]
    pub fn limit_deadline(&self, deadline_ns: u64, code: ErrorCode) -> DeadlineScope {
        debug_assert!(code.is(Category::ExceededTimeLimitError), "{code} is not about time");
        let deadline_before_ns = self.0.deadline_ns.load(Ordering::Relaxed);
        let code_before = self.0.timeout_code.load(Ordering::Relaxed);
        let is_shorter = deadline_ns < deadline_before_ns;
        if is_shorter {
            self.0.deadline_ns.store(deadline_ns, Ordering::Relaxed);
            self.0.timeout_code.store(code.number(), Ordering::Relaxed);
            self.0.scoped_deadlines.fetch_add(1, Ordering::Relaxed);
        }
        DeadlineScope { context: self.clone(), deadline_before_ns, code_before, is_shorter }
    }

    /// True if the deadline is passed.
    pub fn is_past_deadline(&self) -> bool {
        self.deadline_ns().is_some_and(|deadline_ns| ALWAYS_TIMES_OUT.should_fail() || self.now_ns() >= deadline_ns)
    }

    /// The code that passing the deadline means now.
    pub fn timeout_code(&self) -> ErrorCode {
        ErrorCode::location(self.0.timeout_code.load(Ordering::Relaxed))
    }

    /// A handle that does not keep the operation.
    pub fn to_weak(&self) -> WeakOperation {
        WeakOperation(self.downgrade())
    }

    pub(super) fn downgrade(&self) -> Weak<Operation> {
        Arc::downgrade(&self.0)
    }

    pub(super) fn upgrade(operation: &Weak<Operation>) -> Option<OperationContext> {
        operation.upgrade().map(OperationContext)
    }
}

impl Operation {
    fn kill(&self, code: ErrorCode) -> bool {
        let is_first = self.state.kill(code);
        if is_first {
            self.stopped.notify_waiters();
            self.living_children().iter().for_each(|child| {
                child.kill(code);
            });
        }
        is_first
    }

    fn shut_down(&self) {
        self.state.shut_down();
        self.stopped.notify_waiters();
        self.living_children().iter().for_each(|child| child.shut_down());
    }

    /// The children, taken out of the lock: to drop the last handle of one under it would be to wait for oneself.
    fn living_children(&self) -> Vec<Arc<Operation>> {
        self.children.lock().iter().filter_map(Weak::upgrade).collect()
    }
}

fn interrupted(code: ErrorCode) -> Error {
    let reason = match code {
        ErrorCode::InterruptedAtShutdown => "interrupted at shutdown",
        ErrorCode::ClientDisconnect => "operation was interrupted because a client disconnected",
        ErrorCode::TransactionExceededLifetimeLimitSeconds => {
            "operation was interrupted because the transaction exceeded the configured 'transactionLifetimeLimitSeconds'"
        }
        _ if code.is(Category::ExceededTimeLimitError) => "operation exceeded time limit",
        _ => "operation was interrupted",
    };
    Error::new(code, reason)
}

/// While it lives, only shutdown stops the operation.
pub struct IgnoreInterruptsScope(OperationContext);

impl Drop for IgnoreInterruptsScope {
    fn drop(&mut self) {
        self.0.0.state.leave_ignore();
        // Who waits may have slept through a kill in the scope.
        self.0.0.stopped.notify_waiters();
    }
}

/// While it lives, the operation has a shorter deadline. Scopes end in the reverse order of their beginning.
pub struct DeadlineScope {
    context: OperationContext,
    deadline_before_ns: u64,
    code_before: i32,
    is_shorter: bool,
}

impl Drop for DeadlineScope {
    fn drop(&mut self) {
        if self.is_shorter {
            let operation = &self.context.0;
            operation.deadline_ns.store(self.deadline_before_ns, Ordering::Relaxed);
            operation.timeout_code.store(self.code_before, Ordering::Relaxed);
            operation.scoped_deadlines.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for OperationContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OperationContext({} of {})", self.0.id, self.0.client.description())
    }
}
