//! The bulk load: from sorters to the first runs of the indexes.
//!
//! An index is loaded as a whole or not at all: until the last key nothing of it is visible, and an interrupted load begins
//! anew from the sorter's ranges. Keys that are in memory alone are lost to the sorter once they are being loaded; such a load,
//! which is bounded by the build's memory, is finished before the build is put down ([`Builder::settle`]).

use crate::builder::{Builder, Phase, TypeBits};
use pando_base::record_id::suffix;
use pando_base::{Error, Result};
use pando_catalog::Index;
use pando_index::{Key, duplicate_key_error};
use pando_operation::{Operation, write_conflict_retry_blocking};
use pando_sorter::Sorted;
use pando_storage::{Insertion, SortedDataLoader};
use std::sync::Arc;

/// Keys that are loaded between two looks at whether to stop, when a load is finished in a hurry.
const SETTLE_KEYS: usize = 10_000;

/// An index whose load has begun.
pub(crate) struct Loading {
    place: usize,
    sorted: Sorted<TypeBits>,
    loaded: Loaded,
}

/// What was loaded of an index so far.
struct Loaded {
    loader: SortedDataLoader,
    previous: Option<Vec<u8>>,
    count: u64,
}

impl Builder {
    /// Loads some keys; true when all indexes are loaded.
    pub fn load_batch(&mut self, operation: &mut Operation, count_max: usize) -> Result<bool> {
        let Some(mut loading) = self.take_loading()? else {
            self.phase = Phase::DrainWrites;
            return Ok(true);
        };
        let (mut duplicates, mut has_more) = (Vec::new(), true);
        for _ in 0..count_max {
            let Some((entry, TypeBits(type_bits))) = loading.sorted.next_entry()? else {
                has_more = false;
                break;
            };
            self.load_key(
                loading.place,
                &mut loading.loaded,
                Key { bytes: entry, type_bits: &type_bits },
                &mut duplicates,
            )?;
        }
        self.note_duplicates(operation, loading.place, &duplicates)?;
        if has_more {
            *self.loading.get_mut() = Some(loading);
            return Ok(false);
        }
        let Loading { place, loaded: Loaded { loader, count, .. }, .. } = loading;
        loader.finish()?;
        if let Some(building) = self.indexes.get_mut(place) {
            building.sorter = None;
            building.keys_loaded = count;
        }
        Ok(false)
    }

    /// How many keys the scan has found.
    pub(crate) fn key_count(&self) -> u64 {
        let sorters = self.indexes.iter().filter_map(|building| building.sorter.as_ref());
        sorters.map(|sorter| sorter.statistics().entries).sum()
    }

    /// How many of them are loaded.
    pub(crate) fn keys_loaded(&mut self) -> u64 {
        let loading = self.loading.get_mut().as_ref().map_or(0, |loading| loading.loaded.count);
        self.indexes.iter().map(|building| building.keys_loaded).sum::<u64>() + loading
    }

    /// The index whose turn it is, and how many of its keys are loaded.
    pub(crate) fn loading_index(&mut self) -> Option<(Arc<Index>, u64)> {
        let (place, count) = match self.loading.get_mut() {
            Some(loading) => (loading.place, loading.loaded.count),
            None => (self.indexes.iter().position(|building| building.sorter.is_some())?, 0),
        };
        self.indexes.get(place).map(|building| (Arc::clone(&building.index), count))
    }

    /// The load that was begun, or that of the next index.
    fn take_loading(&mut self) -> Result<Option<Loading>> {
        if let Some(loading) = self.loading.get_mut().take() {
            return Ok(Some(loading));
        }
        let next = self.indexes.iter_mut().enumerate().find(|(_, building)| building.sorter.is_some());
        let Some((place, building)) = next else { return Ok(None) };
        let Some(sorter) = &mut building.sorter else { return Ok(None) };
        let (sorted, loader) = (sorter.finish()?, building.index.data.bulk_load(true)?);
        Ok(Some(Loading { place, sorted, loaded: Loaded { loader, previous: None, count: 0 } }))
    }

    fn load_key(
        &self,
        place: usize,
        loaded: &mut Loaded,
        Key { bytes: entry, type_bits }: Key<'_>,
        duplicates: &mut Vec<(Vec<u8>, Vec<u8>)>,
    ) -> Result<()> {
        let damaged = || Error::internal("a sorter gave back what is no index entry");
        let (bytes, record_id) = suffix::split(self.kind, entry).ok_or_else(damaged)?;
        let building = self.indexes.get(place).ok_or_else(damaged)?;
        let inserted = loaded.loader.add(bytes, &record_id, type_bits)?;
        let descriptor = &building.index.descriptor;
        let is_unique = descriptor.unique || descriptor.is_id_index();
        if is_unique && loaded.previous.as_deref() == Some(bytes) && inserted != Insertion::Present {
            if building.interceptor.is_none() {
                let (key, ordering) = (Key { bytes, type_bits }, building.access.generator().ordering());
                return Err(duplicate_key_error(&self.namespace, descriptor, key, ordering));
            }
            duplicates.push((bytes.to_vec(), type_bits.to_vec()));
        }
        if is_unique {
            let previous = loaded.previous.get_or_insert_default();
            previous.clear();
            previous.extend_from_slice(bytes);
        }
        loaded.count += 1;
        Ok(())
    }

    fn note_duplicates(
        &self,
        operation: &mut Operation,
        place: usize,
        duplicates: &[(Vec<u8>, Vec<u8>)],
    ) -> Result<()> {
        let interceptor = self.indexes.get(place).and_then(|building| building.interceptor.as_ref());
        let Some(interceptor) = interceptor.filter(|_| !duplicates.is_empty()) else { return Ok(()) };
        write_conflict_retry_blocking(operation, "createIndexes", &self.namespace, |operation| {
            operation.in_unit_of_work(|operation| {
                for (bytes, type_bits) in duplicates {
                    interceptor.note_duplicate(&mut operation.recovery_unit, Key { bytes, type_bits })?;
                }
                Ok(())
            })
        })
    }

    /// Makes what is in memory alone fit to be put down: a load from memory is finished, one from disk is forgotten.
    pub(crate) fn settle(&mut self, operation: &mut Operation) -> Result<()> {
        while self.loading.get_mut().as_ref().is_some_and(|loading| loading.sorted.is_in_memory()) {
            self.load_batch(operation, SETTLE_KEYS)?;
        }
        *self.loading.get_mut() = None;
        Ok(())
    }
}
