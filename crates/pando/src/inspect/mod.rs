//! `pando inspect`: a look into a store, one question a file.
//!
//! Invariant: nothing in the store is changed. It is opened for reading, every answer is written to the given output, and
//! only the damage that `verify` finds makes a command fail that could be carried out. `salvage` does not even open it, for
//! it may be too damaged for that, and makes another store elsewhere.

mod dump;
mod log;
mod salvage;
mod statistics;
mod tables;
mod verify;

use crate::error::{PandoError, Result};
use crate::{DATA_DIRECTORY, store};
use clap::{Args, Subcommand};
use pando_env::Env;
use pando_storage::Engine;
use std::io::Write;
use std::path::PathBuf;

pub use verify::told;

/// What to look at, and where.
#[derive(Args)]
pub struct Inspect {
    /// Where the store lies
    #[arg(long, default_value = DATA_DIRECTORY)]
    data_directory: PathBuf,
    #[command(subcommand)]
    question: Option<Question>,
}

#[derive(Subcommand)]
enum Question {
    /// What the store, its base and its log are made of (this is the default)
    Describe,
    /// Reads and checks every block and every log record
    Verify,
    /// The tables, with their sizes
    Tables,
    /// The newest keys and values of a table
    Dump(dump::Dump),
    /// The oplog: its ends, its size, its newest entries
    Log(log::Log),
    /// The engine's counters and gauges
    Statistics,
    /// Makes a new store of all that is intact in a damaged one, which stays as it is
    Salvage(salvage::Salvage),
}

impl Inspect {
    /// Opens the store and answers.
    pub fn run(&self, env: &Env, out: &mut dyn Write) -> Result<()> {
        let question = self.question.as_ref().unwrap_or(&Question::Describe);
        if let Question::Salvage(salvage) = question {
            return salvage.run(env, &self.data_directory, out);
        }
        let engine = store::open_to_look(env, &self.data_directory)?;
        let result = question.answer(&*engine, out);
        engine.shut_down()?;
        result
    }
}

impl Question {
    fn answer(&self, engine: &dyn Engine, out: &mut dyn Write) -> Result<()> {
        match self {
            Question::Describe => describe(engine, out),
            Question::Verify => verify::run(engine, out),
            Question::Tables => tables::run(engine, out),
            Question::Dump(dump) => dump.run(engine, out),
            Question::Log(log) => log.run(engine, out),
            Question::Statistics => statistics::run(engine, out),
            Question::Salvage(_) => Err(PandoError::Argument("a store is not open while it is salvaged".into())),
        }
    }
}

fn describe(engine: &dyn Engine, out: &mut dyn Write) -> Result<()> {
    let mut text = String::new();
    engine.describe(&mut text).map_err(PandoError::Storage)?;
    Ok(write!(out, "{text}")?)
}

#[cfg(test)]
mod tests;
