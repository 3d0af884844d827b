//! The manifest under power loss, bit rot, full disks and failed syncs.

use super::change::Change;
use super::record::{CheckpointMark, TableRecord};
use super::state::State;
use super::{Manifest, current, file};
use crate::descriptor::example_part;
use crate::lineage::Ages;
use crate::{FileDescriptor, Result, RunDescriptor, RunsError, UpperBound};
use bytes::Bytes;
use pando_base::Timestamp;
use pando_env::Env;
use pando_env::simulated::{Fault, FaultKind, Loss, Simulation};
use std::path::Path;

const DIRECTORY: &str = "/data/base";

fn open_with(env: &Env, rotate_bytes_min: u64) -> Result<Manifest> {
    let directory = Path::new(DIRECTORY);
    env.disk().create_directory(directory).map_err(|error| RunsError::io(directory, "create", error))?;
    Manifest::open(env.disk(), Path::new(DIRECTORY), 77, rotate_bytes_min).map(|(manifest, _)| manifest)
}

fn open(env: &Env) -> Result<Manifest> {
    open_with(env, 1 << 20)
}

fn table(id: u64) -> TableRecord {
    TableRecord {
        id,
        ident: format!("table-{id}"),
        configuration: Bytes::from_static(b"c"),
        records: 1,
        bytes: -2,
        unfenced: false,
    }
}

fn run_in(file: u64) -> RunDescriptor {
    let mut part = example_part("a", UpperBound::Included(Bytes::from_static(b"m")));
    part.file = file;
    RunDescriptor { parts: vec![part] }
}

/// The `step`-th edit of a history that uses every kind of change.
fn edit(step: u64) -> Vec<Change> {
    let file = FileDescriptor { id: step + 1, length_bytes: 10_000 };
    let run = |table| Change::Run { table, id: step, ages: Ages::of_file(step + 1), run: run_in(step + 1) };
    match step {
        0 => vec![Change::Create(table(1)), Change::Create(table(2))],
        _ if step % 7 == 3 => vec![Change::Fence(Timestamp(90 - step))],
        _ if step % 7 == 6 => vec![
            Change::File(file),
            Change::Replace { table: 1, removed: vec![step - 1, step - 2], id: step, run: Some(run_in(step + 1)) },
        ],
        _ if step % 11 == 10 => vec![Change::Drop(2), Change::Create(table(2)), Change::Update(table(1))],
        _ => {
            let mark = CheckpointMark { sequence_cut: step, ..Default::default() };
            let numbers = Change::Numbers { next_file: step + 2, next_run: step + 1 };
            vec![numbers, Change::File(file), run(1), run(2), Change::Mark(mark)]
        }
    }
}

/// The states after 0, 1, 2, ... edits.
fn states(count: u64) -> Vec<State> {
    let mut state = State::default();
    let mut states = vec![state.clone()];
    for step in 0..count {
        edit(step).into_iter().for_each(|change| state.apply(change).unwrap());
        state.take_obsolete();
        states.push(state.clone());
    }
    states
}

#[test]
fn edits_add_up_and_survive() {
    let simulation = Simulation::new(1);
    let mut manifest = open(&simulation.env()).unwrap();
    let states = states(24);
    for step in 0..24 {
        manifest.append(&edit(step)).unwrap();
        assert_eq!(manifest.state(), &states[step as usize + 1]);
        let env = simulation.crash_with(Loss::Everything);
        manifest = open(&env).unwrap();
        assert_eq!(manifest.state(), &states[step as usize + 1]);
        assert_eq!(manifest.identity(), 77);
    }
}

#[test]
fn a_snapshot_leads_to_the_same_state() {
    for state in states(24) {
        let mut copy = State::default();
        for chunk in state.snapshot() {
            Change::decode_all(&chunk).unwrap().into_iter().for_each(|change| copy.apply(change).unwrap());
        }
        assert_eq!(copy, state);
    }
}

/// Works through the history, rotating often, until the power goes; returns how many edits were acknowledged.
fn work(env: &Env, edits: u64) -> u64 {
    let Ok(mut manifest) = open_with(env, 0) else { return 0 };
    for step in 0..edits {
        if manifest.append(&edit(step)).is_err() || (manifest.wants_rotation() && manifest.rotate().is_err()) {
            return manifest_steps(&manifest);
        }
    }
    edits
}

fn manifest_steps(manifest: &Manifest) -> u64 {
    states(24).iter().position(|state| state == manifest.state()).unwrap() as u64
}

#[test]
fn x20_power_loss_at_every_operation_leaves_the_edit_before_or_after() {
    const EDITS: u64 = 14;
    let states = states(24);
    let whole = Simulation::new(0);
    assert_eq!(work(&whole.env(), EDITS), EDITS);
    let operations = whole.disk().operation_count();
    assert!(operations > 50, "{operations}");
    for crash_after in 0..operations {
        for seed in 0..6 {
            let simulation = Simulation::new(seed);
            simulation.disk().crash_after(crash_after);
            let acknowledged = work(&simulation.env(), EDITS);
            let env = simulation.crash();
            let manifest = open(&env).unwrap_or_else(|error| panic!("crash after {crash_after}, seed {seed}: {error}"));
            let found = states.iter().position(|state| state == manifest.state()).unwrap() as u64;
            assert!(found == acknowledged || found == acknowledged + 1, "{crash_after} {seed}: {acknowledged} {found}");
        }
    }
}

#[test]
fn x20_a_killed_process_leaves_the_edit_before_or_after() {
    let states = states(24);
    for crash_after in 0..60 {
        let simulation = Simulation::new(crash_after);
        simulation.disk().crash_after(crash_after);
        let acknowledged = work(&simulation.env(), 14);
        let manifest = open(&simulation.kill()).unwrap();
        let found = states.iter().position(|state| state == manifest.state()).unwrap() as u64;
        assert!(found == acknowledged || found == acknowledged + 1);
        // What was read from the page cache has become durable by being opened.
        let manifest = open(&simulation.crash_with(Loss::Everything)).unwrap();
        assert_eq!(manifest.state(), &states[found as usize]);
    }
}

#[test]
fn x20_every_flipped_byte_is_named_or_harmless() {
    let simulation = Simulation::new(5);
    let mut manifest = open(&simulation.env()).unwrap();
    (0..5).for_each(|step| drop(manifest.append(&edit(step)).unwrap()));
    manifest.seal().unwrap();
    let expected = manifest.state().clone();
    let path = manifest.path().to_owned();
    let pointer = Path::new(DIRECTORY).join(current::NAME);
    for path in [path, pointer] {
        let length = simulation.disk().contents(&path).unwrap().len() as u64;
        for offset in 0..length {
            simulation.disk().flip_byte(&path, offset).unwrap();
            match open(&simulation.fork(offset).env()) {
                Err(RunsError::Corruption { file, offset: named, .. }) => {
                    assert_eq!(file, path);
                    assert!(named <= offset, "{named} {offset}");
                }
                Err(error) => panic!("{error}"),
                // One of the two statements of the synced length may go: the other one says the same or less.
                Ok(manifest) => assert!(manifest.state() == &expected && (512..1536).contains(&offset), "{offset}"),
            }
            simulation.disk().flip_byte(&path, offset).unwrap();
        }
    }
}

#[test]
fn a_lost_tail_below_the_synced_length_is_corruption() {
    let simulation = Simulation::new(6);
    let mut manifest = open(&simulation.env()).unwrap();
    (0..5).for_each(|step| drop(manifest.append(&edit(step)).unwrap()));
    manifest.seal().unwrap();
    let path = manifest.path().to_owned();
    let bytes = simulation.disk().contents(&path).unwrap();
    for cut in 0..bytes.len() {
        let copy = simulation.fork(cut as u64);
        copy.disk().plant(&path, &bytes[..cut]).unwrap();
        let error = open(&copy.env()).err().unwrap();
        assert!(error.is_corruption(), "{cut}: {error}");
    }
}

#[test]
fn a_lost_pointer_or_manifest_is_not_an_empty_directory() {
    let simulation = Simulation::new(7);
    let mut manifest = open(&simulation.env()).unwrap();
    manifest.append(&edit(0)).unwrap();
    let copy = simulation.fork(1);
    copy.env().disk().remove(&Path::new(DIRECTORY).join(current::NAME)).unwrap();
    assert!(open(&copy.env()).err().unwrap().is_corruption());
    let copy = simulation.fork(2);
    copy.env().disk().remove(manifest.path()).unwrap();
    assert!(open(&copy.env()).err().unwrap().is_corruption());
}

#[test]
fn a_failed_sync_is_no_full_disk() {
    let simulation = Simulation::new(8);
    let mut manifest = open(&simulation.env()).unwrap();
    manifest.append(&edit(0)).unwrap();
    simulation.disk().inject(Fault::new(FaultKind::SyncFails).times(1));
    assert!(manifest.append(&edit(1)).err().unwrap().is_failed_sync());
    let states = states(2);
    let manifest = open(&simulation.crash()).unwrap();
    assert!(states[1..].contains(manifest.state()));
}

#[test]
fn a_full_disk_refuses_an_edit_and_takes_it_later() {
    let simulation = Simulation::new(9);
    let mut manifest = open(&simulation.env()).unwrap();
    manifest.append(&edit(0)).unwrap();
    simulation.disk().inject(Fault::new(FaultKind::SpaceRunsOut).times(1));
    assert!(matches!(manifest.append(&edit(1)), Err(RunsError::OutOfSpace { .. })));
    manifest.append(&edit(2)).unwrap();
    let found = open(&simulation.crash_with(Loss::Everything)).unwrap();
    assert_eq!(found.state(), manifest.state());
}

#[test]
fn a_damaged_manifest_still_gives_its_sound_records() {
    let simulation = Simulation::new(10);
    let mut manifest = open(&simulation.env()).unwrap();
    (0..5).for_each(|step| drop(manifest.append(&edit(step)).unwrap()));
    let mut bytes = simulation.disk().contents(manifest.path()).unwrap();
    let all = file::read_what_is_sound(1, &bytes);
    bytes[all[2].0 as usize + 30] ^= 1;
    let sound = file::read_what_is_sound(1, &bytes);
    assert_eq!(sound.len() + 1, all.len());
    assert!(file::damaged_slots(1, &bytes).is_empty());
    bytes[600] ^= 1;
    assert_eq!(file::damaged_slots(1, &bytes), [512]);
}
