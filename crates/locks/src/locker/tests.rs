//! Lockers, their guards, units of work, yields, deadlines, interruptions and tickets.
#![cfg(not(feature = "shuttle"))]

use crate::testing::{ByHand, Killable, begun, is_free, lock, manager, now};
use crate::*;
use Mode::{IS, IX, S, X};
use pando_base::ErrorCode;
use pando_env::simulated::Simulation;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

fn database() -> ResourceId {
    ResourceId::database(None, b"test")
}

fn collection() -> ResourceId {
    ResourceId::collection(None, b"test.people")
}

/// A world with so many tickets in each pool.
fn with_tickets(count: i32) -> (Simulation, Arc<LockManager>) {
    let parameters = TicketParameters {
        algorithm: Algorithm::Fixed,
        concurrent_read_transactions: count,
        concurrent_write_transactions: count,
        ..TicketParameters::default()
    };
    let simulation = Simulation::new(3);
    let tickets = Tickets::new(&simulation.env(), &parameters).unwrap();
    let manager = LockManager::with_tickets(&simulation.env(), tickets);
    (simulation, manager)
}

/// A write with all its locks, in a unit of work.
async fn write(locker: &Locker) -> pando_base::Result<()> {
    let tenant = ResourceId::tenant(b"tenant");
    let _database = DatabaseLock::acquire(locker, Some(tenant), database(), IX, &Wait::FOREVER).await?;
    let _unit_of_work = locker.unit_of_work();
    let _collection = CollectionLock::acquire(locker, database(), collection(), IX, &Wait::FOREVER).await?;
    let _oplog = CollectionLock::acquire_unordered(locker, oplog(), IX, &Wait::FOREVER).await?;
    locker.lock(LockRequest::new(collection(), X), &Wait::FOREVER).await?;
    locker.unlock(collection());
    Ok(())
}

fn oplog() -> ResourceId {
    ResourceId::collection(None, b"local.oplog.rs")
}

fn is_send<T: Send>(value: T) -> T {
    value
}

#[test]
fn x9_locks_are_counted() {
    let (_simulation, manager) = manager();
    let locker = manager.locker();
    for _ in 0..3 {
        lock(&locker, ResourceId::GLOBAL, IX);
    }
    assert!(!locker.unlock(ResourceId::GLOBAL) && !locker.unlock(ResourceId::GLOBAL));
    assert!(!is_free(&manager, ResourceId::GLOBAL, S));
    assert!(locker.unlock(ResourceId::GLOBAL));
    assert!(!locker.unlock(ResourceId::GLOBAL), "it is not held any more");
    assert!(is_free(&manager, ResourceId::GLOBAL, X));
}

#[test]
fn x9_guards_take_and_give_back_the_hierarchy() {
    let (_simulation, manager) = manager();
    let locker = manager.locker();
    let tenant = ResourceId::tenant(b"tenant");
    let guard = now(is_send(DatabaseLock::acquire(&locker, Some(tenant), database(), X, &Wait::FOREVER))).unwrap();
    let expected = [
        (ResourceId::PARALLEL_BATCH_WRITER_MODE, IS),
        (ResourceId::FEATURE_COMPATIBILITY_VERSION, IX),
        (ResourceId::REPLICATION_STATE_TRANSITION, IX),
        (ResourceId::GLOBAL, IX),
        (tenant, IX),
        (database(), X),
    ];
    assert_eq!(locker.info(None).locks, expected);
    assert!(locker.is_collection_locked_for(database(), collection(), X), "the database is");
    assert!(locker.was_global_locked_for_write());
    drop(guard);
    assert_eq!(locker.info(None).locks, []);
    manager.clean_unused();
    assert_eq!(manager.resource_count(), 0);
}

#[test]
fn x9_what_the_options_skip_is_not_taken() {
    let (_simulation, manager) = manager();
    let locker = manager.locker();
    let options =
        GlobalLockOptions { skip_batch_barrier: true, skip_feature_compatibility: true, skip_replication_state: true };
    let guard = now(GlobalLock::acquire_with(&locker, IS, options, &Wait::FOREVER)).unwrap();
    assert_eq!(locker.info(None).locks, [(ResourceId::GLOBAL, IS)]);
    assert!(!locker.was_global_locked_for_write() && locker.was_global_locked());
    drop(guard);
    assert!(!locker.is_locked());
}

#[test]
#[should_panic(expected = "out of order")]
fn x9_locks_out_of_order_are_noticed() {
    let (_simulation, manager) = manager();
    let locker = manager.locker();
    lock(&locker, ResourceId::GLOBAL, IX);
    lock(&locker, collection(), IX);
    lock(&locker, database(), IX);
}

#[test]
#[should_panic(expected = "without the global lock")]
fn x9_locks_without_their_parent_are_noticed() {
    let (_simulation, manager) = manager();
    lock(&manager.locker(), database(), IX);
}

#[test]
fn x9_two_phase_locking() {
    let (_simulation, manager) = manager();
    let locker = manager.locker();
    let guard = now(DatabaseLock::acquire(&locker, None, database(), IX, &Wait::FOREVER)).unwrap();
    let outer = locker.unit_of_work();
    let inner = locker.unit_of_work();
    drop(now(CollectionLock::acquire(&locker, database(), collection(), X, &Wait::FOREVER)).unwrap());
    drop(inner);
    assert_eq!(
        locker.mode(collection()),
        Some(X),
        "neither the guard's end nor that of the inner unit of work unlocks"
    );
    // Taken again, it is the same lock.
    let again = now(CollectionLock::acquire(&locker, database(), collection(), IX, &Wait::FOREVER)).unwrap();
    drop(again);
    drop(guard);
    let held: Vec<_> =
        locker.info(None).locks.iter().map(|(resource, mode)| (resource.resource_type(), *mode)).collect();
    let global = ResourceType::Global;
    assert_eq!(
        held,
        [(global, IX), (global, IX), (global, IX), (ResourceType::Database, IX), (ResourceType::Collection, X)],
        "the shared barrier goes at once, locks for writing stay"
    );
    drop(outer);
    assert_eq!(locker.info(None).locks, []);
    manager.clean_unused();
    assert_eq!(manager.resource_count(), 0);
}

#[test]
fn x9_shared_locks_are_kept_if_told_so() {
    let (_simulation, manager) = manager();
    let locker = manager.locker();
    locker.set_shared_two_phase(true);
    let unit_of_work = locker.unit_of_work();
    drop(now(DatabaseLock::acquire(&locker, None, database(), IS, &Wait::FOREVER)).unwrap());
    assert_eq!(locker.mode(database()), Some(IS));
    drop(unit_of_work);
    assert_eq!(locker.mode(database()), None);
    let mutex = ResourceMutex::new("apart");
    let _unit_of_work = locker.unit_of_work();
    drop(now(mutex.lock(&locker, X, &Wait::FOREVER)).unwrap());
    assert_eq!(locker.mode(mutex.resource()), None, "mutexes are outside");
}

#[test]
fn x9_conversion_in_a_unit_of_work_is_unlocked_as_often_as_locked() {
    let (_simulation, manager) = manager();
    let locker = manager.locker();
    let guard = now(DatabaseLock::acquire(&locker, None, database(), IX, &Wait::FOREVER)).unwrap();
    let unit_of_work = locker.unit_of_work();
    drop(now(CollectionLock::acquire(&locker, database(), collection(), IX, &Wait::FOREVER)).unwrap());
    drop(now(CollectionLock::acquire(&locker, database(), collection(), X, &Wait::FOREVER)).unwrap());
    assert_eq!(locker.mode(collection()), Some(X));
    drop(unit_of_work);
    assert_eq!(locker.mode(collection()), None);
    drop(guard);
}

#[test]
fn x9_a_yield_gives_everything_up_and_takes_it_again() {
    let (_simulation, manager) = with_tickets(5);
    let tickets = manager.tickets().unwrap().clone();
    let locker = manager.locker();
    let guard = now(DatabaseLock::acquire(&locker, None, database(), IX, &Wait::FOREVER)).unwrap();
    let inner = now(CollectionLock::acquire(&locker, database(), collection(), IX, &Wait::FOREVER)).unwrap();
    let before = locker.info(None).locks;
    let saved = locker.save_and_unlock().unwrap();
    assert_eq!((locker.info(None).locks.len(), tickets.write().out()), (0, 0));
    assert_eq!(locker.client_state(), ClientState::Inactive);
    assert!(is_free(&manager, ResourceId::REPLICATION_STATE_TRANSITION, X));
    now(is_send(locker.restore(&saved, &Wait::FOREVER))).unwrap();
    assert_eq!((locker.info(None).locks, tickets.write().out()), (before, 1));
    drop((inner, guard));
    assert_eq!((locker.info(None).locks.len(), tickets.write().out()), (0, 0));
}

#[test]
fn x9_a_yield_gives_mutexes_up_so_that_those_behind_a_ddl_get_on() {
    let (_simulation, manager) = with_tickets(5);
    let (yielding, writer, ddl) = (manager.locker(), manager.locker(), manager.locker());
    let mutex = ResourceId::mutex("documents one at a time");
    let hold = |locker: &Locker, mode| {
        let held = now(locker.hold_collection(None, database(), collection(), mode, &Wait::FOREVER));
        held.unwrap();
    };
    hold(&yielding, IX);
    lock(&yielding, mutex, X);
    let before = yielding.info(None).locks;
    hold(&writer, IX);
    let mut writer_waits = begun(&writer, LockRequest::new(mutex, X));
    // A DDL comes.
    let mut ddl_waits = ByHand::new(ddl.hold_collection(None, database(), collection(), X, &Wait::FOREVER));
    assert!(ddl_waits.poll().is_none());
    let saved = yielding.save_and_unlock().unwrap();
    assert!(ddl_waits.poll().is_none(), "the writer holds the collection");
    let mut restored = ByHand::new(yielding.restore(&saved, &Wait::FOREVER));
    assert!(restored.poll().is_none(), "the DDL was first");
    writer_waits.poll().unwrap().unwrap();
    writer.unlock_everything();
    ddl_waits.poll().unwrap().unwrap();
    ddl.unlock_everything();
    restored.poll().unwrap().unwrap();
    assert_eq!(yielding.info(None).locks, before);
    yielding.unlock_everything();
}

#[test]
fn x9_nested_operations_and_state_changes_do_not_yield() {
    let (_simulation, manager) = manager();
    let locker = manager.locker();
    assert_eq!(locker.save_and_unlock(), None, "nothing is held");
    let outer = now(GlobalLock::acquire(&locker, IX, &Wait::FOREVER)).unwrap();
    let inner = now(GlobalLock::acquire(&locker, IX, &Wait::FOREVER)).unwrap();
    assert_eq!(locker.save_and_unlock(), None, "nested");
    drop((inner, outer));
    lock(&locker, ResourceId::REPLICATION_STATE_TRANSITION, X);
    lock(&locker, ResourceId::GLOBAL, IX);
    assert_eq!(locker.save_and_unlock(), None, "the state is being changed");
    locker.unlock(ResourceId::GLOBAL);
    locker.unlock(ResourceId::REPLICATION_STATE_TRANSITION);
}

#[test]
fn x9_a_prepared_transaction_gives_its_unit_of_work_up() {
    let (_simulation, manager) = manager();
    let locker = manager.locker();
    locker.set_shared_two_phase(true);
    locker.begin_unit_of_work();
    drop(now(DatabaseLock::acquire(&locker, None, database(), IX, &Wait::FOREVER)).unwrap());
    assert!(locker.unlock_replication_state_for_prepare());
    assert!(is_free(&manager, ResourceId::REPLICATION_STATE_TRANSITION, X));
    let saved = locker.save_unit_of_work_and_unlock();
    assert!(is_free(&manager, ResourceId::GLOBAL, X));
    now(locker.restore_unit_of_work(&saved, &Wait::FOREVER)).unwrap();
    assert_eq!(locker.mode(database()), Some(IX));
    locker.end_unit_of_work();
    assert!(is_free(&manager, ResourceId::GLOBAL, X));
}

#[test]
fn x9_a_deadline_ends_the_wait_with_lock_timeout() {
    let (simulation, manager) = manager();
    let (holder, waiter) = (manager.locker(), manager.locker());
    let resource = ResourceId::mutex("one");
    lock(&holder, resource, X);
    let deadline = Deadline::after(simulation.clock(), Duration::from_millis(30));
    let error = now(waiter.lock(LockRequest::new(resource, IS), &Wait::until(deadline))).unwrap_err();
    assert_eq!((error.code(), error.code().number()), (ErrorCode::LockTimeout, 24));
    assert!(error.reason().contains("Unable to acquire IS lock on") && error.reason().contains("within 30ms"));
    let stats = waiter.stats().of(resource, IS);
    assert_eq!((stats.acquire_count, stats.acquire_wait_count, stats.time_acquiring_micros), (1, 1, 30_000));
    assert_eq!(manager.stats().of(resource, IS), stats, "the server counts the same");
    assert_eq!(waiter.info(None).waiting, None);
    holder.unlock(resource);
    assert!(is_free(&manager, resource, X));
}

#[test]
fn x9_an_interruption_ends_the_wait() {
    let (_simulation, manager) = manager();
    let (holder, waiter) = (manager.locker(), manager.locker());
    let (operation, resource) = (Killable::default(), ResourceId::mutex("one"));
    lock(&holder, resource, X);
    let wait = Wait::interruptible(&operation);
    let mut attempt = ByHand::new(waiter.lock(LockRequest::new(resource, X), &wait));
    assert!(attempt.poll().is_none());
    operation.is_killed.store(true, Ordering::SeqCst);
    assert_eq!(attempt.poll().unwrap().unwrap_err().code(), ErrorCode::Interrupted);
    drop(attempt);
    holder.unlock(resource);
    let error = now(waiter.lock(LockRequest::new(resource, X), &wait)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Interrupted, "not even a free lock is taken");
    assert!(is_free(&manager, resource, X));
}

#[test]
fn x9_an_operation_that_is_killed_or_late_stops_waiting_with_its_own_error() {
    let (_simulation, manager) = manager();
    let (holder, waiter, resource) = (manager.locker(), manager.locker(), ResourceId::mutex("one"));
    lock(&holder, resource, X);
    let operation = pando_base::OperationContext::detached();
    let wait = Wait::of(&operation);
    let mut attempt = ByHand::new(waiter.lock(LockRequest::new(resource, X), &wait));
    assert!(attempt.poll().is_none());
    operation.kill(ErrorCode::InterruptedDueToReplStateChange);
    assert!(attempt.is_woken());
    assert_eq!(attempt.poll().unwrap().unwrap_err().code(), ErrorCode::InterruptedDueToReplStateChange);
    drop(attempt);
    let late = pando_base::OperationContext::detached();
    late.set_deadline(0);
    let error = now(waiter.lock(LockRequest::new(resource, X), &Wait::of(&late))).unwrap_err();
    assert_eq!(error.code(), ErrorCode::MaxTimeMSExpired);
    holder.unlock(resource);
    assert!(is_free(&manager, resource, X));
}

#[test]
fn x9_a_grant_beats_an_interruption_that_comes_later() {
    let (_simulation, manager) = manager();
    let (holder, waiter) = (manager.locker(), manager.locker());
    let (operation, resource) = (Killable::default(), ResourceId::mutex("one"));
    lock(&holder, resource, X);
    let wait = Wait::interruptible(&operation);
    let mut attempt = ByHand::new(waiter.lock(LockRequest::new(resource, X), &wait));
    assert!(attempt.poll().is_none());
    holder.unlock(resource);
    operation.is_killed.store(true, Ordering::SeqCst);
    attempt.poll().unwrap().unwrap();
    assert_eq!(waiter.mode(resource), Some(X));
    waiter.unlock(resource);
}

#[test]
fn x9_queueing_and_waiting_can_be_two_steps() {
    let (_simulation, manager) = manager();
    let (operation, step_down) = (manager.locker(), manager.locker());
    let resource = ResourceId::REPLICATION_STATE_TRANSITION;
    lock(&operation, resource, IX);
    let begun = step_down.lock_begin(LockRequest::new(resource, X), &Wait::FOREVER).unwrap();
    let Acquisition::Waiting(pending) = begun else { panic!("it is not free") };
    assert_eq!(step_down.info(None).waiting, Some(resource));
    assert!(!is_free(&manager, resource, IX), "newcomers wait behind it");
    operation.unlock(resource);
    now(pending.complete(&Wait::FOREVER)).unwrap();
    assert_eq!(step_down.mode(resource), Some(X));
    step_down.unlock(resource);
}

#[test]
fn x9_letters_for_current_op() {
    let (_simulation, manager) = manager();
    let locker = manager.locker();
    let guard = now(DatabaseLock::acquire(&locker, None, database(), IX, &Wait::FOREVER)).unwrap();
    lock(&locker, collection(), X);
    now(locker.lock(LockRequest::new(oplog(), IX).unordered(), &Wait::FOREVER)).unwrap();
    let letters = locker.info(None).letters_by_type();
    let expected = [
        ("ParallelBatchWriterMode", "r"),
        ("FeatureCompatibilityVersion", "w"),
        ("ReplicationStateTransition", "w"),
        ("Global", "w"),
        ("Database", "w"),
        ("Collection", "W"),
    ];
    assert_eq!(letters, expected);
    locker.unlock(oplog());
    locker.unlock(collection());
    drop(guard);
}

#[test]
fn x9_a_locker_is_used_again() {
    let (_simulation, manager) = manager();
    let mut locker = manager.locker();
    drop(now(GlobalLock::acquire(&locker, IX, &Wait::FOREVER)).unwrap());
    locker.set_priority(Priority::Low);
    assert_eq!(locker.stats().of(ResourceId::GLOBAL, IX).acquire_count, 1);
    locker.reset();
    assert_eq!(locker.stats(), LockStats::default());
    assert!(!locker.was_global_locked());
    assert_eq!(locker.set_priority(Priority::Normal), Priority::Normal);
    assert_eq!(manager.stats().of(ResourceId::GLOBAL, IX).acquire_count, 1, "the server's counters stay");
}

#[test]
fn x22_the_global_lock_needs_a_ticket() {
    let (_simulation, manager) = with_tickets(5);
    let tickets = manager.tickets().unwrap().clone();
    let lockers: Vec<Locker> = (0..6).map(|_| manager.locker()).collect();
    let guards: Vec<_> =
        lockers[..5].iter().map(|locker| now(GlobalLock::acquire(locker, IX, &Wait::FOREVER)).unwrap()).collect();
    assert_eq!((tickets.write().out(), tickets.read().out()), (5, 0));
    let mut last = ByHand::new(GlobalLock::acquire(&lockers[5], IX, &Wait::FOREVER));
    assert!(last.poll().is_none());
    assert_eq!(lockers[5].client_state(), ClientState::QueuedWriter);
    assert_eq!(lockers[0].client_state(), ClientState::ActiveWriter);
    let reader = manager.locker();
    let read = now(GlobalLock::acquire(&reader, IS, &Wait::FOREVER)).unwrap();
    assert_eq!(reader.client_state(), ClientState::ActiveReader, "reads have tickets of their own");
    drop(read);
    let nested = now(GlobalLock::acquire(&lockers[0], IX, &Wait::FOREVER)).unwrap();
    assert_eq!(tickets.write().out(), 5, "nested, it needs no other");
    drop(nested);
    drop(guards);
    drop(last.poll().unwrap().unwrap());
    assert_eq!((tickets.write().out(), tickets.read().out()), (0, 0));
    assert_eq!(lockers[5].client_state(), ClientState::Inactive);
}

#[test]
fn x22_immediate_operations_and_exclusive_locks_need_no_ticket() {
    let (_simulation, manager) = with_tickets(5);
    let tickets = manager.tickets().unwrap().clone();
    let busy: Vec<Locker> = (0..5).map(|_| manager.locker()).collect();
    let guards: Vec<_> =
        busy.iter().map(|locker| now(GlobalLock::acquire(locker, IX, &Wait::FOREVER)).unwrap()).collect();
    let urgent = manager.locker();
    urgent.set_priority(Priority::Immediate);
    drop(now(GlobalLock::acquire(&urgent, IX, &Wait::FOREVER)).unwrap());
    let stats = tickets.write().stats();
    assert_eq!((stats.out, stats.immediate_priority_admissions_count), (5, 1));
    drop(guards);
    let alone = manager.locker();
    let guard = now(GlobalLock::acquire(&alone, X, &Wait::FOREVER)).unwrap();
    assert_eq!(tickets.write().out() + tickets.read().out(), 0);
    drop(guard);
}

#[test]
fn x22_a_resting_transaction_has_no_ticket() {
    let (simulation, manager) = with_tickets(5);
    let tickets = manager.tickets().unwrap().clone();
    let locker = manager.locker();
    let guard = now(DatabaseLock::acquire(&locker, None, database(), IX, &Wait::FOREVER)).unwrap();
    locker.release_ticket();
    assert_eq!((tickets.write().out(), locker.client_state()), (0, ClientState::Inactive));
    assert_eq!(locker.mode(database()), Some(IX));
    now(is_send(locker.reacquire_ticket(&Wait::FOREVER))).unwrap();
    assert_eq!((tickets.write().out(), locker.client_state()), (1, ClientState::ActiveWriter));
    // Without a ticket to be had, and somebody waiting for what it holds, it gives up rather than wait for ever.
    locker.release_ticket();
    let busy: Vec<Locker> = (0..5).map(|_| manager.locker()).collect();
    let guards: Vec<_> =
        busy.iter().map(|locker| now(GlobalLock::acquire(locker, IX, &Wait::FOREVER)).unwrap()).collect();
    let waiting = begun(&busy[0], LockRequest::new(database(), X));
    let error = now(locker.reacquire_ticket(&Wait::FOREVER)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::LockTimeout);
    assert!(error.reason().contains("detected lock conflict"), "{error}");
    drop(waiting);
    let deadline = Deadline::after(simulation.clock(), Duration::from_millis(250));
    let error = now(locker.reacquire_ticket(&Wait::until(deadline))).unwrap_err();
    assert!(error.reason().contains("Unable to acquire write ticket"), "{error}");
    drop(guards);
    drop(guard);
    assert_eq!(tickets.write().out(), 0);
}

/// Where a write may have to wait.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Obstacle {
    Locked(ResourceId, Mode),
    Tickets,
}

/// How the write ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    /// Dropped while it waits.
    Waiting,
    /// Dropped after it was granted what it waited for, before it knows.
    Granted,
    /// It goes on.
    Finished,
}

#[test]
fn x9_cancellation_at_every_point_leaves_no_ghost() {
    let obstacles = [
        Obstacle::Locked(ResourceId::PARALLEL_BATCH_WRITER_MODE, X),
        Obstacle::Locked(ResourceId::FEATURE_COMPATIBILITY_VERSION, S),
        Obstacle::Locked(ResourceId::REPLICATION_STATE_TRANSITION, X),
        Obstacle::Tickets,
        Obstacle::Locked(ResourceId::GLOBAL, X),
        Obstacle::Locked(ResourceId::tenant(b"tenant"), X),
        Obstacle::Locked(database(), S),
        Obstacle::Locked(collection(), X),
        Obstacle::Locked(oplog(), X),
        // Met by the conversion to X.
        Obstacle::Locked(collection(), IS),
    ];
    for obstacle in obstacles {
        for end in [End::Waiting, End::Granted, End::Finished] {
            meet(obstacle, end);
        }
    }
}

fn meet(obstacle: Obstacle, end: End) {
    let (_simulation, manager) = with_tickets(5);
    let tickets = manager.tickets().unwrap().clone();
    let (holder, writer) = (manager.locker_in(0), manager.locker_in(1));
    let mut held_tickets = Vec::new();
    match obstacle {
        Obstacle::Tickets => {
            held_tickets.extend((0..5).map(|_| now(tickets.acquire(IX, Priority::Normal, &Wait::FOREVER)).unwrap()));
        }
        Obstacle::Locked(resource, mode) => {
            if !matches!(resource.resource_type(), ResourceType::Global) {
                lock(&holder, ResourceId::GLOBAL, IX);
            }
            lock(&holder, resource, mode);
        }
    }
    let mut operation = ByHand::new(is_send(write(&writer)));
    assert!(operation.poll().is_none(), "{obstacle:?} should be met");
    if end == End::Waiting {
        drop(operation);
    } else {
        held_tickets.clear();
        if let Obstacle::Locked(resource, _) = obstacle {
            holder.unlock(resource);
        }
        assert!(operation.is_woken(), "{obstacle:?}");
        match end {
            End::Finished => operation.poll().unwrap().unwrap(),
            _ => drop(operation),
        }
    }
    assert_eq!(
        (writer.info(None).locks, writer.client_state()),
        (vec![], ClientState::Inactive),
        "{obstacle:?} {end:?}"
    );
    drop(held_tickets);
    holder.info(None).locks.iter().rev().for_each(|(resource, _)| assert!(holder.unlock(*resource)));
    assert_eq!((tickets.write().out(), tickets.write().queued()), (0, 0), "{obstacle:?} {end:?}");
    manager.clean_unused();
    assert_eq!(manager.resource_count(), 0, "{obstacle:?} {end:?}");
    now(write(&writer)).unwrap();
}
