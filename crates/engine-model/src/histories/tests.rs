//! The histories against themselves.

use super::sabotage::{Fault, Sabotaged};
use super::*;
use crate::{ModelDisk, ModelEngine};

struct ModelSubject {
    disk: Arc<ModelDisk>,
    engine: Arc<ModelEngine>,
    mode: Mode,
    crashes: usize,
}

impl ModelSubject {
    fn new(mode: Mode) -> ModelSubject {
        let disk = ModelDisk::new();
        let engine = ModelEngine::open(&disk, mode).unwrap();
        ModelSubject { disk, engine, mode, crashes: 0 }
    }
}

impl Subject for ModelSubject {
    fn engine(&self) -> Arc<dyn Engine> {
        self.engine.clone()
    }

    fn restart_clean(&mut self) {
        self.engine.shut_down().unwrap();
        self.engine = ModelEngine::open(&self.disk, self.mode).unwrap();
    }

    fn crash(&mut self) {
        // Keeps none, some or all of what was not flushed.
        self.crashes += 1;
        self.disk.crash_keeping(self.disk.unflushed_count() * (self.crashes % 4) / 3);
        self.engine = ModelEngine::open(&self.disk, self.mode).unwrap();
    }

    fn lose_power_after(&mut self, changes: u64) -> bool {
        // Here a step is done at once or not at all.
        if changes == 0 {
            self.disk.cut_power();
        }
        true
    }
}

#[test]
fn x4_x17_x18_x20_x21_r20_the_model_equals_itself() {
    let outcome = run_seeds(0..300, &Config::of_seed, &mut |_, config| Box::new(ModelSubject::new(config.mode)));
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

/// How often a step had this answer.
fn count(tally: &Tally, step: &str, answer: &str) -> u64 {
    tally.get(&(step.to_owned(), answer.to_owned())).copied().unwrap_or_default()
}

#[test]
fn histories_reach_what_they_are_for() {
    let mut tally = Tally::new();
    for seed in 0..150 {
        let config = Config::of_seed(seed);
        run_tallied(seed, &mut ModelSubject::new(config.mode), config, &mut tally).unwrap();
    }
    for (step, answer) in [
        ("Get", "Value"),
        ("Get", "PrepareConflict"),
        ("Put", "WriteConflict"),
        ("Put", "PrepareConflict"),
        ("Put", "TimestampRule"),
        ("Put", "IdentNotFound"),
        ("Truncate", "Done"),
        ("Truncate", "WriteConflict"),
        ("Move", "Pair"),
        ("Move", "PrepareConflict"),
        ("Attach", "Done"),
        ("MoveRandom", "Pair"),
        ("Begin", "SnapshotTooOld"),
        ("SetCommit", "TimestampRule"),
        ("SetDurable", "Done"),
        ("Prepare", "Done"),
        ("Commit", "WriteConflict"),
        ("Commit", "TimestampRule"),
        ("AppendOplog", "DuplicateKey"),
        ("OplogNext", "Entry"),
        ("BulkLoad", "Done"),
        ("BulkLoad", "WriteConflict"),
        ("DropTable", "Done"),
        ("RollBackToStable", "Done"),
        ("RollBackToStable", "Busy"),
        ("TruncateOplog", "Done"),
        ("ResetOplog", "Done"),
        ("Checkpoint", "Done"),
        ("RestartClean", "Done"),
        ("Crash", "Done"),
        ("CrashDuring", "Done"),
    ] {
        assert!(count(&tally, step, answer) > 0, "{step} never has {answer}: {tally:?}");
    }
}

/// Within how many seeds a fault is found; none if it is not.
fn found_within(fault: Fault, seeds: u64) -> Option<u64> {
    (0..seeds).find(|seed| {
        let config = Config::of_seed(*seed);
        let mut subject = Sabotaged::new(fault, config.mode);
        run(*seed, &mut subject, config).is_err()
    })
}

#[test]
fn the_shell_of_broken_engines_is_sound() {
    assert_eq!(found_within(Fault::Nothing, 60), None);
}

macro_rules! faults_are_found {
    ($($name:ident: $fault:ident,)*) => {
        $(#[test]
        fn $name() {
            let seed = found_within(Fault::$fault, 300).expect("the fault is found");
            println!("seed {seed}");
        })*
    };
}

faults_are_found! {
    x5_hidden_write_conflicts_are_found: HidesWriteConflicts,
    x5_late_write_conflicts_are_found: ConflictsAtCommit,
    x4_deleted_keys_are_found: ReturnsDeletedKeys,
    x4_truncations_of_too_little_are_found: TruncatesTooLittle,
    x4_a_cursor_that_turns_on_the_spot_is_found: TurnsOnTheSpot,
    x4_a_cursor_that_repeats_is_found: RepeatsAfterAttach,
    x7_ignored_read_timestamps_are_found: IgnoresReadTimestamps,
    x7_reads_below_oldest_are_found: ServesTooOld,
    x8_a_single_commit_timestamp_is_found: OneCommitTimestamp,
    r20_ignored_prepares_are_found: IgnoresPrepared,
    r20_forgotten_durable_timestamps_are_found: ForgetsDurableTimestamps,
    x17_early_sizes_are_found: SizesAtOnce,
    x20_faked_checkpoints_are_found: FakesCheckpoints,
    x18_rollback_that_does_nothing_is_found: KeepsUnstable,
    x26_ignored_slots_are_found: IgnoresSlots,
    x26_reading_past_holes_is_found: ReadsPastHoles,
    x21_faked_flushes_are_found: FakesFlushes,
    x21_a_lost_record_is_found: LosesFlushed,
    x21_a_torn_record_is_found: TearsRecords,
    x26_entries_past_holes_are_found: KeepsEntriesPastHoles,
    x17_a_lost_bulk_load_is_found: LosesBulkLoads,
}

#[test]
fn a_failure_is_made_short_and_replays() {
    let make = |_: u64, config: &Config| -> Box<dyn Subject> {
        Box::new(Sabotaged::new(Fault::ReturnsDeletedKeys, config.mode))
    };
    let failure = run_seeds(0..20, &Config::of_seed, &mut |seed, config| make(seed, config)).unwrap_err();
    assert!(failure.trace.len() <= 10, "{failure}");
    let config = Config::of_seed(failure.seed);
    replay(&failure.trace, &mut *make(0, &config), config.clone()).unwrap_err();
    replay(&failure.trace, &mut ModelSubject::new(config.mode), config).unwrap();
}
