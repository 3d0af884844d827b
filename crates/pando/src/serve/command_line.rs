//! The command line, built from the list of options.

use super::ProgramName;
use super::catalog::{CHOICES, Kind};
use super::config_file;
use super::expansion::Expansion;
use super::settings::Settings;
use crate::error::{PandoError, Result};
use clap::{Arg, ArgAction, ArgMatches, Command};
use pando_env::Env;
use std::path::Path;

/// The version as mongod says it, with ours behind it.
const DATABASE_VERSION: &str = concat!("db version v7.0.14\npando ", env!("CARGO_PKG_VERSION"));

/// The command line of a node.
pub fn command(name: ProgramName) -> Command {
    let arguments = CHOICES.iter().filter(|choice| !choice.flag.is_empty()).map(|choice| {
        let argument = Arg::new(choice.name).long(choice.flag).short(choice.short);
        let argument = match choice.kind {
            Kind::Switch => argument.action(ArgAction::SetTrue),
            Kind::Pairs => argument.action(ArgAction::Append).value_name("name=value"),
            Kind::Whole if choice.short == Some('v') => {
                argument.action(ArgAction::Set).value_name("level").num_args(0..=1).default_missing_value("1")
            }
            // Without a value it asks for what is so.
            Kind::Text if choice.name == "replication.enableMajorityReadConcern" => {
                argument.action(ArgAction::Set).value_name("value").num_args(0..=1).default_missing_value("true")
            }
            Kind::Text | Kind::Whole | Kind::Decimal => argument.action(ArgAction::Set).value_name("value"),
        };
        if choice.help.is_empty() { argument.hide(true) } else { argument.help(choice.help) }
    });
    Command::new(name.text())
        .bin_name(if name == ProgramName::Pando { "pando serve" } else { name.text() })
        .about("Serves MongoDB's wire protocol")
        .version(version(name))
        .args_override_self(true)
        .args(arguments)
}

/// What `--version` prints behind the name; scripts look for mongod's form.
fn version(name: ProgramName) -> &'static str {
    match name {
        ProgramName::Pando => env!("CARGO_PKG_VERSION"),
        ProgramName::Mongod | ProgramName::Mongos => DATABASE_VERSION,
    }
}

/// What the words say, over what the file says that they name.
pub fn settings(env: &Env, matches: &ArgMatches) -> Result<Settings> {
    let mut words = Settings::default();
    for choice in CHOICES.iter().filter(|choice| !choice.flag.is_empty()) {
        let set = |settings: &mut Settings, text: &str| settings.set(choice, text).map_err(PandoError::Argument);
        if choice.kind == Kind::Switch {
            if matches.get_flag(choice.name) {
                set(&mut words, "true")?;
            }
            continue;
        }
        for text in matches.get_many::<String>(choice.name).into_iter().flatten() {
            set(&mut words, text)?;
        }
    }
    let Some(path) = words.text("config").map(str::to_owned) else { return Ok(words) };
    let allowed = Expansion::of(&words).map_err(PandoError::Argument)?;
    Ok(config_file::read(env, Path::new(&path), allowed)?.overridden_by(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u12_the_command_line_is_consistent() {
        for name in [ProgramName::Pando, ProgramName::Mongod, ProgramName::Mongos] {
            command(name).debug_assert();
        }
        assert!(DATABASE_VERSION.contains(&format!("v{}\n", pando_commands::VERSION)));
    }
}
