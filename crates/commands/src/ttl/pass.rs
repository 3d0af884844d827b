//! Passes and sub-passes.

use super::TtlCounters;
use super::parameters::{LOW_PRIORITY_SUB_PASSES, SUB_PASS_TARGET_SECONDS};
use super::visit::Visit;
use crate::{Counters, Data};
use pando_base::{Log, Result, Uuid};
use pando_catalog::Collection;
use pando_locks::Priority;
use pando_repl::ReplGate;
use std::collections::BTreeMap;

/// The indexes to visit, by collection; none stands for the cluster key.
type Work = BTreeMap<Uuid, Vec<Option<String>>>;

/// One pass of the monitor.
pub struct Pass<'a> {
    pub(super) data: &'a Data,
    pub(super) counters: &'a Counters,
    pub(super) log: &'a Log,
    /// For how many sub-passes in a row a collection has not been done.
    behind: BTreeMap<Uuid, i32>,
}

impl<'a> Pass<'a> {
    /// A pass over all that there is.
    pub fn new(data: &'a Data, counters: &'a Counters, log: &'a Log) -> Pass<'a> {
        Pass { data, counters, log, behind: BTreeMap::new() }
    }

    fn counted(&self) -> &'a TtlCounters {
        &self.counters.ttl
    }

    /// Deletes everything that has expired.
    pub async fn run(mut self) -> Result<()> {
        let outcome = self.run_to_end().await;
        self.counted().passes.increment();
        outcome
    }

    async fn run_to_end(&mut self) -> Result<()> {
        while self.sub_pass().await? {}
        Ok(())
    }

    /// One sub-pass; true if something may be left.
    async fn sub_pass(&mut self) -> Result<bool> {
        if self.data.replication.is_replicated() && !self.data.replication.is_writable_primary() {
            return Ok(false);
        }
        let outcome = self.visit_in_turn().await;
        self.counted().sub_passes.increment();
        let left = outcome?;
        self.behind.retain(|collection, _| left.contains_key(collection));
        for collection in left.keys() {
            *self.behind.entry(*collection).or_insert(0) += 1;
        }
        Ok(!left.is_empty())
    }

    /// Visits every index again and again until none has more to delete, or the time is up; what is left then.
    async fn visit_in_turn(&self) -> Result<Work> {
        let parameters = &self.data.services.parameters;
        let mut work = self.work();
        let limit = parameters.get(&LOW_PRIORITY_SUB_PASSES);
        let is_raised = |collection: &Uuid| self.behind.get(collection).is_some_and(|count| *count >= limit);
        self.counted().raised.add(work.keys().filter(|collection| is_raised(collection)).count() as u64);
        let clock = self.data.services.env.clock();
        let target_ns = u64::from(parameters.get(&SUB_PASS_TARGET_SECONDS).unsigned_abs()) * 1_000_000_000;
        let end_ns = clock.monotonic_ns().saturating_add(target_ns);
        loop {
            let mut more = Work::new();
            for (collection, indexes) in &work {
                let priority = if is_raised(collection) { Priority::Normal } else { Priority::Low };
                for index in indexes {
                    let visit = Visit { pass: self, collection: *collection, index: index.as_deref(), priority };
                    if visit.run().await? {
                        more.entry(*collection).or_default().push(index.clone());
                    }
                }
            }
            work = more;
            if work.is_empty() || clock.monotonic_ns() >= end_ns {
                return Ok(work);
            }
        }
    }

    /// What there is to visit now.
    fn work(&self) -> Work {
        let catalog = self.data.catalog.latest();
        let mut work = Work::new();
        for collection in catalog.all_collections() {
            let indexes = expiring_indexes(collection);
            if !indexes.is_empty() {
                work.insert(collection.uuid, indexes);
            }
        }
        work
    }
}

fn expiring_indexes(collection: &Collection) -> Vec<Option<String>> {
    let by_key = (collection.is_clustered() && collection.options.expire_after_seconds.is_some()).then_some(None);
    let indexes = collection.indexes.iter().filter(|index| index.descriptor.expire_after_seconds.is_some());
    by_key.into_iter().chain(indexes.map(|index| Some(index.name().to_owned()))).collect()
}
