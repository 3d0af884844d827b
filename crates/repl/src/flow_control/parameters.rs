//! What can be set of flow control.

use pando_base::{AnyParameter, Parameter, ParameterSet};

/// Flow control acts.
pub static FLOW_CONTROL_ENABLED: Parameter<bool> = Parameter::new(
    "enableFlowControl",
    true,
    "A primary slows writes down where a majority of its set does not keep up.",
);

static TARGET_LAG_SECONDS: Parameter<i32> = Parameter::new(
    "flowControlTargetLagSeconds",
    10,
    "How far, in seconds, a majority may be behind the primary where flow control acts.",
)
.above(0);

static THRESHOLD_PERCENTAGE: Parameter<f64> = Parameter::new(
    "flowControlThresholdLagPercentage",
    0.5,
    "At which part of the lag that is aimed at flow control begins to slow writes down.",
)
.at_least(0.0)
.at_most(1.0);

static MAX_SAMPLES: Parameter<i32> =
    Parameter::new("flowControlMaxSamples", 1_000_000, "How many samples of its entries a primary keeps.").above(0);

static SAMPLE_PERIOD: Parameter<i32> =
    Parameter::new("flowControlSamplePeriod", 1000, "After how many entries a primary takes a sample.").above(0);

static MIN_TICKETS: Parameter<i32> = Parameter::new(
    "flowControlMinTicketsPerSecond",
    100,
    "How many locks for writing flow control lets have in each second, however far the majority is behind.",
)
.above(0);

static DECAY: Parameter<f64> = Parameter::new(
    "flowControlDecayConstant",
    0.5,
    "By what the number of writes is multiplied when the lag has grown by its threshold.",
)
.above(0.0);

static FUDGE: Parameter<f64> = Parameter::new(
    "flowControlFudgeFactor",
    0.95,
    "By what the number of writes is multiplied where flow control acts, so that the majority can catch up.",
)
.above(0.0);

static ADDER: Parameter<i32> = Parameter::new(
    "flowControlTicketAdderConstant",
    1000,
    "How many more locks for writing each second has than the one before, where nobody is behind.",
)
.above(0);

static MULTIPLIER: Parameter<f64> = Parameter::new(
    "flowControlTicketMultiplierConstant",
    1.05,
    "How many times more locks for writing each second has than the one before, where nobody is behind.",
)
.above(0.0);

static WARN_SECONDS: Parameter<i32> = Parameter::new(
    "flowControlWarnThresholdSeconds",
    10,
    "After how many seconds in which a majority has not moved the log tells of it; 0 for never.",
)
.at_least(0);

/// All of them.
pub static PARAMETERS: &[&dyn AnyParameter] = &[
    &FLOW_CONTROL_ENABLED,
    &TARGET_LAG_SECONDS,
    &THRESHOLD_PERCENTAGE,
    &MAX_SAMPLES,
    &SAMPLE_PERIOD,
    &MIN_TICKETS,
    &DECAY,
    &FUDGE,
    &ADDER,
    &MULTIPLIER,
    &WARN_SECONDS,
];

/// Their values at some moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowControlParameters {
    /// It acts.
    pub is_enabled: bool,
    /// The lag that is aimed at.
    pub target_lag_ms: f64,
    /// At which part of it something is done.
    pub threshold_percentage: f64,
    /// Samples that are kept.
    pub samples_max: usize,
    /// Entries between two samples.
    pub sample_period: u64,
    /// Never fewer tickets.
    pub tickets_min: i64,
    /// The base of what is left for each threshold of lag.
    pub decay: f64,
    /// A little less than the sustainer does.
    pub fudge: f64,
    /// What is added each second where nobody is behind.
    pub adder: i64,
    /// What it is multiplied by then.
    pub multiplier: f64,
    /// After how long somebody is told of a sustainer that does not move.
    pub warn_ns: Option<u64>,
}

impl FlowControlParameters {
    /// As they are now.
    pub fn of(parameters: &ParameterSet) -> FlowControlParameters {
        let warn_seconds = u64::from(parameters.get(&WARN_SECONDS).unsigned_abs());
        FlowControlParameters {
            is_enabled: parameters.get(&FLOW_CONTROL_ENABLED),
            target_lag_ms: f64::from(parameters.get(&TARGET_LAG_SECONDS)) * 1000.0,
            threshold_percentage: parameters.get(&THRESHOLD_PERCENTAGE),
            samples_max: usize::try_from(parameters.get(&MAX_SAMPLES)).unwrap_or(1),
            sample_period: u64::try_from(parameters.get(&SAMPLE_PERIOD)).unwrap_or(1),
            tickets_min: i64::from(parameters.get(&MIN_TICKETS)),
            decay: parameters.get(&DECAY),
            fudge: parameters.get(&FUDGE),
            adder: i64::from(parameters.get(&ADDER)),
            multiplier: parameters.get(&MULTIPLIER),
            warn_ns: (warn_seconds > 0).then(|| warn_seconds * 1_000_000_000),
        }
    }

    /// From this lag on something is done. Never none at all: everybody is a little behind.
    pub(super) fn threshold_ms(&self) -> f64 {
        (self.target_lag_ms * self.threshold_percentage).max(1.0)
    }
}
