//! How each collection is used: operations by kind and their time, and latencies.
//!
//! A collection's counters begin with its first operation and end with the collection, whose drop the write path tells
//! ([`OpObserver`]). Names that were asked for but are no collections have counters too, as clients expect; when there are
//! many, those are thrown away.

use crate::{Class, OpLatencies};
use foldhash::quality::RandomState;
use pando_base::{Namespace, OperationKind, Result};
use pando_doc::DocBuilder;
use pando_operation::Operation;
use pando_oplog::OpObserver;
use pando_oplog::observer::{DropCollection, RenameCollection};
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// From so many names on, those without a collection are forgotten now and then.
const NAME_COUNT_TO_TIDY: usize = 1000;

/// What an operation held while it ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    /// Nothing.
    None,
    /// Locks for reading.
    Read,
    /// Locks for writing.
    Write,
}

/// Whether an operation looked at all of its collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scan {
    /// It had an index, or looked at nothing.
    None,
    /// It did.
    Whole,
    /// It did, and stays at the end.
    Tailing,
}

/// An operation that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// What it is called.
    pub kind: OperationKind,
    /// What it held.
    pub lock: LockKind,
    /// What it did to data.
    pub class: Class,
    /// How it looked for documents.
    pub scan: Scan,
    /// How long it took.
    pub micros: u64,
}

/// A number of operations and their time.
#[derive(Debug, Default)]
struct Use {
    count: AtomicU64,
    micros: AtomicU64,
}

impl Use {
    fn add(&self, micros: u64) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    fn append_to(&self, name: &str, out: &mut DocBuilder) {
        out.document(name, |section| {
            section.append("time", self.micros.load(Ordering::Relaxed) as i64);
            section.append("count", self.count.load(Ordering::Relaxed) as i64);
        });
    }
}

/// How a collection is used. Each operation is of one kind, so that the total is the sum of the kinds.
#[derive(Debug, Default)]
pub struct CollectionUse {
    read_lock: Use,
    write_lock: Use,
    queries: Use,
    get_more: Use,
    insert: Use,
    update: Use,
    remove: Use,
    commands: Use,
    /// Of no kind that is shown.
    others: Use,
    latencies: OpLatencies,
    /// How often all of it was looked at, without and with those who stay at the end.
    whole_scans: AtomicU64,
    all_scans: AtomicU64,
}

impl CollectionUse {
    fn record(&self, ended: Ended) {
        let Ended { kind, lock, class, scan, micros } = ended;
        self.latencies.of(class).record(micros);
        if scan != Scan::None {
            self.all_scans.fetch_add(1, Ordering::Relaxed);
            self.whole_scans.fetch_add(u64::from(scan == Scan::Whole), Ordering::Relaxed);
        }
        match lock {
            LockKind::Read => self.read_lock.add(micros),
            LockKind::Write => self.write_lock.add(micros),
            LockKind::None => {}
        }
        match kind {
            OperationKind::None => self.others.add(micros),
            OperationKind::Query => self.queries.add(micros),
            OperationKind::GetMore => self.get_more.add(micros),
            OperationKind::Insert => self.insert.add(micros),
            OperationKind::Update => self.update.add(micros),
            OperationKind::Remove => self.remove.add(micros),
            OperationKind::Command => self.commands.add(micros),
        }
    }

    fn append_to(&self, out: &mut DocBuilder) {
        let kinds =
            [&self.queries, &self.get_more, &self.insert, &self.update, &self.remove, &self.commands, &self.others];
        let total = Use::default();
        for kind in kinds {
            total.count.fetch_add(kind.count.load(Ordering::Relaxed), Ordering::Relaxed);
            total.micros.fetch_add(kind.micros.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        let all = [
            ("total", &total),
            ("readLock", &self.read_lock),
            ("writeLock", &self.write_lock),
            ("queries", &self.queries),
            ("getmore", &self.get_more),
            ("insert", &self.insert),
            ("update", &self.update),
            ("remove", &self.remove),
            ("commands", &self.commands),
        ];
        all.iter().for_each(|(name, counted)| counted.append_to(name, out));
    }
}

/// How the collections of a node are used.
#[derive(Debug, Default)]
pub struct Top {
    collections: RwLock<HashMap<Namespace, Arc<CollectionUse>, RandomState>>,
    /// How many names there were after the last tidying.
    tidied: AtomicUsize,
}

impl Top {
    /// Counts an operation. `exists` tells collections and views from names that somebody made up.
    pub fn record(&self, namespace: &Namespace, ended: Ended, exists: impl Fn(&Namespace) -> bool) {
        if let Some(found) = self.collections.read().get(namespace) {
            found.record(ended);
            return;
        }
        let mut collections = self.collections.write();
        if collections.len() >= self.tidied.load(Ordering::Relaxed).saturating_mul(2).max(NAME_COUNT_TO_TIDY) {
            collections.retain(|namespace, _| exists(namespace));
            self.tidied.store(collections.len(), Ordering::Relaxed);
        }
        collections.entry(namespace.clone()).or_default().record(ended);
    }

    /// Forgets a collection or view.
    pub fn forget(&self, namespace: &Namespace) {
        self.collections.write().remove(namespace);
    }

    /// Appends everything, by name.
    pub fn append_to(&self, out: &mut DocBuilder) {
        let mut all: Vec<(Namespace, Arc<CollectionUse>)> =
            self.collections.read().iter().map(|(name, counted)| (name.clone(), Arc::clone(counted))).collect();
        all.sort_by(|(left, _), (right, _)| left.as_str().cmp(right.as_str()));
        for (namespace, counted) in all {
            out.document(namespace.as_str(), |section| counted.append_to(section));
        }
    }

    /// Appends how often all of a collection was looked at.
    pub fn append_scans(&self, namespace: &Namespace, out: &mut DocBuilder) {
        let found = self.collections.read().get(namespace).cloned().unwrap_or_default();
        out.document("collectionScans", |scans| {
            scans.append("total", found.all_scans.load(Ordering::Relaxed) as i64);
            scans.append("nonTailable", found.whole_scans.load(Ordering::Relaxed) as i64);
        });
    }

    /// Appends the latencies of a collection; zeros if it was never used.
    pub fn append_latencies(&self, namespace: &Namespace, with_buckets: bool, out: &mut DocBuilder) {
        let found = self.collections.read().get(namespace).cloned().unwrap_or_default();
        found.latencies.append_to(None, with_buckets, out);
    }
}

impl OpObserver<Operation> for Top {
    fn on_drop_collection(&self, _: &mut Operation, drop: &DropCollection<'_>) -> Result<()> {
        self.forget(drop.collection.namespace);
        Ok(())
    }

    fn on_rename_collection(&self, _: &mut Operation, rename: &RenameCollection<'_>) -> Result<()> {
        self.forget(rename.from);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(number: usize) -> Namespace {
        Namespace::parse(&format!("d.c{number}")).unwrap()
    }

    fn ended(kind: OperationKind, lock: LockKind, class: Class, micros: u64) -> Ended {
        Ended { kind, lock, class, scan: Scan::None, micros }
    }

    fn counted(top: &Top, namespace: &Namespace, path: &str) -> Option<i64> {
        let mut out = DocBuilder::new();
        top.append_to(&mut out);
        let all = out.finish();
        let section = all.get(namespace.as_str())?.as_document()?.get(path)?.as_document()?.to_doc();
        section.get("count").and_then(|count| count.as_number()).map(|count| count.truncated_i64())
    }

    #[test]
    fn u15_operations_are_counted_by_collection_kind_and_lock() {
        let top = Top::default();
        let name = named(1);
        top.record(&name, ended(OperationKind::Query, LockKind::Read, Class::Read, 10), |_| true);
        top.record(&name, ended(OperationKind::Update, LockKind::Write, Class::Write, 20), |_| true);
        top.record(&name, ended(OperationKind::Update, LockKind::Write, Class::Write, 20), |_| true);
        top.record(&name, ended(OperationKind::None, LockKind::None, Class::Command, 30), |_| true);
        let found = ["total", "readLock", "writeLock", "queries", "update", "insert"];
        let found = found.map(|path| counted(&top, &name, path).unwrap());
        assert_eq!(found, [4, 1, 2, 1, 2, 0]);
        top.forget(&name);
        assert_eq!(counted(&top, &name, "total"), None);
    }

    #[test]
    fn u15_names_that_are_no_collections_do_not_pile_up() {
        let top = Top::default();
        for number in 0..10 * NAME_COUNT_TO_TIDY {
            let is_known = |namespace: &Namespace| *namespace == named(0);
            top.record(&named(number), ended(OperationKind::Query, LockKind::Read, Class::Read, 1), is_known);
        }
        assert!(top.collections.read().len() <= NAME_COUNT_TO_TIDY);
        assert_eq!(counted(&top, &named(0), "total"), Some(1));
    }
}
