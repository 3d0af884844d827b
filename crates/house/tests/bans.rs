//! Who may make the raw calls that `clippy.toml` forbids.
//!
//! Everything else reaches time, threads, randomness, files and sockets through `env`, or it could not be simulated.
//! Besides the rows below, examples may, since they measure. So may a test that starts child processes, which it has to
//! watch from the real world, or that has a directory on the real disk, which it has to remove.

use pando_house::{Source, expect_none, sources};

/// Paths that may switch the bans off, and why.
const EXCUSED: &[(&str, &str)] = &[
    ("crates/env/src/real/", "it is the real world"),
    ("crates/env/src/simulated/tasks.rs", "tasks run on the runtime of whoever asks"),
    ("crates/house/", "it reads the repository"),
    ("crates/engine/tests/kill.rs", "it starts and kills child processes in real time"),
    ("crates/pando/tests/support/mod.rs", "it starts and kills servers in real time"),
    ("crates/pando/tests/start_up.rs", "it starts the program and cleans up behind it"),
    ("benches/", "it measures real time and drives peers that know no environment"),
];

#[test]
fn bans_are_switched_off_only_where_excused() {
    let switching: Vec<Source> = sources().into_iter().filter(switches_off).collect();
    let unexcused = switching.iter().filter(|source| !is_excused(source) && !is_worldly_test(source));
    let mut offences: Vec<String> = unexcused.map(|source| source.path.clone()).collect();
    let stale = EXCUSED.iter().filter(|(path, _)| !switching.iter().any(|source| source.path.starts_with(path)));
    offences.extend(stale.map(|(path, _)| format!("{path} is listed, but switches nothing off")));
    expect_none("go through env, or add a row to EXCUSED", &offences);
}

fn switches_off(source: &Source) -> bool {
    let marks = ["clippy::disallowed_methods", "clippy::disallowed_types", "clippy::style", "clippy::all"];
    source.statements().any(|(_, line)| marks.iter().any(|mark| line.contains(mark)))
}

fn is_excused(source: &Source) -> bool {
    source.path.contains("/examples/") || EXCUSED.iter().any(|(path, _)| source.path.starts_with(path))
}

fn is_worldly_test(source: &Source) -> bool {
    source.is_test() && ["process::Command", "temp_dir()"].iter().any(|mark| source.text.contains(mark))
}
