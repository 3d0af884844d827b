//! What is counted about connections and bytes, for serverStatus.

use pando_base::{Counter, Gauge, ShardedCounter};
use pando_wire::Compressor;

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
