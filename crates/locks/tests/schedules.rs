//! The schedules of what threads share without a common lock, explored with shuttle: the intents counted in partitions, and
//! the word of a ticket pool.
//!
//! The worlds are built from the crate itself. The two ideas on which it rests, *closed and count are one word* and
//! *available and queued are one word*, are also tried in small copies, whole and deliberately broken; the broken ones
//! must fail, or this would prove nothing. Shuttle explores interleavings of sequentially consistent memory; it says
//! nothing about weaker orders.
#![allow(clippy::unwrap_used)]
#![cfg(feature = "shuttle")]

use pando_env::simulated::Simulation;
use pando_locks::{
    Acquisition, LockManager, LockRequest, Locker, Mode, Priority, ProbingParameters, ResourceId, TicketParameters,
    Tickets, Wait,
};
use shuttle::Runner;
use shuttle::future::block_on;
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::sync::Mutex;
use shuttle::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use shuttle::thread;
use std::sync::Arc;

const ITERATIONS: usize = 1_000;

fn explore(world: impl Fn() + Send + Sync + Clone + 'static) {
    Runner::new(RandomScheduler::new_from_seed(7, ITERATIONS), Default::default()).run(world.clone());
    Runner::new(PctScheduler::new_from_seed(7, 3, ITERATIONS), Default::default()).run(world);
}

fn fails(world: impl Fn() + Send + Sync + Clone + 'static) -> bool {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| explore(world))).is_err()
}

fn manager() -> Arc<LockManager> {
    LockManager::new(&Simulation::new(1).env())
}

/// Who is inside what a lock protects.
#[derive(Default)]
struct Inside {
    intents: AtomicU64,
    strong: AtomicBool,
}

impl Inside {
    fn visit_with_intent(&self) {
        self.intents.fetch_add(1, Ordering::SeqCst);
        assert!(!self.strong.load(Ordering::SeqCst), "an intent and X are granted together");
        self.intents.fetch_sub(1, Ordering::SeqCst);
    }

    fn visit_alone(&self) {
        assert!(!self.strong.swap(true, Ordering::SeqCst), "X is granted twice");
        assert_eq!(self.intents.load(Ordering::SeqCst), 0, "an intent and X are granted together");
        self.strong.store(false, Ordering::SeqCst);
    }
}

fn lock(locker: &Locker, resource: ResourceId, mode: Mode) {
    block_on(locker.lock(LockRequest::new(resource, mode), &Wait::FOREVER)).unwrap();
}

fn intents_against_exclusive(resource: ResourceId) {
    let (manager, inside) = (manager(), Arc::new(Inside::default()));
    let mut threads = Vec::new();
    for number in 0..2 {
        let (manager, inside) = (manager.clone(), inside.clone());
        threads.push(thread::spawn(move || {
            let locker = manager.locker_in(number);
            for mode in [Mode::IX, Mode::IS] {
                lock(&locker, resource, mode);
                inside.visit_with_intent();
                assert!(locker.unlock(resource));
            }
        }));
    }
    for number in 0..2 {
        let (manager, inside) = (manager.clone(), inside.clone());
        threads.push(thread::spawn(move || {
            let locker = manager.locker_in(number);
            lock(&locker, resource, Mode::X);
            inside.visit_alone();
            assert!(locker.unlock(resource));
        }));
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    manager.clean_unused();
    assert_eq!(manager.resource_count(), 0, "something is counted that nobody holds");
}

#[test]
fn x9_intents_and_exclusive_locks_of_a_global_resource() {
    explore(|| intents_against_exclusive(ResourceId::PARALLEL_BATCH_WRITER_MODE));
}

#[test]
fn x9_intents_and_exclusive_locks_of_another_resource() {
    explore(|| intents_against_exclusive(ResourceId::mutex("stands for a database")));
}

#[test]
fn x9_requests_given_up_leave_no_ghost() {
    explore(|| {
        let (manager, resource) = (manager(), ResourceId::PARALLEL_BATCH_WRITER_MODE);
        let mut threads = Vec::new();
        for number in 0..2 {
            let manager = manager.clone();
            threads.push(thread::spawn(move || {
                let locker = manager.locker_in(number);
                lock(&locker, resource, Mode::IX);
                assert!(locker.unlock(resource));
            }));
        }
        for mode in [Mode::X, Mode::S] {
            let manager = manager.clone();
            threads.push(thread::spawn(move || {
                let locker = manager.locker();
                // Given up at once, whether it waits or is granted in between.
                match locker.lock_begin(LockRequest::new(resource, mode), &Wait::FOREVER).unwrap() {
                    Acquisition::Waiting(pending) => drop(pending),
                    Acquisition::Granted => assert!(locker.unlock(resource)),
                }
            }));
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        manager.clean_unused();
        assert_eq!(manager.resource_count(), 0);
    });
}

#[test]
fn x9_conversions_among_intents() {
    explore(|| {
        let (manager, inside) = (manager(), Arc::new(Inside::default()));
        let resource = ResourceId::REPLICATION_STATE_TRANSITION;
        let mut threads = Vec::new();
        for number in 0..2 {
            let (manager, inside) = (manager.clone(), inside.clone());
            threads.push(thread::spawn(move || {
                let locker = manager.locker_in(number);
                lock(&locker, resource, Mode::IS);
                lock(&locker, resource, Mode::IX);
                inside.visit_with_intent();
                assert!(!locker.unlock(resource) && locker.unlock(resource));
            }));
        }
        let locker = manager.locker_in(0);
        lock(&locker, resource, Mode::X);
        inside.visit_alone();
        locker.downgrade(resource, Mode::IX);
        inside.visit_with_intent();
        assert!(locker.unlock(resource));
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        manager.clean_unused();
        assert_eq!(manager.resource_count(), 0);
    });
}

/// Pools of one ticket each.
fn tickets() -> Arc<Tickets> {
    let probing = ProbingParameters { initial_concurrency: 1, min_concurrency: 1, ..ProbingParameters::default() };
    let parameters = TicketParameters { probing, ..TicketParameters::default() };
    let tickets = Tickets::new(&Simulation::new(1).env(), &parameters).unwrap();
    assert_eq!(tickets.write().total(), 1);
    tickets
}

#[test]
fn x22_one_ticket_goes_round() {
    explore(|| {
        let (tickets, inside) = (tickets(), Arc::new(AtomicU64::new(0)));
        let mut threads = Vec::new();
        for priority in [Priority::Normal, Priority::Low, Priority::Normal] {
            let (tickets, inside) = (tickets.clone(), inside.clone());
            threads.push(thread::spawn(move || {
                for _ in 0..2 {
                    let ticket = block_on(tickets.acquire(Mode::IX, priority, &Wait::FOREVER)).unwrap();
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two have the one ticket");
                    inside.fetch_sub(1, Ordering::SeqCst);
                    drop(ticket);
                }
            }));
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!((tickets.write().out(), tickets.write().queued()), (0, 0));
    });
}

#[test]
fn x22_tickets_survive_resizing_and_cancellation() {
    explore(|| {
        let tickets = tickets();
        let mut threads = Vec::new();
        for _ in 0..2 {
            let tickets = tickets.clone();
            threads.push(thread::spawn(move || {
                drop(block_on(tickets.acquire(Mode::IX, Priority::Normal, &Wait::FOREVER)).unwrap());
            }));
        }
        let impatient = tickets.clone();
        threads.push(thread::spawn(move || {
            let mut attempt = Box::pin(impatient.acquire(Mode::IX, Priority::Normal, &Wait::FOREVER));
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            drop(attempt.as_mut().poll(&mut context));
        }));
        for total in [2, 1] {
            tickets.write().resize(total);
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let stats = tickets.write().stats();
        assert_eq!((stats.out, stats.available, tickets.write().queued()), (0, 1, 0));
    });
}

/// What is broken on purpose in a copy.
#[derive(Clone, Copy, PartialEq)]
enum Broken {
    No,
    Yes,
}

/// A copy of an intent's word: the count above a bit that says *closed*; broken, the bit is elsewhere.
#[derive(Default)]
struct CopiedWord {
    word: AtomicU64,
    closed: AtomicBool,
}

impl CopiedWord {
    fn add(&self, broken: Broken) -> bool {
        if broken == Broken::Yes {
            let is_open = !self.closed.load(Ordering::SeqCst);
            self.word.fetch_add(if is_open { 2 } else { 0 }, Ordering::SeqCst);
            return is_open;
        }
        let open = |word: u64| (word & 1 == 0).then_some(word + 2);
        self.word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, open).is_ok()
    }

    fn close(&self, broken: Broken) -> u64 {
        if broken == Broken::Yes {
            self.closed.store(true, Ordering::SeqCst);
        }
        self.word.swap(1, Ordering::SeqCst) >> 1
    }
}

fn an_intent_is_seen_or_sees(broken: Broken) {
    let (word, inside) = (Arc::new(CopiedWord::default()), Arc::new(Inside::default()));
    let other = (word.clone(), inside.clone());
    let intent = thread::spawn(move || {
        if other.0.add(broken) {
            // Held for ever, so X must have seen it.
            other.1.intents.fetch_add(1, Ordering::SeqCst);
            assert!(!other.1.strong.load(Ordering::SeqCst));
        }
    });
    if word.close(broken) == 0 {
        inside.strong.store(true, Ordering::SeqCst);
        assert_eq!(inside.intents.load(Ordering::SeqCst), 0);
    }
    intent.join().unwrap();
}

#[test]
fn x9_closed_and_count_must_be_one_word() {
    explore(|| an_intent_is_seen_or_sees(Broken::No));
    assert!(fails(|| an_intent_is_seen_or_sees(Broken::Yes)), "the broken copy must fail");
}

/// A copy of a ticket pool of one ticket: available above queued; broken, they are two words.
struct CopiedPool {
    word: AtomicU64,
    queued: AtomicU64,
    queue: Mutex<Vec<thread::Thread>>,
    given: AtomicU64,
}

const ONE_TICKET: u64 = 1 << 32;

impl CopiedPool {
    fn take(&self) -> bool {
        let taken = |word: u64| word.checked_sub(ONE_TICKET);
        self.word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, taken).is_ok()
    }

    fn acquire(&self, broken: Broken) {
        if self.take() {
            return;
        }
        {
            let mut queue = self.queue.lock().unwrap();
            let queued = |word: u64| Some(if word >= ONE_TICKET { word - ONE_TICKET } else { word + 1 });
            if broken == Broken::Yes {
                // Looks once more, then says that it is queued: too late for whoever gives back in between.
                if self.take() {
                    return;
                }
                self.queued.fetch_add(1, Ordering::SeqCst);
            } else if self.word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, queued).unwrap() >= ONE_TICKET {
                return;
            }
            queue.push(thread::current());
        }
        while self.given.swap(0, Ordering::SeqCst) == 0 {
            thread::park();
        }
    }

    fn release(&self, broken: Broken) {
        if broken == Broken::Yes {
            if self.queued.load(Ordering::SeqCst) == 0 {
                self.word.fetch_add(ONE_TICKET, Ordering::SeqCst);
                return;
            }
        } else {
            let given = |word: u64| (word & (ONE_TICKET - 1) == 0).then_some(word + ONE_TICKET);
            if self.word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, given).is_ok() {
                return;
            }
        }
        let next = self.queue.lock().unwrap().remove(0);
        let word = if broken == Broken::Yes { &self.queued } else { &self.word };
        word.fetch_sub(1, Ordering::SeqCst);
        self.given.store(1, Ordering::SeqCst);
        next.unpark();
    }
}

fn a_ticket_given_back_is_not_missed(broken: Broken) {
    let pool = Arc::new(CopiedPool {
        word: AtomicU64::new(ONE_TICKET),
        queued: AtomicU64::new(0),
        queue: Mutex::new(Vec::new()),
        given: AtomicU64::new(0),
    });
    let other = pool.clone();
    let thread = thread::spawn(move || {
        other.acquire(broken);
        other.release(broken);
    });
    pool.acquire(broken);
    pool.release(broken);
    thread.join().unwrap();
}

#[test]
fn x22_available_and_queued_must_be_one_word() {
    explore(|| a_ticket_given_back_is_not_missed(Broken::No));
    assert!(fails(|| a_ticket_given_back_is_not_missed(Broken::Yes)), "the broken copy must fail");
}
