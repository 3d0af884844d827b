//! The server parameters of admission, and how they reach the tickets.
//!
//! What is set at run time takes effect at once. Setting the number of tickets by hand at start switches the probing off; at
//! run time it is refused while the probing is on.

use super::{Algorithm, ProbingParameters, TicketParameters, Tickets};
use pando_base::{AnyParameter, Kind, Parameter, ParameterSet, ParameterValue, Result, Settable};
use std::sync::{Arc, Weak};

static ALGORITHM: Parameter<str> = Parameter::new(
    "storageEngineConcurrencyAdjustmentAlgorithm",
    "throughputProbing",
    "How the number of tickets is found: throughputProbing or fixedConcurrentTransactions.",
)
.settable(Settable::AtStartup)
.validator(|name| Algorithm::parse(name).map(drop));

static ADJUSTMENT_INTERVAL_MS: Parameter<i32> = Parameter::new(
    "storageEngineConcurrencyAdjustmentIntervalMillis",
    100,
    "Time between two adjustments of the number of tickets.",
)
.settable(Settable::AtStartup)
.above(0);

/// Read tickets, if their number is fixed.
pub static CONCURRENT_READ_TRANSACTIONS: Parameter<i32> = Parameter::new(
    "storageEngineConcurrentReadTransactions",
    0,
    "Operations that may read at once, if the number is fixed; 0 for the default.",
)
.aliases(&["wiredTigerConcurrentReadTransactions"])
.validator(|total| super::fixed_size(*total).map(drop));

/// Write tickets, if their number is fixed.
pub static CONCURRENT_WRITE_TRANSACTIONS: Parameter<i32> = Parameter::new(
    "storageEngineConcurrentWriteTransactions",
    0,
    "Operations that may write at once, if the number is fixed; 0 for the default.",
)
.aliases(&["wiredTigerConcurrentWriteTransactions"])
.validator(|total| super::fixed_size(*total).map(drop));

static LOW_PRIORITY_BYPASS_THRESHOLD: Parameter<i32> = Parameter::new(
    "lowPriorityAdmissionBypassThreshold",
    5000,
    "After how many operations of normal priority in a row one of low priority is admitted; 0 for never.",
)
.at_least(0);

static STEP_MULTIPLE: Parameter<f64> =
    Parameter::new("throughputProbingStepMultiple", 0.1, "How far a trial goes, as a share of the tickets.")
        .at_least(0.01)
        .at_most(0.5);

static INITIAL_CONCURRENCY: Parameter<i32> = Parameter::new(
    "throughputProbingInitialConcurrency",
    0,
    "Tickets of both kinds together at the start; 0 for twice the processors.",
)
.settable(Settable::AtStartup)
.at_least(0);

static MIN_CONCURRENCY: Parameter<i32> =
    Parameter::new("throughputProbingMinConcurrency", 4, "The least tickets of each kind.")
        .settable(Settable::AtStartup)
        .at_least(1);

static MAX_CONCURRENCY: Parameter<i32> =
    Parameter::new("throughputProbingMaxConcurrency", 128, "The most tickets of each kind.").at_least(1);

static READ_WRITE_RATIO: Parameter<f64> =
    Parameter::new("throughputProbingReadWriteRatio", 0.5, "The share of the tickets that is for reads.")
        .at_least(0.0)
        .at_most(1.0);

static MOVING_AVERAGE_WEIGHT: Parameter<f64> = Parameter::new(
    "throughputProbingConcurrencyMovingAverageWeight",
    0.2,
    "How much a trial that did more moves the number of tickets.",
)
.above(0.0)
.at_most(1.0);

/// What this crate lets an administrator set.
pub static PARAMETERS: &[&dyn AnyParameter] = &[
    &ALGORITHM,
    &ADJUSTMENT_INTERVAL_MS,
    &CONCURRENT_READ_TRANSACTIONS,
    &CONCURRENT_WRITE_TRANSACTIONS,
    &LOW_PRIORITY_BYPASS_THRESHOLD,
    &STEP_MULTIPLE,
    &INITIAL_CONCURRENCY,
    &MIN_CONCURRENCY,
    &MAX_CONCURRENCY,
    &READ_WRITE_RATIO,
    &MOVING_AVERAGE_WEIGHT,
];

impl TicketParameters {
    /// What the server was started with.
    pub fn of(set: &ParameterSet) -> Result<TicketParameters> {
        let (read, write) = (set.get(&CONCURRENT_READ_TRANSACTIONS), set.get(&CONCURRENT_WRITE_TRANSACTIONS));
        let is_set_by_hand = read != 0 || write != 0;
        Ok(TicketParameters {
            algorithm: if is_set_by_hand { Algorithm::Fixed } else { Algorithm::parse(&set.get(&ALGORITHM))? },
            concurrent_read_transactions: read,
            concurrent_write_transactions: write,
            low_priority_admission_bypass_threshold: not_negative(set.get(&LOW_PRIORITY_BYPASS_THRESHOLD)),
            adjustment_interval_ms: u64::from(not_negative(set.get(&ADJUSTMENT_INTERVAL_MS))),
            queue_length_max: None,
            probing: ProbingParameters {
                initial_concurrency: set.get(&INITIAL_CONCURRENCY),
                min_concurrency: set.get(&MIN_CONCURRENCY),
                max_concurrency: set.get(&MAX_CONCURRENCY),
                read_write_ratio: set.get(&READ_WRITE_RATIO),
                concurrency_moving_average_weight: set.get(&MOVING_AVERAGE_WEIGHT),
                step_multiple: set.get(&STEP_MULTIPLE),
            },
        })
    }
}

impl Tickets {
    /// Heeds changes of the parameters from now on. A change that makes no sense, or not now, is passed over.
    pub fn follow(self: &Arc<Self>, set: &ParameterSet) {
        self.heed(set, &CONCURRENT_READ_TRANSACTIONS, |tickets, value| {
            tickets.set_concurrent_read_transactions(integer(value))
        });
        self.heed(set, &CONCURRENT_WRITE_TRANSACTIONS, |tickets, value| {
            tickets.set_concurrent_write_transactions(integer(value))
        });
        self.refuse_while_probing(set, &CONCURRENT_READ_TRANSACTIONS, "read");
        self.refuse_while_probing(set, &CONCURRENT_WRITE_TRANSACTIONS, "write");
        self.heed(set, &LOW_PRIORITY_BYPASS_THRESHOLD, |tickets, value| {
            tickets.set_low_priority_bypass_threshold(not_negative(integer(value)));
            Ok(())
        });
        self.heed_probing(set, &STEP_MULTIPLE, |probing, value| probing.step_multiple = value);
        self.heed_probing(set, &READ_WRITE_RATIO, |probing, value| probing.read_write_ratio = value);
        self.heed_probing(set, &MAX_CONCURRENCY, |probing, value| probing.max_concurrency = value as i32);
        self.heed_probing(set, &MOVING_AVERAGE_WEIGHT, |probing, value| {
            probing.concurrency_moving_average_weight = value;
        });
    }

    fn refuse_while_probing(
        self: &Arc<Self>,
        set: &ParameterSet,
        parameter: &'static Parameter<i32>,
        name: &'static str,
    ) {
        let tickets: Weak<Tickets> = Arc::downgrade(self);
        set.guard(parameter, move || tickets.upgrade().map_or(Ok(()), |tickets| tickets.check_not_probing(name)));
    }

    fn heed<K: Kind + ?Sized>(
        self: &Arc<Self>,
        set: &ParameterSet,
        parameter: &'static Parameter<K>,
        change: impl Fn(&Tickets, &ParameterValue) -> Result<()> + Send + Sync + 'static,
    ) {
        let tickets: Weak<Tickets> = Arc::downgrade(self);
        set.subscribe(parameter, move |value| {
            if let Some(tickets) = tickets.upgrade() {
                change(&tickets, value).unwrap_or_default();
            }
        });
    }

    fn heed_probing<K: Kind + ?Sized>(
        self: &Arc<Self>,
        set: &ParameterSet,
        parameter: &'static Parameter<K>,
        change: fn(&mut ProbingParameters, f64),
    ) {
        self.heed(set, parameter, move |tickets, value| {
            let value = number(value);
            tickets.change_probing(|parameters| change(parameters, value))
        });
    }
}

/// The value of a parameter that is a number.
fn number(value: &ParameterValue) -> f64 {
    match value {
        ParameterValue::Int(value) => f64::from(*value),
        ParameterValue::Double(value) => *value,
        _ => f64::NAN,
    }
}

/// The value of a parameter that is an integer.
fn integer(value: &ParameterValue) -> i32 {
    number(value) as i32
}

fn not_negative(value: i32) -> u32 {
    u32::try_from(value).unwrap_or(0)
}
