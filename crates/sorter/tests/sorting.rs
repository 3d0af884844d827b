//! The sorter gives what a plain stable sort gives, whatever the budget.
#![allow(clippy::unwrap_used, reason = "a failed call fails the test that made it")]

use pando_env::Env;
use pando_env::simulated::SimulatedDisk;
use pando_sorter::{Sorted, Sorter, SorterOptions, SpillDirectory, SpilledList, SpilledRanges};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::sync::Arc;

type Entry = (Box<[u8]>, Box<[u8]>);

fn options(disk: &SimulatedDisk, memory_bytes_max: u64, limit: Option<u64>) -> SorterOptions {
    let directory = Some(Arc::new(SpillDirectory::new(disk.handle(), "/data/_tmp")));
    SorterOptions {
        memory_bytes_max,
        limit,
        directory,
        purpose: "test",
        free_bytes_min: 0,
        readers_memory_bytes_max: None,
        helper: None,
    }
}

fn all(mut sorted: Sorted<Box<[u8]>>) -> Vec<Entry> {
    let mut entries = Vec::new();
    while let Some((key, value)) = sorted.next_entry().unwrap() {
        entries.push((Box::from(key), value));
    }
    entries
}

fn random_entries(random: &mut StdRng) -> Vec<Entry> {
    let count = random.random_range(0..3000);
    // Few different keys make many equal ones.
    let alphabet = [2_u8, 5, 255][random.random_range(0..3)];
    let bytes = |random: &mut StdRng, length_max: usize| -> Box<[u8]> {
        let length = random.random_range(0..=length_max);
        (0..length).map(|_| random.random_range(0..=alphabet)).collect()
    };
    let mut entries: Vec<Entry> = Vec::with_capacity(count);
    for number in 0..count {
        let mut value = bytes(random, 40).into_vec();
        value.extend_from_slice(&(number as u32).to_le_bytes());
        if random.random_bool(0.001) {
            value.resize(200_000, 7);
        }
        entries.push((bytes(random, 6), value.into()));
    }
    entries
}

#[test]
fn x14_readers_keep_within_their_own_memory() {
    let disk = SimulatedDisk::new(5);
    let entries: Vec<u32> = (0..120_000).map(|number| number * 7919 % 120_011).collect();
    let sorted_with = |readers_memory_bytes_max| {
        let options = SorterOptions { readers_memory_bytes_max, ..options(&disk, 650_000, None) };
        let mut sorter: Sorter<()> = Sorter::new(options);
        for number in &entries {
            sorter.add(&number.to_be_bytes(), ()).unwrap();
        }
        let mut sorted = sorter.finish().unwrap();
        let mut keys = Vec::new();
        while let Some((key, ())) = sorted.next_entry().unwrap() {
            keys.push(u32::from_be_bytes(key.try_into().unwrap()));
        }
        (keys, sorter.statistics().spilled_storage_bytes)
    };
    let (once, written_once) = sorted_with(None);
    let (often, written_often) = sorted_with(Some(1));
    let mut expected = entries.clone();
    expected.sort_unstable();
    assert_eq!((&once, &often), (&expected, &expected));
    // With room for the least number of readers the ranges are merged in passes, each of which writes everything.
    assert!(written_often * 2 > written_once * 3, "{written_often} against {written_once} bytes");
}

#[test]
fn x14_sorts_as_a_plain_stable_sort_does() {
    for seed in 0..200 {
        let mut random = StdRng::seed_from_u64(seed);
        let entries = random_entries(&mut random);
        let limit = random.random_bool(0.5).then(|| random.random_range(1..1500));
        let memory_bytes_max = [500, 5_000, 200_000, 100_000_000][random.random_range(0..4)];
        let disk = SimulatedDisk::new(seed);
        // Half of them have another thread write.
        let helper = (seed % 2 == 1).then(Env::real);
        let mut sorter = Sorter::new(SorterOptions { helper, ..options(&disk, memory_bytes_max, limit) });
        for (key, value) in &entries {
            sorter.add(key, value.clone()).unwrap();
        }
        let found = all(sorter.finish().unwrap());
        let mut wanted = entries.clone();
        wanted.sort_by(|left, right| left.0.cmp(&right.0));
        wanted.truncate(limit.map_or(usize::MAX, |limit| limit as usize));
        assert!(found == wanted, "seed {seed}, limit {limit:?}, memory {memory_bytes_max}");
        let statistics = sorter.statistics();
        assert_eq!(statistics.entries, entries.len() as u64);
        assert_eq!(statistics.spills > 0, !disk.files().is_empty(), "seed {seed}");
        drop(sorter);
        assert!(disk.files().is_empty(), "the file goes with the sorter, seed {seed}");
    }
}

#[test]
fn x14_memory_and_fan_in_are_bounded() {
    let disk = SimulatedDisk::new(1);
    let mut sorter = Sorter::new(options(&disk, 1_000, None));
    for number in 0..5_000_u32 {
        sorter.add(&number.wrapping_mul(2_654_435_761).to_be_bytes(), Box::from([0; 20])).unwrap();
    }
    // 56 bytes an entry and a budget of 1,000: a range has 18 entries, and two ranges are merged at a time.
    assert_eq!(sorter.statistics().spills, 5_000 / 18);
    let before = sorter.statistics().spilled_storage_bytes;
    let found = all(sorter.finish().unwrap());
    assert!(found.is_sorted() && found.len() == 5_000);
    assert!(sorter.statistics().spilled_storage_bytes > before * 4, "several passes: {:?}", sorter.statistics());
    assert_eq!(sorter.statistics().spilled_entries, 5_000);
    assert_eq!(disk.files().len(), 1, "the files of earlier passes are gone");
}

#[test]
fn x14_a_limit_keeps_what_is_written_short() {
    let disk = SimulatedDisk::new(1);
    let mut sorter = Sorter::new(options(&disk, 2_000, Some(30)));
    for number in 0..100_000_u32 {
        sorter.add(&(100_000 - number).to_be_bytes(), Box::from([0; 80])).unwrap();
    }
    let found = all(sorter.finish().unwrap());
    assert_eq!(found.len(), 30);
    assert_eq!(&*found[0].0, 1_u32.to_be_bytes());
    // The other way round nothing after the first can be wanted.
    let mut sorter = Sorter::new(options(&disk, 2_000, Some(13)));
    for number in 0..100_000_u32 {
        sorter.add(&number.to_be_bytes(), Box::from([0; 120])).unwrap();
    }
    assert!(sorter.statistics().spills <= 2, "{:?}", sorter.statistics());
    assert_eq!(all(sorter.finish().unwrap()).len(), 13);
}

#[test]
fn x14_without_disk_too_much_is_refused() {
    let memory_only = SorterOptions {
        memory_bytes_max: 100,
        limit: None,
        directory: None,
        purpose: "test",
        free_bytes_min: 0,
        readers_memory_bytes_max: None,
        helper: Some(Env::real()),
    };
    let mut sorter: Sorter<()> = Sorter::new(memory_only);
    sorter.add(&[1; 84], ()).unwrap();
    let error = pando_base::Error::from(sorter.add(&[1], ()).unwrap_err());
    assert_eq!(error.code().number(), 292);
    assert!(error.reason().contains("Sort exceeded memory limit of 100 bytes"), "{error}");
}

#[test]
fn x14_ranges_can_be_written_directly() {
    let disk = SimulatedDisk::new(1);
    let directory = Arc::new(SpillDirectory::new(disk.handle(), "/data/_tmp"));
    let mut ranges: SpilledRanges<Box<[u8]>> = SpilledRanges::new(directory, "group", 0);
    let value = |text: &str| -> Box<[u8]> { Box::from(text.as_bytes()) };
    ranges.write([(b"a", value("1")), (b"c", value("2"))]).unwrap();
    ranges.write([(b"a", value("3")), (b"b", value("4"))]).unwrap();
    let mut merged = ranges.merge(1 << 20, None).unwrap();
    let mut found = Vec::new();
    while let Some((key, value)) = merged.next_entry().unwrap() {
        found.push((key[0], value[0]));
    }
    assert_eq!(found, [(b'a', b'1'), (b'a', b'3'), (b'b', b'4'), (b'c', b'2')]);
    assert_eq!(ranges.statistics().spills, 2);
}

#[test]
fn x14_lists_give_every_item_again() {
    for seed in 0..50 {
        let mut random = StdRng::seed_from_u64(seed);
        let entries = random_entries(&mut random);
        let disk = SimulatedDisk::new(seed);
        let directory = Arc::new(SpillDirectory::new(disk.handle(), "/data/_tmp"));
        let mut list = SpilledList::new(Some(directory), "window", [100, 10_000, 1_000_000][seed as usize % 3], 0);
        for (_, value) in &entries {
            list.push(value.clone()).unwrap();
        }
        assert_eq!(list.len(), entries.len());
        for _ in 0..500 {
            let number = random.random_range(0..entries.len() + 2);
            assert!(list.get(number).unwrap().as_ref() == entries.get(number).map(|(_, value)| value), "seed {seed}");
        }
    }
}
