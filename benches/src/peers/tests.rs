//! Every adapter does what the trait says, on a small workload: so the figures are about the same work.

use super::{Change, Direction, Peer, System, Table, Wait, pando};
use crate::Error;
use crate::workload::{DocumentKey, Workload, document_key, document_number};
use std::path::PathBuf;

const DOCUMENTS: u64 = 300;
const CACHE_BYTES: u64 = 64 << 20;

/// A folder that goes away with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("pando-benches-{name}-{}", std::process::id()));
        crate::children::remove_folder(&path);
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        crate::children::remove_folder(&self.0);
    }
}

fn numbers(peer: &dyn Peer, direction: Direction) -> Result<Vec<u64>, Error> {
    let mut numbers = Vec::new();
    let mut reader = peer.reader()?;
    reader.refresh()?;
    let count = reader.scan(Table::Documents, direction, &mut |_, document| {
        numbers.extend(document_number(document));
    })?;
    assert_eq!(count, numbers.len() as u64);
    Ok(numbers)
}

fn index_entry(peer: &dyn Peer, key: &[u8]) -> Result<Option<DocumentKey>, Error> {
    let mut reader = peer.reader()?;
    reader.refresh()?;
    let mut entry = None;
    reader.get(Table::Index, key, &mut |value| entry = value.try_into().ok())?;
    Ok(entry)
}

/// Loads, rewrites, and looks whether everything is there.
fn fill_and_check(peer: &dyn Peer) -> Result<(), Error> {
    let mut workload = Workload::new(DOCUMENTS);
    peer.bulk_load(&workload.bulk_input())?;
    assert_eq!(numbers(peer, Direction::Forward)?, (0..DOCUMENTS).collect::<Vec<_>>());
    assert_eq!(numbers(peer, Direction::Reverse)?, (0..DOCUMENTS).rev().collect::<Vec<_>>());
    for (round, rewrite) in workload.rewrites(20).iter().enumerate() {
        let wait = if round % 2 == 0 { Wait::No } else { Wait::ForDisk };
        let changes = [
            Change::Put(Table::Documents, &rewrite.key, &rewrite.document),
            Change::Delete(Table::Index, &rewrite.index_removed),
            Change::Put(Table::Index, &rewrite.index_added, &rewrite.key),
        ];
        peer.writer()?.commit(&changes, wait)?;
        assert_eq!(index_entry(peer, &rewrite.index_removed)?, None);
        assert_eq!(index_entry(peer, &rewrite.index_added)?, Some(rewrite.key));
        let mut reader = peer.reader()?;
        reader.refresh()?;
        let mut same = false;
        assert!(reader.get(Table::Documents, &rewrite.key, &mut |document| same = document == rewrite.document)?);
        assert!(same);
        assert!(!reader.get(Table::Documents, &document_key(DOCUMENTS), &mut |_| ())?);
    }
    peer.flush_log()?;
    peer.checkpoint()?;
    peer.settle()?;
    Ok(())
}

/// The same, and all of it again after the store was closed and opened.
fn check(system: System) {
    if !system.is_built_in() {
        return;
    }
    let folder = Folder::new(system.name());
    let peer = system.open(&folder.0, CACHE_BYTES).unwrap();
    fill_and_check(&*peer).unwrap();
    peer.close().unwrap();
    let peer = system.open(&folder.0, CACHE_BYTES).unwrap();
    assert_eq!(numbers(&*peer, Direction::Forward).unwrap().len() as u64, DOCUMENTS);
    peer.close().unwrap();
}

#[test]
fn pando_over_the_oracle() {
    let disk = pando_engine_model::ModelDisk::new();
    let engine = pando_engine_model::ModelEngine::open(&disk, pando_engine_model::Mode::StandAlone).unwrap();
    let peer = pando::over(engine).unwrap();
    fill_and_check(&*peer).unwrap();
    peer.close().unwrap();
}

#[test]
fn pando() {
    check(System::Pando);
}

#[test]
fn wiredtiger() {
    check(System::Wiredtiger);
}

#[test]
fn lmdb() {
    check(System::Lmdb);
}

#[test]
fn redb() {
    check(System::Redb);
}

#[test]
fn fjall() {
    check(System::Fjall);
}
