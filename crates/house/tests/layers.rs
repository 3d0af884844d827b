//! Which crate may depend on which.
#![allow(clippy::unwrap_used, reason = "a failed look-up fails the test that made it")]

use pando_house::expect_none;
use std::process::Command;

/// The crates, bottom to top, each with what it must not know although it lies below. A crate may depend on earlier rows
/// only.
const LAYERS: &[(&str, &[&str])] = &[
    ("pando-env", &[]),
    ("pando-base", &["pando-env"]),
    ("pando-doc", &["pando-env"]),
    ("pando-keystring", &["pando-env"]),
    ("pando-collation", &["pando-env", "pando-keystring"]),
    ("pando-script", &["pando-env", "pando-keystring", "pando-collation"]),
    ("pando-text", &["pando-env", "pando-keystring", "pando-collation", "pando-script"]),
    ("pando-geo", &["pando-env", "pando-keystring", "pando-collation", "pando-script", "pando-text"]),
    (
        "pando-timeseries",
        &["pando-env", "pando-keystring", "pando-collation", "pando-script", "pando-text", "pando-geo"],
    ),
    ("pando-wire", &["pando-env", "pando-script", "pando-text", "pando-geo", "pando-timeseries"]),
    ("pando-oplog", &["pando-env", "pando-wire"]),
    ("pando-storage", &["pando-doc", "pando-keystring", "pando-wire", "pando-oplog"]),
    ("pando-locks", &["pando-storage"]),
    ("pando-sorter", &["pando-doc", "pando-keystring", "pando-wire", "pando-oplog", "pando-storage", "pando-locks"]),
    ("pando-engine-log", &["pando-storage"]),
    ("pando-engine-runs", &["pando-storage", "pando-engine-log"]),
    ("pando-engine", &[]),
    ("pando-engine-model", &["pando-engine-log", "pando-engine-runs", "pando-engine"]),
    (
        "pando-operation",
        &["pando-doc", "pando-oplog", "pando-engine-log", "pando-engine-runs", "pando-engine", "pando-engine-model"],
    ),
    (
        "pando-catalog",
        &[
            "pando-keystring",
            "pando-wire",
            "pando-engine-log",
            "pando-engine-runs",
            "pando-engine",
            "pando-engine-model",
        ],
    ),
    ("pando-index", &["pando-wire", "pando-oplog", "pando-engine-log", "pando-engine-runs", "pando-engine"]),
    ("pando-collection", &["pando-wire", "pando-engine-log", "pando-engine-runs", "pando-engine"]),
    ("pando-index-build", &["pando-wire", "pando-engine-log", "pando-engine-runs", "pando-engine"]),
    (
        "pando-expr",
        &["pando-env", "pando-keystring", "pando-wire", "pando-oplog", "pando-storage", "pando-locks", "pando-engine"],
    ),
    ("pando-query", &["pando-wire", "pando-engine-log", "pando-engine-runs", "pando-engine"]),
    (
        "pando-session",
        &["pando-wire", "pando-expr", "pando-query", "pando-engine-log", "pando-engine-runs", "pando-engine"],
    ),
    (
        "pando-repl",
        &["pando-wire", "pando-expr", "pando-query", "pando-engine-log", "pando-engine-runs", "pando-engine"],
    ),
    (
        "pando-security",
        &["pando-env", "pando-wire", "pando-oplog", "pando-storage", "pando-operation", "pando-catalog", "pando-query"],
    ),
    ("pando-commands", &["pando-engine-log", "pando-engine-runs", "pando-engine", "pando-engine-model"]),
    ("pando-net", &["pando-commands", "pando-storage", "pando-engine-log", "pando-engine-runs", "pando-engine"]),
    ("pando-server", &["pando-engine-log", "pando-engine-runs", "pando-engine-model"]),
    ("pando", &["pando-engine-log", "pando-engine-runs"]),
    ("pando-benches", &["pando-engine-log", "pando-engine-runs", "pando"]),
];

/// Beside the layers: it knows nobody and nobody knows it.
const APART: &str = "pando-house";

/// Dependencies of tests that go against the direction: who, on whom, why.
const UPWARD_IN_TESTS: &[(&str, &str, &str)] =
    &[("pando-engine", "pando-engine-model", "randomised histories are compared with the oracle")];

/// What our engine is measured against; nobody else may build on it.
const PEERS: &[&str] = &["fjall", "heed", "redb", "rocksdb", "lmdb", "sled", "rusqlite", "lsm-tree", "wiredtiger"];

/// One line of a manifest.
struct Dependency {
    from: String,
    to: String,
    in_tests: bool,
}

#[test]
fn every_crate_has_a_row() {
    let known = |name: &String| name == APART || place(name).is_some();
    let unknown: Vec<String> = packages().into_iter().map(|(name, _)| name).filter(|name| !known(name)).collect();
    expect_none("add these crates to LAYERS and to ARCHITECTURE.md", &unknown);
}

#[test]
fn dependencies_point_down() {
    let offences = ours().filter(|dependency| !dependency.in_tests && !is_down(&dependency.from, &dependency.to));
    expect_none("a crate depends only on earlier rows of LAYERS", &offences.map(told).collect::<Vec<_>>());
}

#[test]
fn dependencies_of_tests_against_the_direction_are_listed() {
    let is_listed = |d: &Dependency| UPWARD_IN_TESTS.iter().any(|(from, to, _)| d.from == *from && d.to == *to);
    let (upward, _): (Vec<_>, Vec<_>) = ours().partition(|d| d.in_tests && !is_down(&d.from, &d.to));
    let stale = UPWARD_IN_TESTS.iter().filter(|row| !upward.iter().any(|d| d.from == row.0 && d.to == row.1));
    let mut offences: Vec<String> = stale.map(|row| format!("{} → {} is listed, but not so", row.0, row.1)).collect();
    offences.extend(upward.into_iter().filter(|dependency| !is_listed(dependency)).map(told));
    expect_none("UPWARD_IN_TESTS lists what tests need from above", &offences);
}

#[test]
fn what_a_crate_must_not_know_it_does_not_know() {
    let hidden = |from: &str| LAYERS.iter().find(|row| row.0 == from).map_or(&[][..], |row| row.1);
    let offences = ours().filter(|d| !d.in_tests && hidden(&d.from).contains(&d.to.as_str()));
    expect_none("these crates are kept apart", &offences.map(told).collect::<Vec<_>>());
}

#[test]
fn only_the_benches_know_peers() {
    let is_peer = |d: &Dependency| PEERS.contains(&d.to.as_str()) && d.from != "pando-benches";
    expect_none("peers are for pando-benches", &all().filter(is_peer).map(told).collect::<Vec<_>>());
}

#[test]
fn the_architecture_page_has_every_crate() {
    let page = pando_house::read("ARCHITECTURE.md");
    let missing = packages().into_iter().map(|(name, _)| name.trim_start_matches("pando-").to_owned());
    let missing: Vec<String> = missing.filter(|name| !page.contains(&format!("| `{name}` |"))).collect();
    expect_none("ARCHITECTURE.md needs a row for", &missing);
}

fn told(dependency: Dependency) -> String {
    format!("{} → {}", dependency.from, dependency.to)
}

fn place(name: &str) -> Option<usize> {
    LAYERS.iter().position(|row| row.0 == name)
}

fn is_down(from: &str, to: &str) -> bool {
    matches!((place(from), place(to)), (Some(from), Some(to)) if to < from)
}

/// The dependencies between crates of the workspace.
fn ours() -> impl Iterator<Item = Dependency> {
    all().filter(|dependency| dependency.to == "pando" || dependency.to.starts_with("pando-"))
}

fn all() -> impl Iterator<Item = Dependency> {
    packages().into_iter().flat_map(|(_, dependencies)| dependencies)
}

/// The members of the workspace with their dependencies of all kinds, as cargo understands the manifests.
fn packages() -> Vec<(String, Vec<Dependency>)> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = ["metadata", "--no-deps", "--offline", "--format-version", "1"];
    let output = Command::new(cargo).args(arguments).current_dir(pando_house::root()).output().unwrap();
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().iter().map(package).collect()
}

fn package(package: &serde_json::Value) -> (String, Vec<Dependency>) {
    let name = text(&package["name"]);
    let dependencies = package["dependencies"].as_array().unwrap().iter().map(|dependency| Dependency {
        from: name.clone(),
        to: text(&dependency["name"]),
        in_tests: dependency["kind"] == "dev",
    });
    let dependencies = dependencies.collect();
    (name, dependencies)
}

fn text(value: &serde_json::Value) -> String {
    value.as_str().unwrap().to_owned()
}
