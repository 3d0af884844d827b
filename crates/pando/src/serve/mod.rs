//! `pando serve`: a node, started with mongod's options.
//!
//! The way of a setting: the command line (`command_line`) and the configuration file (`config_file`) are read against one
//! list of options (`catalog`), become [`settings::Settings`] by dotted name, and are given their meaning (`meaning`).
//! `node` then opens the engine and runs the server.
//!
//! Under the name `pando` a node is the only member of a replica set of its own; under the name `mongod` it stands alone
//! unless it is told otherwise, as scripts made for mongod expect.

mod background;
mod backtrace;
mod catalog;
mod command_line;
mod config_file;
#[cfg(test)]
mod documentation;
mod expansion;
mod lock_file;
mod meaning;
mod node;
mod repair;
mod settings;
mod unmeant;
mod welcome;

use crate::error::Result;
use pando_env::Env;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

pub use catalog::{Choice, Kind};
pub use command_line::command;
pub use unmeant::table as unmeant_table;

/// All options, also those that only files have.
pub fn choices() -> impl Iterator<Item = &'static Choice> {
    catalog::CHOICES.iter().chain(catalog::COMPONENTS)
}

/// By which name the program was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramName {
    /// Its own.
    Pando,
    /// As a node of MongoDB.
    Mongod,
    /// As a router of MongoDB.
    Mongos,
}

impl ProgramName {
    /// The name in the first word of a command line.
    pub fn of(word: Option<&OsString>) -> ProgramName {
        let name = word.and_then(|word| Path::new(word).file_stem()).unwrap_or_default();
        match name.to_str() {
            Some("mongod") => ProgramName::Mongod,
            Some("mongos") => ProgramName::Mongos,
            _ => ProgramName::Pando,
        }
    }

    /// The name for messages.
    pub const fn text(self) -> &'static str {
        match self {
            ProgramName::Pando => "pando",
            ProgramName::Mongod => "mongod",
            ProgramName::Mongos => "mongos",
        }
    }
}

/// `-vvv` is one word for `--verbose=vvv`, not `-v` with a value.
fn spelled_out(word: &OsString) -> OsString {
    let letters = word.to_str().and_then(|word| word.strip_prefix('-')).filter(|letters| letters.len() > 1);
    match letters.filter(|letters| letters.bytes().all(|letter| letter == b'v')) {
        Some(letters) => format!("--verbose={letters}").into(),
        None => word.clone(),
    }
}

/// Serves. The words are those of the whole command line, without `serve`.
pub fn run(env: &Env, name: ProgramName, words: Vec<OsString>) -> Result<ExitCode> {
    let matches = match command(name).try_get_matches_from(words.iter().map(spelled_out)) {
        Ok(matches) => matches,
        Err(error) => {
            // Help and version are on standard output and no failure; what makes no sense is 2.
            let _ = error.print();
            return Ok(if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS });
        }
    };
    let settings = command_line::settings(env, &matches)?;
    let plan = meaning::plan(name, &settings, &words)?;
    if plan.runs_in_background && !background::is_background() {
        return background::start(&words);
    }
    node::run(env, plan)
}
