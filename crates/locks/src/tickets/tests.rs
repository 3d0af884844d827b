//! Pools, priorities, resizing, statistics, and the probing.
#![cfg(not(feature = "shuttle"))]

use super::*;
use crate::testing::{ByHand, Killable, now, tickets};
use crate::wait::Deadline;
use pando_env::simulated::Simulation;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::sync::atomic::Ordering;

fn fixed(count: i32) -> TicketParameters {
    TicketParameters {
        algorithm: Algorithm::Fixed,
        concurrent_read_transactions: count,
        concurrent_write_transactions: count,
        ..TicketParameters::default()
    }
}

type Attempt<'a> = ByHand<'a, Result<Ticket<'a>>>;

fn begin(tickets: &Tickets, priority: Priority) -> Attempt<'_> {
    let mut attempt = ByHand::new(tickets.acquire(Mode::IX, priority, &Wait::FOREVER));
    assert!(attempt.poll().is_none(), "there should be no ticket");
    attempt
}

fn take(tickets: &Tickets, count: usize) -> Vec<Ticket<'_>> {
    (0..count).map(|_| now(tickets.acquire(Mode::IX, Priority::Normal, &Wait::FOREVER)).unwrap()).collect()
}

/// Gives back one ticket after the other; tells in which order the attempts were admitted.
fn order_of_admission<'a>(mut held: Vec<Ticket<'a>>, mut attempts: Vec<(usize, Attempt<'a>)>) -> Vec<usize> {
    let mut order = Vec::new();
    while let Some(ticket) = held.pop() {
        drop(ticket);
        let Some(place) = attempts.iter().position(|(_, attempt)| attempt.is_woken()) else { continue };
        let (number, mut attempt) = attempts.remove(place);
        order.push(number);
        held.push(attempt.poll().unwrap().unwrap());
    }
    order
}

#[test]
fn x22_tickets_go_round_in_order() {
    let (_simulation, tickets) = tickets(&fixed(5));
    let held = take(&tickets, 5);
    let attempts = (0..4).map(|number| (number, begin(&tickets, Priority::Normal))).collect();
    assert_eq!(tickets.write().queued(), 4);
    assert_eq!(order_of_admission(held, attempts), [0, 1, 2, 3]);
    assert_eq!((tickets.write().out(), tickets.write().stats().available), (0, 5));
}

#[test]
fn x22_normal_goes_before_low() {
    let (_simulation, tickets) = tickets(&fixed(5));
    let mut held = take(&tickets, 5);
    let priorities = [Priority::Low, Priority::Normal, Priority::Low, Priority::Normal];
    let attempts = priorities.into_iter().enumerate().map(|(number, priority)| (number, begin(&tickets, priority)));
    let attempts = attempts.collect();
    let others = held.split_off(1);
    assert_eq!(order_of_admission(held, attempts), [1, 3, 0, 2]);
    let stats = tickets.write().stats();
    assert_eq!((stats.low_priority.bypassed, stats.low_priority.expedited), (2, 0));
    drop(others);
}

#[test]
fn x22_low_priority_is_not_starved() {
    let parameters = TicketParameters { low_priority_admission_bypass_threshold: 3, ..fixed(5) };
    let (_simulation, tickets) = tickets(&parameters);
    let held = take(&tickets, 5);
    let low = (100..102).map(|number| (number, begin(&tickets, Priority::Low)));
    let normal = (0..8).map(|number| (number, begin(&tickets, Priority::Normal)));
    let attempts = low.chain(normal).collect();
    assert_eq!(order_of_admission(held, attempts), [0, 1, 2, 100, 3, 4, 5, 101, 6, 7]);
    assert_eq!(tickets.write().stats().low_priority.expedited, 2);
}

#[test]
fn x22_without_a_threshold_low_priority_waits_to_the_end() {
    let (_simulation, tickets) = tickets(&fixed(5));
    tickets.set_low_priority_bypass_threshold(0);
    let held = take(&tickets, 5);
    let low = std::iter::once((100, begin(&tickets, Priority::Low)));
    let attempts = low.chain((0..20).map(|number| (number, begin(&tickets, Priority::Normal)))).collect();
    assert_eq!(order_of_admission(held, attempts).last(), Some(&100));
}

#[test]
fn x22_a_newcomer_does_not_overtake_the_queue() {
    let (_simulation, tickets) = tickets(&fixed(5));
    let mut held = take(&tickets, 5);
    let mut first = begin(&tickets, Priority::Normal);
    held.pop();
    // The ticket belongs to the first already, although it has not looked yet.
    let second = begin(&tickets, Priority::Normal);
    let ticket = first.poll().unwrap().unwrap();
    assert!(!second.is_woken());
    drop(ticket);
    assert!(second.is_woken());
}

#[test]
fn x22_pool_shrinks_without_losing_holders() {
    let (_simulation, tickets) = tickets(&fixed(10));
    let mut held = take(&tickets, 8);
    tickets.set_concurrent_write_transactions(5).unwrap();
    let stats = tickets.write().stats();
    assert_eq!((stats.out, stats.available, stats.total_tickets), (8, 0, 5));
    let mut waiting = begin(&tickets, Priority::Normal);
    for _ in 0..3 {
        held.pop();
        assert!(!waiting.is_woken(), "the pool takes these");
    }
    assert_eq!(tickets.write().out(), 5);
    held.pop();
    held.push(waiting.poll().unwrap().unwrap());
    assert_eq!(tickets.write().out(), 5);
    held.clear();
    let stats = tickets.write().stats();
    assert_eq!((stats.out, stats.available, stats.total_tickets), (0, 5, 5));
}

#[test]
fn x22_a_ticket_that_is_lent_lets_another_in_until_it_is_taken_back() {
    let (_simulation, tickets) = tickets(&fixed(5));
    let mut held = take(&tickets, 5);
    let mut waiting: Vec<_> = (0..2).map(|_| begin(&tickets, Priority::Normal)).collect();
    tickets.write().lend();
    assert!(waiting[0].is_woken() && !waiting[1].is_woken());
    held.push(waiting[0].poll().unwrap().unwrap());
    tickets.write().take_lent_back();
    assert_eq!((tickets.write().out(), tickets.write().queued()), (6, 1));
    held.pop();
    assert!(!waiting[1].is_woken(), "this one was lent");
    held.pop();
    held.push(waiting[1].poll().unwrap().unwrap());
    held.clear();
    // Nobody waits: the next who asks gets it.
    tickets.write().lend();
    assert_eq!(take(&tickets, 6).len(), 6);
    tickets.write().take_lent_back();
    assert_eq!((tickets.write().out(), tickets.write().stats().available), (0, 5));
}

#[test]
fn x22_a_growing_pool_admits_those_who_wait() {
    let (_simulation, tickets) = tickets(&fixed(5));
    let held = take(&tickets, 5);
    let mut waiting: Vec<_> = (0..4).map(|_| begin(&tickets, Priority::Normal)).collect();
    tickets.set_concurrent_write_transactions(8).unwrap();
    let woken: Vec<_> = waiting.iter().map(ByHand::is_woken).collect();
    assert_eq!(woken, [true, true, true, false]);
    let admitted: Vec<_> = waiting[..3].iter_mut().map(|attempt| attempt.poll().unwrap().unwrap()).collect();
    assert_eq!((tickets.write().out(), tickets.write().queued()), (8, 1));
    drop((admitted, held));
    assert!(waiting[3].is_woken());
}

#[test]
fn x22_a_full_queue_refuses() {
    let parameters = TicketParameters { queue_length_max: Some(2), ..fixed(5) };
    let (_simulation, tickets) = tickets(&parameters);
    let _held = take(&tickets, 5);
    let waiting = [begin(&tickets, Priority::Normal), begin(&tickets, Priority::Low)];
    let refused = now(tickets.acquire(Mode::IX, Priority::Normal, &Wait::FOREVER)).err().unwrap();
    assert_eq!(refused.code(), ErrorCode::TemporarilyUnavailable);
    now(tickets.acquire(Mode::IX, Priority::Immediate, &Wait::FOREVER)).map(drop).unwrap();
    drop(waiting);
    assert_eq!(tickets.write().queued(), 0);
}

#[test]
fn x22_statistics() {
    let (simulation, tickets) = tickets(&fixed(5));
    let mut held = take(&tickets, 5);
    let mut admitted = begin(&tickets, Priority::Normal);
    let canceled = begin(&tickets, Priority::Low);
    simulation.clock().advance(Duration::from_micros(30));
    drop(canceled);
    held.clear();
    let ticket = admitted.poll().unwrap().unwrap();
    simulation.clock().advance(Duration::from_micros(7));
    let stats = tickets.write().stats();
    let expected = QueueStats {
        added_to_queue: 1,
        removed_from_queue: 1,
        started_processing: 6,
        processing: 1,
        finished_processing: 5,
        new_admissions: 6,
        total_time_processing_micros: 5 * 30,
        total_time_queued_micros: 30,
        ..QueueStats::default()
    };
    assert_eq!(stats.normal_priority, expected);
    let expected = QueueStats {
        added_to_queue: 1,
        removed_from_queue: 1,
        canceled: 1,
        total_time_queued_micros: 30,
        ..QueueStats::default()
    };
    assert_eq!(stats.low_priority, expected);
    drop(ticket);
    assert_eq!(tickets.write().stats().normal_priority.total_time_processing_micros, 157);
    assert_eq!(tickets.read().stats(), PoolStats { available: 5, total_tickets: 5, ..PoolStats::default() });
}

#[test]
fn x22_a_wait_ends_by_deadline_or_interruption() {
    let (simulation, tickets) = tickets(&fixed(5));
    let held = take(&tickets, 5);
    let deadline = Deadline::after(simulation.clock(), Duration::from_millis(20));
    let error = now(tickets.acquire(Mode::IX, Priority::Normal, &Wait::until(deadline))).err().unwrap();
    assert_eq!(error.code(), ErrorCode::LockTimeout);
    let operation = Killable::default();
    let wait = Wait::interruptible(&operation);
    let mut attempt = ByHand::new(tickets.acquire(Mode::IX, Priority::Normal, &wait));
    assert!(attempt.poll().is_none());
    operation.is_killed.store(true, Ordering::SeqCst);
    assert_eq!(attempt.poll().unwrap().err().unwrap().code(), ErrorCode::Interrupted);
    assert_eq!((tickets.write().queued(), tickets.write().out()), (0, 5));
    drop(held);
}

#[test]
fn x22_a_ticket_that_comes_too_late_goes_to_the_next() {
    let (_simulation, tickets) = tickets(&fixed(5));
    let mut held = take(&tickets, 5);
    let gone = begin(&tickets, Priority::Normal);
    let mut next = begin(&tickets, Priority::Normal);
    held.pop();
    assert!(gone.is_woken() && !next.is_woken());
    drop(gone);
    assert!(next.is_woken());
    held.push(next.poll().unwrap().unwrap());
    assert_eq!((tickets.write().out(), tickets.write().queued()), (5, 0));
}

#[test]
fn x22_random_histories_lose_and_make_no_ticket() {
    for seed in 0..200 {
        let mut random = StdRng::seed_from_u64(seed);
        let parameters = TicketParameters { low_priority_admission_bypass_threshold: 2, ..fixed(6) };
        let (_simulation, tickets) = tickets(&parameters);
        let mut held = Vec::new();
        let mut waiting: Vec<Attempt<'_>> = Vec::new();
        for _ in 0..300 {
            match random.random_range(0..10) {
                0..4 => {
                    let priority = if random.random_bool(0.3) { Priority::Low } else { Priority::Normal };
                    let mut attempt = ByHand::new(tickets.acquire(Mode::IX, priority, &Wait::FOREVER));
                    match attempt.poll() {
                        Some(ticket) => held.push(ticket.unwrap()),
                        None => waiting.push(attempt),
                    }
                }
                4..7 if !held.is_empty() => drop(held.swap_remove(random.random_range(0..held.len()))),
                7 if !waiting.is_empty() => drop(waiting.swap_remove(random.random_range(0..waiting.len()))),
                8 => tickets.set_concurrent_write_transactions(random.random_range(5..12)).unwrap(),
                _ => {}
            }
            let admitted = waiting.iter().filter(|attempt| attempt.is_woken()).count();
            let stats = tickets.write().stats();
            assert_eq!(stats.out as usize, held.len() + admitted, "seed {seed}");
            assert_eq!(tickets.write().queued() as usize, waiting.len() - admitted, "seed {seed}");
            assert!(stats.available == 0 || tickets.write().queued() == 0, "seed {seed}: a ticket lies idle");
            if random.random_bool(0.5) {
                for attempt in waiting.extract_if(.., |attempt| attempt.is_woken()) {
                    held.push({ attempt }.poll().unwrap().unwrap());
                }
            }
        }
        drop((waiting, held));
        assert_eq!((tickets.write().out(), tickets.write().queued()), (0, 0), "seed {seed}");
    }
}

#[test]
fn x22_fixed_or_adjusted_but_not_both() {
    let (_simulation, adjusted) = tickets(&TicketParameters::default());
    let error = adjusted.set_concurrent_read_transactions(20).unwrap_err();
    assert_eq!(error.code(), ErrorCode::IllegalOperation);
    let (_simulation, fixed) = tickets(&fixed(0));
    assert_eq!((fixed.read().total(), fixed.probing_stats()), (128, None));
    assert_eq!(fixed.set_concurrent_read_transactions(4).unwrap_err().code(), ErrorCode::BadValue);
    fixed.set_concurrent_read_transactions(7).unwrap();
    fixed.adjust();
    assert_eq!((fixed.read().total(), fixed.write().total()), (7, 128));
    assert_eq!(Algorithm::parse("throughputProbing").unwrap(), Algorithm::ThroughputProbing);
    assert_eq!(Algorithm::parse("fixedConcurrentTransactions").unwrap(), Algorithm::Fixed);
    assert!(Algorithm::parse("magic").is_err());
}

#[test]
fn x22_parameters_are_heeded() {
    let set = pando_base::ParameterSet::new(&[PARAMETERS], false).unwrap();
    assert_eq!(TicketParameters::of(&set).unwrap(), TicketParameters::default(), "the defaults are written once");
    set.set(&CONCURRENT_READ_TRANSACTIONS, 20).unwrap();
    let parameters = TicketParameters::of(&set).unwrap();
    assert_eq!(parameters.algorithm, Algorithm::Fixed, "set by hand");
    let (_simulation, tickets) = tickets(&parameters);
    tickets.follow(&set);
    assert_eq!((tickets.read().total(), tickets.write().total()), (20, 128));
    set.set(&CONCURRENT_WRITE_TRANSACTIONS, 30).unwrap();
    assert_eq!(tickets.write().total(), 30);
    assert!(set.set(&CONCURRENT_WRITE_TRANSACTIONS, 4).is_err());
    assert!(set.set_from_text("storageEngineConcurrencyAdjustmentAlgorithm", "magic").is_err());
}

#[test]
fn x22_parameters_of_probing_are_heeded() {
    let set = pando_base::ParameterSet::new(&[PARAMETERS], false).unwrap();
    let (simulation, tickets) = tickets(&TicketParameters::of(&set).unwrap());
    tickets.follow(&set);
    set.set_from_text("throughputProbingStepMultiple", "0.5").unwrap();
    let held = take(&tickets, 4);
    simulation.clock().advance(Duration::from_millis(100));
    tickets.adjust();
    assert_eq!(tickets.write().total(), 6, "half as many more");
    assert!(tickets.change_probing(|parameters| parameters.max_concurrency = 3).is_err());
    drop(held);
}

fn probing(initial: i32) -> ThroughputProbing {
    let parameters = ProbingParameters { initial_concurrency: initial, ..ProbingParameters::default() };
    ThroughputProbing::new(parameters, 2)
}

fn step(probing: &mut ThroughputProbing, throughput: f64, read: i32, write: i32) -> (i32, i32) {
    let sizes = probing.step(Sample { throughput, peak: Sizes { read, write } });
    (sizes.read, sizes.write)
}

#[test]
fn x22_probing_begins_within_its_bounds() {
    assert_eq!(probing(0).sizes(), Sizes { read: 4, write: 4 });
    assert_eq!(ThroughputProbing::new(ProbingParameters::default(), 32).sizes(), Sizes { read: 32, write: 32 });
    assert_eq!(ThroughputProbing::new(ProbingParameters::default(), 4096).sizes(), Sizes { read: 128, write: 128 });
    let mostly_reads = ProbingParameters { read_write_ratio: 0.75, initial_concurrency: 40, ..Default::default() };
    assert_eq!(ThroughputProbing::new(mostly_reads, 2).sizes(), Sizes { read: 30, write: 10 });
}

#[test]
fn x22_probing_goes_up_when_more_tickets_do_more() {
    let mut probing = probing(32);
    assert_eq!(step(&mut probing, 100.0, 16, 3), (18, 18), "reads were exhausted: a tenth more");
    assert!(!probing.is_stable());
    assert_eq!(step(&mut probing, 110.0, 0, 0), (16, 16), "the average moved by a fifth of four");
    assert!(probing.is_stable());
    let stats = probing.stats();
    assert_eq!((stats.times_increased, stats.times_decreased), (1, 0));
    assert!((stats.total_amount_increased - 0.8).abs() < 1e-9);
    let mut most = 0;
    for _ in 0..200 {
        let peak = probing.sizes();
        most = most.max(step(&mut probing, 100.0, peak.read, peak.write).0);
        step(&mut probing, 101.0, 0, 0);
    }
    assert_eq!(most, 128, "up to the bound and not beyond");
}

#[test]
fn x22_probing_comes_back_when_more_tickets_do_not_help() {
    let mut probing = probing(32);
    assert_eq!(step(&mut probing, 100.0, 16, 16), (18, 18));
    assert_eq!(step(&mut probing, 100.0, 0, 0), (16, 16));
    assert_eq!(probing.stats(), ProbingStats::default());
}

#[test]
fn x22_probing_goes_down_when_fewer_tickets_do_more() {
    let mut probing = probing(64);
    assert_eq!(step(&mut probing, 100.0, 10, 10), (29, 29), "not exhausted: a tenth less");
    assert_eq!(step(&mut probing, 105.0, 0, 0), (31, 31));
    assert_eq!(probing.stats().times_decreased, 1);
    assert!(probing.stats().total_amount_decreased > 1.0);
    for _ in 0..300 {
        let peak = probing.sizes();
        step(&mut probing, 100.0, peak.read - 1, peak.write - 1);
        step(&mut probing, 101.0, 0, 0);
    }
    let Sizes { read, write } = probing.sizes();
    assert!((4..=5).contains(&read) && (4..=5).contains(&write), "{read} {write}");
}

#[test]
fn x22_probing_stays_at_the_minimum_when_idle() {
    let mut probing = probing(0);
    for _ in 0..3 {
        assert_eq!(step(&mut probing, 0.0, 0, 1), (4, 4));
        assert!(probing.is_stable());
    }
}

#[test]
fn x22_a_trial_changes_each_pool_by_at_least_one() {
    let mut probing = probing(8);
    assert_eq!(step(&mut probing, 1.0, 4, 0), (5, 5));
    assert_eq!(step(&mut probing, 1.0, 0, 0), (4, 4));
}

#[test]
fn x22_senseless_parameters_of_probing_are_refused() {
    let good = ProbingParameters::default();
    good.validate().unwrap();
    let bad = [
        ProbingParameters { min_concurrency: 0, ..good.clone() },
        ProbingParameters { max_concurrency: 3, ..good.clone() },
        ProbingParameters { initial_concurrency: 3, ..good.clone() },
        ProbingParameters { initial_concurrency: 129, ..good.clone() },
        ProbingParameters { read_write_ratio: 1.1, ..good.clone() },
        ProbingParameters { concurrency_moving_average_weight: 0.0, ..good.clone() },
        ProbingParameters { step_multiple: f64::NAN, ..good.clone() },
    ];
    for parameters in bad {
        assert_eq!(parameters.validate().unwrap_err().code(), ErrorCode::BadValue, "{parameters:?}");
    }
}

/// An engine that does best with twelve tickets of each kind: a unit of time gives this much.
fn work_done(size: i32) -> usize {
    let surplus = (size - 12).max(0);
    (size.min(12) * 100 - surplus * 20).max(10) as usize
}

#[test]
fn x22_tickets_settle_where_throughput_is_best() {
    let simulation = Simulation::new(4);
    let parameters = TicketParameters {
        probing: ProbingParameters { initial_concurrency: 10, ..ProbingParameters::default() },
        ..TicketParameters::default()
    };
    let tickets = Tickets::new(&simulation.env(), &parameters).unwrap();
    assert_eq!(tickets.write().total(), 5);
    for _ in 0..600 {
        let total = tickets.write().total();
        drop(take(&tickets, total as usize));
        for _ in 0..(work_done(total) - total as usize) {
            drop(take(&tickets, 1));
        }
        simulation.clock().advance(Duration::from_millis(100));
        tickets.adjust();
    }
    let total = tickets.write().total();
    assert!((11..=14).contains(&total), "{total} tickets");
    assert!(tickets.probing_stats().unwrap().times_increased > 0);
}
