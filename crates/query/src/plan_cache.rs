//! Plans that won, by the shape of their queries.
//!
//! A collection's cache is as good as its indexes are the same: it is thrown away when they are not. A plan is remembered as its
//! signature, not as a tree: a new query of the same shape is planned with its own constants, and the plan with that signature is
//! run without a trial. An entry becomes active when a second query has found the same plan no worse.
//!
//! Lock order: the one mutex here is a leaf.

use pando_base::Uuid;
use pando_catalog::Collection;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// Shapes that a collection's cache remembers.
const ENTRY_COUNT_MAX: usize = 5000;
/// An entry that took more work than expected is believed to need this much more.
const GROWTH: u64 = 2;

/// What is remembered of a shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedPlan {
    /// The plan that won.
    pub signature: String,
    /// How much work that took.
    pub works: u64,
    /// It is used without a trial.
    pub is_active: bool,
}

#[derive(Default)]
struct CollectionCache {
    /// What indexes it was made with.
    indexes: u64,
    entries: HashMap<String, CachedPlan>,
}

/// The caches of all collections.
#[derive(Clone, Default)]
pub struct PlanCache {
    collections: Arc<Mutex<HashMap<Uuid, CollectionCache>>>,
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
    pub fn put(&self, uuid: Uuid, indexes: u64, shape: &str, signature: String, works: u64) {
        let mut caches = self.collections.lock();
        let cache = caches.entry(uuid).or_default();
        if cache.indexes != indexes {
            *cache = CollectionCache { indexes, entries: HashMap::new() };
        }
        let entry = match cache.entries.get(shape) {
            Some(known) if !known.is_active && works <= known.works => CachedPlan { signature, works, is_active: true },
            Some(known) if !known.is_active => {
                CachedPlan { signature, works: known.works.saturating_mul(GROWTH).max(1), is_active: false }
            }
            // An active plan that lost its probation starts over.
            _ => CachedPlan { signature, works, is_active: false },
        };
        if cache.entries.len() >= ENTRY_COUNT_MAX && !cache.entries.contains_key(shape) {
            cache.entries.clear();
        }
        cache.entries.insert(shape.to_owned(), entry);
    }

    /// Forgets a collection's plans.
    pub fn clear(&self, uuid: &Uuid) {
        self.collections.lock().remove(uuid);
    }

    /// Forgets the plan of a shape.
    pub fn remove(&self, uuid: &Uuid, shape: &str) {
        if let Some(cache) = self.collections.lock().get_mut(uuid) {
            cache.entries.remove(shape);
        }
    }

    /// What is remembered of a collection.
    pub fn entries(&self, uuid: &Uuid) -> Vec<(String, CachedPlan)> {
        let caches = self.collections.lock();
        let entries = caches.get(uuid).map(|cache| cache.entries.iter());
        entries.into_iter().flatten().map(|(shape, entry)| (shape.clone(), entry.clone())).collect()
    }
}
