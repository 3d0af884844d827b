//! What a person is told who starts the real program and cannot: each failure names its cause and what to do, on standard error,
//! and the process ends with a status that is not zero.

mod support;

use pando_env::{Env, OpenMode};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A directory that is removed with everything in it.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        let env = Env::real();
        let name = format!("start-up-{:016x}", env.random().next_u64());
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        env.disk().create_directory(&directory).expect("a directory");
        Scratch(directory)
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        drop(Env::real().disk().open(&path, OpenMode::CreateNew).expect("a file"));
        self.write(&path, bytes);
        path
    }

    fn write(&self, path: &Path, bytes: &[u8]) {
        let file = Env::real().disk().open(path, OpenMode::ReadWrite).expect("a file");
        file.set_length(0).expect("an empty file");
        file.write_at(bytes, 0).expect("its bytes");
    }
}

impl Drop for Scratch {
    #[allow(clippy::disallowed_methods, reason = "the directory is on the real disk")]
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

fn pando(directory: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(support::binary());
    command.arg("--dbpath").arg(directory).args(more).stdin(Stdio::null());
    command
}

/// Runs the program, which must fail; what it says.
fn failure(mut command: Command) -> String {
    let ended = command.output().expect("the program runs");
    let told = format!("{}{}", String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(!ended.status.success(), "it started: {told}");
    assert!(!ended.stderr.is_empty(), "nothing on standard error: {told}");
    told
}

fn assert_told(told: &str, parts: &[&str]) {
    for part in parts {
        assert!(told.contains(part), "{part:?} is not in: {told}");
    }
}

#[test]
fn u12_a_port_or_a_directory_that_is_taken_says_what_to_do() {
    let (env, scratch) = (Env::real(), Scratch::new());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let listener = runtime.block_on(env.network().listen("127.0.0.1:0")).expect("a free port");
    let port = listener.local_address().expect("an address").internet().expect("a port").port().to_string();
    let told = failure(pando(&scratch.0, &["--port", &port]));
    assert_told(&told, &["Address already in use", "choose another port with --port"]);
    drop(listener);
    let lock = env.disk().lock_directory(&scratch.0).expect("nobody else has it");
    let told = failure(pando(&scratch.0, &["--port", &port]));
    assert_told(&told, &["is in use or cannot be locked", "choose another directory with --dbpath"]);
    drop(lock);
}

#[test]
fn u12_words_that_mean_nothing_say_what_to_do() {
    let scratch = Scratch::new();
    for (words, parts) in [
        (&["--nonsense"][..], &["unexpected argument '--nonsense'", "--help"][..]),
        (&["--port", "x"], &["x", "port"]),
        (&["--setParameter", "nonsense=1"], &["Unknown --setParameter 'nonsense'", "pando reference"]),
        (&["--tlsMode", "requireTLS"], &["need tlsCertificateKeyFile", "--tlsCertificateKeyFile"]),
        (&["--storageEngine", "mmapv1"], &["unknown storage engine: mmapv1"]),
    ] {
        assert_told(&failure(pando(&scratch.0, words)), parts);
    }
    let missing = failure(pando(&scratch.0, &["--config", "/nowhere/pando.conf"]));
    assert_told(&missing, &["/nowhere/pando.conf"]);
}

#[test]
fn u12_a_key_that_others_can_read_is_refused() {
    let scratch = Scratch::new();
    let path = scratch.file("key", b"c2VjcmV0IG9mIHRoZSBzZXQ=");
    let set_mode = |mode: &str| {
        let done = Command::new("chmod").arg(mode).arg(&path).status();
        assert!(done.is_ok_and(|status| status.success()));
    };
    let start = || pando(&scratch.0, &["--port", "0", "--keyFile", path.to_str().expect("a path that is text")]);
    for mode in ["644", "640", "604"] {
        set_mode(mode);
        assert_told(&failure(start()), &["permissions on ", " are too open", "chmod 600"]);
    }
    // Nothing is wrong with the permissions of this one, but with what is in it.
    scratch.write(&path, b"x");
    set_mode("600");
    assert_told(&failure(start()), &["security key has length 1"]);
}

#[test]
fn u12_help_names_the_options_and_the_version_is_told() {
    let asked = |words: &[&str]| {
        let told = Command::new(support::binary()).args(words).output().expect("the program runs");
        assert!(told.status.success());
        String::from_utf8_lossy(&told.stdout).into_owned()
    };
    assert_told(
        &asked(&["--help"]),
        &["inspect", "reference", "pando serve --help", "127.0.0.1:27017", "./pando-data"],
    );
    assert_told(&asked(&["serve", "--help"]), &["--dbpath", "--port", "--replSet", "--auth", "--tlsMode", "--config"]);
    assert_told(&asked(&["--version"]), &["pando "]);
}
