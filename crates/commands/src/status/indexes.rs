//! `indexBuilds` and `indexStats`: what was built, and which kinds of indexes there are and are used.

use crate::Invocation;
use pando_catalog::{Index, IndexKind};
use pando_doc::DocBuilder;
use std::collections::BTreeMap;

/// The kinds and options that are told of, whether there is such an index or not.
const FEATURES: [&str; 17] = [
    "2d",
    "2dsphere",
    "2dsphere_bucket",
    "collation",
    "columnstore",
    "compound",
    "hashed",
    "id",
    "normal",
    "partial",
    "prepareUnique",
    "single",
    "sparse",
    "text",
    "ttl",
    "unique",
    "wildcard",
];

/// How far builds came since the start.
pub(super) fn builds(invocation: &Invocation, section: &mut DocBuilder) {
    let Some(data) = &invocation.node.data else { return };
    let counters = &data.index_builds.counters;
    section.append("total", counters.total.get() as i64);
    section.append("killedDueToInsufficientDiskSpace", counters.out_of_disk_space.get() as i64);
    section.append("failedDueToDataCorruption", counters.data_corruption.get() as i64);
    section.document("phases", |phases| {
        phases.append("scanCollection", counters.scans.get() as i64);
        phases.append("drainSideWritesTable", counters.first_drains.get() as i64);
        phases.append("drainSideWritesTablePreCommit", counters.second_drains.get() as i64);
        phases.append("waitForCommitQuorum", counters.quorum_waits.get() as i64);
        phases.append("drainSideWritesTableOnCommit", counters.last_drains.get() as i64);
        // The name is spelt as MongoDB spells it.
        phases.append("processConstraintsViolatonTableOnCommit", counters.constraint_checks.get() as i64);
        phases.append("commit", counters.commits.get() as i64);
        phases.append("lastCommittedMillis", counters.last_committed_ms() as i64);
    });
}

/// What the sorters of builds did since the start.
pub(super) fn sorting(invocation: &Invocation, section: &mut DocBuilder) {
    let Some(data) = &invocation.node.data else { return };
    let sorting = &data.index_builds.counters.sorting;
    section.append("count", sorting.indexes.get() as i64);
    section.append("resumed", sorting.resumed.get() as i64);
    section.append("spilledRanges", sorting.spills.get() as i64);
    section.append("bytesSpilledUncompressed", sorting.spilled_memory_bytes.get() as i64);
    section.append("bytesSpilled", sorting.spilled_storage_bytes.get() as i64);
    section.append("numSorted", sorting.entries.get() as i64);
    section.append("bytesSorted", sorting.data_bytes.get() as i64);
    section.append("memUsage", sorting.memory_bytes() as i64);
}

/// The indexes of clients by what they are.
pub(super) fn statistics(invocation: &Invocation, section: &mut DocBuilder) {
    let Some(data) = &invocation.node.data else { return };
    let mut features: BTreeMap<&'static str, (i64, i64)> = FEATURES.iter().map(|name| (*name, (0, 0))).collect();
    let (latest, mut count) = (data.catalog.latest(), 0_i64);
    let is_own = |database: &str| matches!(database, "admin" | "config" | "local");
    for collection in latest.all_collections().filter(|collection| !is_own(collection.namespace.database())) {
        for index in &collection.indexes {
            count += 1;
            let accesses = i64::try_from(index.usage.get()).unwrap_or(i64::MAX);
            for feature in features_of(index) {
                let told = features.entry(feature).or_default();
                *told = (told.0 + 1, told.1.saturating_add(accesses));
            }
        }
    }
    section.append("count", count);
    section.document("features", |all| {
        for (name, (count, accesses)) in &features {
            all.document(*name, |feature| {
                feature.append("count", *count);
                feature.append("accesses", *accesses);
            });
        }
    });
}

fn features_of(index: &Index) -> impl Iterator<Item = &'static str> {
    let descriptor = &index.descriptor;
    let kind = match descriptor.kind {
        _ if descriptor.is_id_index() => "id",
        IndexKind::Text => "text",
        IndexKind::Hashed => "hashed",
        IndexKind::Wildcard => "wildcard",
        IndexKind::TwoD => "2d",
        IndexKind::TwoDSphere => "2dsphere",
        IndexKind::TwoDSphereBucket => "2dsphere_bucket",
        IndexKind::Btree => "normal",
    };
    let has_shape = !matches!(kind, "id" | "text");
    let is_compound = descriptor.field_count() > 1;
    let options = [
        (has_shape && is_compound, "compound"),
        (has_shape && !is_compound, "single"),
        (descriptor.collation.is_some(), "collation"),
        (descriptor.partial_filter.is_some(), "partial"),
        (descriptor.prepare_unique, "prepareUnique"),
        (descriptor.sparse, "sparse"),
        (descriptor.expire_after_seconds.is_some(), "ttl"),
        (descriptor.unique && kind != "id", "unique"),
    ];
    std::iter::once(kind).chain(options.into_iter().filter(|(has, _)| *has).map(|(_, name)| name))
}
