//! The binary.
//!
//! Until there is a server it is the engine's inspector: `pando inspect` looks into a store without changing it, and
//! `pando demo` makes a small store to look at. Run without a command it describes `./pando-data`, or says how to get one.
//!
//! This crate opens an engine in one place ([`store`]) and otherwise knows the interface only, so that every command also
//! works on the oracle in tests. Exit status: 0, or 1 if something failed or is damaged, or 2 for a command line that
//! makes no sense.

mod demo;
mod error;
mod inspect;
mod show;
mod store;

use clap::{Parser, Subcommand};
use error::{PandoError, Result};
use pando_env::Env;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const DATA_DIRECTORY: &str = "./pando-data";

/// A document database that speaks MongoDB's wire protocol. So far: its storage engine.
#[derive(Parser)]
#[command(name = "pando", version)]
struct CommandLine {
    #[command(subcommand)]
    command: Option<Command>,
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
}

fn main() -> ExitCode {
    let mut out = BufWriter::new(io::stdout().lock());
    let result = run(CommandLine::parse(), &Env::real(), &mut out).and_then(|()| Ok(out.flush()?));
    match result {
        // The reader of a pipe has seen enough.
        Err(PandoError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            drop(out);
            eprintln!("pando: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(command_line: CommandLine, env: &Env, out: &mut dyn Write) -> Result<()> {
    match command_line.command {
        None if store::is_there(env, Path::new(DATA_DIRECTORY))? => inspect::Inspect::default().run(env, out),
        None => Ok(write!(out, "{WELCOME}")?),
        Some(Command::Inspect(inspect)) => inspect.run(env, out),
        Some(Command::Demo { data_directory, documents }) => demo::run(env, &data_directory, documents, out),
    }
}

const WELCOME: &str = "\
This is Pando. The server is still to come; what is here so far is its storage engine and a tool that looks into it.

There is no store in ./pando-data yet. To make a small one and look around in it:

    pando demo                        (or: cargo run --release -- demo)
    pando inspect                     what the store is made of
    pando inspect tables              its tables
    pando inspect dump people         what is in one of them
    pando inspect log                 the oplog
    pando inspect verify              reads and checks every byte
    pando inspect statistics          the engine's figures
    pando inspect salvage DIRECTORY   saves what is intact of a damaged store into a new one

Any other store: pando inspect --data-directory DIRECTORY ...
";

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
        for line in ["pando", "pando demo --documents 5", "pando inspect", "pando inspect --data-directory x dump t"] {
            assert!(CommandLine::try_parse_from(line.split(' ')).is_ok(), "{line}");
        }
    }

    #[test]
    fn the_welcome_names_commands_that_exist() {
        let commands = WELCOME.lines().filter_map(|line| line.strip_prefix("    pando "));
        for command in commands {
            let words = command.split("  ").next().unwrap_or_default();
            assert!(CommandLine::try_parse_from(format!("pando {words}").split(' ')).is_ok(), "{command}");
        }
    }

    #[test]
    fn a_demo_is_made_once_and_can_be_inspected() {
        let env = Simulation::new(7).env();
        assert_eq!(tell(&env, "pando").unwrap(), WELCOME);
        assert!(matches!(tell(&env, "pando inspect"), Err(PandoError::NoStore(_))));
        assert!(tell(&env, "pando demo --documents 20").unwrap().contains("20 documents"));
        assert!(matches!(tell(&env, "pando demo"), Err(PandoError::Occupied(_))));
        assert!(tell(&env, "pando").unwrap().contains("2 tables"));
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
