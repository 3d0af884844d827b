//! `./bench recovery`: how fast our engine comes back, and what it takes when idle.
//!
//! The children do one step each, so that every open is the first of its process: one fills the log with small transactions,
//! no checkpoint, and dies without a word; one opens what is left; one bulk loads a large store and closes it; one opens
//! that, waits a second and looks at its memory.

use crate::Error;
use crate::children::{Child, remove_folder};
use crate::measure::{disk_use, resident_bytes, timed};
use crate::options::{ChildTask, RecoveryOptions};
use crate::peers::{System, pando};
use crate::report::{Figures, RECOVERY_METRICS, RECOVERY_TARGETS, Recorder, print_table, print_targets};
use crate::workload::{DOCUMENT_BYTES, Workload, document_key, write_document};
use pando_storage::{BeginOptions, Engine, TableSize};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const JSON_PATH: &str = "target/bench/recovery.json";
/// Enough for a log of a gigabyte in the overlay.
const MEMORY_BYTES: u64 = 6 << 30;
/// What a server at rest may have.
const IDLE_MEMORY_BYTES: u64 = 1 << 30;
/// Documents of one transaction that fills the log.
const DOCUMENTS_PER_COMMIT: u64 = 10;
/// How often the length of the log is looked at.
const COMMITS_PER_LOOK: u64 = 2000;
/// The large store is made of tables of this many documents, so that the input fits in memory.
const DOCUMENTS_PER_TABLE: u64 = 2_000_000;

/// The parent's side.
pub fn run(options: &RecoveryOptions) -> Result<(), Error> {
    if !System::Pando.is_built_in() {
        return Err("our engine is not in this build".into());
    }
    let divisor = if options.quick { 100 } else { 1 };
    let mut figures = Figures::default();
    let steps = [
        (ChildTask::WriteLog, "log", options.log_megabytes),
        (ChildTask::ReplayLog, "log", 0),
        (ChildTask::BuildStore, "clean", options.store_megabytes),
        (ChildTask::OpenStore, "clean", 0),
    ];
    for (task, folder, megabytes) in steps {
        let directory = options.directory.join(folder);
        if megabytes > 0 {
            remove_folder(&directory);
        }
        let arguments = vec!["--megabytes".to_owned(), (megabytes / divisor).max(1).to_string()];
        let child = Child { task, system: System::Pando, directory, arguments };
        let (found, result) = child.run(task == ChildTask::WriteLog);
        result?;
        figures.0.extend(found);
    }
    remove_folder(&options.directory);
    print_table(&figures, RECOVERY_METRICS);
    print_targets(&figures, RECOVERY_TARGETS);
    figures.write_json(Path::new(JSON_PATH))?;
    println!("\nfigures: {JSON_PATH}");
    Ok(())
}

fn open(directory: &Path, memory_bytes: u64, checkpoints: bool) -> Result<Arc<dyn Engine>, Error> {
    std::fs::create_dir_all(directory)?;
    pando::engine::open(directory, &pando::engine::Options { memory_bytes, checkpoints })
}

fn log_bytes(directory: &Path) -> Result<u64, Error> {
    Ok(disk_use(directory, &pando::engine::is_log_file)?.log_bytes)
}

/// Commits until the log has its length, flushes it and ends the process as a crash would.
pub fn write_log(directory: &Path, megabytes: u64, recorder: &Recorder) -> Result<(), Error> {
    let engine = open(directory, MEMORY_BYTES, false)?;
    let table = pando::table(&*engine, "documents")?;
    let mut commits = 0;
    let mut document = Vec::new();
    // Preallocated log space is no log: count what was put into it.
    while commits * DOCUMENTS_PER_COMMIT * (DOCUMENT_BYTES as u64) < megabytes * 1_000_000 {
        let mut transaction = engine.begin(BeginOptions::default())?;
        for offset in 0..DOCUMENTS_PER_COMMIT {
            let number = commits * DOCUMENTS_PER_COMMIT + offset;
            document.clear();
            write_document(number, 0, &mut document);
            transaction.put(&table, &document_key(number), &document)?;
        }
        let change = TableSize::new(DOCUMENTS_PER_COMMIT as i64, DOCUMENTS_PER_COMMIT as i64 * DOCUMENT_BYTES as i64);
        transaction.adjust_size(&table, change)?;
        transaction.commit()?;
        commits += 1;
        if commits % COMMITS_PER_LOOK == 0 {
            engine.flush_log()?;
        }
    }
    engine.flush_log()?;
    recorder.record("recovery_log", log_bytes(directory)? as f64);
    recorder.record("recovery_documents", (commits * DOCUMENTS_PER_COMMIT) as f64);
    std::process::abort()
}

/// Opens the store that `write_log` left.
pub fn replay_log(directory: &Path, recorder: &Recorder) -> Result<(), Error> {
    let bytes = log_bytes(directory)?;
    let (engine, duration) = timed(|| open(directory, MEMORY_BYTES, true))?;
    recorder.record("recovery_open", duration.as_secs_f64());
    recorder.record("recovery_rate", bytes as f64 / duration.as_secs_f64());
    let table = engine.open_table("documents")?;
    let records = engine.table_size(&table)?.records;
    let snapshot = engine.begin(BeginOptions::default())?;
    let last = snapshot.get(&table, &document_key(records as u64 - 1))?;
    if records % DOCUMENTS_PER_COMMIT as i64 != 0 || last.is_none() {
        return Err(format!("{records} documents after recovery, and the last one is missing").into());
    }
    drop(snapshot);
    Ok(engine.shut_down()?)
}

/// Bulk loads table after table until the store has its size.
pub fn build_store(directory: &Path, megabytes: u64, recorder: &Recorder) -> Result<(), Error> {
    let engine = open(directory, IDLE_MEMORY_BYTES, true)?;
    let target_bytes = megabytes * 1_000_000;
    // The same content in every table: nothing compresses across tables.
    let input = Workload::new(DOCUMENTS_PER_TABLE.min(target_bytes / 100)).bulk_input();
    let ((), duration) = timed(|| {
        for number in 0.. {
            if disk_use(directory, &pando::engine::is_log_file)?.data_bytes >= target_bytes {
                break;
            }
            let table = pando::table(&*engine, &format!("documents-{number}"))?;
            pando::load_documents(&*engine, &table, &input)?;
        }
        Ok(engine.shut_down()?)
    })?;
    recorder.record("clean_build", duration.as_secs_f64());
    Ok(())
}

/// Opens the store that `build_store` left, and rests.
pub fn open_store(directory: &Path, recorder: &Recorder) -> Result<(), Error> {
    recorder.record("clean_store", disk_use(directory, &pando::engine::is_log_file)?.data_bytes as f64);
    recorder.record("bare_memory", resident_bytes()? as f64);
    let (engine, duration) = timed(|| open(directory, IDLE_MEMORY_BYTES, true))?;
    recorder.record("clean_open", duration.as_secs_f64());
    std::thread::sleep(Duration::from_secs(1));
    recorder.record("idle_memory", resident_bytes()? as f64);
    Ok(engine.shut_down()?)
}
