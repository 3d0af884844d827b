//! What every manifest, the lock file and clippy's configuration have to say.

use pando_house::{expect_none, manifests, read};

/// What clippy bans outside `env`; the list may grow, not shrink.
const BANNED: &[&str] = &[
    "std::time::Instant",
    "std::time::Instant::now",
    "std::time::SystemTime",
    "std::time::SystemTime::now",
    "std::thread::spawn",
    "std::thread::sleep",
    "std::thread::scope",
    "std::thread::Builder",
    "std::fs::File",
    "std::fs::OpenOptions",
    "std::fs::read",
    "std::fs::read_dir",
    "std::fs::rename",
    "std::fs::remove_file",
    "std::net::TcpStream",
    "std::net::TcpListener",
    "std::net::UdpSocket",
    "tokio::spawn",
    "tokio::time::sleep",
    "rand::rng",
    "rand::random",
];

const REGISTRY: &str = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";

#[test]
fn every_crate_takes_the_workspace_lints() {
    let silent = manifests().into_iter().filter(|(_, text)| !text.contains("[lints]\nworkspace = true"));
    expect_none("these need [lints] workspace = true", &silent.map(|(path, _)| path).collect::<Vec<_>>());
}

#[test]
fn every_crate_has_the_workspace_licence_and_edition() {
    let lines = ["license.workspace = true", "edition.workspace = true", "publish.workspace = true"];
    let silent = manifests().into_iter().filter(|(_, text)| !lines.iter().all(|line| text.contains(line)));
    expect_none(
        "these need the workspace's licence, edition and publish",
        &silent.map(|(path, _)| path).collect::<Vec<_>>(),
    );
    assert!(read("Cargo.toml").contains("license = \"Apache-2.0\""));
}

#[test]
fn dependencies_come_from_the_public_registry() {
    let lock = read("Cargo.lock");
    let foreign = lock.lines().filter(|line| line.starts_with("source = ") && *line != REGISTRY);
    expect_none("Cargo.lock", &foreign.map(str::to_owned).collect::<Vec<_>>());
}

#[test]
fn clippy_bans_the_raw_world_and_is_obeyed() {
    let clippy = read("clippy.toml");
    let free = BANNED.iter().filter(|path| !clippy.contains(&format!("path = \"{path}\"")));
    expect_none("clippy.toml has lost", &free.map(|path| path.to_string()).collect::<Vec<_>>());
    let workspace = read("Cargo.toml");
    assert!(workspace.contains("disallowed_methods = \"deny\"") && workspace.contains("disallowed_types = \"deny\""));
}

#[test]
fn no_dependency_is_unused() {
    let sources = pando_house::sources();
    let mut offences = Vec::new();
    for (path, text) in manifests() {
        let folder = path.trim_end_matches("Cargo.toml");
        let own: Vec<&str> =
            sources.iter().filter(|source| source.path.starts_with(folder)).map(|source| &*source.text).collect();
        let is_used = |name: &String| own.iter().any(|text| text.contains(&library_of(name)));
        offences.extend(
            dependencies(&text).into_iter().filter(|name| !is_used(name)).map(|name| format!("{path}: {name}")),
        );
    }
    expect_none("nothing mentions these dependencies", &offences);
}

/// What a package's library is called in sources.
fn library_of(package: &str) -> String {
    match package {
        "md-5" => "md5".to_owned(),
        other => other.replace('-', "_"),
    }
}

/// The names in all tables of dependencies of a manifest.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut inside = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line.ends_with("dependencies]");
        } else if inside && line.starts_with(|first: char| first.is_ascii_alphabetic()) {
            names.extend(line.split(['.', '=', ' ']).next().map(str::to_owned));
        }
    }
    names
}
