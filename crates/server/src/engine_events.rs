//! The engine's events as lines of the log.
//!
//! What is repeated is written ever more rarely: the first failures in a row, then those at powers of two.

use pando_base::{Component, Log, LogValue, Severity, log};
use pando_storage::{EngineEvent, EngineListener, Opening, StorageError, Work};

/// So many failures in a row have a line each.
const EACH_FAILURE: u64 = 5;

/// Writes down what an engine tells.
pub(crate) struct EngineLog(pub(crate) Log);

impl EngineListener for EngineLog {
    fn engine_event(&self, event: &EngineEvent) {
        let log = &self.0;
        match event {
            EngineEvent::Opened(opening) => opened(log, opening),
            EngineEvent::CheckpointTaken { timestamp, keys, bytes, elapsed_ms, is_long } => {
                let severity = if *is_long { Severity::Warning } else { Severity::Debug(1) };
                let message = if *is_long {
                    "A checkpoint took longer than the time from one to the next"
                } else {
                    "Checkpoint taken"
                };
                log!(
                    log,
                    severity,
                    Component::WiredTigerCheckpoint,
                    if *is_long { 9_700_122 } else { 9_700_121 },
                    message,
                    "timestamp" = timestamp.to_string(),
                    "keys" = *keys,
                    "bytes" = *bytes,
                    "durationMillis" = *elapsed_ms
                );
            }
            EngineEvent::WorkFailed { work, failures, error } => failed(log, *work, *failures, error),
            EngineEvent::WorkRecovered { work, failures } => {
                let component = component(*work);
                let message = "The storage engine's work is done again";
                log!(log, Severity::Info, component, 9_700_104, message, "work" = work.name(), "failures" = *failures);
            }
            EngineEvent::WritesRefused { failures, error } => {
                let message = "Checkpoints fail again and again: writes are refused until one can be taken";
                let reason = error.to_string();
                log!(
                    log,
                    Severity::Error,
                    Component::Storage,
                    9_700_105,
                    message,
                    "failures" = *failures,
                    "error" = reason
                );
            }
            EngineEvent::WritesAdmitted => {
                log!(log, Severity::Info, Component::Storage, 9_700_106, "A checkpoint was taken: writes are admitted");
            }
            EngineEvent::StallBegan { dirty_bytes, budget_bytes } => {
                let message = "Writers are made to wait: memory is short until a checkpoint is done";
                log!(
                    log,
                    Severity::Warning,
                    Component::WiredTigerEviction,
                    9_700_107,
                    message,
                    "dirtyBytes" = *dirty_bytes,
                    "budgetBytes" = *budget_bytes
                );
            }
            EngineEvent::StallEnded { elapsed_ms, slowed } => {
                let message = "Writers no longer wait for memory";
                log!(
                    log,
                    Severity::Info,
                    Component::WiredTigerEviction,
                    9_700_108,
                    message,
                    "durationMillis" = *elapsed_ms,
                    "slowedWrites" = *slowed
                );
            }
            EngineEvent::DiskNearlyFull { free_bytes, limit_bytes } => {
                let message = "The disk is nearly full";
                log!(
                    log,
                    Severity::Warning,
                    Component::Storage,
                    9_700_109,
                    message,
                    "freeBytes" = *free_bytes,
                    "limitBytes" = *limit_bytes
                );
            }
            EngineEvent::DiskHasRoom { free_bytes } => {
                let message = "The disk has room again";
                log!(log, Severity::Info, Component::Storage, 9_700_110, message, "freeBytes" = *free_bytes);
            }
            EngineEvent::RolledBack { stable, elapsed_ms } => {
                log!(
                    log,
                    Severity::Info,
                    Component::WiredTigerRollbackToStable,
                    9_700_111,
                    "Rolled back to the stable timestamp",
                    "stableTimestamp" = stable.to_string(),
                    "durationMillis" = *elapsed_ms
                );
            }
            EngineEvent::Corruption { file, offset, detail } => {
                let message = "Data corruption detected";
                log!(
                    log,
                    Severity::Error,
                    Component::Storage,
                    9_700_112,
                    message,
                    "file" = file,
                    "offset" = *offset,
                    "detail" = detail
                );
            }
            EngineEvent::Stopped { reason } => {
                let message = "The storage engine has stopped and refuses writes until the next start";
                log!(log, Severity::Error, Component::Storage, 9_700_113, message, "reason" = reason);
            }
            EngineEvent::ShutDown { elapsed_ms } => {
                let message = "The storage engine is shut down";
                log!(log, Severity::Info, Component::Storage, 9_700_114, message, "durationMillis" = *elapsed_ms);
            }
        }
    }
}

fn opened(log: &Log, opening: &Opening) {
    if let Some((file, offset)) = &opening.torn_tail {
        let message = "The log ends in a record that was not written whole; it is cut there";
        log!(log, Severity::Info, Component::Journal, 9_700_115, message, "file" = file, "offset" = *offset);
    }
    if !opening.was_clean && !opening.is_new {
        let message = "The last shutdown was not clean; the log was applied again from the last checkpoint on";
        log!(
            log,
            Severity::Warning,
            Component::StorageRecovery,
            9_700_116,
            message,
            "checkpointTimestamp" = opening.checkpoint.to_string(),
            "logSegment" = opening.log_from.0,
            "logOffset" = opening.log_from.1,
            "records" = opening.records
        );
    }
    log!(
        log,
        Severity::Info,
        Component::Storage,
        9_700_117,
        "Storage engine opened",
        "directory" = &opening.directory,
        "isNew" = opening.is_new,
        "oplog" = opening.has_oplog,
        "tables" = opening.tables,
        "recoveredRecords" = opening.records,
        "durationMillis" = opening.elapsed_ms
    );
}

fn failed(log: &Log, work: Work, failures: u64, error: &StorageError) {
    if failures > EACH_FAILURE && !failures.is_power_of_two() {
        return;
    }
    let attributes: Vec<(&'static str, LogValue)> = vec![
        ("work", work.name().into()),
        ("failures", failures.into()),
        ("error", error.to_string().into()),
        ("codeName", error.code().name().into_owned().into()),
    ];
    log.write(
        Severity::Error,
        component(work),
        9_700_103,
        "The storage engine could not do its work; it is tried again",
        attributes,
    );
}

const fn component(work: Work) -> Component {
    match work {
        Work::Flush | Work::LogSpace => Component::Journal,
        Work::Checkpoint => Component::WiredTigerCheckpoint,
        Work::Merge => Component::WiredTigerCompact,
        Work::Measure => Component::Storage,
    }
}
