//! What the engine tells is in the log, with its numbers and values.

use super::*;
use pando_base::Timestamp;
use pando_storage::{EngineEvent, Opening, StorageError, Work};

/// The lines that events make.
fn lines(events: &[EngineEvent]) -> Vec<String> {
    let log = Log::silent();
    let listener = Server::engine_listener(&log);
    events.iter().for_each(|event| listener.tell(event));
    log.recent_lines().iter().map(|line| line.to_string()).collect()
}

fn failed(work: Work, failures: u64) -> EngineEvent {
    EngineEvent::WorkFailed { work, failures, error: StorageError::OutOfDiskSpace("base/000007.run".into()) }
}

#[test]
fn u11_events_of_the_engine_are_lines_of_the_log() {
    let opening = Opening {
        directory: "/data".into(),
        is_new: false,
        has_oplog: true,
        was_clean: false,
        tables: 3,
        checkpoint: Timestamp::new(7, 1),
        log_from: (2, 4096),
        records: 11,
        torn_tail: Some(("log/00000002.log".into(), 8192)),
        elapsed_ms: 5,
    };
    let (file, detail) = ("base/000007.run".to_owned(), "the checksum differs".to_owned());
    let events = [
        (
            EngineEvent::Opened(Box::new(opening)),
            &["9700115", "8192", "9700116", "\"records\":11", "9700117", "/data"][..],
        ),
        (failed(Work::Merge, 1), &["9700103", "merge", "base/000007.run", "OutOfDiskSpace", "\"s\":\"E\""]),
        (EngineEvent::WorkRecovered { work: Work::Merge, failures: 1 }, &["9700104", "merge"]),
        (
            EngineEvent::WritesRefused { failures: 5, error: StorageError::Io("eio".into()) },
            &["9700105", "\"failures\":5", "eio"],
        ),
        (EngineEvent::WritesAdmitted, &["9700106"]),
        (EngineEvent::StallBegan { dirty_bytes: 10, budget_bytes: 20 }, &["9700107", "\"dirtyBytes\":10"]),
        (EngineEvent::StallEnded { elapsed_ms: 1200, slowed: 9 }, &["9700108", "1200", "\"slowedWrites\":9"]),
        (EngineEvent::DiskNearlyFull { free_bytes: 1, limit_bytes: 2 }, &["9700109", "\"freeBytes\":1"]),
        (EngineEvent::DiskHasRoom { free_bytes: 3 }, &["9700110"]),
        (EngineEvent::RolledBack { stable: Timestamp::new(7, 1), elapsed_ms: 1 }, &["9700111"]),
        (EngineEvent::Corruption { file, offset: 4096, detail }, &["9700112", "000007.run", "4096", "checksum"]),
        (EngineEvent::Stopped { reason: "a sync failed".into() }, &["9700113", "a sync failed"]),
        (EngineEvent::ShutDown { elapsed_ms: 1 }, &["9700114"]),
    ];
    for (event, parts) in events {
        let told = lines(std::slice::from_ref(&event)).join("\n");
        for part in parts {
            assert!(told.contains(part), "{part} of {event:?} is not in: {told}");
        }
    }
}

#[test]
fn u11_what_fails_again_and_again_is_told_ever_more_rarely() {
    let told = lines(&(1..=100).map(|failures| failed(Work::Checkpoint, failures)).collect::<Vec<_>>());
    assert_eq!(told.len(), 5 + 4, "the first five, then 8, 16, 32, 64");
    let checkpoint = |is_long| EngineEvent::CheckpointTaken {
        timestamp: Timestamp::NONE,
        keys: 1,
        bytes: 2,
        elapsed_ms: 70_000,
        is_long,
    };
    assert!(lines(&[checkpoint(false)]).is_empty(), "that is a detail");
    assert_eq!(lines(&[checkpoint(true)]).len(), 1);
}
