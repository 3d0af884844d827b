//! Which bucket of a source takes the next measurement.
//!
//! Of each source at most one bucket is *open*; others are *archived*: not full, and found by the time at which they start. A measurement
//! that is too late for the open bucket closes it, one that is too early archives it. Where nothing is known, a query finds buckets of
//! an earlier run.
//!
//! The catalog is a memory of places, bounded by `timeseriesIdleBucketExpiryMemoryUsageThreshold`: buckets that were not used for the
//! longest time are archived, then forgotten. Nothing in it has to be right: who adds to a bucket reads it, and compares it with what is
//! kept of it here.
//!
//! Two writers that open a bucket for one source at once are given the same id; the one that stores it second conflicts, tries again
//! and finds it.
//!
//! Lock order: the one lock is held for look-ups only.

use crate::statistics::{Statistics, count};
use crate::{Bucket, Rollover, TimeseriesOptions};
use pando_base::Uuid;
use pando_doc::{Doc, DocBuilder, ObjectId, Value};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// A source of a collection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SourceKey {
    collection: Uuid,
    /// The meta value, encoded with its type; empty without one.
    meta: Arc<[u8]>,
}

impl SourceKey {
    /// The source with this meta value, which is normalized.
    pub fn new(collection: Uuid, meta: Option<Value<'_>>) -> SourceKey {
        let mut doc = DocBuilder::new();
        doc.append_some("", meta);
        SourceKey { collection, meta: doc.finish().view().element_bytes().into() }
    }

    fn size_bytes(&self) -> usize {
        self.meta.len()
    }

    fn closed(&self, id: ObjectId) -> Closed {
        Closed { collection: self.collection, id }
    }
}

/// A bucket that a measurement may go into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Candidate {
    /// This bucket, open or archived.
    Known {
        /// Its `_id`.
        id: ObjectId,
        /// When it starts.
        start_ms: i64,
        /// It was stored already: if it is not there, somebody removed it.
        is_stored: bool,
    },
    /// None is known; a query may find one.
    Search,
    /// A new one.
    Begin,
}

/// A bucket that nothing more goes into: it is to be compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed {
    /// Whose buckets these are.
    pub collection: Uuid,
    /// Its `_id`.
    pub id: ObjectId,
}

/// A bucket as it was stored last, so that who adds to it need not read it anew. It serves only while the stored bucket is still the
/// same, byte by byte.
#[derive(Debug)]
pub struct Kept {
    /// The bucket.
    pub bucket: Bucket,
    /// What was stored.
    pub stored: Doc,
}

impl Kept {
    fn size_bytes(&self) -> usize {
        self.bucket.memory_bytes() + self.stored.view().size_bytes()
    }
}

#[derive(Debug)]
struct Open {
    id: ObjectId,
    start_ms: i64,
    is_stored: bool,
    kept: Option<Box<Kept>>,
}

impl Open {
    fn new(id: ObjectId, start_ms: i64, is_stored: bool) -> Open {
        Open { id, start_ms, is_stored, kept: None }
    }
}

/// What is known of a source.
#[derive(Debug, Default)]
struct Source {
    open: Option<Open>,
    archived: BTreeMap<i64, ObjectId>,
    /// Its bucket was full just now: the next one is not opened because there was none.
    is_rolling: bool,
    /// Its place in the order of use.
    used: u64,
}

/// Roughly what an entry takes beside its key.
const SOURCE_BYTES: usize = 240;
const ARCHIVED_BYTES: usize = 40;
/// At most so many are given up for one that comes.
const EXPIRED_PER_ATTEMPT: usize = 3;
/// The counters of so many names are remembered.
const NAMED_MAX: usize = 10_000;

#[derive(Debug, Default)]
struct State {
    sources: HashMap<SourceKey, Source>,
    /// Sources by their last use, the earliest first.
    order: BTreeMap<u64, SourceKey>,
    clock: u64,
    size_bytes: usize,
    /// What was kept since nothing was: the memory of all kept buckets, or more.
    kept_bytes: usize,
    statistics: HashMap<Uuid, Arc<Statistics>>,
    /// The same by the names of the collections, those that are gone too.
    named: HashMap<Box<str>, Arc<Statistics>>,
}

/// The buckets in use, of all collections of a node.
#[derive(Debug, Default)]
pub struct BucketCatalog {
    state: Mutex<State>,
    total: Statistics,
}

impl BucketCatalog {
    /// The bucket for a measurement.
    pub fn candidate(&self, key: &SourceKey, time_ms: i64, options: &TimeseriesOptions) -> Candidate {
        let mut state = self.state.lock();
        state.touch(key);
        let Some(source) = state.sources.get(key) else { return Candidate::Search };
        if let Some(open) = &source.open
            && options.covers(open.start_ms, time_ms)
        {
            return Candidate::Known { id: open.id, start_ms: open.start_ms, is_stored: open.is_stored };
        }
        if let Some((start_ms, id)) = source.archived.range(..=time_ms).next_back()
            && options.covers(*start_ms, time_ms)
        {
            return Candidate::Known { id: *id, start_ms: *start_ms, is_stored: true };
        }
        match &source.open {
            Some(open) if open.start_ms <= time_ms => Candidate::Begin,
            _ => Candidate::Search,
        }
    }

    /// Opens a new bucket with this id, unless another writer has just opened one that serves and that will do. Gives the bucket to
    /// use, when it starts, and whether it was stored.
    pub fn begin(
        &self,
        key: &SourceKey,
        id: ObjectId,
        time_ms: i64,
        options: &TimeseriesOptions,
        must_be_new: bool,
        closed: &mut Vec<Closed>,
    ) -> (ObjectId, i64, bool) {
        let start_ms = options.rounded_time(time_ms);
        let mut state = self.state.lock();
        let counts = state.statistics_of(key.collection);
        state.touch(key);
        let source = state.entry(key);
        let (mut added_bytes, is_first) = (0, !std::mem::take(&mut source.is_rolling) && source.open.is_none());
        match source.open.take() {
            Some(open) if options.covers(open.start_ms, time_ms) && !must_be_new => {
                let known = (open.id, open.start_ms, open.is_stored);
                source.open = Some(open);
                return known;
            }
            Some(open) if time_ms < open.start_ms => {
                self.count(&counts, |counts| &counts.archived_due_to_time_backward);
                match source.archived.entry(open.start_ms) {
                    std::collections::btree_map::Entry::Vacant(entry) => {
                        entry.insert(open.id);
                        added_bytes = ARCHIVED_BYTES;
                    }
                    std::collections::btree_map::Entry::Occupied(_) => closed.push(key.closed(open.id)),
                }
            }
            Some(open) => {
                if !options.covers(open.start_ms, time_ms) {
                    self.count(&counts, |counts| &counts.closed_due_to_time_forward);
                }
                closed.push(key.closed(open.id));
            }
            None => {}
        }
        source.open = Some(Open::new(id, start_ms, false));
        state.size_bytes += added_bytes;
        if is_first {
            self.count(&counts, |counts| &counts.opened_due_to_metadata);
        }
        (id, start_ms, false)
    }

    /// Takes up a stored bucket; the one that was open is closed.
    pub fn reopen(&self, key: &SourceKey, id: ObjectId, start_ms: i64, closed: &mut Vec<Closed>) {
        let mut state = self.state.lock();
        let counts = state.statistics_of(key.collection);
        state.touch(key);
        let source = state.entry(key);
        if source.open.as_ref().is_some_and(|open| open.id == id) {
            return;
        }
        let was_archived = source.archived.get(&start_ms) == Some(&id);
        if was_archived {
            source.archived.remove(&start_ms);
        }
        if let Some(open) = source.open.replace(Open::new(id, start_ms, true)) {
            self.count(&counts, |counts| &counts.closed_due_to_reopening);
            closed.push(key.closed(open.id));
        }
        if was_archived {
            state.size_bytes = state.size_bytes.saturating_sub(ARCHIVED_BYTES);
        }
        self.count(&counts, |counts| &counts.reopened);
    }

    /// The bucket was stored with so many more measurements.
    pub fn stored(&self, key: &SourceKey, id: ObjectId, is_new: bool, measurement_count: u64) {
        let mut state = self.state.lock();
        let counts = state.statistics_of(key.collection);
        if let Some(open) = state.sources.get_mut(key).and_then(|source| source.open.as_mut())
            && open.id == id
        {
            open.is_stored = true;
        }
        drop(state);
        self.count(&counts, |counts| if is_new { &counts.bucket_inserts } else { &counts.bucket_updates });
        self.count(&counts, |counts| &counts.commits);
        for counts in [&*counts, &self.total] {
            counts.measurements_committed.fetch_add(measurement_count, std::sync::atomic::Ordering::Relaxed);
        }
    }

    /// The open bucket as it was stored last, taken out: who adds to it gives it back.
    pub fn take_kept(&self, key: &SourceKey, id: ObjectId) -> Option<Box<Kept>> {
        let mut state = self.state.lock();
        let open = state.sources.get_mut(key)?.open.as_mut().filter(|open| open.id == id)?;
        let kept = open.kept.take()?;
        state.kept_bytes = state.kept_bytes.saturating_sub(kept.size_bytes());
        Some(kept)
    }

    /// Keeps the bucket as it was stored just now, if it is still open. Where all that is kept would take more memory than this, what
    /// was kept so far is dropped.
    pub fn keep(&self, key: &SourceKey, kept: Box<Kept>, kept_bytes_max: usize) {
        let size_bytes = kept.size_bytes();
        let mut state = self.state.lock();
        if state.kept_bytes + size_bytes > kept_bytes_max {
            state.sources.values_mut().filter_map(|source| source.open.as_mut()).for_each(|open| open.kept = None);
            state.kept_bytes = 0;
        }
        let open = state.sources.get_mut(key).and_then(|source| source.open.as_mut());
        if let Some(open) = open.filter(|open| open.id == kept.bucket.id && size_bytes <= kept_bytes_max) {
            open.kept = Some(kept);
            state.kept_bytes += size_bytes;
        }
    }

    /// The bucket is full.
    pub fn full(&self, key: &SourceKey, id: ObjectId, reason: Rollover, closed: &mut Vec<Closed>) {
        let counts = self.statistics(key.collection);
        self.count(&counts, |counts| match reason {
            Rollover::Count => &counts.closed_due_to_count,
            Rollover::Size => &counts.closed_due_to_size,
            Rollover::CachePressure => &counts.closed_due_to_cache_pressure,
            Rollover::SchemaChange => &counts.closed_due_to_schema_change,
            Rollover::TimeForward => &counts.closed_due_to_time_forward,
            Rollover::TimeBackward => &counts.closed_due_to_time_backward,
        });
        self.forget(key, id);
        if let Some(source) = self.state.lock().sources.get_mut(key) {
            source.is_rolling = true;
        }
        closed.push(key.closed(id));
    }

    /// The bucket is not what it was: it is not used again.
    pub fn forget(&self, key: &SourceKey, id: ObjectId) {
        let mut state = self.state.lock();
        let Some(source) = state.sources.get_mut(key) else { return };
        if source.open.as_ref().is_some_and(|open| open.id == id) {
            source.open = None;
        }
        let before = source.archived.len();
        source.archived.retain(|_, archived| *archived != id);
        let removed = before - source.archived.len();
        state.size_bytes = state.size_bytes.saturating_sub(removed * ARCHIVED_BYTES);
    }

    /// The collection is gone, or its buckets were changed all at once.
    pub fn forget_collection(&self, collection: Uuid) {
        let mut state = self.state.lock();
        let keys: Vec<SourceKey> = state.sources.keys().filter(|key| key.collection == collection).cloned().collect();
        keys.iter().for_each(|key| state.remove(key));
        state.statistics.remove(&collection);
    }

    /// Gives up buckets while more memory is taken than this.
    pub fn expire(&self, size_bytes_max: usize, closed: &mut Vec<Closed>) {
        let mut state = self.state.lock();
        for _ in 0..EXPIRED_PER_ATTEMPT {
            if state.size_bytes <= size_bytes_max {
                return;
            }
            let Some(key) = state.order.first_key_value().map(|(_, key)| key.clone()) else { return };
            let counts = state.statistics_of(key.collection);
            let Some(source) = state.sources.get_mut(&key) else { return };
            if let Some(open) = source.open.take_if(|open| open.is_stored) {
                self.count(&counts, |counts| &counts.closed_due_to_memory_threshold);
                closed.push(key.closed(open.id));
            }
            state.remove(&key);
        }
    }

    /// How many buckets are in use.
    pub fn active_count(&self) -> usize {
        self.state.lock().sources.len()
    }

    /// The counters of a collection go on where those of the last collection of this name ended.
    pub fn name_statistics(&self, collection: Uuid, name: &str) {
        let mut state = self.state.lock();
        if state.statistics.contains_key(&collection) {
            return;
        }
        if state.named.len() >= NAMED_MAX {
            state.named.clear();
        }
        let known = state.named.get(name).cloned().unwrap_or_default();
        state.named.insert(name.into(), Arc::clone(&known));
        state.statistics.insert(collection, known);
    }

    /// The counters of a collection.
    pub fn statistics(&self, collection: Uuid) -> Arc<Statistics> {
        self.state.lock().statistics_of(collection)
    }

    /// A bucket was compressed; nothing is told of its size if it could not be.
    pub fn compressed(&self, collection: Uuid, sizes_bytes: Option<(usize, usize)>) {
        let counts = self.statistics(collection);
        for counts in [&*counts, &self.total] {
            let add = |counter: &AtomicU64, number: usize| {
                counter.fetch_add(number as u64, std::sync::atomic::Ordering::Relaxed);
            };
            match sizes_bytes {
                Some((before, after)) => {
                    add(&counts.bytes_uncompressed, before);
                    add(&counts.bytes_compressed, after);
                    add(&counts.compressed, 1);
                }
                None => add(&counts.uncompressed, 1),
            }
        }
    }

    /// Counts one for a collection and for all.
    pub fn tell(&self, collection: Uuid, which: impl Fn(&Statistics) -> &AtomicU64) {
        let counts = self.statistics(collection);
        self.count(&counts, which);
    }

    fn count(&self, counts: &Statistics, which: impl Fn(&Statistics) -> &AtomicU64) {
        count(which(counts));
        count(which(&self.total));
    }

    /// Appends the section of `serverStatus`; nothing before the first measurement.
    pub fn append_status(&self, out: &mut DocBuilder) {
        let state = self.state.lock();
        if state.statistics.is_empty() {
            return;
        }
        let open = state.sources.values().filter(|source| source.open.is_some()).count();
        let archived: usize = state.sources.values().map(|source| source.archived.len()).sum();
        out.append("numBuckets", (open + archived) as i64);
        out.append("numOpenBuckets", open as i64);
        out.append("numIdleBuckets", open as i64);
        out.append("numArchivedBuckets", archived as i64);
        out.append("memoryUsage", (state.size_bytes + state.kept_bytes) as i64);
        drop(state);
        self.total.append_to(out);
    }
}

impl State {
    fn statistics_of(&mut self, collection: Uuid) -> Arc<Statistics> {
        Arc::clone(self.statistics.entry(collection).or_default())
    }

    fn entry(&mut self, key: &SourceKey) -> &mut Source {
        if !self.sources.contains_key(key) {
            self.size_bytes += key.size_bytes() * 2 + SOURCE_BYTES;
            self.clock += 1;
            self.order.insert(self.clock, key.clone());
        }
        let used = self.clock;
        self.sources.entry(key.clone()).or_insert_with(|| Source { used, ..Source::default() })
    }

    /// The source was used just now.
    fn touch(&mut self, key: &SourceKey) {
        let Some(source) = self.sources.get_mut(key) else { return };
        self.clock += 1;
        if let Some(key) = self.order.remove(&source.used) {
            self.order.insert(self.clock, key);
        }
        source.used = self.clock;
    }

    fn remove(&mut self, key: &SourceKey) {
        let Some(source) = self.sources.remove(key) else { return };
        self.order.remove(&source.used);
        let size_bytes = key.size_bytes() * 2 + SOURCE_BYTES + source.archived.len() * ARCHIVED_BYTES;
        self.size_bytes = self.size_bytes.saturating_sub(size_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::doc;

    fn bucket_id(start_ms: i64, number: u64) -> ObjectId {
        crate::bucket_id(start_ms, ObjectId::from_parts(0, [0; 5], number as u32))
    }

    fn options() -> TimeseriesOptions {
        TimeseriesOptions::parse(doc! { "timeField": "t", "metaField": "m" }.view()).unwrap().completed().unwrap()
    }

    fn key(meta: i32) -> SourceKey {
        SourceKey::new(Uuid::from_bytes([1; 16]), Some(Value::Int32(meta)))
    }

    #[test]
    fn x29_measurements_out_of_order_find_archived_buckets() {
        let (catalog, options, mut closed) = (BucketCatalog::default(), options(), Vec::new());
        let hour = 3_600_000;
        assert_eq!(catalog.candidate(&key(1), 5 * hour, &options), Candidate::Search);
        let (late, start_ms, _) =
            catalog.begin(&key(1), bucket_id(5 * hour, 1), 5 * hour, &options, false, &mut closed);
        catalog.stored(&key(1), late, true, 1);
        assert_eq!(catalog.candidate(&key(1), 2 * hour, &options), Candidate::Search);
        let (early, ..) = catalog.begin(&key(1), bucket_id(2 * hour, 2), 2 * hour, &options, false, &mut closed);
        catalog.stored(&key(1), early, true, 1);
        assert_eq!(closed, []);
        let known = Candidate::Known { id: late, start_ms, is_stored: true };
        assert_eq!(catalog.candidate(&key(1), 5 * hour + 1000, &options), known);
        catalog.reopen(&key(1), late, start_ms, &mut closed);
        assert_eq!(closed, [key(1).closed(early)]);
        assert_eq!(catalog.candidate(&key(1), 9 * hour, &options), Candidate::Begin);
    }

    #[test]
    fn x29_two_writers_open_one_bucket() {
        let (catalog, options, mut closed) = (BucketCatalog::default(), options(), Vec::new());
        let first = catalog.begin(&key(1), bucket_id(0, 1), 0, &options, false, &mut closed);
        let second = catalog.begin(&key(1), bucket_id(0, 2), 1000, &options, false, &mut closed);
        assert_eq!(first, second);
    }

    #[test]
    fn x29_counters_belong_to_a_name_and_full_buckets_open_no_source() {
        let (catalog, options, mut closed) = (BucketCatalog::default(), options(), Vec::new());
        let first = Uuid::from_bytes([1; 16]);
        catalog.name_statistics(first, "d.system.buckets.s");
        let opened =
            |uuid: Uuid| catalog.statistics(uuid).opened_due_to_metadata.load(std::sync::atomic::Ordering::Relaxed);
        let (id, ..) = catalog.begin(&key(1), bucket_id(0, 1), 0, &options, false, &mut closed);
        catalog.full(&key(1), id, Rollover::Size, &mut closed);
        catalog.begin(&key(1), bucket_id(0, 2), 0, &options, false, &mut closed);
        assert_eq!(opened(first), 1);
        catalog.forget_collection(first);
        let second = Uuid::from_bytes([2; 16]);
        catalog.name_statistics(second, "d.system.buckets.s");
        assert_eq!(opened(second), 1);
        assert_eq!(opened(Uuid::from_bytes([3; 16])), 0);
    }

    #[test]
    fn x29_the_catalog_forgets_what_was_used_longest_ago() {
        let (catalog, options, mut closed) = (BucketCatalog::default(), options(), Vec::new());
        for meta in 0..1000 {
            let (id, ..) = catalog.begin(&key(meta), bucket_id(0, meta as u64), 0, &options, false, &mut closed);
            catalog.stored(&key(meta), id, true, 1);
            catalog.candidate(&key(0), 0, &options);
            catalog.expire(10_000, &mut closed);
        }
        assert!(catalog.state.lock().size_bytes <= 10_300, "{}", catalog.state.lock().size_bytes);
        assert!(matches!(catalog.candidate(&key(0), 0, &options), Candidate::Known { .. }));
        assert_eq!(catalog.candidate(&key(1), 0, &options), Candidate::Search);
        catalog.forget_collection(Uuid::from_bytes([1; 16]));
        assert_eq!((catalog.active_count(), catalog.state.lock().size_bytes), (0, 0));
    }
}
