//! The rules of this repository, as ordinary tests.
//!
//! A rule that only a reviewer enforces is forgotten; one that a test enforces names its offender. This library reads the
//! repository; the rules themselves are in `tests/`, one kind a file:
//!
//! * `layers`: which crate may depend on which, and that nobody but the benches depends on a peer;
//! * `manifests`: what every `Cargo.toml`, `Cargo.lock` and `clippy.toml` has to say;
//! * `sources`: what every Rust file has to look like;
//! * `bans`: who may make the raw calls that `clippy.toml` forbids;
//! * `rows`: that `docs/rows.txt` is well formed. Whether each row has a test is `./test rows`, which asks the built tests.
//!
//! Exceptions are rows of a table in the test, each with its reason; a row that no longer excuses anything fails too.
//! This crate must not know any other crate of the workspace, so that it works when none of them compiles.
#![allow(clippy::disallowed_methods, reason = "it reads the repository, not a store; there is no environment handle")]

use std::fs;
use std::path::{Path, PathBuf};

/// A Rust file of the repository.
pub struct Source {
    /// Its path from the root, with slashes.
    pub path: String,
    /// All of it.
    pub text: String,
}

impl Source {
    /// True for integration tests and for tests that were moved beside their code.
    pub fn is_test(&self) -> bool {
        self.path.contains("/tests/") || self.path.ends_with("/tests.rs")
    }

    /// The lines before the tests, which close a file.
    pub fn code_lines(&self) -> usize {
        if self.is_test() {
            return 0;
        }
        let lines: Vec<&str> = self.text.lines().collect();
        let tests = lines.windows(2).position(|pair| pair[0] == "#[cfg(test)]" && pair[1] == "mod tests {");
        tests.unwrap_or(lines.len())
    }

    /// The lines that are not comments, numbered from 1.
    pub fn statements(&self) -> impl Iterator<Item = (usize, &str)> {
        let numbered = self.text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
        numbered.filter(|(_, line)| !line.starts_with("//"))
    }
}

/// The root of the repository.
pub fn root() -> PathBuf {
    let house = Path::new(env!("CARGO_MANIFEST_DIR"));
    house.ancestors().nth(2).unwrap_or(house).to_path_buf()
}

/// A file of the repository as text; fails the test that asks if it cannot be read.
pub fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every Rust file of the workspace, sorted by path.
pub fn sources() -> Vec<Source> {
    let paths = files().into_iter().filter(|path| path.ends_with(".rs"));
    paths.map(|path| Source { text: read(&path), path }).collect()
}

/// The manifest of every member: path and text, sorted by path.
pub fn manifests() -> Vec<(String, String)> {
    let paths = files().into_iter().filter(|path| path.ends_with("/Cargo.toml"));
    paths.map(|path| (path.clone(), read(&path))).collect()
}

/// Every file below the workspace's folders, from the root, sorted.
fn files() -> Vec<String> {
    let root = root();
    let mut found = Vec::new();
    let mut open = vec![root.join("crates"), root.join("benches")];
    while let Some(folder) = open.pop() {
        let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        for path in entries.flatten().map(|entry| entry.path()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            match (path.is_dir(), &*name) {
                (true, "target") => {}
                (true, _) => open.push(path),
                (false, _) => found.extend(path.strip_prefix(&root).map(|path| path.to_string_lossy().into_owned())),
            }
        }
    }
    found.sort_unstable();
    found
}

/// Fails with one line for each offence.
pub fn expect_none(rule: &str, offences: &[String]) {
    assert!(offences.is_empty(), "{rule}:\n  {}", offences.join("\n  "));
}
