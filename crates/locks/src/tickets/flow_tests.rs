//! Flow control's tickets, and lockers that wait for them.
#![cfg(not(feature = "shuttle"))]

use super::*;
use crate::testing::{ByHand, Killable, now, tickets};
use crate::{LockManager, LockRequest, ResourceId};
use pando_env::simulated::Simulation;
use std::sync::atomic::Ordering;

fn manager() -> (Simulation, Arc<Tickets>, Arc<LockManager>) {
    let (simulation, tickets) = tickets(&TicketParameters::default());
    let manager = LockManager::with_tickets(&simulation.env(), Arc::clone(&tickets));
    (simulation, tickets, manager)
}

#[test]
fn x23_without_a_limit_nobody_waits() {
    let (_simulation, tickets, manager) = manager();
    let lockers: Vec<_> = (0..50).map(|_| manager.locker_in(0)).collect();
    for locker in &lockers {
        now(locker.lock_global(Mode::IX, &Wait::FOREVER)).unwrap();
        assert_eq!(locker.info(None).stats.flow, crate::FlowStats::default());
        locker.unlock_everything();
    }
    tickets.flow().refresh(FLOW_TICKETS_UNLIMITED);
    assert_eq!((tickets.flow().waiting_count(), tickets.flow().waited_micros()), (0, 0));
}

#[test]
fn x23_writers_wait_for_the_next_period_in_order() {
    let (simulation, tickets, manager) = manager();
    let flow = tickets.flow();
    flow.refresh(1);
    let lockers: Vec<_> = (0..4).map(|_| manager.locker_in(0)).collect();
    now(lockers[0].lock_global(Mode::IX, &Wait::FOREVER)).unwrap();
    let mut waiting: Vec<_> =
        lockers[1..].iter().map(|locker| ByHand::new(locker.lock_global(Mode::IX, &Wait::FOREVER))).collect();
    assert!(waiting.iter_mut().all(|attempt| attempt.poll().is_none()));
    assert_eq!(flow.waiting_count(), 3);
    assert!(lockers[1].info(None).is_in_flow_control && !lockers[0].info(None).is_in_flow_control);
    // Readers, and those who cannot wait, pass.
    let reader = manager.locker_in(0);
    now(reader.lock_global(Mode::IS, &Wait::FOREVER)).unwrap();
    let urgent = manager.locker_in(0);
    urgent.set_priority(Priority::Immediate);
    now(urgent.lock_global(Mode::IX, &Wait::FOREVER)).unwrap();
    simulation.clock().advance(Duration::from_secs(1));
    flow.refresh(2);
    assert!(waiting[0].poll().is_some() && waiting[1].poll().is_some() && waiting[2].poll().is_none());
    // One that goes away leaves no trace.
    waiting.truncate(2);
    assert_eq!(flow.waiting_count(), 0);
    drop(waiting);
    let stats = lockers[1].info(None).stats.flow;
    assert_eq!((stats.acquire_wait_count, stats.time_acquiring_micros), (1, 1_000_000));
    assert!(!lockers[1].info(None).is_in_flow_control);
    assert_eq!(flow.waited_micros(), 3_000_000);
    lockers.iter().chain([&reader, &urgent]).for_each(|locker| locker.unlock_everything());
}

#[test]
fn x23_who_waits_can_be_killed() {
    let (_simulation, tickets, manager) = manager();
    tickets.flow().refresh(0);
    let (locker, killable) = (manager.locker_in(0), Killable::default());
    let wait = Wait::interruptible(&killable);
    let mut attempt = ByHand::new(locker.lock_global(Mode::IX, &wait));
    assert!(attempt.poll().is_none());
    killable.is_killed.store(true, Ordering::SeqCst);
    assert_eq!(attempt.poll().unwrap().unwrap_err().code(), ErrorCode::Interrupted);
    drop(attempt);
    assert_eq!(tickets.flow().waiting_count(), 0);
    // It holds nothing and can begin anew.
    tickets.flow().refresh(FLOW_TICKETS_UNLIMITED);
    now(locker.lock_global(Mode::IX, &Wait::FOREVER)).unwrap();
    now(locker.lock(LockRequest::new(ResourceId::database(None, b"d"), Mode::IX), &Wait::FOREVER)).unwrap();
    locker.unlock_everything();
}
