//! What was made of descriptors, found by the descriptor.
//!
//! A descriptor is shared by all versions of its index and replaced when it changes, so its address names what it says. An
//! entry keeps a weak pointer to its descriptor: as long as that exists nothing else can get the address. Entries whose
//! descriptor is gone are swept out when the map has doubled.
//!
//! One lock, held for a look-up; nothing else is called under it.

use super::IndexAccess;
use foldhash::fast::RandomState;
use pando_catalog::IndexDescriptor;
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::{Arc, Weak};

/// A map never gets swept below this size.
const SWEEP_SIZE_MIN: usize = 64;

#[derive(Default)]
pub(super) struct AccessCache {
    entries: RwLock<Entries>,
}

#[derive(Default)]
struct Entries {
    by_address: HashMap<usize, (Weak<IndexDescriptor>, Arc<IndexAccess>), RandomState>,
    sweep_size: usize,
}

impl AccessCache {
    pub(super) fn get(&self, descriptor: &Arc<IndexDescriptor>) -> Option<Arc<IndexAccess>> {
        let entries = self.entries.read();
        entries.by_address.get(&address(descriptor)).map(|(_, access)| Arc::clone(access))
    }

    pub(super) fn insert(&self, descriptor: &Arc<IndexDescriptor>, access: &Arc<IndexAccess>) {
        let mut entries = self.entries.write();
        let entry = (Arc::downgrade(descriptor), Arc::clone(access));
        entries.by_address.insert(address(descriptor), entry);
        entries.sweep();
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.read().by_address.len()
    }
}

impl Entries {
    fn sweep(&mut self) {
        if self.by_address.len() <= self.sweep_size.max(SWEEP_SIZE_MIN) {
            return;
        }
        self.by_address.retain(|_, (descriptor, _)| descriptor.strong_count() > 0);
        self.sweep_size = self.by_address.len() * 2;
    }
}

fn address(descriptor: &Arc<IndexDescriptor>) -> usize {
    Arc::as_ptr(descriptor).addr()
}
