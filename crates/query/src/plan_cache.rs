//! Plans that won, by the shape of their queries; and which indexes queries of a shape may use, where somebody has said so.
//!
//! A collection's cache is as good as its indexes are the same: it is thrown away when they are not. A plan is remembered as its
//! signature, not as a tree: a new query of the same shape is planned with its own constants, and the plan with that signature is
//! run without a trial. An entry becomes active when a second query has found the same plan no worse.
//!
//! Index filters stay until they are taken back, their collection is dropped, or the node ends. While no collection has any, asking for one costs a
//! look at a number.
//!
//! Lock order: the two mutexes here are leaves; nobody holds both.

use pando_base::{Metric, MetricTree, MetricValue, Result, Uuid};
use pando_catalog::{Collection, Index};
use pando_doc::{Doc, compare_docs};
use pando_operation::Operation;
use pando_oplog::OpObserver;
use pando_oplog::observer::{CollMod, CreateIndex, DropCollection, DropIndex, IndexBuildArguments, RenameCollection};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Shapes that a collection's cache remembers.
const ENTRY_COUNT_MAX: usize = 5000;
/// An entry that took more work than expected is believed to need this much more.
const GROWTH: u64 = 2;

/// What separates a shape from the indexes that a query of it can choose from.
const BESIDE_SHAPE: char = '\u{1}';

/// What a plan is remembered under. Which indexes can serve a query depends on its constants, too: partial and sparse
/// indexes, those of other collations, wildcards.
pub fn cache_key(shape: &str, indexes: &str) -> String {
    format!("{shape}{BESIDE_SHAPE}{indexes}")
}

/// The shape in a key.
pub fn shape_of(key: &str) -> &str {
    key.split_once(BESIDE_SHAPE).map_or(key, |(shape, _)| shape)
}

/// What is remembered of a shape.
#[derive(Clone, Debug, PartialEq)]
pub struct CachedPlan {
    /// The plan that won.
    pub signature: String,
    /// How much work that took.
    pub works: u64,
    /// It is used without a trial.
    pub is_active: bool,
    /// How it came about, for people.
    pub story: Arc<PlanStory>,
}

/// How an entry came about: what `$planCacheStats` shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanStory {
    /// False if the plans were too large to tell of: then there are only the times.
    pub is_told: bool,
    /// The query: `query`, `sort`, `projection`, and `collation` if there is one.
    pub created_from: Doc,
    /// When, on the wall's clock.
    pub created_ms: i64,
    /// The plan that won.
    pub plan: Doc,
    /// What each candidate had done at the end of the trial, the best first.
    pub trials: Vec<Doc>,
    /// How good each was found, the best first.
    pub scores: Vec<f64>,
    /// Only some indexes were allowed.
    pub has_index_filter: bool,
}

/// Indexes that queries of one shape may use.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IndexFilter {
    /// The query that the shape was given by: `query`, `sort`, `projection`, and `collation` if there is one.
    pub query: Doc,
    /// By their key patterns.
    pub patterns: Vec<Doc>,
    /// By their names.
    pub names: Vec<String>,
}

impl IndexFilter {
    /// May this index be used?
    pub fn allows(&self, index: &Index) -> bool {
        let has_pattern = |pattern: &Doc| compare_docs(pattern.view(), index.descriptor.key_pattern.view()).is_eq();
        self.names.iter().any(|name| name == index.name()) || self.patterns.iter().any(has_pattern)
    }
}

#[derive(Default)]
struct CollectionCache {
    /// What indexes it was made with.
    indexes: u64,
    entries: HashMap<String, CachedPlan>,
}

impl CollectionCache {
    fn size_bytes(&self) -> usize {
        self.entries.iter().map(|(key, entry)| entry.size_bytes(key)).sum()
    }
}

impl CachedPlan {
    /// How much memory the entry takes under this key, nearly.
    fn size_bytes(&self, key: &str) -> usize {
        let story = &self.story;
        let trials: usize = story.trials.iter().map(Doc::size_bytes).sum();
        size_of::<(String, CachedPlan, PlanStory)>()
            + key.len()
            + self.signature.len()
            + story.created_from.size_bytes()
            + story.plan.size_bytes()
            + trials
    }
}

/// The index filters of a collection, by shape.
type Filters = BTreeMap<String, Arc<IndexFilter>>;

/// The caches and index filters of all collections.
#[derive(Clone, Default)]
pub struct PlanCache {
    collections: Arc<Mutex<HashMap<Uuid, CollectionCache>>>,
    /// How much memory all entries take. Changed under the lock of `collections`.
    size_bytes: Arc<AtomicUsize>,
    filters: Arc<Mutex<HashMap<Uuid, Filters>>>,
    /// How many filters there are.
    filter_count: Arc<AtomicUsize>,
}

/// One of its numbers.
struct Shown(PlanCache, fn(&PlanCache) -> usize);

impl Metric for Shown {
    fn value(&self) -> MetricValue {
        MetricValue::Long(i64::try_from((self.1)(&self.0)).unwrap_or(i64::MAX))
    }
}

/// Which indexes a collection has, as a number.
pub fn indexes_of(collection: &Collection) -> u64 {
    let mut text = Vec::new();
    for index in &collection.indexes {
        text.extend_from_slice(index.ident().as_bytes());
        text.push(u8::from(index.ready) | u8::from(index.descriptor.hidden) << 1);
    }
    xxhash_rust::xxh3::xxh3_64(&text)
}

impl PlanCache {
    /// An empty cache.
    pub fn new() -> PlanCache {
        PlanCache::default()
    }

    /// The plan for a shape, if one may be used without a trial.
    pub fn get(&self, collection: &Collection, shape: &str) -> Option<CachedPlan> {
        let caches = self.collections.lock();
        let cache = caches.get(&collection.uuid).filter(|cache| cache.indexes == indexes_of(collection))?;
        cache.entries.get(shape).filter(|entry| entry.is_active).cloned()
    }

    /// Remembers which plan won.
    pub fn put(&self, uuid: Uuid, indexes: u64, shape: &str, signature: String, works: u64, story: PlanStory) {
        let mut caches = self.collections.lock();
        let cache = caches.entry(uuid).or_default();
        if cache.indexes != indexes {
            self.lost(cache.size_bytes());
            *cache = CollectionCache { indexes, entries: HashMap::new() };
        }
        let (works, is_active) = match cache.entries.get(shape) {
            Some(known) if !known.is_active && works <= known.works => (works, true),
            Some(known) if !known.is_active => (known.works.saturating_mul(GROWTH).max(1), false),
            // An active plan that lost its probation starts over.
            _ => (works, false),
        };
        if cache.entries.len() >= ENTRY_COUNT_MAX && !cache.entries.contains_key(shape) {
            self.lost(cache.size_bytes());
            cache.entries.clear();
        }
        let entry = CachedPlan { signature, works, is_active, story: Arc::new(story) };
        self.size_bytes.fetch_add(entry.size_bytes(shape), Ordering::Relaxed);
        if let Some(before) = cache.entries.insert(shape.to_owned(), entry) {
            self.lost(before.size_bytes(shape));
        }
    }

    /// Adds what serverStatus shows.
    pub fn add_metrics(&self, tree: &mut MetricTree) -> Result<()> {
        tree.add(
            "metrics.query.planCacheTotalSizeEstimateBytes",
            Arc::new(Shown(self.clone(), PlanCache::size_bytes)),
        )?;
        tree.add("metrics.query.planCacheTotalQueryShapes", Arc::new(Shown(self.clone(), PlanCache::len)))
    }

    fn len(&self) -> usize {
        self.collections.lock().values().map(|cache| cache.entries.len()).sum()
    }

    /// How much memory the plans of all collections take.
    pub fn size_bytes(&self) -> usize {
        self.size_bytes.load(Ordering::Relaxed)
    }

    fn lost(&self, bytes: usize) {
        self.size_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Forgets a collection's plans.
    pub fn clear(&self, uuid: &Uuid) {
        let mut caches = self.collections.lock();
        if let Some(cache) = caches.remove(uuid) {
            self.lost(cache.size_bytes());
        }
    }

    /// Forgets the plans of a shape, whatever indexes they could choose from.
    pub fn remove(&self, uuid: &Uuid, shape: &str) {
        if let Some(cache) = self.collections.lock().get_mut(uuid) {
            cache.entries.retain(|key, entry| {
                let is_kept = key.strip_prefix(shape).is_none_or(|rest| !rest.starts_with(BESIDE_SHAPE));
                if !is_kept {
                    self.lost(entry.size_bytes(key));
                }
                is_kept
            });
        }
    }

    /// What is remembered of a collection, as long as its indexes are those that it was remembered with.
    pub fn entries(&self, collection: &Collection) -> Vec<(String, CachedPlan)> {
        let caches = self.collections.lock();
        let cache = caches.get(&collection.uuid).filter(|cache| cache.indexes == indexes_of(collection));
        let entries = cache.map(|cache| cache.entries.iter());
        entries.into_iter().flatten().map(|(shape, entry)| (shape.clone(), entry.clone())).collect()
    }

    // ---- Index filters.

    /// The indexes that queries of a shape may use; none if all may be.
    pub fn filter(&self, uuid: &Uuid, shape: impl FnOnce() -> String) -> Option<Arc<IndexFilter>> {
        if self.filter_count.load(Ordering::Acquire) == 0 {
            return None;
        }
        if !self.filters.lock().contains_key(uuid) {
            return None;
        }
        let shape = shape();
        self.filters.lock().get(uuid).and_then(|filters| filters.get(&shape)).cloned()
    }

    /// Says which indexes queries of a shape may use, and forgets the plan that was chosen among others.
    pub fn set_filter(&self, uuid: Uuid, shape: &str, filter: IndexFilter) {
        let mut filters = self.filters.lock();
        filters.entry(uuid).or_default().insert(shape.to_owned(), Arc::new(filter));
        self.count_filters(&filters);
        drop(filters);
        self.remove(&uuid, shape);
    }

    /// Takes back what was said of one shape, or of all.
    pub fn clear_filters(&self, uuid: &Uuid, shape: Option<&str>) {
        let mut filters = self.filters.lock();
        let mut cleared: Vec<String> = Vec::new();
        cleared.extend(shape.map(str::to_owned));
        if let Some(of_collection) = filters.get_mut(uuid) {
            match shape {
                Some(shape) => drop(of_collection.remove(shape)),
                None => cleared.extend(std::mem::take(of_collection).into_keys()),
            }
            if of_collection.is_empty() {
                filters.remove(uuid);
            }
        }
        self.count_filters(&filters);
        drop(filters);
        cleared.iter().for_each(|shape| self.remove(uuid, shape));
    }

    /// What was said of a collection's indexes.
    pub fn filters(&self, uuid: &Uuid) -> Vec<Arc<IndexFilter>> {
        self.filters.lock().get(uuid).map(|filters| filters.values().cloned().collect()).unwrap_or_default()
    }

    /// Forgets a collection that is gone.
    fn forget(&self, uuid: &Uuid) {
        self.clear(uuid);
        let mut filters = self.filters.lock();
        if filters.remove(uuid).is_some() {
            self.count_filters(&filters);
        }
    }

    fn forget_on_commit(&self, operation: &mut Operation, uuid: Uuid) -> Result<()> {
        let cache = self.clone();
        operation.recovery_unit.on_commit(move |_| cache.forget(&uuid))?;
        Ok(())
    }

    /// Plans that were found with other indexes are of no use any more.
    fn clear_on_commit(&self, operation: &mut Operation, uuid: Uuid) -> Result<()> {
        let cache = self.clone();
        operation.recovery_unit.on_commit(move |_| cache.clear(&uuid))?;
        Ok(())
    }

    fn count_filters(&self, filters: &HashMap<Uuid, Filters>) {
        self.filter_count.store(filters.values().map(BTreeMap::len).sum(), Ordering::Release);
    }
}

impl OpObserver<Operation> for PlanCache {
    fn on_drop_collection(&self, operation: &mut Operation, drop: &DropCollection<'_>) -> Result<()> {
        self.forget_on_commit(operation, drop.collection.uuid)
    }

    fn on_rename_collection(&self, operation: &mut Operation, rename: &RenameCollection<'_>) -> Result<()> {
        rename.dropped_target.map_or(Ok(()), |uuid| self.forget_on_commit(operation, uuid))
    }

    fn on_coll_mod(&self, operation: &mut Operation, change: &CollMod<'_>) -> Result<()> {
        change.index.map_or(Ok(()), |_| self.clear_on_commit(operation, change.collection.uuid))
    }

    fn on_create_index(&self, operation: &mut Operation, index: &CreateIndex<'_>) -> Result<()> {
        self.clear_on_commit(operation, index.collection.uuid)
    }

    fn on_commit_index_build(&self, operation: &mut Operation, build: &IndexBuildArguments<'_>) -> Result<()> {
        self.clear_on_commit(operation, build.collection.uuid)
    }

    fn on_drop_index(&self, operation: &mut Operation, index: &DropIndex<'_>) -> Result<()> {
        self.clear_on_commit(operation, index.collection.uuid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u8_the_memory_of_plans_is_counted_until_they_are_forgotten() {
        let cache = PlanCache::new();
        let (first, second) = (Uuid::from_bytes([1; 16]), Uuid::from_bytes([2; 16]));
        let put = |uuid, indexes, shape: &str| {
            cache.put(uuid, indexes, &cache_key(shape, ""), "plan".to_owned(), 1, PlanStory::default());
        };
        put(first, 0, "a");
        let one = cache.size_bytes();
        assert!(one > 0);
        put(first, 0, "a");
        assert_eq!(cache.size_bytes(), one, "it took the place of the other");
        put(first, 0, "b");
        put(second, 0, "a");
        assert_eq!(cache.size_bytes(), 3 * one);
        cache.remove(&first, "a");
        assert_eq!(cache.size_bytes(), 2 * one);
        put(first, 1, "c");
        assert_eq!(cache.size_bytes(), 2 * one, "other indexes, another cache");
        cache.clear(&first);
        cache.clear(&second);
        assert_eq!(cache.size_bytes(), 0);
    }

    #[test]
    fn u8_what_is_known_of_a_dropped_collection_is_forgotten() {
        let cache = PlanCache::new();
        let (gone, kept) = (Uuid::from_bytes([1; 16]), Uuid::from_bytes([2; 16]));
        for uuid in [gone, kept] {
            cache.put(uuid, 0, "shape", "plan".to_owned(), 1, PlanStory::default());
            cache.set_filter(uuid, "other", IndexFilter::default());
        }
        cache.forget(&gone);
        assert_eq!(cache.collections.lock().keys().collect::<Vec<_>>(), [&kept]);
        assert!(cache.filter(&gone, || panic!("nobody asks for the shape")).is_none());
        assert!(cache.filter(&kept, || "other".to_owned()).is_some());
        cache.clear_filters(&kept, None);
        assert_eq!(cache.filter_count.load(Ordering::Acquire), 0);
    }
}
