//! The binary.
//!
//! `pando` without a command, or `pando serve`, is a node that speaks MongoDB's wire protocol; called by the name `mongod`
//! it takes mongod's options only. `pando inspect` looks into a store without changing it, `pando demo` makes a small one
//! to look at, `pando repair` makes a damaged one whole, and `pando reference` prints the reference of options and parameters.
//!
//! This crate opens an engine in one place ([`store`]) and otherwise knows the interface only, so that every question also
//! works on the oracle in tests. Exit status: 0, or 1 if something failed or is damaged, or 2 for a command line that
//! makes no sense.

mod demo;
mod error;
mod inspect;
mod manual;
mod reference;
mod serve;
mod show;
mod store;

use clap::{Parser, Subcommand};
use error::{PandoError, Result};
use pando_base::ErrorCode;
use pando_env::Env;
use pando_env::real::Allocator;
use serve::ProgramName;
use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

const DATA_DIRECTORY: &str = "./pando-data";

/// A document database that speaks MongoDB's wire protocol.
#[derive(Parser)]
#[command(name = "pando", version, after_help = HINT)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Looks into a store without changing it
    Inspect(inspect::Inspect),
    /// Makes a small store to look at
    Demo {
        /// Where the store shall lie
        #[arg(long, default_value = DATA_DIRECTORY)]
        data_directory: PathBuf,
        /// How many documents it shall have
        #[arg(long, default_value_t = 1000)]
        documents: u32,
    },
    /// Prints the page of all options and parameters (docs/configuration.md), the manual, or completions
    Reference {
        /// What to print
        #[arg(long, value_enum, default_value_t = manual::Form::Markdown)]
        form: manual::Form,
    },
    /// Repairs a damaged data directory and says what is lost: `pando repair --dbpath DIRECTORY`
    Repair,
    /// Serves: the same as no command at all; `pando serve --help` lists its options
    Serve,
}

const HINT: &str = "Without a command it serves on 127.0.0.1:27017, with its data in ./pando-data.";

/// What the first words ask for.
enum Asked {
    /// A node, with these words.
    Serve(Vec<OsString>),
    /// One of the tools.
    Tool(Vec<OsString>),
}

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    let (env, name) = (Env::real(), ProgramName::of(words.first()));
    let outcome = match asked(name, words) {
        Asked::Serve(words) => serve::run(&env, name, words),
        Asked::Tool(words) => tool(&env, words),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("{}: {error}", name.text());
        if let Some(advice) = error.advice() {
            eprintln!("{}: {advice}", name.text());
        }
        match error {
            PandoError::Argument(_) => ExitCode::from(2),
            _ if name == ProgramName::Mongod => ExitCode::from(mongod_exit_code(&error)),
            _ => ExitCode::FAILURE,
        }
    })
}

/// What mongod ends with when it cannot start: scripts tell a port that is taken from everything else.
fn mongod_exit_code(error: &PandoError) -> u8 {
    match error {
        PandoError::Server(error) if error.code() == ErrorCode::SocketException => 48,
        _ => 100,
    }
}

/// Options in front mean a node; so does the name of MongoDB's program, which has no tools.
fn asked(name: ProgramName, mut words: Vec<OsString>) -> Asked {
    let first = words.get(1).and_then(|word| word.to_str());
    match first {
        Some("serve") if name == ProgramName::Pando => {
            words.remove(1);
            Asked::Serve(words)
        }
        Some("repair") if name == ProgramName::Pando => {
            if let Some(word) = words.get_mut(1) {
                *word = "--repair".into();
            }
            Asked::Serve(words)
        }
        Some("--help" | "-h" | "--version" | "-V") if name == ProgramName::Pando => Asked::Tool(words),
        Some(word) if name == ProgramName::Pando && !word.starts_with('-') => Asked::Tool(words),
        _ => Asked::Serve(words),
    }
}

fn tool(env: &Env, words: Vec<OsString>) -> Result<ExitCode> {
    let mut out = BufWriter::new(io::stdout().lock());
    match run(CommandLine::parse_from(words), env, &mut out).and_then(|()| Ok(out.flush()?)) {
        // The reader of a pipe has seen enough.
        Err(PandoError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        outcome => outcome.map(|()| ExitCode::SUCCESS),
    }
}

fn run(command_line: CommandLine, env: &Env, out: &mut dyn Write) -> Result<()> {
    match command_line.command {
        Command::Inspect(inspect) => inspect.run(env, out),
        Command::Demo { data_directory, documents } => demo::run(env, &data_directory, documents, out),
        Command::Reference { form: manual::Form::Markdown } => reference::write(out),
        Command::Reference { form: manual::Form::FromMongod } => reference::write_from_mongod(out),
        Command::Reference { form } => manual::write(form, out),
        Command::Repair => Err(PandoError::Argument("repair has to be the first word".into())),
        Command::Serve => Err(PandoError::Argument("serve has to be the first word".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use pando_env::simulated::Simulation;

    fn tell(env: &Env, line: &str) -> Result<String> {
        let mut out = Vec::new();
        run(CommandLine::try_parse_from(line.split(' ')).unwrap(), env, &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn the_command_line_is_consistent() {
        CommandLine::command().debug_assert();
        for line in ["pando demo --documents 5", "pando inspect", "pando inspect --data-directory x dump t"] {
            assert!(CommandLine::try_parse_from(line.split(' ')).is_ok(), "{line}");
        }
    }

    #[test]
    fn u12_the_first_words_decide() {
        let serves = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            match asked(ProgramName::of(words.first()), words) {
                Asked::Serve(words) => Some(words.len()),
                Asked::Tool(_) => None,
            }
        };
        assert_eq!(
            (serves("pando"), serves("./pando serve --port 1"), serves("pando repair --dbpath x")),
            (Some(1), Some(3), Some(4))
        );
        assert_eq!((serves("pando inspect"), serves("pando --help"), serves("pando nonsense")), (None, None, None));
        assert_eq!((serves("/usr/bin/mongod --help"), serves("mongod inspect")), (Some(2), Some(2)));
    }

    #[test]
    fn a_demo_is_made_once_and_can_be_inspected() {
        let env = Simulation::new(7).env();
        assert!(matches!(tell(&env, "pando inspect"), Err(PandoError::NoStore(_))));
        assert!(tell(&env, "pando demo --documents 20").unwrap().contains("20 documents"));
        assert!(matches!(tell(&env, "pando demo"), Err(PandoError::Occupied(_))));
        assert!(tell(&env, "pando inspect").unwrap().contains("2 tables"));
        assert!(tell(&env, "pando inspect dump people").unwrap().ends_with("20 pairs\n"));
        assert!(tell(&env, "pando inspect log").unwrap().starts_with("20 entries"));
        assert!(tell(&env, "pando inspect verify").unwrap().ends_with("everything holds\n"));
        let described = tell(&env, "pando inspect describe").unwrap();
        assert!(described.contains("base in") && described.contains("20 oplog entries"), "{described}");
    }

    #[test]
    fn x19_looking_changes_nothing() {
        let machine = Simulation::new(8);
        let env = machine.env();
        tell(&env, "pando demo --documents 20").unwrap();
        let contents = || {
            let files = machine.disk().files().into_iter();
            files.map(|path| (machine.disk().contents(&path), path)).collect::<Vec<_>>()
        };
        let before = contents();
        for question in ["describe", "verify", "tables", "dump people", "log", "statistics"] {
            tell(&env, &format!("pando inspect {question}")).unwrap();
        }
        assert!(before == contents());
    }

    #[test]
    fn x16_a_damaged_store_is_salvaged() {
        let machine = Simulation::new(9);
        let env = machine.env();
        tell(&env, "pando demo --documents 20").unwrap();
        assert!(matches!(tell(&env, "pando inspect --data-directory none salvage new"), Err(PandoError::NoStore(_))));
        let sound = tell(&env, "pando inspect salvage copy").unwrap();
        assert!(sound.contains("copy has 2 tables") && sound.ends_with("nothing was damaged\n"), "{sound}");
        let is_pointer = |path: &std::path::PathBuf| path.starts_with(DATA_DIRECTORY) && path.ends_with("CURRENT");
        let pointer = machine.disk().files().into_iter().find(is_pointer).unwrap();
        machine.disk().flip_byte(&pointer, 9).unwrap();
        assert!(matches!(tell(&env, "pando inspect"), Err(PandoError::Storage(_))));
        let saved = tell(&env, "pando inspect salvage new").unwrap();
        assert!(saved.contains("damaged: ") && saved.contains("new has 2 tables"), "{saved}");
        let store = "pando inspect --data-directory new";
        assert!(tell(&env, &format!("{store} dump people")).unwrap().ends_with("20 pairs\n"));
        assert!(tell(&env, &format!("{store} verify")).unwrap().ends_with("everything holds\n"));
        assert!(matches!(tell(&env, "pando inspect salvage new"), Err(PandoError::Storage(_))), "it is not empty");
    }
}
