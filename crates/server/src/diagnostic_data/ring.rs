//! The files of the archive: `metrics.TIME-NUMBER`, the oldest of which goes when there are too many bytes, and
//! `metrics.interim` with what is not packed yet.

use pando_doc::{Doc, iso_8601};
use pando_env::{Env, File, OpenMode};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const INTERIM: &str = "metrics.interim";
const INTERIM_NEW: &str = "metrics.interim.temp";

/// The archive's directory with the file that is written.
pub(super) struct Ring {
    env: Env,
    directory: PathBuf,
    current: Option<Open>,
    file_count: u32,
}

struct Open {
    file: Arc<dyn File>,
    length: u64,
}

/// How large the archive may become.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) file_bytes: u64,
    pub(super) directory_bytes: u64,
}

impl Ring {
    /// The archive in this directory, which is made.
    pub(super) fn open(env: &Env, directory: &Path) -> io::Result<Ring> {
        env.disk().create_directory(directory)?;
        let mut ring = Ring { env: env.clone(), directory: directory.to_owned(), current: None, file_count: 0 };
        ring.adopt_interim()?;
        Ok(ring)
    }

    /// What an earlier process had put aside becomes a file of the archive.
    fn adopt_interim(&mut self) -> io::Result<()> {
        let interim = self.directory.join(INTERIM);
        if self.env.disk().exists(&interim)? {
            let name = self.next_name();
            self.env.disk().rename(&interim, &name)?;
        }
        Ok(())
    }

    fn next_name(&mut self) -> PathBuf {
        let now = iso_8601(i64::try_from(self.env.clock().wall_ms()).unwrap_or(0));
        let time = now.get(..19).unwrap_or(&now).replace(':', "-");
        loop {
            let path = self.directory.join(format!("metrics.{time}Z-{:05}", self.file_count));
            self.file_count = self.file_count.wrapping_add(1);
            if !self.env.disk().exists(&path).unwrap_or(false) {
                return path;
            }
        }
    }

    /// Adds a document. A file that is full, or none, gives way to a new one, which `metadata` opens.
    pub(super) fn add(&mut self, document: &Doc, metadata: &Doc, limits: Limits) -> io::Result<()> {
        let is_full = self.current.as_ref().is_none_or(|open| open.length >= limits.file_bytes);
        if is_full {
            let path = self.next_name();
            let file = self.env.disk().open(&path, OpenMode::CreateNew)?;
            let mut open = Open { file, length: 0 };
            open.write(metadata)?;
            self.current = Some(open);
            self.trim(&path, limits.directory_bytes)?;
        }
        match &mut self.current {
            Some(open) => open.write(document),
            None => Ok(()),
        }
    }

    /// Puts aside what is not packed yet, in place of what was put aside before.
    pub(super) fn put_aside(&self, document: &Doc, metadata: &Doc) -> io::Result<()> {
        let (new, interim) = (self.directory.join(INTERIM_NEW), self.directory.join(INTERIM));
        if self.env.disk().exists(&new)? {
            self.env.disk().remove(&new)?;
        }
        let mut open = Open { file: self.env.disk().open(&new, OpenMode::CreateNew)?, length: 0 };
        open.write(metadata)?;
        open.write(document)?;
        self.env.disk().rename(&new, &interim)
    }

    /// What was put aside is in the archive now.
    pub(super) fn forget_aside(&self) -> io::Result<()> {
        let interim = self.directory.join(INTERIM);
        if self.env.disk().exists(&interim)? { self.env.disk().remove(&interim) } else { Ok(()) }
    }

    /// Removes the oldest files until the rest fits; never the one that is written.
    fn trim(&self, current: &Path, directory_bytes: u64) -> io::Result<()> {
        let mut files = Vec::new();
        for path in self.env.disk().list(&self.directory)? {
            let is_archive = path
                .file_name()
                .and_then(|name| name.to_str())
                .is_some_and(|name| name.starts_with("metrics.") && name != INTERIM && name != INTERIM_NEW);
            if is_archive && path != current {
                let length = self.env.disk().open(&path, OpenMode::Read)?.length()?;
                files.push((path, length));
            }
        }
        // Names sort as their times do.
        files.sort();
        let mut total_bytes: u64 = files.iter().map(|(_, length)| length).sum();
        for (path, length) in files {
            if total_bytes <= directory_bytes {
                break;
            }
            self.env.disk().remove(&path)?;
            total_bytes = total_bytes.saturating_sub(length);
        }
        Ok(())
    }
}

impl Open {
    fn write(&mut self, document: &Doc) -> io::Result<()> {
        self.file.write_at(document.bytes(), self.length)?;
        self.length += document.bytes().len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::doc;
    use pando_env::simulated::Simulation;
    use std::time::Duration;

    #[test]
    fn u15_the_archive_is_a_ring_of_files() {
        let machine = Simulation::new(7);
        let env = machine.env();
        let directory = Path::new("diagnostic.data");
        let mut ring = Ring::open(&env, directory).unwrap();
        let document = doc! { "x": "y".repeat(1000) };
        let limits = Limits { file_bytes: 2000, directory_bytes: 10_000 };
        for _ in 0..50 {
            machine.clock().advance(Duration::from_secs(1));
            ring.add(&document, &doc! { "m": 1 }, limits).unwrap();
        }
        let files = env.disk().list(directory).unwrap();
        let sizes = files.iter().map(|path| env.disk().read_all(path).unwrap().len() as u64);
        let total: u64 = sizes.sum();
        assert!((8_000..16_000).contains(&total), "{total}");
        assert!(files[0].to_str().unwrap().starts_with("diagnostic.data/metrics.2026-01-01T00-00-"), "{files:?}");
    }

    #[test]
    fn u15_what_was_put_aside_is_taken_over_by_the_next_process() {
        let machine = Simulation::new(8);
        let env = machine.env();
        let directory = Path::new("diagnostic.data");
        let ring = Ring::open(&env, directory).unwrap();
        ring.put_aside(&doc! { "a": 1 }, &doc! { "m": 1 }).unwrap();
        ring.put_aside(&doc! { "a": 2 }, &doc! { "m": 1 }).unwrap();
        assert_eq!(env.disk().list(directory).unwrap().len(), 1);
        Ring::open(&env, directory).unwrap();
        let files = env.disk().list(directory).unwrap();
        assert!(files.len() == 1 && !files[0].ends_with(INTERIM), "{files:?}");
    }
}
