//! The command lines and configuration files in docs/ are understood by the program. (What is typed into a shell there, `./test documentation`
//! runs.)

use super::{ProgramName, command, command_line, config_file, meaning};
use crate::CommandLine;
use clap::Parser;
use pando_env::OpenMode;
use pando_env::simulated::Simulation;
use std::ffi::OsString;
use std::path::Path;

const PAGES: &[(&str, &str)] = &[
    ("README.md", include_str!("../../../../README.md")),
    ("configuration.md", include_str!("../../../../docs/configuration.md")),
    ("first-steps.md", include_str!("../../../../docs/first-steps.md")),
    ("from-mongod.md", include_str!("../../../../docs/from-mongod.md")),
    ("security.md", include_str!("../../../../docs/security.md")),
    ("troubleshooting.md", include_str!("../../../../docs/troubleshooting.md")),
];

/// The blocks of a page that are in this language.
fn blocks<'a>(page: &'a str, language: &'a str) -> impl Iterator<Item = &'a str> {
    let parts: Vec<&str> = page.split("```").collect();
    let inside = parts.into_iter().skip(1).step_by(2);
    inside.filter_map(move |block| block.strip_prefix(language)?.strip_prefix('\n'))
}

/// The words of a line that starts the program; none for other programs' lines.
fn words(line: &str) -> Option<Vec<OsString>> {
    let line = line.split(" #").next()?.trim();
    let line = line.replacen("cargo run --release --", "pando", 1).replacen("cargo run --release", "pando", 1);
    let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    matches!(words.first()?.to_str()?, "pando" | "mongod").then_some(words)
}

#[test]
fn u12_command_lines_in_the_documentation_are_understood() {
    let env = Simulation::new(1).env();
    let mut count = 0;
    for (page, text) in PAGES {
        for line in blocks(text, "sh").flat_map(str::lines) {
            let Some(words) = words(line) else { continue };
            count += 1;
            let is_tool = words.get(1).and_then(|word| word.to_str()).is_some_and(|word| !word.starts_with('-'));
            if is_tool {
                let parsed = CommandLine::try_parse_from(&words);
                let is_help = parsed.as_ref().is_err_and(|error| !error.use_stderr());
                assert!(parsed.is_ok() || is_help, "{page}: {line}");
                continue;
            }
            let name = ProgramName::of(words.first());
            let matches = command(name).try_get_matches_from(&words).unwrap_or_else(|error| panic!("{page}: {error}"));
            let settings = command_line::settings(&env, &matches).unwrap();
            meaning::plan(name, &settings, &words).unwrap_or_else(|error| panic!("{page}: {line}: {error}"));
        }
    }
    assert!(count >= 10, "only {count} lines were found");
}

#[test]
fn u12_configuration_files_in_the_documentation_are_understood() {
    let mut count = 0;
    for (page, text) in PAGES {
        for block in blocks(text, "yaml") {
            let env = Simulation::new(1).env();
            let path = Path::new("pando.conf");
            env.disk().open(path, OpenMode::CreateNew).unwrap().write_at(block.as_bytes(), 0).unwrap();
            let settings = config_file::read(&env, path, super::expansion::Expansion::NONE)
                .unwrap_or_else(|error| panic!("{page}: {error}\n{block}"));
            meaning::plan(ProgramName::Pando, &settings, &[])
                .unwrap_or_else(|error| panic!("{page}: {error}\n{block}"));
            count += 1;
        }
    }
    assert!(count >= 3, "only {count} files were found");
}
