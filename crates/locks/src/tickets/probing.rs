//! How many tickets give the most throughput: found by trying. A state machine without a clock.
//!
//! At each step it is told how much was done since the last one and how many tickets were in use. From the *stable* state
//! it notes the throughput as the baseline and tries a few tickets more if a pool was exhausted, or a few less if not. At
//! the next step the trial is judged: if throughput was higher, the stable number moves towards the tried one (an
//! exponential moving average, so that one lucky sample moves it little); either way it returns to stable.
//!
//! Invariants: both pools stay within their bounds; stable and trial alternate, except that at the minimum it stays put.

use pando_base::{Error, Result};

/// The server parameters of the algorithm.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbingParameters {
    /// `throughputProbingInitialConcurrency`: tickets of both pools together at the start; 0 for twice the processors.
    pub initial_concurrency: i32,
    /// `throughputProbingMinConcurrency`: the least that a pool has.
    pub min_concurrency: i32,
    /// `throughputProbingMaxConcurrency`: the most that a pool has.
    pub max_concurrency: i32,
    /// `throughputProbingReadWriteRatio`: the share of tickets for reads.
    pub read_write_ratio: f64,
    /// `throughputProbingConcurrencyMovingAverageWeight`: how much a successful trial moves the stable number.
    pub concurrency_moving_average_weight: f64,
    /// `throughputProbingStepMultiple`: how far a trial goes, as a share of the stable number.
    pub step_multiple: f64,
}

impl Default for ProbingParameters {
    fn default() -> ProbingParameters {
        ProbingParameters {
            initial_concurrency: 0,
            min_concurrency: 4,
            max_concurrency: 128,
            read_write_ratio: 0.5,
            concurrency_moving_average_weight: 0.2,
            step_multiple: 0.1,
        }
    }
}

impl ProbingParameters {
    /// Refuses what makes no sense.
    pub fn validate(&self) -> Result<()> {
        let bounds = [
            (self.min_concurrency >= 1, "minimum concurrency cannot be less than 1"),
            (
                self.max_concurrency >= self.min_concurrency,
                "maximum concurrency cannot be less than minimum concurrency",
            ),
            (self.is_initial_large_enough(), "initial concurrency cannot be less than minimum concurrency"),
            (self.is_initial_small_enough(), "initial concurrency cannot be greater than maximum concurrency"),
            ((0.0..=1.0).contains(&self.read_write_ratio), "read write ratio must be between 0 and 1"),
            (self.is_weight_valid(), "concurrency moving average weight must be above 0 and at most 1"),
            ((0.01..=0.5).contains(&self.step_multiple), "step multiple must be between 0.01 and 0.5"),
        ];
        match bounds.into_iter().find(|(is_met, _)| !is_met) {
            Some((_, reason)) => Err(Error::bad_value(format!("Throughput probing {reason}"))),
            None => Ok(()),
        }
    }

    fn is_initial_large_enough(&self) -> bool {
        self.initial_concurrency == 0 || self.initial_concurrency >= self.min_concurrency
    }

    fn is_initial_small_enough(&self) -> bool {
        self.initial_concurrency <= self.max_concurrency
    }

    fn is_weight_valid(&self) -> bool {
        self.concurrency_moving_average_weight > 0.0 && self.concurrency_moving_average_weight <= 1.0
    }
}

/// How many tickets each pool has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// For reads.
    pub read: i32,
    /// For writes.
    pub write: i32,
}

/// What happened since the last step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Tickets given back in a unit of time. Any unit, always the same.
    pub throughput: f64,
    /// The most tickets in use since the last step from the stable state.
    pub peak: Sizes,
}

/// `serverStatus.….monitor`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProbingStats {
    /// `timesIncreased`: successful trials upwards.
    pub times_increased: u64,
    /// `timesDecreased`: successful trials downwards.
    pub times_decreased: u64,
    /// `totalAmountIncreased`: by how many tickets, together.
    pub total_amount_increased: f64,
    /// `totalAmountDecreased`: by how many tickets, together.
    pub total_amount_decreased: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Stable,
    Up,
    Down,
}

/// The algorithm.
#[derive(Clone, Debug)]
pub struct ThroughputProbing {
    parameters: ProbingParameters,
    phase: Phase,
    stable_throughput: f64,
    /// Of both pools together.
    stable_concurrency: f64,
    sizes: Sizes,
    stats: ProbingStats,
}

impl ThroughputProbing {
    /// At the initial number of tickets.
    pub fn new(parameters: ProbingParameters, processor_count: usize) -> ThroughputProbing {
        let processor_count = i32::try_from(processor_count).unwrap_or(i32::MAX);
        let (least, most) = (parameters.min_concurrency, parameters.max_concurrency.max(parameters.min_concurrency));
        let initial = match parameters.initial_concurrency {
            0 => processor_count.saturating_mul(2).clamp(least.saturating_mul(2), most.saturating_mul(2)),
            given => given,
        };
        let mut probing = ThroughputProbing {
            parameters,
            phase: Phase::Stable,
            stable_throughput: 0.0,
            stable_concurrency: f64::from(initial),
            sizes: Sizes { read: 0, write: 0 },
            stats: ProbingStats::default(),
        };
        probing.sizes = probing.split(1.0);
        probing
    }

    /// How many tickets there should be now.
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// Whether the next step is one from the stable state, which looks at the peaks.
    pub fn is_stable(&self) -> bool {
        self.phase == Phase::Stable
    }

    /// What it did so far.
    pub fn stats(&self) -> ProbingStats {
        self.stats
    }

    /// Changes parameters from the next step on, unless that makes no sense.
    pub fn change_parameters(&mut self, change: impl FnOnce(&mut ProbingParameters)) -> Result<()> {
        let mut parameters = self.parameters.clone();
        change(&mut parameters);
        parameters.validate()?;
        self.parameters = parameters;
        Ok(())
    }

    /// One step: takes what happened, tells how many tickets there should be.
    pub fn step(&mut self, sample: Sample) -> Sizes {
        match self.phase {
            Phase::Stable => self.begin_trial(sample),
            Phase::Up | Phase::Down => self.judge_trial(sample.throughput),
        }
        self.sizes
    }

    fn begin_trial(&mut self, sample: Sample) {
        self.stable_throughput = sample.throughput;
        let ProbingParameters { min_concurrency, max_concurrency, step_multiple, .. } = self.parameters;
        let is_exhausted = |size: i32, peak: i32| size < max_concurrency && peak >= size;
        let Sizes { read, write } = self.sizes;
        if is_exhausted(read, sample.peak.read) || is_exhausted(write, sample.peak.write) {
            self.phase = Phase::Up;
            self.try_out(1.0 + step_multiple, 1);
        } else if sample.peak.read > min_concurrency || sample.peak.write > min_concurrency {
            self.phase = Phase::Down;
            self.try_out(1.0 - step_multiple, -1);
        }
    }

    /// A trial changes both pools by at least one ticket, within the bounds.
    fn try_out(&mut self, multiple: f64, least_step: i32) {
        let Sizes { read, write } = self.split(multiple);
        let stepped = |now: i32, then: i32| self.clamped(if then == now { then + least_step } else { then });
        self.sizes = Sizes { read: stepped(self.sizes.read, read), write: stepped(self.sizes.write, write) };
    }

    fn judge_trial(&mut self, throughput: f64) {
        if throughput > self.stable_throughput {
            let weight = self.parameters.concurrency_moving_average_weight;
            let tried = f64::from(self.sizes.read) + f64::from(self.sizes.write);
            let average = tried * weight + self.stable_concurrency * (1.0 - weight);
            self.count_success(average - self.stable_concurrency);
            self.stable_throughput = throughput;
            self.stable_concurrency = average;
        }
        self.phase = Phase::Stable;
        self.sizes = self.split(1.0);
    }

    fn count_success(&mut self, amount: f64) {
        if self.phase == Phase::Up {
            self.stats.times_increased += 1;
            self.stats.total_amount_increased += amount;
        } else {
            self.stats.times_decreased += 1;
            self.stats.total_amount_decreased -= amount;
        }
    }

    fn split(&self, multiple: f64) -> Sizes {
        let share = |ratio: f64| self.clamped((self.stable_concurrency * ratio * multiple).round() as i32);
        let ratio = self.parameters.read_write_ratio;
        Sizes { read: share(ratio), write: share(1.0 - ratio) }
    }

    fn clamped(&self, size: i32) -> i32 {
        let ProbingParameters { min_concurrency, max_concurrency, .. } = self.parameters;
        size.min(max_concurrency).max(min_concurrency)
    }
}
