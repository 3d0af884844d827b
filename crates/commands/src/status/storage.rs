//! The sections about the engine: what it can do, what it holds, who is let in.
//!
//! Tools know MongoDB's engine by the names of its figures. Those that have a meaning here are given under these names in
//! `wiredTiger`; everything that the engine itself counts is in `pando`.

use crate::Invocation;
use pando_doc::{DocBuilder, Value};
use pando_locks::{PoolStats, QueueStats};
use pando_storage::Statistic;

/// `storageEngine`. The name is that of the engine whose options and data commands are understood.
pub(super) fn storage_engine(invocation: &Invocation, section: &mut DocBuilder) {
    let Some(data) = &invocation.node.data else { return };
    let pending = data.catalog.reaper().pending().len();
    section.append("name", "wiredTiger");
    section.append("supportsCommittedReads", true);
    let needed = data.services.engine.timestamps().checkpoint;
    section.append("oldestRequiredTimestampForCrashRecovery", Value::Timestamp(needed));
    section.append("supportsPendingDrops", true);
    section.append("dropPendingIdents", pending as i64);
    section.append("supportsSnapshotReadConcern", true);
    section.append("readOnly", invocation.node.options.is_read_only);
    section.append("persistent", true);
    section.append("backupCursorOpen", data.backups.is_cursor_open());
}

/// `catalogStats`.
pub(super) fn catalog(invocation: &Invocation, section: &mut DocBuilder) {
    let Some(data) = &invocation.node.data else { return };
    let latest = data.catalog.latest();
    let (mut user, mut internal, mut capped, mut clustered) = (0_i32, 0_i32, 0_i32, 0_i32);
    let mut system_profiles = 0_i32;
    for collection in latest.all_collections() {
        let is_internal = matches!(collection.namespace.database(), "admin" | "config" | "local");
        *(if is_internal { &mut internal } else { &mut user }) += 1;
        capped += i32::from(!is_internal && collection.options.capped);
        clustered += i32::from(!is_internal && collection.options.is_clustered());
        system_profiles += i32::from(collection.namespace.is_system_profile());
    }
    let (mut views, mut timeseries, mut internal_views) = (0_i32, 0_i32, 0_i32);
    for database in latest.databases() {
        let is_internal = matches!(database.as_str(), "admin" | "config" | "local");
        for view in latest.views(database).iter().flat_map(|views| views.iter()) {
            let kind = match (is_internal, view.view_on == view.namespace.timeseries_buckets()) {
                (true, _) => &mut internal_views,
                (false, true) => &mut timeseries,
                (false, false) => &mut views,
            };
            *kind += 1;
        }
    }
    section.append("collections", user);
    section.append("capped", capped);
    section.append("clustered", clustered);
    section.append("timeseries", timeseries);
    section.append("views", views);
    section.append("internalCollections", internal);
    section.append("internalViews", internal_views);
    section.append("csfle", 0);
    section.append("queryableEncryption", 0);
    section.append("systemProfile", system_profiles);
}

/// `wiredTiger`.
pub(super) fn compatible(invocation: &Invocation, section: &mut DocBuilder) {
    let Some(data) = &invocation.node.data else { return };
    let statistics = data.services.engine.statistics();
    let held = statistics.value("cache.used_bytes") + statistics.value("overlay.bytes");
    section.document("cache", |cache| {
        cache.append("bytes currently in the cache", held);
        cache.append("maximum bytes configured", statistics.value("memory.budget_bytes"));
        cache.append("tracked dirty bytes in the cache", statistics.value("overlay.dirty_bytes"));
    });
    section.document("transaction", |transaction| {
        transaction.append("transaction checkpoints", statistics.value("checkpoint.taken"));
    });
    if let Some(tickets) = data.services.locks.tickets() {
        section.document("concurrentTransactions", |transactions| {
            transactions.document("write", |pool| append_pool(&tickets.write().stats(), pool));
            transactions.document("read", |pool| append_pool(&tickets.read().stats(), pool));
            if let Some(probing) = tickets.probing_stats() {
                transactions.document("monitor", |monitor| {
                    monitor.append("timesDecreased", probing.times_decreased as i64);
                    monitor.append("timesIncreased", probing.times_increased as i64);
                    monitor.append("totalAmountDecreased", probing.total_amount_decreased);
                    monitor.append("totalAmountIncreased", probing.total_amount_increased);
                });
            }
        });
    }
}

fn append_pool(stats: &PoolStats, pool: &mut DocBuilder) {
    pool.append("out", stats.out);
    pool.append("available", stats.available);
    pool.append("totalTickets", stats.total_tickets);
    pool.append("immediatePriorityAdmissionsCount", stats.immediate_priority_admissions_count as i64);
    pool.document("normalPriority", |queue| append_queue(&stats.normal_priority, queue));
    pool.document("lowPriority", |queue| {
        append_queue(&stats.low_priority, queue);
        queue.append("expedited", stats.low_priority.expedited as i64);
        queue.append("bypassed", stats.low_priority.bypassed as i64);
    });
}

fn append_queue(stats: &QueueStats, queue: &mut DocBuilder) {
    queue.append("addedToQueue", stats.added_to_queue as i64);
    queue.append("removedFromQueue", stats.removed_from_queue as i64);
    queue.append("queueLength", stats.queue_length as i64);
    queue.append("startedProcessing", stats.started_processing as i64);
    queue.append("processing", stats.processing as i64);
    queue.append("finishedProcessing", stats.finished_processing as i64);
    queue.append("totalTimeProcessingMicros", stats.total_time_processing_micros as i64);
    queue.append("canceled", stats.canceled as i64);
    queue.append("newAdmissions", stats.new_admissions as i64);
    queue.append("totalTimeQueuedMicros", stats.total_time_queued_micros as i64);
}

/// `pando`: the engine's own figures, nested by the first part of their names.
pub(super) fn own(invocation: &Invocation, section: &mut DocBuilder) {
    let Some(data) = &invocation.node.data else { return };
    section.append("engine", data.services.engine.name());
    let statistics = data.services.engine.statistics();
    let mut open: Option<(&str, pando_doc::Open)> = None;
    for (name, statistic) in &statistics.0 {
        let (group, leaf) = name.split_once('.').unwrap_or(("other", name));
        if open.as_ref().is_none_or(|(name, _)| *name != group) {
            if let Some((_, nested)) = open.take() {
                section.end(nested);
            }
            open = Some((group, section.begin_document(group)));
        }
        let value = match statistic {
            Statistic::Counter(count) => i64::try_from(*count).unwrap_or(i64::MAX),
            Statistic::Gauge(value) => *value,
        };
        section.append(leaf, value);
    }
    if let Some((_, nested)) = open {
        section.end(nested);
    }
}

/// `oplogTruncation`: how the oplog is cut off at its old end.
pub(super) fn oplog(invocation: &Invocation, section: &mut DocBuilder) {
    let Some(data) = &invocation.node.data else { return };
    let Some(oplog) = data.services.engine.oplog() else { return };
    let statistics = data.services.engine.statistics();
    section.append("totalTimeProcessingMicros", statistics.value("oplog.opening_us"));
    // The log says itself where its markers end: nothing is sampled.
    section.append("processingMethod", "scanning");
    section.append("totalTimeTruncatingMicros", statistics.value("oplog.truncation_us"));
    section.append("truncateCount", statistics.value("oplog.markers_dropped"));
    section.append("markerCount", oplog.markers().len() as i64);
    section.append("configuredSizeBytes", i64::try_from(oplog.size_max()).unwrap_or(i64::MAX));
}
