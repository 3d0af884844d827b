//! Seeded random histories, played on any engine beside the oracle.
//!
//! One thread, many open transactions, few keys: conflicts, prepares, long chains, checkpoints, rollbacks and restarts all
//! come up. After every step both engines must have given the same answer, errors by kind; now and then everything that
//! can be seen is compared. After a power loss the engine must look as if the log had been cut at one place, at or after
//! what it had said is durable.
//!
//! * [`run`] plays a seed; a [`Failure`] has the steps that led to it. [`replay`] plays steps.
//! * [`minimise`] drops steps from a failure while it still fails.
//! * [`run_seeds`] does all that for many seeds.
//!
//! An engine must do nothing by itself here: no background threads, no checkpoint that was not asked for.
//!
//! How it is laid out: [`operation`] is one step; `generate` makes steps; `notes` knows which make sense; `side` does one on
//! an engine; `observe` looks at everything; `world` keeps the two engines in step.

mod generate;
mod minimise;
mod notes;
mod observe;
pub mod operation;
mod side;
mod world;

#[cfg(test)]
mod sabotage;
#[cfg(test)]
mod tests;

use crate::Mode;
use generate::Generator;
use operation::Operation;
use pando_storage::Engine;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use world::World;

pub use minimise::{minimise, run_seeds};

/// Tables have numbers below this.
const TABLES: usize = 7;

/// An engine under test, with its environment.
pub trait Subject {
    /// The engine as it is now: at first, a new and empty one.
    fn engine(&self) -> Arc<dyn Engine>;
    /// Shuts down and opens again. Nobody else has the engine.
    fn restart_clean(&mut self);
    /// Loses power and opens again. Transactions and cursors of the engine from before may still be there; they are
    /// dropped soon, and nothing of that may reach the disk.
    fn crash(&mut self);
    /// Lets the power go after this many more changes of the disk, or at the crash that follows; false if the subject
    /// cannot do that. Calls that come too late fail.
    fn lose_power_after(&mut self, _changes: u64) -> bool {
        false
    }
}

/// What histories look like.
#[derive(Clone, Debug)]
pub struct Config {
    /// As the subject was opened.
    pub mode: Mode,
    /// How many steps.
    pub steps: usize,
    /// How many transactions may be open at once.
    pub transactions: usize,
    /// How many different keys; at most 250.
    pub keys: u8,
    /// The longest values, in bytes; few are so long.
    pub value_length_max: usize,
    /// With power losses.
    pub crashes: bool,
    /// With clean restarts.
    pub restarts: bool,
    /// With prepared transactions.
    pub prepares: bool,
}

impl Config {
    /// The usual mixture.
    pub fn new(mode: Mode) -> Config {
        Config {
            mode,
            steps: 400,
            transactions: 8,
            keys: 14,
            value_length_max: 300,
            crashes: true,
            restarts: true,
            prepares: true,
        }
    }

    /// A mixture that depends on the seed: both modes, few or many transactions and keys, short or long values.
    pub fn of_seed(seed: u64) -> Config {
        let mode = if seed % 3 == 2 { Mode::StandAlone } else { Mode::ReplicaSet };
        let mut config = Config::new(mode);
        config.transactions = 2 + (seed / 3 % 11) as usize;
        config.keys = [6, 14, 40][(seed / 7 % 3) as usize];
        config.value_length_max = if seed.is_multiple_of(10) { 40_000 } else { 300 };
        config.prepares = seed % 4 != 3;
        config.crashes = seed % 5 != 4;
        config
    }
}

/// A difference between the engine and the oracle.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Whence the steps came.
    pub seed: u64,
    /// What was different at the last step.
    pub message: String,
    /// The steps; `replay` plays them.
    pub trace: Vec<Operation>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}, after {} steps:", self.seed, self.trace.len())?;
        for operation in &self.trace {
            writeln!(f, "  {operation:?},")?;
        }
        write!(f, "{}", self.message)
    }
}

impl std::error::Error for Failure {}

/// Plays the history of a seed.
pub fn run(seed: u64, subject: &mut dyn Subject, config: Config) -> Result<(), Failure> {
    run_tallied(seed, subject, config, &mut Tally::new())
}

/// How often each step had each kind of answer.
type Tally = BTreeMap<(String, String), u64>;

fn run_tallied(seed: u64, subject: &mut dyn Subject, config: Config, tally: &mut Tally) -> Result<(), Failure> {
    let steps = config.steps;
    let mut generator = Generator::new(seed, config.clone());
    let mut trace = Vec::new();
    let fail = |trace: &[Operation], message| Failure { seed, message, trace: trace.to_vec() };
    let mut world = World::new(subject, config).map_err(|message| fail(&trace, message))?;
    // Some steps make no sense when they are made; a few histories are a little shorter for that.
    for _ in 0..steps * 10 {
        let operation = generator.next(&world);
        trace.push(operation.clone());
        match guarded(&mut world, &operation) {
            Ok(true) => {
                let (step, answer) = world.last_answer(&operation);
                *tally.entry((step, answer)).or_default() += 1;
                if trace.len() >= steps {
                    break;
                }
            }
            Ok(false) => drop(trace.pop()),
            Err(message) => return Err(fail(&trace, message)),
        }
    }
    trace.push(Operation::CompareAll);
    guarded(&mut world, &Operation::CompareAll).map(drop).map_err(|message| fail(&trace, message))
}

/// Plays steps; those that make no sense are skipped.
pub fn replay(trace: &[Operation], subject: &mut dyn Subject, config: Config) -> Result<(), Failure> {
    let fail = |done: usize, message| Failure { seed: 0, message, trace: trace.iter().take(done).cloned().collect() };
    let mut world = World::new(subject, config).map_err(|message| fail(0, message))?;
    for (place, operation) in trace.iter().enumerate() {
        guarded(&mut world, operation).map_err(|message| fail(place + 1, message))?;
    }
    Ok(())
}

/// A step, with a panic taken for a failure, so that its history is told.
fn guarded(world: &mut World<'_>, operation: &Operation) -> Result<bool, String> {
    catch_unwind(AssertUnwindSafe(|| world.step(operation))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        Err(format!("panic: {}", text.unwrap_or("without words")))
    })
}
