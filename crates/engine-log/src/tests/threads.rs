//! Real threads on the real disk.

use super::*;
use pando_env::simulated::Simulation;
use parking_lot::Mutex;
use std::collections::BTreeSet;

/// Hands out timestamps and knows the holes, as the core does.
#[derive(Default)]
pub(super) struct Slots {
    state: Mutex<(u64, BTreeSet<u64>)>,
}

impl Slots {
    pub(super) fn open(&self) -> u64 {
        let mut state = self.state.lock();
        state.0 += 1;
        let timestamp = state.0;
        state.1.insert(timestamp);
        timestamp
    }

    pub(super) fn close(&self, timestamp: u64) {
        self.state.lock().1.remove(&timestamp);
    }

    pub(super) fn no_holes(&self) -> Timestamp {
        let state = self.state.lock();
        Timestamp(state.1.first().map_or(state.0, |first| first - 1))
    }
}

struct Committer {
    log: Log,
    slots: Arc<Slots>,
    sequence: Arc<AtomicU64>,
}

impl Committer {
    /// One durable commit; gives its timestamp.
    fn commit(&self, payload: &[u8]) -> u64 {
        self.try_commit(payload).unwrap()
    }

    /// A slot that fails before its commit stays a hole.
    fn try_commit(&self, payload: &[u8]) -> Result<u64> {
        let timestamp = self.slots.open();
        let record = PreparedRecord::new(1, &[(Timestamp(timestamp), entry(timestamp))], payload)?;
        let point = {
            let _room = self.log.reserve(record.reserved_bytes())?;
            let mut guard = self.log.lock();
            guard.append(&record, self.sequence.fetch_add(1, Ordering::SeqCst) + 1)
        };
        self.slots.close(timestamp);
        self.log.no_holes_advanced();
        self.log.wait_durable(point)?;
        Ok(timestamp)
    }
}

pub(super) fn spawn(env: &Env, body: impl FnOnce() + Send + 'static) -> Box<dyn pando_env::ThreadHandle> {
    env.tasks().spawn_thread("test", Box::new(body)).unwrap()
}

#[test]
fn x21_x26_committers_a_tailing_reader_and_truncation_together() {
    let env = Env::real();
    let place = RealDirectory::new("threads");
    let slots = Arc::new(Slots::default());
    let point: NoHoles = {
        let slots = slots.clone();
        Arc::new(move || slots.no_holes())
    };
    let options = LogOptions { segment_bytes: 16384, oplog_max_bytes: 30_000, ..small(true) };
    let (log, _) = Log::open(&env, place.path(), options.clone(), None, point.clone()).unwrap();
    let sequence = Arc::new(AtomicU64::new(0));
    const THREADS: u64 = 8;
    const COMMITS: u64 = 60;
    let mut threads = Vec::new();
    for _ in 0..THREADS {
        let committer = Committer { log: log.clone(), slots: slots.clone(), sequence: sequence.clone() };
        threads.push(spawn(&env, move || {
            for _ in 0..COMMITS {
                let timestamp = committer.commit(&[8; 64]);
                assert!(committer.log.durable_no_holes() >= Timestamp(timestamp));
            }
        }));
    }
    let reader = log.clone();
    threads.push(spawn(&env, move || {
        let (mut cursor, mut last) = (reader.oplog().forward(), 0);
        while last < THREADS * COMMITS {
            reader.oplog().wait_for_visible_after(Timestamp(last), reader.oplog().generation()).unwrap();
            match cursor.advance() {
                Ok(Some((timestamp, bytes))) => {
                    assert_eq!((timestamp.0, bytes), (last + 1, entry(last + 1)), "no hole is passed");
                    last += 1;
                }
                Ok(None) => {}
                Err(error) => panic!("{error}"),
            }
            reader.pin("reader", Timestamp(last.max(1)));
        }
    }));
    log.pin("reader", Timestamp(1));
    let truncater = log.clone();
    let finished = sequence.clone();
    threads.push(spawn(&env, move || {
        while finished.load(Ordering::SeqCst) < THREADS * COMMITS {
            let position = truncater.flush().unwrap();
            truncater.checkpointed(position).unwrap();
            truncater.truncate_oplog_old().unwrap();
            assert!(truncater.verify().unwrap().is_sound());
        }
    }));
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let (first, count) = (log.oplog().first(), log.oplog().count());
    let statistics = log.statistics();
    assert_eq!(statistics.appended_records, THREADS * COMMITS);
    let from = log.flush().unwrap();
    drop(log);
    let (log, recovery) = Log::open(&env, place.path(), options, Some(from), point).unwrap();
    assert_eq!(recovery.last_sequence(), THREADS * COMMITS);
    assert_eq!((log.oplog().first(), log.oplog().count()), (first, count));
}

#[test]
fn x21_waiting_committers_share_syncs() {
    let env = Env::real();
    let place = RealDirectory::new("share");
    let slots = Arc::new(Slots::default());
    let point: NoHoles = {
        let slots = slots.clone();
        Arc::new(move || slots.no_holes())
    };
    let options = LogOptions { oplog: true, segment_bytes: 1 << 20, ..LogOptions::default() };
    let (log, _) = Log::open(&env, place.path(), options, None, point).unwrap();
    let sequence = Arc::new(AtomicU64::new(0));
    let threads: Vec<_> = (0..64)
        .map(|_| {
            let committer = Committer { log: log.clone(), slots: slots.clone(), sequence: sequence.clone() };
            spawn(&env, move || {
                for _ in 0..20 {
                    committer.commit(b"redo");
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let statistics = log.statistics();
    assert_eq!(statistics.flushed_commits, 64 * 20);
    assert!(statistics.syncs < 64 * 20, "{statistics:?}");
}

/// Real threads on the simulated disk, whose power goes.
#[test]
fn x21_x26_power_loss_under_concurrent_committers() {
    for seed in 0..150 {
        let machine = Simulation::new(seed);
        let env = Env::real().with_disk(machine.disk().handle());
        let slots = Arc::new(Slots::default());
        let told = slots.clone();
        let (log, _) = open_told(&env, Arc::new(move || told.no_holes())).unwrap();
        machine.disk().crash_after(20 + seed % 70);
        let sequence = Arc::new(AtomicU64::new(0));
        let acknowledged = Arc::new(Mutex::new(BTreeSet::new()));
        let threads: Vec<_> = (0..6)
            .map(|_| {
                let committer = Committer { log: log.clone(), slots: slots.clone(), sequence: sequence.clone() };
                let acknowledged = acknowledged.clone();
                spawn(&env, move || {
                    while let Ok(timestamp) = committer.try_commit(&[8; 32]) {
                        acknowledged.lock().insert(timestamp);
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        drop(log);
        let (log, recovery) = open_told(&machine.crash(), Arc::new(|| Timestamp::MAX)).unwrap();
        let no_holes = recovery.no_holes().0;
        let last = acknowledged.lock().last().copied().unwrap_or(0);
        assert!(no_holes >= last, "seed {seed}: {last} was acknowledged, {no_holes} came back");
        assert_eq!(forward(&log), (1..=no_holes).collect::<Vec<u64>>(), "seed {seed}: a hole");
        assert!(sequences(recovery).into_iter().eq(1..=log.lock().last_sequence()), "seed {seed}");
    }
}

fn open_told(env: &Env, no_holes: NoHoles) -> Result<(Log, Recovery)> {
    Log::open(env, &directory(), small(true), None, no_holes)
}
