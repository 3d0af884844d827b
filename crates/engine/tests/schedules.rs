//! The schedules of the lock-free parts, explored with shuttle: transaction states, the watermark and the open snapshots.
//!
//! A world of two keys is built from the engine's own parts, with chains that are plain lists under a lock. Committers
//! write both keys in one transaction; readers must never see half of one, nor anything that was not published when their
//! snapshot was taken; a pruner drops what no snapshot needs while readers read.
//!
//! The same tests run on deliberately broken parts and must fail there, or they would prove nothing. Shuttle explores
//! interleavings of sequentially consistent memory; it says nothing about weaker orders.
#![allow(clippy::unwrap_used)]
#![cfg(feature = "shuttle")]

use pando_base::Timestamp;
use pando_engine::visibility::{Outcome, ReadView, SnapshotTicket, Snapshots, TransactionState, Visibility, Watermark};
use pando_engine_runs::{ReadPoint, RetentionPoint, Stamp};
use pando_storage::PrepareBehaviour;
use shuttle::Runner;
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::sync::Mutex;
use shuttle::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use shuttle::thread;
use std::sync::Arc;

const KEYS: usize = 2;

/// What is broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Broken {
    /// Nothing.
    No,
    /// The watermark is published before the outcome is stored.
    PublishedEarly,
    /// The pruner collects the open snapshots first and reads the watermark afterwards.
    WatermarkAfterCollection,
    /// Nothing, but snapshots are registered in the copies below: what the next two are compared with.
    NoInCopy,
    /// A snapshot reads the watermark first and is registered afterwards, in the list behind a lock.
    RegisteredLate,
    /// Nothing, but snapshots are registered in the copied places.
    NoInPlaces,
    /// A snapshot is registered in a place and does not look at the watermark again.
    Unconfirmed,
    /// A prepare takes a sequence but does not tell: readers pass the transaction by.
    PreparedUntold,
}

/// One version: the number of its transaction is its value.
struct Version {
    state: Arc<TransactionState>,
    number: u64,
}

/// Two keys, a log's lock and the engine's parts.
struct World {
    broken: Broken,
    log: Mutex<()>,
    watermark: Arc<Watermark>,
    snapshots: Arc<Snapshots>,
    copy: Arc<CopiedSnapshots>,
    /// Oldest first.
    chains: [Mutex<Vec<Version>>; KEYS],
    /// Sequence by transaction, stored before it is published; zero while unknown.
    committed_at: [AtomicU64; 8],
}

/// Nobody is in a copied place.
const FREE: u64 = u64::MAX;

/// A copy of the registry of snapshots, small enough to be broken: its list and its places.
struct CopiedSnapshots {
    open: Mutex<Vec<u64>>,
    places: [AtomicU64; 4],
}

impl Default for CopiedSnapshots {
    fn default() -> Self {
        CopiedSnapshots { open: Mutex::default(), places: std::array::from_fn(|_| AtomicU64::new(FREE)) }
    }
}

impl CopiedSnapshots {
    fn open(self: &Arc<Self>, watermark: &Watermark, late: bool) -> CopiedTicket {
        let early = late.then(|| watermark.published());
        let mut open = self.open.lock().unwrap();
        let sequence = early.unwrap_or_else(|| watermark.published());
        open.push(sequence);
        CopiedTicket { snapshots: self.clone(), place: None, sequence }
    }

    /// In the first free place; there are as many as a program has readers.
    fn enter(self: &Arc<Self>, watermark: &Watermark, confirm: bool) -> CopiedTicket {
        let mut sequence = watermark.published();
        let free =
            |place: &AtomicU64| place.compare_exchange(FREE, sequence, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        let place = self.places.iter().position(free).unwrap();
        while confirm {
            let published = watermark.published();
            if published == sequence {
                break;
            }
            sequence = published;
            self.places[place].store(sequence, Ordering::SeqCst);
        }
        CopiedTicket { snapshots: self.clone(), place: Some(place), sequence }
    }

    fn collect(&self) -> Vec<u64> {
        let entered = self.places.iter().map(|place| place.load(Ordering::SeqCst)).filter(|entered| *entered != FREE);
        let mut all: Vec<u64> = entered.collect();
        all.extend(self.open.lock().unwrap().iter());
        all
    }
}

struct CopiedTicket {
    snapshots: Arc<CopiedSnapshots>,
    place: Option<usize>,
    sequence: u64,
}

impl Drop for CopiedTicket {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            self.snapshots.places[place].store(FREE, Ordering::SeqCst);
            return;
        }
        if let Ok(mut open) = self.snapshots.open.lock()
            && let Some(place) = open.iter().position(|sequence| *sequence == self.sequence)
        {
            open.remove(place);
        }
    }
}

/// A snapshot with its view.
struct Reader {
    view: ReadView,
    _copied: Option<CopiedTicket>,
}

impl World {
    fn new(broken: Broken) -> Arc<World> {
        let watermark = Arc::new(Watermark::new(0));
        let world = World {
            broken,
            log: Mutex::new(()),
            snapshots: Arc::new(Snapshots::new(watermark.clone())),
            watermark,
            copy: Arc::default(),
            chains: [Mutex::new(Vec::new()), Mutex::new(Vec::new())],
            committed_at: std::array::from_fn(|_| AtomicU64::new(0)),
        };
        let world = Arc::new(world);
        // Number 0 is there from the beginning.
        world.commit(0);
        world
    }

    /// Writes both keys in one transaction.
    fn write(&self, number: u64) -> Arc<TransactionState> {
        let state = Arc::new(TransactionState::new());
        for chain in &self.chains {
            chain.lock().unwrap().push(Version { state: state.clone(), number });
        }
        state
    }

    /// As the engine's `in_sequence`: under the log's lock the next sequence, the outcome, then the watermark.
    fn in_sequence(&self, store: impl FnOnce(u64)) -> u64 {
        let _log = self.log.lock().unwrap();
        let sequence = self.watermark.published() + 1;
        if self.broken == Broken::PublishedEarly {
            self.watermark.publish(sequence);
            store(sequence);
        } else {
            store(sequence);
            self.watermark.publish(sequence);
        }
        sequence
    }

    fn commit(&self, number: u64) {
        let state = self.write(number);
        self.in_sequence(|sequence| {
            self.committed_at[number as usize].store(sequence, Ordering::SeqCst);
            state.commit(sequence, Timestamp(sequence), Timestamp(sequence));
        });
    }

    fn prepare(&self, number: u64) -> Arc<TransactionState> {
        let state = self.write(number);
        let sequence = self.in_sequence(|sequence| {
            if self.broken != Broken::PreparedUntold {
                state.prepare(sequence, Timestamp(sequence));
            }
        });
        self.committed_at[number as usize].store(sequence, Ordering::SeqCst);
        state
    }

    /// The end of a prepared transaction; its visibility has the prepare's sequence.
    fn end_prepared(&self, state: &TransactionState, commit: bool) {
        match commit {
            true => _ = self.in_sequence(|sequence| state.commit(sequence, Timestamp(sequence), Timestamp(sequence))),
            false => state.abort(),
        }
    }

    fn open(&self) -> Reader {
        let copied = match self.broken {
            Broken::NoInCopy => self.copy.open(&self.watermark, false),
            Broken::RegisteredLate => self.copy.open(&self.watermark, true),
            Broken::NoInPlaces => self.copy.enter(&self.watermark, true),
            Broken::Unconfirmed => self.copy.enter(&self.watermark, false),
            _ => {
                let ticket = self.snapshots.open(Timestamp::MAX);
                return Reader { view: view_of(ticket), _copied: None };
            }
        };
        // The view wants a ticket of the real registry: one that nobody collects has the same sequence.
        let alone = Arc::new(Snapshots::new(Arc::new(Watermark::new(copied.sequence))));
        Reader { view: view_of(alone.open(Timestamp::MAX)), _copied: Some(copied) }
    }

    /// The pruner's look: what is open, and the watermark from before.
    fn retention(&self) -> RetentionPoint {
        let mut collected = self.snapshots.collect();
        collected.sequences.extend(self.copy.collect());
        collected.sequences.sort_unstable();
        let horizon = match self.broken == Broken::WatermarkAfterCollection {
            true => self.watermark.published(),
            false => collected.horizon,
        };
        RetentionPoint {
            oldest: Timestamp::MAX,
            stable: Timestamp::MAX,
            read_timestamp_min: Timestamp::MAX,
            snapshots: collected.sequences,
            horizon,
        }
    }

    /// Drops from the old end what nobody needs, as the overlay does.
    fn prune(&self) {
        let retention = self.retention();
        for chain in &self.chains {
            let mut chain = chain.lock().unwrap();
            while let [oldest, next, ..] = &chain[..] {
                let (Some(older), Some(newer)) = (stamp(oldest), stamp(next)) else { break };
                if retention.needs(&older, &newer) {
                    break;
                }
                chain.remove(0);
            }
        }
    }
}

fn view_of(ticket: SnapshotTicket) -> ReadView {
    let point = ReadPoint { sequence: ticket.sequence(), timestamp: Timestamp::MAX };
    ReadView::new(point, PrepareBehaviour::Enforce, ticket)
}

fn stamp(version: &Version) -> Option<Stamp> {
    match version.state.outcome(Timestamp::NONE) {
        Outcome::Committed { stamp, .. } => Some(stamp),
        _ => None,
    }
}

impl Reader {
    /// The number of the transaction that wrote what is visible; an error for a prepared one in the way.
    fn try_get(&self, world: &World, key: usize) -> Result<Option<u64>, ()> {
        let chain = world.chains[key].lock().unwrap();
        for version in chain.iter().rev() {
            match self.view.judge(&version.state.outcome(Timestamp::NONE)) {
                Visibility::Visible => return Ok(Some(version.number)),
                Visibility::Hidden => {}
                Visibility::PrepareConflict => return Err(()),
            }
        }
        Ok(None)
    }

    fn get(&self, world: &World, key: usize) -> u64 {
        loop {
            match self.try_get(world, key) {
                Ok(Some(number)) => return number,
                Ok(None) => panic!("what the snapshot reads was dropped"),
                Err(()) => thread::yield_now(),
            }
        }
    }

    /// Both keys are of one transaction, also when read again, and it is the newest that the snapshot may see.
    fn check(&self, world: &World) {
        let first = self.get(world, 0);
        let second = self.get(world, 1);
        assert_eq!(first, second, "half of a transaction");
        let at = world.committed_at[first as usize].load(Ordering::SeqCst);
        assert!(at > 0 && at <= self.view.point().sequence, "an unpublished commit");
        assert_eq!(self.get(world, 1), second, "a snapshot does not change");
        assert_eq!(self.get(world, 0), first, "a snapshot does not change");
    }
}

// ---- The programs.

/// Two committers of two-key transactions, two snapshot takers.
fn commits_and_snapshots(broken: Broken) {
    let world = World::new(broken);
    // Conflict checks let one transaction at a time write a key; a lock stands for them.
    let turn = Arc::new(Mutex::new(()));
    let mut threads = Vec::new();
    for first in [1, 3] {
        let (world, turn) = (world.clone(), turn.clone());
        threads.push(thread::spawn(move || {
            for number in [first, first + 1] {
                let _turn = turn.lock().unwrap();
                world.commit(number);
            }
        }));
    }
    for _ in 0..2 {
        let world = world.clone();
        threads.push(thread::spawn(move || {
            for _ in 0..2 {
                let reader = world.open();
                reader.check(&world);
                let published = world.watermark.published();
                assert!(reader.view.point().sequence <= published, "a snapshot of the future");
            }
        }));
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// A committer, a pruner and two readers.
fn pruning(broken: Broken) {
    let world = World::new(broken);
    let mut threads = Vec::new();
    let committing = world.clone();
    threads.push(thread::spawn(move || (1..=3).for_each(|number| committing.commit(number))));
    let pruner = world.clone();
    threads.push(thread::spawn(move || (0..3).for_each(|_| pruner.prune())));
    for _ in 0..2 {
        let world = world.clone();
        threads.push(thread::spawn(move || {
            let reader = world.open();
            reader.check(&world);
            thread::yield_now();
            reader.check(&world);
        }));
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    // With nobody left, only the newest version stays.
    world.prune();
    assert!(world.chains.iter().all(|chain| chain.lock().unwrap().len() == 1));
}

/// A prepared transaction that commits or aborts, readers that wait for it, and a commit after it.
fn prepared(broken: Broken, commit: bool) {
    let world = World::new(broken);
    let ended = Arc::new(AtomicBool::new(false));
    let mut threads = Vec::new();
    let (preparing, told) = (world.clone(), ended.clone());
    threads.push(thread::spawn(move || {
        let state = preparing.prepare(1);
        thread::yield_now();
        told.store(true, Ordering::SeqCst);
        preparing.end_prepared(&state, commit);
    }));
    for _ in 0..2 {
        let (world, ended) = (world.clone(), ended.clone());
        threads.push(thread::spawn(move || {
            let reader = world.open();
            let prepared_at = world.committed_at[1].load(Ordering::SeqCst);
            let first = match reader.try_get(&world, 0) {
                Ok(number) => number,
                Err(()) => {
                    // Only who may see the prepared transaction has to wait for it.
                    let at = world.committed_at[1].load(Ordering::SeqCst);
                    assert!(at == 0 || at <= reader.view.point().sequence);
                    Some(reader.get(&world, 0))
                }
            };
            let second = reader.get(&world, 1);
            assert_eq!(first, Some(second), "half of a transaction");
            if second == 1 {
                assert!(commit && ended.load(Ordering::SeqCst), "seen before its end");
            }
            // Who began after the prepare sees it after its commit, though the commit's own sequence is later.
            if prepared_at > 0 && commit && reader.view.point().sequence >= prepared_at {
                assert_eq!(second, 1, "a reader that waited sees it");
            }
        }));
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let latest = world.open();
    assert_eq!(latest.get(&world, 0), u64::from(commit));
}

/// A rollback runs only while no snapshot is open, and none is opened meanwhile.
fn quiet() {
    let world = World::new(Broken::No);
    let inside = Arc::new(AtomicBool::new(false));
    let mut threads = Vec::new();
    for _ in 0..2 {
        let (world, inside) = (world.clone(), inside.clone());
        threads.push(thread::spawn(move || {
            for _ in 0..2 {
                let reader = world.open();
                assert!(!inside.load(Ordering::SeqCst), "a snapshot during the quiet");
                thread::yield_now();
                assert!(!inside.load(Ordering::SeqCst), "a quiet during the snapshot");
                reader.check(&world);
            }
        }));
    }
    let quiet_world = world.clone();
    threads.push(thread::spawn(move || {
        for _ in 0..3 {
            quiet_world.snapshots.while_none_open(|| {
                inside.store(true, Ordering::SeqCst);
                thread::yield_now();
                inside.store(false, Ordering::SeqCst);
            });
        }
    }));
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(world.snapshots.count(), 0);
}

// ---- Exploring.

fn iterations(number: usize) -> usize {
    if std::env::var("PANDO_TEST_LONG").is_ok() { number * 50 } else { number }
}

/// Where the choices begin; `SHUTTLE_RANDOM_SEED` overrides it.
const SEED: u64 = 20;

/// Random schedules, and schedules with few but well-placed preemptions.
fn explore(program: impl Fn() + Send + Sync + Clone + 'static) {
    let random = RandomScheduler::new_from_seed(SEED, iterations(4_000));
    Runner::new(random, Default::default()).run(program.clone());
    for depth in [2, 3] {
        let few = PctScheduler::new_from_seed(SEED, depth, iterations(4_000));
        Runner::new(few, Default::default()).run(program.clone());
    }
}

/// The same must find what is broken on purpose, for one of these reasons.
fn must_fail(reasons: &[&str], program: impl Fn() + Send + Sync + Clone + std::panic::UnwindSafe + 'static) {
    let found = std::panic::catch_unwind(|| explore(program));
    let Err(payload) = found else { panic!("the exploration did not find what is broken on purpose") };
    let text = payload.downcast_ref::<String>().cloned();
    let text = text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default();
    assert!(reasons.iter().any(|reason| text.contains(reason)), "found something else: {text}");
}

#[test]
fn x4_no_snapshot_sees_half_of_a_commit_or_an_unpublished_one() {
    explore(|| commits_and_snapshots(Broken::No));
}

#[test]
fn x4_x7_pruning_drops_nothing_that_a_snapshot_reads() {
    explore(|| pruning(Broken::No));
}

#[test]
fn x4_prepared_transactions_end_at_once_for_everyone() {
    explore(|| prepared(Broken::No, true));
    explore(|| prepared(Broken::No, false));
}

#[test]
fn x4_x20_a_rollback_is_alone() {
    explore(quiet);
}

#[test]
fn x4_publishing_before_the_outcome_would_be_found() {
    let reasons = ["half of a transaction", "a snapshot does not change"];
    must_fail(&reasons, || commits_and_snapshots(Broken::PublishedEarly));
}

#[test]
fn x4_an_untold_prepare_would_be_found() {
    must_fail(&["a reader that waited sees it"], || prepared(Broken::PreparedUntold, true));
}

#[test]
fn x4_collecting_before_the_watermark_would_be_found() {
    must_fail(&["what the snapshot reads was dropped"], || pruning(Broken::WatermarkAfterCollection));
}

#[test]
fn x4_registering_after_the_watermark_would_be_found() {
    explore(|| pruning(Broken::NoInCopy));
    must_fail(&["what the snapshot reads was dropped"], || pruning(Broken::RegisteredLate));
}

#[test]
fn x4_a_place_that_is_not_confirmed_would_be_found() {
    explore(|| pruning(Broken::NoInPlaces));
    must_fail(&["what the snapshot reads was dropped"], || pruning(Broken::Unconfirmed));
}
