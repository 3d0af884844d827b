//! What reaches a segment's file, block by block.

use crate::segment::Segment;
use crate::staging::Staging;
use pando_env::simulated::Simulation;
use pando_env::{BLOCK_BYTES, Env};
use std::path::Path;

const FIRST: u64 = crate::segment::FIRST_RECORD;

fn segment(env: &Env, bytes: u64) -> Segment {
    let directory = Path::new("/log");
    env.disk().create_directory(directory).unwrap();
    Segment::create(env, directory, 1, bytes).unwrap()
}

fn content(segment: &Segment) -> Vec<u8> {
    let file = segment.file().unwrap();
    let mut bytes = vec![0; file.length().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

/// Pieces of these lengths, each written before the next is taken.
fn check(segment_bytes: u64, lengths: &[usize]) {
    let env = Simulation::new(1).env();
    let segment = segment(&env, segment_bytes);
    let header = content(&segment)[..FIRST as usize].to_vec();
    let mut staging = Staging::default();
    let mut expected = header;
    for (number, length) in lengths.iter().enumerate() {
        let piece = vec![number as u8 + 1; *length];
        staging.take(&segment, expected.len() as u64, &piece).unwrap();
        expected.extend(piece);
        staging.write(&segment, number % 2 == 0).unwrap();
        let found = content(&segment);
        assert!(found.starts_with(&expected), "after piece {number}");
        assert!(found[expected.len()..].iter().all(|byte| *byte == 0), "behind piece {number}");
        assert_eq!(found.len() as u64, segment_bytes, "nothing is written behind the end");
    }
}

#[test]
fn pieces_of_all_lengths_follow_each_other() {
    let block = BLOCK_BYTES;
    check(64 << 10, &[1, 7, block - 64 - 8, block, 3 * block, 0, 5, block - 5, 2 * block + 1]);
}

#[test]
fn more_than_fits_into_memory_is_written_in_parts() {
    check(8 << 20, &[100, 5 << 20, 1, (2 << 20) - 165, 2]);
}

#[test]
fn a_segment_that_ends_inside_a_block_is_written_to_its_end() {
    let bytes = 3 * BLOCK_BYTES as u64 + 1000;
    check(bytes, &[10, 3 * BLOCK_BYTES - 64, 900, 90]);
}

#[test]
fn what_is_written_without_being_made_durable_is_durable_with_the_next() {
    let simulation = Simulation::new(3);
    let segment = segment(&simulation.env(), 8 << 20);
    let mut staging = Staging::default();
    staging.take(&segment, FIRST, &vec![7; 3 << 20]).unwrap();
    staging.write(&segment, false).unwrap();
    staging.take(&segment, FIRST + (3 << 20), &[8]).unwrap();
    staging.write(&segment, true).unwrap();
    let after = simulation.crash_with(pando_env::simulated::Loss::Everything);
    let found = after.disk().read_all(&segment.path).unwrap();
    assert!(found[FIRST as usize..][..3 << 20].iter().all(|byte| *byte == 7));
    assert_eq!(found[FIRST as usize + (3 << 20)], 8);
}
