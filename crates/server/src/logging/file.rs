//! Lines to a file. Rotation renames it, with the time in the name, or opens it anew for those who renamed it themselves.

use super::LogTarget;
use pando_base::LogLine;
use pando_doc::iso_8601;
use pando_env::{Env, File, OpenMode};
use parking_lot::Mutex;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A log file.
pub struct FileSink {
    env: Env,
    path: PathBuf,
    renames: bool,
    open: Mutex<Open>,
}

struct Open {
    file: Arc<dyn File>,
    length: u64,
}

impl FileSink {
    /// Opens the file. One that is there is continued (`append`), or renamed first. `renames` says what rotation does.
    pub fn open(env: &Env, path: &Path, append: bool, renames: bool) -> io::Result<FileSink> {
        if !append && env.disk().exists(path)? {
            env.disk().rename(path, &old_name(env, path))?;
        }
        let open = Mutex::new(Open::at(env, path)?);
        Ok(FileSink { env: env.clone(), path: path.to_owned(), renames, open })
    }
}

impl Open {
    fn at(env: &Env, path: &Path) -> io::Result<Open> {
        let mode = if env.disk().exists(path)? { OpenMode::ReadWrite } else { OpenMode::CreateNew };
        let file = env.disk().open(path, mode)?;
        Ok(Open { length: file.length()?, file })
    }
}

impl LogTarget for FileSink {
    fn write(&self, _: &LogLine, json: &str) {
        let mut bytes = Vec::with_capacity(json.len() + 1);
        bytes.extend_from_slice(json.as_bytes());
        bytes.push(b'\n');
        let mut open = self.open.lock();
        // A log that cannot be written must not stop the server; the next line takes the place of this one.
        if open.file.write_at(&bytes, open.length).is_ok() {
            open.length += bytes.len() as u64;
        }
    }

    fn rotate(&self) -> io::Result<()> {
        let mut open = self.open.lock();
        if self.renames {
            let name = old_name(&self.env, &self.path);
            // Two rotations in one second: what the first left stays.
            if self.env.disk().exists(&name)? {
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{} exists", name.display())));
            }
            self.env.disk().rename(&self.path, &name)?;
        }
        *open = Open::at(&self.env, &self.path)?;
        Ok(())
    }
}

/// "mongod.log.2026-01-01T00-00-00".
fn old_name(env: &Env, path: &Path) -> PathBuf {
    let now = iso_8601(i64::try_from(env.clock().wall_ms()).unwrap_or(0));
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(now.get(..19).unwrap_or(&now).replace(':', "-"));
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_base::{Component, Log, LogSink, Severity, log};
    use pando_env::simulated::Simulation;

    struct Sink(Arc<FileSink>);

    impl LogSink for Sink {
        fn write(&self, line: &LogLine, json: &str) {
            self.0.write(line, json);
        }
    }

    #[test]
    fn u12_a_log_file_is_continued_and_rotated() {
        let machine = Simulation::new(5);
        let env = machine.env();
        let path = Path::new("mongod.log");
        let lines = |name: &str| {
            let bytes = env.disk().read_all(Path::new(name)).unwrap();
            String::from_utf8(bytes).unwrap().lines().count()
        };
        for _ in 0..2 {
            let file = Arc::new(FileSink::open(&env, path, true, true).unwrap());
            let log = Log::new(Arc::new(|| 0), Box::new(Sink(file)));
            log!(log, Severity::Info, Component::Control, 1, "hello");
        }
        assert_eq!(lines("mongod.log"), 2);
        let file = Arc::new(FileSink::open(&env, path, true, true).unwrap());
        file.rotate().unwrap();
        let log = Log::new(Arc::new(|| 0), Box::new(Sink(file)));
        log!(log, Severity::Info, Component::Control, 1, "hello");
        assert_eq!((lines("mongod.log"), lines("mongod.log.2026-01-01T00-00-00")), (1, 2));
        machine.clock().advance(std::time::Duration::from_secs(1));
        FileSink::open(&env, path, false, true).unwrap();
        assert_eq!((lines("mongod.log"), lines("mongod.log.2026-01-01T00-00-01")), (0, 1));
    }
}
