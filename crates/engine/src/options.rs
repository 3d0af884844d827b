//! How an engine is opened.

use pando_storage::Listener;
use std::time::Duration;

/// Whether there is an oplog, and with it, which writes need redo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Mode {
    /// Every table has redo in the log; there is no oplog.
    #[default]
    StandAlone,
    /// The log is the oplog; only unreplicated tables have redo.
    ReplicaSet,
}

/// Options of an engine. The defaults are those of a server on a laptop.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Whether there is an oplog.
    pub mode: Mode,
    /// Memory for overlay, block cache and buffers together.
    pub memory_bytes: u64,
    /// Starts threads for flushes, checkpoints and merges. Without, the caller steps: `flush_log`, `checkpoint`, `maintain`.
    pub background: bool,
    /// How often the log is flushed without being asked to (`commitIntervalMs`).
    pub commit_interval: Duration,
    /// How often a checkpoint is taken (`syncdelay`); zero for never.
    pub checkpoint_interval: Duration,
    /// Log bytes after which a checkpoint is taken early: what a shutdown has to write and a start after a crash to read.
    pub checkpoint_log_bytes: u64,
    /// Size of a log segment.
    pub log_segment_bytes: u64,
    /// The oplog's size limit.
    pub oplog_bytes_max: u64,
    /// How long entries of the oplog are kept at least, whatever its size.
    pub oplog_retention_min_ms: u64,
    /// The share of the dirty cache that one transaction may be (`transactionTooLargeForCacheThreshold`).
    pub transaction_too_large_threshold: f64,
    /// Space kept in reserve for a full disk.
    pub ballast_bytes: u64,
    /// Opens without changing anything; writes are refused (`--queryableBackupMode`).
    pub read_only: bool,
    /// Who is told what happens.
    pub listener: Listener,
}

impl Default for EngineOptions {
    fn default() -> EngineOptions {
        EngineOptions {
            mode: Mode::StandAlone,
            memory_bytes: 1 << 30,
            background: true,
            commit_interval: Duration::from_millis(100),
            checkpoint_interval: Duration::from_secs(60),
            checkpoint_log_bytes: 2 << 30,
            log_segment_bytes: 64 << 20,
            oplog_bytes_max: 1 << 30,
            oplog_retention_min_ms: 0,
            transaction_too_large_threshold: 0.75,
            ballast_bytes: 8 << 20,
            read_only: false,
            listener: Listener::default(),
        }
    }
}

impl EngineOptions {
    /// For tests and simulation: no threads, small buffers, checkpoints only on demand.
    pub fn stepped(mode: Mode) -> EngineOptions {
        EngineOptions {
            mode,
            memory_bytes: 64 << 20,
            background: false,
            checkpoint_interval: Duration::ZERO,
            log_segment_bytes: 1 << 20,
            oplog_bytes_max: 16 << 20,
            oplog_retention_min_ms: 0,
            ballast_bytes: 0,
            ..EngineOptions::default()
        }
    }
}
