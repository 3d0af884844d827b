//! Tasks on a runtime of several workers, which share flushes.

use super::threads::{Slots, spawn};
use super::*;
use pando_env::real::prepare_workers;
use pando_env::simulated::Simulation;
use std::future::Future;
use std::sync::atomic::AtomicBool;
use std::task::Poll;
use std::time::Duration;

/// A log with its flusher and a runtime.
struct World {
    log: Log,
    slots: Arc<Slots>,
    sequence: Arc<AtomicU64>,
    runtime: tokio::runtime::Runtime,
    is_over: Arc<AtomicBool>,
    flusher: Box<dyn pando_env::ThreadHandle>,
}

impl World {
    fn new(env: &Env, place: &Path) -> World {
        let slots = Arc::new(Slots::default());
        let told = slots.clone();
        let options = LogOptions { oplog: true, segment_bytes: 1 << 20, ..LogOptions::default() };
        let (log, _) = Log::open(env, place, options, None, Arc::new(move || told.no_holes())).unwrap();
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = prepare_workers(&mut builder, 2).build().unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let (served, over) = (log.clone(), is_over.clone());
        let flusher = spawn(env, move || {
            let goes_on = || !over.load(Ordering::SeqCst);
            let _ = served.serve_flushes(Duration::from_millis(50), &goes_on, &|| false);
        });
        World { log, slots, sequence: Arc::default(), runtime, is_over, flusher }
    }

    /// Tasks that commit so often each, and a number for each commit that was durable when its wait ended.
    fn commit(&self, tasks: u64, commits: u64, wait: Waiting) -> u64 {
        let handles: Vec<_> = (0..tasks)
            .map(|task| {
                let (log, slots, sequence) = (self.log.clone(), self.slots.clone(), self.sequence.clone());
                self.runtime.spawn(async move {
                    let mut durable = 0;
                    for number in 0..commits {
                        let Some((timestamp, point)) = append(&log, &slots, &sequence) else { break };
                        let patience = if wait == Waiting::Impatient { (task + number) % 5 } else { u64::MAX };
                        match give_up_after(patience, log.wait_durable_async(point)).await {
                            Some(Ok(())) => {
                                assert!(log.durable_no_holes() >= Timestamp(timestamp));
                                durable += 1;
                            }
                            Some(Err(_)) => break,
                            None => {}
                        }
                    }
                    durable
                })
            })
            .collect();
        self.runtime.block_on(async {
            let mut durable = 0;
            for handle in handles {
                durable += handle.await.unwrap();
            }
            durable
        })
    }

    fn end_flusher(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.log.wake_threads();
        let nobody = spawn(&Env::real(), || ());
        std::mem::replace(&mut self.flusher, nobody).join().unwrap();
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Waiting {
    Patient,
    /// Some give up before their commit is durable.
    Impatient,
}

fn append(log: &Log, slots: &Slots, sequence: &AtomicU64) -> Option<(u64, DurablePoint)> {
    let timestamp = slots.open();
    let record = PreparedRecord::new(1, &[(Timestamp(timestamp), entry(timestamp))], &[7; 100]).unwrap();
    let point = {
        let _room = log.reserve(record.reserved_bytes()).ok()?;
        let mut guard = log.lock();
        guard.append(&record, sequence.fetch_add(1, Ordering::SeqCst) + 1)
    };
    slots.close(timestamp);
    log.no_holes_advanced();
    Some((timestamp, point))
}

/// Polls at most so often.
async fn give_up_after<T>(polls: u64, wait: impl Future<Output = T>) -> Option<T> {
    let mut wait = std::pin::pin!(wait);
    let mut polled = 0;
    std::future::poll_fn(move |context| {
        polled += 1;
        match wait.as_mut().poll(context) {
            Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
            Poll::Pending if polled > polls => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

#[test]
fn x21_tasks_share_flushes_and_every_one_is_told() {
    let place = RealDirectory::new("tasks");
    let world = World::new(&Env::real(), place.path());
    for tasks in [1, 2, 16, 64] {
        assert_eq!(world.commit(tasks, 100, Waiting::Patient), tasks * 100);
    }
    let statistics = world.log.statistics();
    assert!(statistics.syncs < statistics.flushed_commits, "{statistics:?}");
}

#[test]
fn x21_a_lone_committer_is_told_also_when_others_come() {
    let place = RealDirectory::new("lone");
    let world = World::new(&Env::real(), place.path());
    let is_over = Arc::new(AtomicBool::new(false));
    // Long enough to be taken for alone, and for nothing else to be known to happen.
    assert_eq!(world.commit(1, 200, Waiting::Patient), 200);
    let over = is_over.clone();
    let neighbour = world.runtime.spawn(async move {
        while !over.load(Ordering::SeqCst) {
            tokio::task::yield_now().await;
        }
    });
    assert_eq!(world.commit(1, 1_000, Waiting::Patient), 1_000);
    assert_eq!(world.commit(4, 200, Waiting::Patient), 800, "those too");
    is_over.store(true, Ordering::SeqCst);
    world.runtime.block_on(neighbour).unwrap();
}

#[test]
fn x21_whoever_gives_up_leaves_nobody_waiting() {
    let place = RealDirectory::new("tasks-give-up");
    let mut world = World::new(&Env::real(), place.path());
    for _ in 0..20 {
        world.commit(16, 20, Waiting::Impatient);
        assert_eq!(world.commit(3, 3, Waiting::Patient), 9);
    }
    world.end_flusher();
    assert_eq!(world.commit(8, 10, Waiting::Patient), 80, "they lead themselves");
}

#[test]
fn x26_when_a_flush_fails_every_task_is_told() {
    for seed in 0..20 {
        let machine = Simulation::new(seed);
        let env = Env::real().with_disk(machine.disk().handle());
        let world = World::new(&env, &directory());
        machine.disk().crash_after(20 + seed);
        assert!(world.commit(16, 1_000_000, Waiting::Patient) < 16_000_000, "nobody waits for ever");
    }
}

#[test]
fn x21_much_is_written_before_anybody_waits_for_it() {
    let (env, place) = (Env::real(), RealDirectory::new("much"));
    let mut world = World::new(&env, place.path());
    let before = world.log.durable_position();
    let written = || world.log.statistics().written_bytes;
    let (mut last, unwritten) = (None, written());
    for _ in 0..5_000 {
        last = append(&world.log, &world.slots, &world.sequence);
    }
    // The workers of the runtime may have to come to rest first.
    for _ in 0..10_000 {
        if written() > unwritten {
            break;
        }
        env.clock().pause(Duration::from_millis(1));
        last = append(&world.log, &world.slots, &world.sequence);
    }
    assert!(written() > unwritten, "the thread writes");
    assert_eq!(world.log.durable_position(), before, "nothing was synced");
    let (timestamp, point) = last.unwrap();
    world.log.wait_durable(point).unwrap();
    assert!(world.log.durable_no_holes() >= Timestamp(timestamp));
    assert!(world.log.verify().unwrap().is_sound());
    world.end_flusher();
}
