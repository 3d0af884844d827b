//! Who holds the memory of the process: `mem` as tools know it, and `memory` by owner.
//!
//! What an owner holds is reckoned from what it counts itself (memtable, cache, log, plans) or from what it lists (catalog,
//! sessions, tables of the engine: those of dropped collections stay as long as somebody may read at a time before the drop). What nobody accounts for is everything else that is in memory: buffers of connections, operations under way,
//! code that keeps no count, and what the allocator keeps for later.

use crate::{Data, Invocation};
use pando_catalog::{Collection, Index};
use pando_doc::DocBuilder;

/// `mem`.
pub(super) fn compatible(invocation: &Invocation, section: &mut DocBuilder) {
    let usage = invocation.node.machine.usage();
    section.append("bits", usize::BITS as i32);
    section.append("resident", (usage.resident_bytes >> 20) as i32);
    section.append("virtual", (usage.virtual_bytes >> 20) as i32);
    section.append("supported", true);
}

/// `memory`.
pub(super) fn by_owner(invocation: &Invocation, section: &mut DocBuilder) {
    let usage = invocation.node.machine.usage();
    let mut accounted = 0_i64;
    if let Some(data) = &invocation.node.data {
        section.document("owners", |owners| {
            for (name, bytes) in owned(data) {
                owners.append(name, bytes);
                accounted = accounted.saturating_add(bytes);
            }
        });
    }
    let whole = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
    section.append("accountedBytes", accounted);
    section.append("anonymousBytes", whole(usage.anonymous_bytes));
    section.append("unaccountedBytes", whole(usage.anonymous_bytes).saturating_sub(accounted).max(0));
    section.document("allocator", |allocator| allocator.append("committedBytes", whole(usage.heap_bytes)));
}

fn owned(data: &Data) -> [(&'static str, i64); 7] {
    let statistics = data.services.engine.statistics();
    let whole = |bytes: usize| i64::try_from(bytes).unwrap_or(i64::MAX);
    [
        ("memtableBytes", statistics.value("overlay.bytes")),
        ("cacheBytes", statistics.value("cache.used_bytes")),
        ("tableBytes", statistics.value("tables.memory_bytes")),
        ("logBytes", statistics.value("log.buffered_bytes").saturating_add(statistics.value("log.tail_memory_bytes"))),
        ("catalogBytes", whole(data.catalog.latest().all_collections().map(|each| collection_bytes(each)).sum())),
        ("sessionBytes", whole(data.sessions.size_bytes())),
        ("planBytes", whole(data.query.plan_cache.size_bytes())),
    ]
}

/// A collection with its options and indexes.
fn collection_bytes(collection: &Collection) -> usize {
    let indexes: usize = collection.indexes.iter().map(|index| index_bytes(index)).sum();
    size_of_val(collection) + size_of_val(&*collection.options) + collection.namespace.as_str().len() + indexes
}

/// An index with its specification, which stands in it twice: whole and in parts.
fn index_bytes(index: &Index) -> usize {
    size_of_val(index) + 2 * index.descriptor.specification.size_bytes()
}
