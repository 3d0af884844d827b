//! Full disks, failing calls, rot, leftovers, and sorters that are taken up again.
#![allow(clippy::unwrap_used, reason = "a failed call fails the test that made it")]

use pando_env::Env;
use pando_env::simulated::{Fault, FaultKind, Loss, SimulatedDisk};
use pando_sorter::{Persisted, Sorter, SorterError, SorterOptions, SpillDirectory};
use std::path::Path;
use std::sync::Arc;

fn options(disk: &SimulatedDisk, free_bytes_min: u64) -> SorterOptions {
    let directory = Some(Arc::new(SpillDirectory::new(disk.handle(), "/data/_tmp")));
    SorterOptions {
        memory_bytes_max: 10_000,
        limit: None,
        directory,
        purpose: "test",
        free_bytes_min,
        readers_memory_bytes_max: None,
        helper: None,
    }
}

/// The same with another thread that writes.
fn helped(disk: &SimulatedDisk) -> SorterOptions {
    SorterOptions { helper: Some(Env::real()), ..options(disk, 0) }
}

/// Adds so many entries from a number on, which do not compress well.
fn fill(sorter: &mut Sorter<Box<[u8]>>, from: u64, count: u64) -> Result<(), SorterError> {
    for number in from..from + count {
        let scattered = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let value: Vec<u8> =
            (0..8_u64).flat_map(|place| scattered.rotate_left(place as u32 * 7).to_le_bytes()).collect();
        sorter.add(&scattered.to_be_bytes(), value.into())?;
    }
    Ok(())
}

fn read_all(sorter: &mut Sorter<Box<[u8]>>) -> Result<usize, SorterError> {
    let mut sorted = sorter.finish()?;
    let (mut count, mut last) = (0, Vec::new());
    while let Some((key, _)) = sorted.next_entry()? {
        assert!(*last <= *key, "in order");
        last = key.to_vec();
        count += 1;
    }
    Ok(count)
}

fn code(error: SorterError) -> i32 {
    pando_base::Error::from(error).code().number()
}

#[test]
fn x14_a_full_disk_is_an_error_and_leaves_nothing() {
    let disk = SimulatedDisk::new(3);
    disk.set_capacity_bytes(64 * 1024);
    let mut sorter = Sorter::new(options(&disk, 0));
    assert_eq!(code(fill(&mut sorter, 0, 10_000).unwrap_err()), 14031);
    drop(sorter);
    assert!(disk.files().is_empty());
    let mut sorter = Sorter::new(helped(&disk));
    let failed = fill(&mut sorter, 0, 10_000).and_then(|()| read_all(&mut sorter).map(|_| ()));
    assert_eq!(code(failed.unwrap_err()), 14031);
    drop(sorter);
    assert!(disk.files().is_empty());
    // With the reserve nothing is even begun.
    let mut sorter = Sorter::new(options(&disk, 1 << 20));
    let error = fill(&mut sorter, 0, 10_000).unwrap_err();
    assert!(error.to_string().contains("less than the required minimum of 1048576 bytes"), "{error}");
    assert_eq!(code(error), 14031);
    assert!(disk.files().is_empty());
}

#[test]
fn x14_failing_calls_are_errors() {
    for (kind, wanted) in
        [(FaultKind::WriteFails, 5_642_403), (FaultKind::ReadFails, 16817), (FaultKind::Outage, 16818)]
    {
        for options in [|disk: &SimulatedDisk| options(disk, 0), helped] {
            let disk = SimulatedDisk::new(3);
            disk.inject(Fault::new(kind).from_call(if kind == FaultKind::Outage { 1 } else { 3 }));
            let mut sorter = Sorter::new(options(&disk));
            let failed = fill(&mut sorter, 0, 3_000).and_then(|()| read_all(&mut sorter).map(|_| ()));
            assert_eq!(code(failed.unwrap_err()), wanted, "{kind:?}");
        }
    }
    // Short reads are no failure.
    let disk = SimulatedDisk::new(3);
    disk.inject(Fault::new(FaultKind::ReadFallsShort).with_probability(0.5));
    let mut sorter = Sorter::new(options(&disk, 0));
    fill(&mut sorter, 0, 3_000).unwrap();
    assert_eq!(read_all(&mut sorter).unwrap(), 3_000);
}

#[test]
fn x14_a_flipped_byte_is_found_wherever_it_is() {
    let disk = SimulatedDisk::new(3);
    let mut sorter = Sorter::new(options(&disk, 0));
    fill(&mut sorter, 0, 700).unwrap();
    let kept = sorter.persist().unwrap();
    let path = Path::new("/data/_tmp").join(kept.file_name.as_ref().unwrap());
    let length = disk.contents(&path).unwrap().len() as u64;
    for offset in (0..length).step_by(97).chain(0..16) {
        let rotten = disk.copy(offset);
        rotten.flip_byte(&path, offset).unwrap();
        let mut sorter = Sorter::resume(options(&rotten, 0), &kept).unwrap();
        let error = read_all(&mut sorter).unwrap_err();
        assert!(matches!(&error, SorterError::Damaged { path: named, .. } if *named == path), "{offset}: {error}");
        assert_eq!(code(error), 31182);
    }
    // A block in the place of another is damage, too; and so is a range that is not the described one.
    let mut other = kept.clone();
    other.ranges[0].checksum ^= 1;
    let mut sorter = Sorter::resume(options(&disk.copy(1), 0), &other).unwrap();
    assert_eq!(code(read_all(&mut sorter).unwrap_err()), 31182);
}

#[test]
fn x14_what_was_kept_can_be_opened_again_after_a_crash() {
    let disk = SimulatedDisk::new(5);
    let mut sorter = Sorter::new(helped(&disk));
    fill(&mut sorter, 0, 1_000).unwrap();
    let kept = sorter.persist().unwrap();
    disk.crash(Loss::Everything);
    let directory = SpillDirectory::new(disk.handle(), "/data/_tmp");
    let name = kept.file_name.clone().unwrap();
    assert_eq!(directory.remove_leftovers(&[&name]).unwrap(), 0);
    let mut sorter = Sorter::resume(options(&disk, 0), &kept).unwrap();
    fill(&mut sorter, 1_000, 500).unwrap();
    let again = sorter.persist().unwrap();
    assert!(again.ranges.starts_with(&kept.ranges) && again.ranges.len() > kept.ranges.len());
    let mut sorter = Sorter::resume(options(&disk, 0), &again).unwrap();
    assert_eq!(read_all(&mut sorter).unwrap(), 1_500);
    drop(sorter);
    assert!(disk.files().is_empty(), "used up, it is removed");
    let error = Sorter::<Box<[u8]>>::resume(options(&disk, 0), &again).map(|_| ()).unwrap_err();
    assert_eq!(code(error), 16818);
}

#[test]
fn x14_a_file_that_is_too_short_is_refused_and_stays() {
    let disk = SimulatedDisk::new(5);
    let mut sorter = Sorter::new(options(&disk, 0));
    fill(&mut sorter, 0, 1_000).unwrap();
    let kept = sorter.persist().unwrap();
    let path = Path::new("/data/_tmp").join(kept.file_name.as_ref().unwrap());
    disk.plant(&path, b"").unwrap();
    let error = Sorter::<Box<[u8]>>::resume(options(&disk, 0), &kept).map(|_| ()).unwrap_err();
    assert_eq!(code(error), 16815);
    assert_eq!(disk.files(), [path]);
}

#[test]
fn x14_leftovers_are_removed_at_the_start() {
    let disk = SimulatedDisk::new(5);
    let directory = SpillDirectory::new(disk.handle(), "/data/_tmp");
    assert_eq!(directory.remove_leftovers(&[]).unwrap(), 0, "without a directory there is nothing to do");
    let mut sorter = Sorter::new(options(&disk, 0));
    fill(&mut sorter, 0, 1_000).unwrap();
    disk.plant(Path::new("/data/_tmp/other"), b"not ours").unwrap();
    disk.kill();
    drop(sorter);
    assert_eq!(disk.files().len(), 2, "a killed program removes nothing");
    let directory = SpillDirectory::new(disk.handle(), "/data/_tmp");
    assert_eq!(directory.remove_leftovers(&["other"]).unwrap(), 1);
    assert_eq!(disk.files(), [Path::new("/data/_tmp/other")], "what is to be kept stays");
    assert_eq!(directory.remove_leftovers(&[]).unwrap(), 1, "whatever it is");
    assert!(disk.files().is_empty());
    // Nothing was kept: there is nothing to take up.
    let nothing = Persisted { file_name: None, ranges: Vec::new() };
    let mut sorter = Sorter::resume(options(&disk, 0), &nothing).unwrap();
    fill(&mut sorter, 0, 10).unwrap();
    assert_eq!(read_all(&mut sorter).unwrap(), 10);
}
