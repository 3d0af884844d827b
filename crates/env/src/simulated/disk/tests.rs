//! What the simulated disk promises, and that it really does its worst within that.

use super::*;
use crate::{File, OpenMode};
use std::collections::BTreeSet;

const SEEDS: u64 = 400;

fn directory() -> &'static Path {
    Path::new("/db")
}

fn path(name: &str) -> PathBuf {
    directory().join(name)
}

fn new_disk(seed: u64) -> (SimulatedDisk, Arc<dyn Disk>) {
    let disk = SimulatedDisk::new(seed);
    let handle = disk.handle();
    handle.create_directory(directory()).unwrap();
    (disk, handle)
}

/// A file with durable name and content.
fn durable_file(disk: &dyn Disk, name: &str, bytes: &[u8]) -> Arc<dyn File> {
    let file = disk.open(&path(name), OpenMode::CreateNew).unwrap();
    file.write_at(bytes, 0).unwrap();
    file.sync().unwrap();
    disk.sync_directory(directory()).unwrap();
    file
}

fn sectors_of(bytes: &[u8]) -> Vec<u8> {
    bytes.chunks(512).map(|sector| sector[0]).collect()
}

#[test]
fn what_was_synced_always_survives() {
    for seed in 0..SEEDS {
        let (disk, handle) = new_disk(seed);
        let file = durable_file(&*handle, "a", &[1; 10_000]);
        file.write_at(&[2; 3000], 9000).unwrap();
        file.sync().unwrap();
        let model = disk.contents(&path("a"));
        file.write_at(&[3; 5000], 20_000).unwrap();
        disk.crash(Loss::Random);
        let survived = disk.contents(&path("a")).unwrap();
        assert_eq!(&survived[..12_000], &model.unwrap()[..], "seed {seed}");
        assert_eq!(disk.contents(&path("a")), disk.durable_contents(&path("a")));
    }
}

#[test]
fn unsynced_writes_are_lost_kept_torn_and_reordered() {
    let (mut lost, mut kept, mut torn, mut reordered) = (0, 0, 0, 0);
    for seed in 0..SEEDS {
        let (disk, handle) = new_disk(seed);
        let file = durable_file(&*handle, "a", &[0; 8192]);
        file.write_at(&[1; 4096], 0).unwrap();
        file.write_at(&[2; 4096], 4096).unwrap();
        disk.crash(Loss::Random);
        let sectors = sectors_of(&disk.contents(&path("a")).unwrap());
        let (first, second) = sectors.split_at(8);
        let count_first = first.iter().filter(|byte| **byte == 1).count();
        let count_second = second.iter().filter(|byte| **byte == 2).count();
        lost += u32::from(count_first == 0);
        kept += u32::from(count_first == 8);
        torn += u32::from(count_first % 8 != 0);
        reordered += u32::from(count_first == 0 && count_second == 8);
    }
    assert!(lost > 20 && kept > 20 && torn > 20 && reordered > 5, "{lost} {kept} {torn} {reordered}");
}

#[test]
fn a_sector_is_written_whole_and_never_goes_back_in_time() {
    for seed in 0..SEEDS {
        let (disk, handle) = new_disk(seed);
        let file = durable_file(&*handle, "a", &[0; 512]);
        for step in 1..=4_u8 {
            file.write_at(&[step; 100], u64::from(step) * 100).unwrap();
        }
        disk.crash(Loss::Random);
        let bytes = disk.contents(&path("a")).unwrap();
        let written: Vec<u8> = (1..=4).map(|step| bytes[step * 100 + 50]).filter(|byte| *byte != 0).collect();
        let expected: Vec<u8> = (1..=written.len() as u8).collect();
        assert_eq!(written, expected, "seed {seed}: a later write of a sector brings the earlier ones along");
    }
}

#[test]
fn every_sector_holds_what_it_held_at_the_last_sync_or_at_some_moment_since() {
    const SECTORS: usize = 24;
    for seed in 0..SEEDS {
        let (disk, handle) = new_disk(seed);
        let mut file = durable_file(&*handle, "a", &[0; SECTORS * 512]);
        let mut work = Sequence::new(seed);
        let mut versions = vec![vec![vec![0; 512]]; SECTORS];
        for step in 1..=60_u8 {
            let offset = work.below(SECTORS as u64 * 512 - 1);
            let length = 1 + work.below((SECTORS as u64 * 512 - offset).min(3000));
            file.write_at(&vec![step; length as usize], offset).unwrap();
            let bytes = disk.contents(&path("a")).unwrap();
            for (held, now) in versions.iter_mut().zip(bytes.chunks(512)) {
                held.push(now.to_vec());
            }
            match work.below(12) {
                0 => file.sync().unwrap(),
                1 => {
                    disk.crash(Loss::Random);
                    file = disk.handle().open(&path("a"), OpenMode::ReadWrite).unwrap();
                }
                _ => continue,
            }
            let bytes = disk.contents(&path("a")).unwrap();
            assert_eq!(bytes.len(), SECTORS * 512);
            for (held, now) in versions.iter_mut().zip(bytes.chunks(512)) {
                assert!(held.iter().any(|version| version == now), "seed {seed}, step {step}");
                *held = vec![now.to_vec()];
            }
        }
    }
}

#[test]
fn a_length_survives_without_its_data_and_data_without_its_length() {
    let mut lengths = BTreeSet::new();
    let mut zeros_inside = 0;
    for seed in 0..SEEDS {
        let (disk, handle) = new_disk(seed);
        let file = durable_file(&*handle, "a", &[9; 512]);
        file.write_at(&[1; 4096], 512).unwrap();
        disk.crash(Loss::Random);
        let bytes = disk.contents(&path("a")).unwrap();
        lengths.insert(bytes.len());
        zeros_inside += u32::from(bytes.contains(&0));
        assert!(bytes.len() >= 512 && bytes[..512] == [9; 512]);
    }
    assert!(lengths.contains(&512) && lengths.contains(&4608) && lengths.len() > 4, "{lengths:?}");
    assert!(zeros_inside > 10, "{zeros_inside}");
}

#[test]
fn a_truncation_is_pending_until_synced_and_never_shows_old_bytes_again() {
    let (mut undone, mut done) = (0, 0);
    for seed in 0..SEEDS {
        let (disk, handle) = new_disk(seed);
        let file = durable_file(&*handle, "a", &[7; 4096]);
        file.set_length(1000).unwrap();
        file.set_length(4096).unwrap();
        let cached = disk.contents(&path("a")).unwrap();
        assert!(cached[..1000] == [7; 1000] && cached[1000..].iter().all(|byte| *byte == 0));
        disk.crash(Loss::Random);
        let bytes = disk.contents(&path("a")).unwrap();
        match bytes.len() {
            1000 => done += 1,
            _ if bytes[1000..].iter().all(|byte| *byte == 0) => done += 1,
            _ => {
                assert_eq!(bytes, [7; 4096]);
                undone += 1;
            }
        }
    }
    assert!(undone > 20 && done > 20, "{undone} {done}");
}

#[test]
fn a_rename_is_atomic_and_uncertain_until_the_directory_is_synced() {
    let (mut old, mut new) = (0, 0);
    for seed in 0..SEEDS {
        let (disk, handle) = new_disk(seed);
        durable_file(&*handle, "current", b"old");
        durable_file(&*handle, "next", b"new");
        handle.rename(&path("next"), &path("current")).unwrap();
        disk.crash(Loss::Random);
        let next = disk.contents(&path("next"));
        match disk.contents(&path("current")).unwrap().as_slice() {
            b"old" => {
                assert_eq!(next.as_deref(), Some(&b"new"[..]));
                old += 1;
            }
            b"new" => {
                assert_eq!(next, None);
                new += 1;
            }
            other => panic!("{other:?}"),
        }
        let handle = disk.handle();
        if next.is_some() {
            handle.rename(&path("next"), &path("current")).unwrap();
        }
        handle.sync_directory(directory()).unwrap();
        disk.crash(Loss::Random);
        assert_eq!(disk.contents(&path("current")).as_deref(), Some(&b"new"[..]), "seed {seed}");
        assert_eq!(disk.files(), [path("current")]);
    }
    assert!(old > 20 && new > 20, "{old} {new}");
}

#[test]
fn names_survive_in_any_order_but_a_file_never_has_two() {
    let mut outcomes = BTreeSet::new();
    for seed in 0..SEEDS {
        let (disk, handle) = new_disk(seed);
        durable_file(&*handle, "x", b"x");
        handle.rename(&path("x"), &path("y")).unwrap();
        handle.open(&path("other"), OpenMode::CreateNew).unwrap();
        handle.rename(&path("y"), &path("z")).unwrap();
        disk.crash(Loss::Random);
        let names: Vec<PathBuf> = disk.files();
        assert_eq!(names.iter().filter(|name| **name != path("other")).count(), 1, "seed {seed}: {names:?}");
        outcomes.insert(names);
    }
    assert_eq!(outcomes.len(), 6, "x, y or z, each with and without the other file: {outcomes:?}");
}

#[test]
fn a_file_sync_does_not_make_the_name_durable() {
    let survived = |seed| {
        let (disk, handle) = new_disk(seed);
        let file = handle.open(&path("a"), OpenMode::CreateNew).unwrap();
        file.write_at(b"bytes", 0).unwrap();
        file.sync().unwrap();
        disk.crash(Loss::Random);
        match disk.contents(&path("a")) {
            Some(bytes) => bytes == b"bytes" || panic!("{bytes:?}"),
            None => false,
        }
    };
    let count = (0..SEEDS).filter(|seed| survived(*seed)).count();
    assert!(count > 20 && count < SEEDS as usize - 20, "{count}");
}

#[test]
fn removal_is_undone_or_not_until_the_directory_is_synced() {
    let survivors = (0..SEEDS).filter(|seed| {
        let (disk, handle) = new_disk(*seed);
        durable_file(&*handle, "a", b"bytes");
        handle.remove(&path("a")).unwrap();
        disk.crash(Loss::Random);
        disk.contents(&path("a")).is_some_and(|bytes| bytes == b"bytes")
    });
    let count = survivors.count();
    assert!(count > 20 && count < SEEDS as usize - 20, "{count}");
}

#[test]
fn loss_can_be_total_or_none() {
    for seed in 0..50 {
        let (disk, handle) = new_disk(seed);
        let file = durable_file(&*handle, "a", &[1; 5000]);
        file.write_at(&[2; 5000], 2000).unwrap();
        handle.rename(&path("a"), &path("b")).unwrap();
        let twin = disk.copy(seed);
        let cached = disk.contents(&path("b"));
        disk.crash(Loss::Everything);
        assert_eq!(disk.files(), [path("a")]);
        assert_eq!(disk.contents(&path("a")), Some(vec![1; 5000]));
        twin.crash(Loss::Nothing);
        assert_eq!(twin.files(), [path("b")]);
        assert_eq!(twin.contents(&path("b")), cached);
    }
}

/// Some busy work; what it leaves behind, as one value.
fn busy_run(seed: u64) -> Vec<(PathBuf, Vec<u8>)> {
    let (disk, _) = new_disk(seed);
    disk.inject(Fault::new(FaultKind::WriteFails).with_probability(0.05));
    disk.inject(Fault::new(FaultKind::SyncFails).with_probability(0.05));
    let mut work = Sequence::new(99);
    for _ in 0..5 {
        let handle = disk.handle();
        for step in 0..60_u8 {
            let name = path(&format!("file{}", work.below(4)));
            let mode = if handle.exists(&name).unwrap() { OpenMode::ReadWrite } else { OpenMode::CreateNew };
            let file = handle.open(&name, mode).unwrap();
            _ = file.write_at(&vec![step; work.below(6000) as usize], work.below(20_000));
            match work.below(6) {
                0 => _ = file.sync(),
                1 => _ = handle.sync_directory(directory()),
                2 => _ = handle.rename(&name, &path(&format!("file{}", work.below(4)))),
                3 => _ = file.set_length(work.below(20_000)),
                _ => {}
            }
        }
        disk.crash(Loss::Random);
        disk.flip_random_bit(|_| true);
    }
    disk.files().into_iter().map(|name| (name.clone(), disk.contents(&name).unwrap())).collect()
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in 0..20 {
        assert!(busy_run(seed) == busy_run(seed), "seed {seed}");
    }
    let different: BTreeSet<_> = (0..20).map(busy_run).collect();
    assert!(different.len() > 15);
}

#[test]
fn a_full_disk_refuses_exactly_what_does_not_fit() {
    let (disk, handle) = new_disk(1);
    disk.set_capacity_bytes(10 * 4096 + 100);
    assert_eq!(handle.free_bytes(directory()).unwrap(), 10 * 4096);
    assert_eq!(handle.total_bytes(directory()).unwrap(), 10 * 4096);
    let file = handle.open(&path("a"), OpenMode::CreateNew).unwrap();
    let other = handle.open(&path("b"), OpenMode::CreateNew).unwrap();
    other.write_at(&[1; 4096], 0).unwrap();
    let error = file.write_at(&vec![2; 11 * 4096], 0).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert_eq!((file.length().unwrap(), handle.free_bytes(directory()).unwrap()), (9 * 4096, 0));
    file.write_at(&[3; 9 * 4096], 0).unwrap();
    assert_eq!(file.write_at(&[3], 9 * 4096).unwrap_err().kind(), io::ErrorKind::StorageFull);
    // Space comes back with the last handle, not with the name.
    handle.remove(&path("b")).unwrap();
    assert_eq!(handle.free_bytes(directory()).unwrap(), 0);
    drop(other);
    assert_eq!(handle.free_bytes(directory()).unwrap(), 4096);
    file.write_at(&[3], 9 * 4096).unwrap();
    file.set_length(1).unwrap();
    assert_eq!(disk.used_bytes(), 4096);
    disk.crash(Loss::Nothing);
    assert_eq!(disk.used_bytes(), 4096);
}

#[test]
fn allocated_space_is_guaranteed() {
    for seed in 0..100 {
        let (disk, handle) = new_disk(seed);
        disk.set_capacity_bytes(8 * 4096);
        let log = handle.open(&path("log"), OpenMode::CreateNew).unwrap();
        log.allocate(0, 5 * 4096).unwrap();
        assert_eq!(log.allocate(0, 9 * 4096).unwrap_err().kind(), io::ErrorKind::StorageFull);
        log.sync().unwrap();
        handle.sync_directory(directory()).unwrap();
        let hog = handle.open(&path("hog"), OpenMode::CreateNew).unwrap();
        hog.write_at(&[1; 4 * 4096], 0).unwrap_err();
        log.write_at(&[2; 5 * 4096], 0).unwrap();
        disk.crash(Loss::Random);
        let handle = disk.handle();
        let log = handle.open(&path("log"), OpenMode::ReadWrite).unwrap();
        assert_eq!(log.length().unwrap(), 5 * 4096);
        log.write_at(&[3; 5 * 4096], 0).unwrap();
    }
}

#[test]
fn a_failed_sync_may_drop_what_readers_still_see() {
    let mut dropped = 0;
    for seed in 0..SEEDS {
        let (disk, handle) = new_disk(seed);
        let file = durable_file(&*handle, "a", &[0; 8192]);
        disk.inject(Fault::new(FaultKind::SyncFails).times(1));
        file.write_at(&[1; 4096], 0).unwrap();
        assert!(file.sync().is_err());
        assert!(disk.contents(&path("a")).unwrap()[..4096] == [1; 4096]);
        file.write_at(&[2; 4096], 4096).unwrap();
        file.sync().unwrap();
        disk.crash(Loss::Random);
        let bytes = disk.contents(&path("a")).unwrap();
        dropped += u32::from(bytes[..4096] != [1; 4096]);
        assert!(bytes[4096..] == [2; 4096], "seed {seed}: the second sync succeeded");
    }
    assert!(dropped > 50, "{dropped}");
}

#[test]
fn faults_strike_where_and_when_planned() {
    let (disk, handle) = new_disk(3);
    let (log, run) = (durable_file(&*handle, "log", &[1; 100]), durable_file(&*handle, "run", &[1; 100]));
    let is_log = |path: &Path| path.ends_with("log");
    disk.inject(Fault::new(FaultKind::WriteFails).from_call(3).times(2).on_path(is_log));
    let outcomes: Vec<bool> = (0..6).map(|_| log.write_at(&[2; 10], 0).is_ok()).collect();
    assert_eq!(outcomes, [true, true, false, false, true, true]);
    disk.inject(Fault::new(FaultKind::SpaceRunsOut).on_path(is_log));
    assert_eq!(log.write_at(&[2; 10], 0).unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert_eq!(log.allocate(0, 10).unwrap_err().kind(), io::ErrorKind::StorageFull);
    run.write_at(&[2; 10], 0).unwrap();
    disk.clear_faults();
    log.write_at(&[2; 10], 0).unwrap();
    disk.inject(Fault::new(FaultKind::ReadFails).times(1));
    assert!(run.read_at(&mut [0; 10], 0).is_err() && run.read_at(&mut [0; 10], 0).is_ok());
    disk.inject(Fault::new(FaultKind::ReadFallsShort));
    let mut buffer = [0; 100];
    assert!((1..100).contains(&run.read_at(&mut buffer, 0).unwrap()));
    run.read_exact_at(&mut buffer, 0).unwrap();
    disk.inject(Fault::new(FaultKind::Outage).times(3));
    let outage = [run.sync().is_err(), handle.list(directory()).is_err(), run.length().is_err(), run.sync().is_err()];
    assert_eq!(outage, [true, true, true, false]);
    disk.inject(Fault::new(FaultKind::DirectorySyncFails));
    assert!(handle.sync_directory(directory()).is_err() && run.sync().is_ok());
}

/// A small checkpoint: write a new file, sync it, move it in place.
fn replace(disk: &dyn Disk, bytes: &[u8]) -> io::Result<()> {
    if disk.exists(&path("next"))? {
        disk.remove(&path("next"))?;
    }
    let file = disk.open(&path("next"), OpenMode::CreateNew)?;
    file.write_at(bytes, 0)?;
    file.sync()?;
    disk.rename(&path("next"), &path("current"))?;
    disk.sync_directory(directory())
}

#[test]
fn a_crash_at_every_single_step() {
    let (disk, handle) = new_disk(5);
    replace(&*handle, &[1; 2000]).unwrap();
    let before = disk.operation_count();
    replace(&*disk.copy(0).handle(), &[2; 2000]).unwrap();
    assert_eq!(disk.operation_count(), before, "a copy counts for itself");
    let dry_run = disk.copy(0);
    replace(&*dry_run.handle(), &[2; 2000]).unwrap();
    let steps = dry_run.operation_count() - before;
    assert_eq!(steps, 5);
    let mut found = BTreeSet::new();
    for step in 0..=steps {
        for seed in 0..50 {
            let disk = disk.copy(seed);
            let handle = disk.handle();
            disk.crash_after(step);
            let result = replace(&*handle, &[2; 2000]);
            assert_eq!((result.is_ok(), disk.has_lost_power()), (step == steps, step < steps));
            if let Err(error) = result {
                assert!(PowerLost::caused(&error), "{error}");
                assert!(handle.exists(directory()).is_err(), "reads fail as well");
            }
            disk.crash(Loss::Random);
            assert!(!disk.has_lost_power());
            let contents = disk.contents(&path("current")).unwrap();
            assert!(contents == [1; 2000] || contents == [2; 2000], "step {step}, seed {seed}");
            found.insert((step, contents[0]));
            replace(&*disk.handle(), &[3; 2000]).unwrap();
        }
    }
    assert!(found.contains(&(3, 1)) && found.contains(&(3, 2)), "the rename in flight may survive: {found:?}");
    assert!(!found.contains(&(2, 2)) && !found.contains(&(steps, 1)), "{found:?}");
}

#[test]
fn old_handles_are_dead_after_a_crash_and_after_a_kill() {
    for is_kill in [false, true] {
        let (disk, handle) = new_disk(1);
        let file = durable_file(&*handle, "a", b"bytes");
        let lock = handle.lock_directory(directory()).unwrap();
        assert_eq!(handle.lock_directory(directory()).err().unwrap().kind(), io::ErrorKind::WouldBlock);
        file.write_at(b"BYTES", 0).unwrap();
        if is_kill {
            disk.kill()
        } else {
            disk.crash(Loss::Everything)
        }
        assert!(PowerLost::caused(&file.read_at(&mut [0], 0).unwrap_err()));
        assert!(PowerLost::caused(&handle.list(directory()).unwrap_err()));
        let expected: &[u8] = if is_kill { b"BYTES" } else { b"bytes" };
        assert_eq!(disk.contents(&path("a")).unwrap(), expected);
        let handle = disk.handle();
        let new_lock = handle.lock_directory(directory()).unwrap();
        drop((lock, file));
        assert!(handle.lock_directory(directory()).is_err(), "an old guard does not release a new lock");
        drop(new_lock);
        assert!(handle.lock_directory(directory()).is_ok());
    }
}

#[test]
fn bytes_rot_for_readers_and_for_good() {
    let (disk, handle) = new_disk(1);
    let file = durable_file(&*handle, "a", &[0; 100]);
    disk.flip_byte(&path("a"), 50).unwrap();
    assert!(disk.flip_byte(&path("a"), 100).is_err() && disk.flip_byte(&path("b"), 0).is_err());
    let mut byte = [0];
    file.read_exact_at(&mut byte, 50).unwrap();
    assert_eq!(byte, [0xFF]);
    disk.crash(Loss::Random);
    assert_eq!(disk.contents(&path("a")).unwrap()[50], 0xFF);
    disk.flip_byte(&path("a"), 50).unwrap();
    disk.plant(&path("b"), &[0; 300]).unwrap();
    let (mut names, mut places) = (BTreeSet::new(), BTreeSet::new());
    for _ in 0..100 {
        let (name, offset) = disk.flip_random_bit(|_| true).unwrap();
        let rotten = disk.contents(&name).unwrap()[offset as usize];
        assert!(rotten != 0 || places.contains(&(name.clone(), offset)));
        names.insert(name.clone());
        places.insert((name, offset));
    }
    assert!(names.len() == 2 && places.len() > 50);
    assert_eq!(disk.flip_random_bit(|_| false), None);
}

#[test]
fn statistics_count_bytes_and_syncs_by_name() {
    let (disk, handle) = new_disk(1);
    let log = durable_file(&*handle, "1.log", &[0; 1000]);
    let run = durable_file(&*handle, "1.run", &[0; 500]);
    disk.reset_statistics();
    log.write_at(&[1; 30], 5).unwrap();
    log.write_at(&[1; 40], 5).unwrap();
    log.sync().unwrap();
    run.read_at(&mut [0; 900], 100).unwrap();
    handle.sync_directory(directory()).unwrap();
    let is_log = |path: &Path| path.extension().is_some_and(|extension| extension == "log");
    let expected = Statistics { writes: 2, bytes_written: 70, syncs: 1, ..Statistics::default() };
    assert_eq!(disk.statistics(is_log), expected);
    assert_eq!(disk.statistics(|path| path == directory()).syncs, 1);
    let all = Statistics { reads: 1, bytes_read: 400, writes: 2, bytes_written: 70, syncs: 2 };
    assert_eq!(disk.statistics(|_| true), all);
}

#[test]
fn removed_files_are_forgotten_in_time() {
    let (disk, handle) = new_disk(1);
    for _ in 0..1000 {
        replace(&*handle, &[1; 10_000]).unwrap();
    }
    assert_eq!(disk.used_bytes(), 3 * 4096);
    assert!(disk.state.lock().file_count() < 50);
}

#[test]
fn wild_offsets_are_refused() {
    let (_, handle) = new_disk(1);
    let file = durable_file(&*handle, "a", b"bytes");
    assert!(file.write_at(&[1], u64::MAX).is_err() && file.write_at(&[1], 1 << 60).is_err());
    assert!(file.set_length(u64::MAX).is_err() && file.allocate(u64::MAX, 2).is_err());
    assert_eq!(file.read_at(&mut [0; 8], u64::MAX).unwrap(), 0);
    assert_eq!(file.length().unwrap(), 5);
}
