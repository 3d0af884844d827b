//! Numbers that the server counts about itself, for serverStatus, latencyStats and the diagnostic archive.
//!
//! A component owns its counters and gauges; a [`MetricTree`] is told of each under a dotted path
//! ("metrics.document.inserted") and reads them all when asked. Nothing registers itself. Numbers are relaxed: each is
//! right, but two read together need not fit.

mod counter;
mod histogram;
mod tree;

pub use counter::{Counter, Gauge, ShardedCounter};
pub(crate) use counter::{SHARD_COUNT, thread_shard};
pub use histogram::{BUCKET_COUNT, HistogramSnapshot, LatencyHistogram};
pub use tree::{Metric, MetricTree, MetricValue};
