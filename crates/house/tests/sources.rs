//! What every Rust file has to look like.

use pando_house::{Source, expect_none, sources};

const LINES_MAX: usize = 800;

/// Files that may be longer, with the idea that needs it.
const LONG: &[(&str, &str)] = &[];

/// What means "not done". Spelt in halves, so that this file is not its own offender.
const UNFINISHED: &[&str] =
    &[concat!("to", "do!("), concat!("unimple", "mented!("), concat!("#[ig", "nore"), concat!("db", "g!(")];

#[test]
fn every_file_opens_with_what_it_is_for() {
    let silent = sources().into_iter().filter(|source| !source.text.starts_with("//! "));
    expect_none("these need an opening `//!`", &silent.map(|source| source.path).collect::<Vec<_>>());
}

#[test]
fn no_file_is_too_long() {
    let sources = sources();
    let is_long = |source: &&Source| source.code_lines() > LINES_MAX;
    let is_excused = |source: &&Source| LONG.iter().any(|(path, _)| source.path == *path);
    let long = sources.iter().filter(is_long).filter(|source| !is_excused(source));
    let mut offences: Vec<String> =
        long.map(|source| format!("{}: {} lines", source.path, source.code_lines())).collect();
    let stale = LONG.iter().filter(|(path, _)| !sources.iter().filter(is_long).any(|source| source.path == *path));
    offences.extend(stale.map(|(path, _)| format!("{path} is listed, but not that long")));
    expect_none("split these by idea, or list them in LONG", &offences);
}

#[test]
fn nothing_is_left_unfinished() {
    let mut offences = Vec::new();
    for source in sources() {
        let found = source.statements().filter(|(_, line)| UNFINISHED.iter().any(|mark| line.contains(mark)));
        offences.extend(found.map(|(number, line)| format!("{}:{number}: {line}", source.path)));
    }
    expect_none("finish these", &offences);
}
