//! `salvage`: a new store out of all that is intact of a damaged one, and a list of what is not.
//!
//! The damaged store need not open, and is not changed.

use super::verify::told;
use crate::error::Result;
use crate::store;
use clap::Args;
use pando_engine::Heir;
use pando_env::Env;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Where the new store shall lie.
#[derive(Args)]
pub struct Salvage {
    /// A directory for the new store; it must be empty, or not be there yet
    target: PathBuf,
}

impl Salvage {
    pub fn run(&self, env: &Env, directory: &Path, out: &mut dyn Write) -> Result<()> {
        let report = store::salvage(env, directory, &self.target, Heir::Reader)?;
        for damage in &report.damage {
            writeln!(out, "{}", told(damage))?;
        }
        let (tables, records) = (report.tables.len(), report.log_records);
        writeln!(out, "{} has {tables} tables and {records} log records", self.target.display())?;
        if report.keys_rescued > 0 {
            writeln!(out, "{} keys were saved from damaged files", report.keys_rescued)?;
        }
        match report.damage.len() {
            0 => Ok(writeln!(out, "nothing was damaged")?),
            count => Ok(writeln!(out, "{count} damaged places were left out; the rest is sound")?),
        }
    }
}
