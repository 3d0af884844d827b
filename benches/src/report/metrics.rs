//! The list of everything that is measured, in the order of the table's rows.

use crate::phases::LATER;

/// One row of the table.
pub struct Metric {
    /// As in the JSON.
    pub name: &'static str,
    /// As in the table.
    pub label: &'static str,
    /// Of the recorded value.
    pub unit: &'static str,
}

const fn metric(name: &'static str, label: &'static str, unit: &'static str) -> Metric {
    Metric { name, label, unit }
}

/// `./bench engine`.
pub static METRICS: &[Metric] = &[
    metric("bulk_load", "bulk load, sorted, durable", "documents/s"),
    metric("bulk_load_written", "  bytes written by it", "bytes"),
    metric("size", "size on disk, log apart", "bytes"),
    metric("size_of_raw", "  of raw", "ratio"),
    metric("size_log", "  log files", "bytes"),
    metric("get_cached", "random get, cached, a snapshot each", "gets/s"),
    metric("get_cached_shared", "  100 gets a snapshot", "gets/s"),
    metric("get_uncached", "random get, cache of 5 %", "gets/s"),
    metric("scan", "full scan", "documents/s"),
    metric("scan_reverse", "full scan, reverse", "documents/s"),
    metric("memory_cached", "memory with everything cached", "bytes"),
    metric("checkpoint_transactions", "checkpoint (mean of 4): commits until durable", "s"),
    metric("checkpoint_taken", "  until checkpoint taken", "s"),
    metric("checkpoint_settled", "  until merges settled", "s"),
    metric("checkpoint_settled_longest", "  the longest of them", "s"),
    metric("checkpoint_written", "  written: log, checkpoint, merges", "bytes"),
    metric("checkpoint_dirtied", "  (write_bytes of the kernel)", "bytes"),
    metric("checkpoint_syncs", "  syncs", "calls"),
    metric("checkpoint_gets", "  gets meanwhile", "gets/s"),
    metric("checkpoint_get_p50", "  get p50 meanwhile", "us"),
    metric("checkpoint_get_p99", "  get p99", "us"),
    metric("checkpoint_get_p999", "  get p99.9", "us"),
    metric("size_later", "4 checkpoints later: size, log apart", "bytes"),
    metric("size_of_raw_later", "  of raw", "ratio"),
    metric("size_log_later", "  log files", "bytes"),
    metric("get_cached_later", "  random get, cached, a snapshot each", "gets/s"),
    metric("get_cached_shared_later", "  100 gets a snapshot", "gets/s"),
    metric("get_uncached_later", "  random get, cache of 5 %", "gets/s"),
    metric("scan_later", "  full scan", "documents/s"),
    metric("scan_reverse_later", "  full scan, reverse", "documents/s"),
    metric("memory_cached_later", "  memory with everything cached", "bytes"),
    metric("hot_get", "get of 1,000 rows just written, a snapshot each", "gets/s"),
    metric("hot_get_shared", "  100 gets a snapshot", "gets/s"),
    metric("small_commits", "small transactions, 2 threads, not waiting", "commits/s"),
    metric("waiting_commits", "64 committers, each waiting for the disk", "commits/s"),
    metric("waiting_commits_per_sync", "  commits a sync", "commits"),
    metric("waiting_commit_p99", "  commit p99", "us"),
    metric("cost_get", "cost at N documents: get", "ns"),
    metric("cost_scan", "  scan, a document", "ns"),
    metric("cost_update", "  update, durable", "ns"),
    metric("cost_checkpoint", "  its checkpoint until settled", "ns"),
    metric("cost_get_large", "cost at 10 N documents: get", "ns"),
    metric("cost_scan_large", "  scan, a document", "ns"),
    metric("cost_update_large", "  update, durable", "ns"),
    metric("cost_checkpoint_large", "  its checkpoint until settled", "ns"),
    metric("cost_get_growth", "growth of the cost: get", "ratio"),
    metric("cost_scan_growth", "  scan", "ratio"),
    metric("cost_update_growth", "  update", "ratio"),
];

/// `./bench recovery`.
pub static RECOVERY_METRICS: &[Metric] = &[
    metric("recovery_log", "log to re-apply", "bytes"),
    metric("recovery_open", "open that re-applies it", "s"),
    metric("recovery_rate", "  re-applied", "bytes/s"),
    metric("clean_store", "clean store", "bytes"),
    metric("clean_build", "  built in", "s"),
    metric("clean_open", "  open", "s"),
    metric("idle_memory", "  memory a second later", "bytes"),
    metric("bare_memory", "  memory of the process before", "bytes"),
];

/// `./bench scale`.
pub static SCALE_METRICS: &[Metric] = &[
    metric("start", "start until the first hello", "s"),
    metric("rest_memory", "memory at rest", "bytes"),
    metric("idle_connections", "connections at rest", "connections"),
    metric("idle_connections_memory", "  memory with them", "bytes"),
    metric("create_first", "create with 3 indexes, server all but empty", "us"),
    metric("create_last", "  with all collections", "us"),
    metric("create_growth", "  growth", "ratio"),
    metric("read_first", "point read, server all but empty", "us"),
    metric("read_last", "  with all collections", "us"),
    metric("read_growth", "  growth", "ratio"),
    metric("list_collections", "listCollections", "ms"),
    metric("list_names", "  names only", "ms"),
    metric("collections_memory", "memory with all collections", "bytes"),
    metric("stop", "stop", "s"),
];

/// The rows of `./bench watch`.
pub static WATCH_METRICS: &[Metric] = &[
    metric("ycsb_c_unwatched", "reads, unwatched", "operations/s"),
    metric("ycsb_c_watched", "  watched", "operations/s"),
    metric("ycsb_c_cost", "  what watching takes", "ratio"),
    metric("ycsb_a_unwatched", "half updates, unwatched", "operations/s"),
    metric("ycsb_a_watched", "  watched", "operations/s"),
    metric("ycsb_a_cost", "  what watching takes", "ratio"),
];

/// The unit of a metric; empty for one that is in no list.
pub fn unit(name: &str) -> &'static str {
    let named = |name: &str| {
        METRICS
            .iter()
            .chain(RECOVERY_METRICS)
            .chain(SCALE_METRICS)
            .chain(WATCH_METRICS)
            .find(|metric| metric.name == name)
    };
    let found = named(name).or_else(|| named(name.strip_suffix(LATER)?));
    found.map_or("", |metric| metric.unit)
}
