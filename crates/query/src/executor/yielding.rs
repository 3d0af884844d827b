//! When to yield, and why.

use pando_base::operation::slice;
use pando_base::{AnyParameter, Error, Parameter, ParameterSet, Result};
use pando_operation::{Conflicts, Operation, Pause, storage_error};
use pando_storage::StorageError;
use std::time::Duration;

/// Queries have to have an index.
pub static NO_TABLE_SCAN: Parameter<bool> =
    Parameter::new("notablescan", false, "Refuses queries with a filter that would have to look at every document.");

/// After so many pieces of work a query yields.
pub static YIELD_ITERATIONS: Parameter<i32> = Parameter::new(
    "internalQueryExecYieldIterations",
    1000,
    "After how many pieces of work a query looks whether it is time to yield; negative for never.",
);

/// After so long a query yields.
pub static YIELD_PERIOD_MS: Parameter<i32> =
    Parameter::new("internalQueryExecYieldPeriodMS", 10, "After how many milliseconds a query lets others run.")
        .at_least(0);

/// How long plans are tried.
pub static TRIAL_WORKS_MAX: Parameter<i32> = Parameter::new(
    "internalQueryPlanEvaluationWorks",
    10_000,
    "How many pieces of work each candidate plan may do in a trial.",
)
.at_least(1);

/// How many results end a trial.
pub static TRIAL_RESULTS_MAX: Parameter<i32> = Parameter::new(
    "internalQueryPlanEvaluationMaxResults",
    101,
    "How many results a candidate plan finds at most in a trial, which then is over.",
)
.at_least(0);

/// All of them.
pub static PARAMETERS: &[&dyn AnyParameter] =
    &[&YIELD_ITERATIONS, &YIELD_PERIOD_MS, &TRIAL_WORKS_MAX, &TRIAL_RESULTS_MAX, &NO_TABLE_SCAN];

/// Reading the clock costs more than most pieces of work.
const CLOCK_READ_INTERVAL: u32 = 128;

/// Why to yield.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum YieldCause {
    /// It ran for long enough.
    Time,
    /// The engine has rolled it back; after the pause it is tried again.
    Conflict(Duration),
    /// Somebody's transaction is prepared; its end has to be waited for.
    PrepareConflict,
}

/// When to yield.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct YieldPolicy {
    /// After so many pieces of work.
    pub iterations: u32,
    /// After so long.
    pub period_ns: u64,
}

impl YieldPolicy {
    /// For queries inside queries: the outer one yields.
    pub const NEVER: YieldPolicy = YieldPolicy { iterations: u32::MAX, period_ns: u64::MAX };

    /// True if it lets others run at all.
    fn yields(self) -> bool {
        self != YieldPolicy::NEVER
    }

    /// As the parameters say.
    pub fn of(parameters: &ParameterSet) -> YieldPolicy {
        let iterations = u32::try_from(parameters.get(&YIELD_ITERATIONS)).unwrap_or(u32::MAX);
        let period_ms = u64::try_from(parameters.get(&YIELD_PERIOD_MS)).unwrap_or(0);
        YieldPolicy { iterations, period_ns: period_ms * 1_000_000 }
    }
}

/// What a piece of work that failed waits for before it is tried again; the error, if it is not. Inside a unit of work nothing is
/// tried again but by whoever has begun it; but a transaction that meets what another has prepared waits for its end, as long as
/// nothing of its own was rolled back.
pub(crate) fn cause_of(operation: &Operation, conflicts: &mut Conflicts, error: Error) -> Result<YieldCause> {
    let Some(cause) = storage_error(&error) else { return Err(error) };
    if operation.recovery_unit.in_unit_of_work() {
        if !operation.in_multi_document_transaction() {
            return Err(error);
        }
        if cause == StorageError::PrepareConflict && !operation.recovery_unit.is_unit_doomed() {
            operation.context.statistics().prepare_conflicts.increment();
            return Ok(YieldCause::PrepareConflict);
        }
    }
    Ok(match conflicts.met(operation, error)? {
        Pause::For(pause) => YieldCause::Conflict(pause),
        Pause::UntilPreparedEnds => YieldCause::PrepareConflict,
    })
}

/// True for an error that may go away when the work is tried again.
pub(crate) fn is_conflict(error: &Error) -> bool {
    storage_error(error).is_some()
}

/// Watches work and time since the last yield.
#[derive(Debug)]
pub(crate) struct YieldClock {
    policy: YieldPolicy,
    works: u32,
    started_ns: Option<u64>,
}

impl YieldClock {
    pub(crate) fn new(policy: YieldPolicy) -> YieldClock {
        YieldClock { policy, works: 0, started_ns: None }
    }

    pub(crate) fn restart(&mut self, operation: &Operation) {
        self.works = 0;
        self.started_ns = Some(operation.env.clock().monotonic_ns());
    }

    /// Counts a piece of work; true if it is time to yield. Fails if the operation was told to stop.
    #[inline]
    pub(crate) fn is_time(&mut self, operation: &Operation) -> Result<bool> {
        self.works = self.works.wrapping_add(1);
        if !self.works.is_multiple_of(CLOCK_READ_INTERVAL) && self.works < self.policy.iterations {
            return Ok(false);
        }
        operation.context.check()?;
        let now_ns = operation.env.clock().monotonic_ns();
        let started_ns = *self.started_ns.get_or_insert(now_ns);
        let is_slice_over = slice::is_over_at(now_ns);
        let is_time = (is_slice_over && self.policy.yields())
            || self.works >= self.policy.iterations
            || now_ns.saturating_sub(started_ns) >= self.policy.period_ns;
        if is_time && !operation.recovery_unit.in_unit_of_work() {
            return Ok(true);
        }
        if is_time {
            // Nothing may yield here; it was enough to look whether it was stopped.
            self.works = 0;
            self.started_ns = Some(now_ns);
        }
        if is_slice_over {
            slice::pause(&operation.context);
            operation.context.check()?;
        }
        Ok(false)
    }
}
