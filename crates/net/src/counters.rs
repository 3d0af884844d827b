//! What is counted about connections and bytes, for serverStatus.

use pando_base::{Counter, Gauge, Metric, MetricTree, Result, ShardedCounter};
use pando_wire::Compressor;
use pando_wire::limits::MESSAGE_SIZE_BYTES_MAX;
use std::sync::Arc;

/// The connections.
#[derive(Debug, Default)]
pub struct ConnectionCounters {
    /// Open now.
    pub current: Gauge,
    /// Accepted since the start.
    pub created: Counter,
    /// Closed at once because there were too many.
    pub rejected: Counter,
    /// With a request that is being served.
    pub active: Gauge,
    /// How many there may be.
    pub max: Gauge,
}

/// The bytes. "Logical" bytes are those of messages before compression.
#[derive(Debug, Default)]
pub struct NetworkCounters {
    /// Requests served.
    pub requests: ShardedCounter,
    /// Logical bytes received.
    pub bytes_in: ShardedCounter,
    /// Logical bytes sent.
    pub bytes_out: ShardedCounter,
    /// Bytes received on the wire.
    pub physical_bytes_in: ShardedCounter,
    /// Bytes sent on the wire.
    pub physical_bytes_out: ShardedCounter,
    /// By algorithm, in the order of [`NetworkCounters::COMPRESSORS`].
    pub compression: [CompressionCounters; 3],
    /// Messages of impossible lengths, or longer than somebody may send who has not logged in.
    pub wrong_lengths_before_login: Arc<Counter>,
    /// Messages of impossible lengths of those who have.
    pub wrong_lengths_after_login: Arc<Counter>,
}

/// The bytes that went into one algorithm and came out of it.
#[derive(Debug, Default)]
pub struct CompressionCounters {
    /// Into the compressor.
    pub compressor_in: Counter,
    /// Out of the compressor.
    pub compressor_out: Counter,
    /// Into the decompressor.
    pub decompressor_in: Counter,
    /// Out of the decompressor.
    pub decompressor_out: Counter,
}

impl NetworkCounters {
    /// The algorithms that are counted.
    pub const COMPRESSORS: [Compressor; 3] = [Compressor::Snappy, Compressor::Zstd, Compressor::Zlib];

    /// Adds those that are metrics, not a part of the section of their own.
    pub fn add_metrics(&self, tree: &mut MetricTree) -> Result<()> {
        let before = Arc::clone(&self.wrong_lengths_before_login) as Arc<dyn Metric>;
        tree.add("metrics.network.totalMessageSizeErrorPreAuth", before)?;
        let after = Arc::clone(&self.wrong_lengths_after_login) as Arc<dyn Metric>;
        tree.add("metrics.network.totalMessageSizeErrorPostAuth", after)
    }

    /// Counts a request.
    pub(crate) fn count_request(&self, compressor: Option<Compressor>, physical_bytes: usize, logical_bytes: usize) {
        self.requests.increment();
        self.physical_bytes_in.add(physical_bytes as u64);
        self.bytes_in.add(logical_bytes as u64);
        if let Some(counters) = self.of(compressor) {
            counters.decompressor_in.add(physical_bytes as u64);
            counters.decompressor_out.add(logical_bytes as u64);
        }
    }

    /// Counts a message that was as long as it must not be.
    pub(crate) fn count_wrong_length(&self, size_bytes_max: usize) {
        match size_bytes_max < MESSAGE_SIZE_BYTES_MAX {
            true => self.wrong_lengths_before_login.increment(),
            false => self.wrong_lengths_after_login.increment(),
        }
    }

    /// Counts a reply.
    pub(crate) fn count_reply(&self, compressor: Option<Compressor>, physical_bytes: usize, logical_bytes: usize) {
        self.physical_bytes_out.add(physical_bytes as u64);
        self.bytes_out.add(logical_bytes as u64);
        if let Some(counters) = self.of(compressor) {
            counters.compressor_in.add(logical_bytes as u64);
            counters.compressor_out.add(physical_bytes as u64);
        }
    }

    fn of(&self, compressor: Option<Compressor>) -> Option<&CompressionCounters> {
        let place = NetworkCounters::COMPRESSORS.iter().position(|known| Some(*known) == compressor)?;
        self.compression.get(place)
    }
}
