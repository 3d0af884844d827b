//! The queue's rules one by one, the partitions, and random histories next to a naive model.
#![cfg(not(feature = "shuttle"))]

use crate::testing::{ByHand, begun, is_free, lock, manager, now};
use crate::{LockRequest, Locker, Mode, ResourceId, Wait};
use Mode::{IS, IX, S, X};
use pando_base::Result;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const DATABASE: fn() -> ResourceId = || ResourceId::mutex("stands for a database");

#[test]
fn x9_queue_fairness() {
    let (_simulation, manager) = manager();
    let lockers: Vec<Locker> = (0..6).map(|number| manager.locker_in(number)).collect();
    let resource = DATABASE();
    lock(&lockers[0], resource, S);
    let mut exclusive = begun(&lockers[1], LockRequest::new(resource, X));
    // A later S would fit what is granted, but must not overtake.
    let mut shared = begun(&lockers[2], LockRequest::new(resource, S));
    let mut intent = begun(&lockers[3], LockRequest::new(resource, IS));
    let mut last = begun(&lockers[4], LockRequest::new(resource, X));
    assert!(lockers[0].unlock(resource));
    assert!(exclusive.is_woken() && !shared.is_woken());
    exclusive.poll().unwrap().unwrap();
    assert!(lockers[1].unlock(resource));
    // The front of the queue up to the first that does not fit.
    assert!(shared.is_woken() && intent.is_woken() && !last.is_woken());
    shared.poll().unwrap().unwrap();
    intent.poll().unwrap().unwrap();
    assert!(lockers[2].unlock(resource) && !last.is_woken());
    assert!(lockers[3].unlock(resource) && last.is_woken());
    last.poll().unwrap().unwrap();
    assert!(lockers[4].unlock(resource));
    assert!(is_free(&manager, resource, X));
}

#[test]
fn x9_enqueue_at_front() {
    let (_simulation, manager) = manager();
    let lockers: Vec<Locker> = (0..3).map(|number| manager.locker_in(number)).collect();
    let resource = DATABASE();
    lock(&lockers[0], resource, X);
    let mut back = begun(&lockers[1], LockRequest::new(resource, X));
    let mut front = begun(&lockers[2], LockRequest::new(resource, X).at_front());
    lockers[0].unlock(resource);
    assert!(front.is_woken() && !back.is_woken());
    front.poll().unwrap().unwrap();
    lockers[2].unlock(resource);
    back.poll().unwrap().unwrap();
    lockers[1].unlock(resource);
}

#[test]
fn x9_global_strong_modes_go_to_the_front() {
    let (_simulation, manager) = manager();
    let lockers: Vec<Locker> = (0..4).map(|number| manager.locker_in(number)).collect();
    let resource = ResourceId::REPLICATION_STATE_TRANSITION;
    lock(&lockers[0], resource, X);
    let mut first = begun(&lockers[1], LockRequest::new(resource, IX));
    let mut step_down = begun(&lockers[2], LockRequest::new(resource, X));
    lockers[0].unlock(resource);
    assert!(step_down.is_woken() && !first.is_woken());
    step_down.poll().unwrap().unwrap();
    lockers[2].unlock(resource);
    first.poll().unwrap().unwrap();
    lockers[1].unlock(resource);
}

#[test]
fn x9_compatible_first() {
    let (_simulation, manager) = manager();
    let lockers: Vec<Locker> = (0..4).map(|number| manager.locker_in(number)).collect();
    let resource = DATABASE();
    lock(&lockers[0], resource, IS);
    now(lockers[1].lock(LockRequest::new(resource, IS).compatible_first(), &Wait::FOREVER)).unwrap();
    lock(&lockers[2], resource, IS);
    let exclusive = begun(&lockers[3], LockRequest::new(resource, X));
    assert!(is_free(&manager, resource, S), "compatible with what is granted");
    lockers[0].unlock(resource);
    assert!(is_free(&manager, resource, S), "the policy holds while its owner is granted");
    lockers[1].unlock(resource);
    assert!(!is_free(&manager, resource, S), "fair again, although somebody else holds IS");
    lockers[2].unlock(resource);
    assert!(exclusive.is_woken());
    drop(exclusive);
    assert!(is_free(&manager, resource, X));
}

#[test]
fn x9_compatible_first_searches_the_queue_when_granted() {
    let (_simulation, manager) = manager();
    for (writer, is_downgraded) in [(IX, false), (IX, true), (X, false), (X, true)] {
        let lockers: Vec<Locker> = (0..4).map(|number| manager.locker_in(number)).collect();
        let resource = DATABASE();
        lock(&lockers[0], resource, X);
        let mut shared = begun(&lockers[1], LockRequest::new(resource, S).compatible_first());
        let mut write = begun(&lockers[2], LockRequest::new(resource, writer));
        let mut read = begun(&lockers[3], LockRequest::new(resource, IS));
        match is_downgraded {
            true => lockers[0].downgrade(resource, S),
            false => assert!(lockers[0].unlock(resource)),
        }
        assert_eq!((shared.is_woken(), write.is_woken(), read.is_woken()), (true, false, true));
        shared.poll().unwrap().unwrap();
        read.poll().unwrap().unwrap();
        lockers[1].unlock(resource);
        lockers[3].unlock(resource);
        assert_eq!(write.is_woken(), !is_downgraded);
        lockers[0].unlock(resource);
        write.poll().unwrap().unwrap();
        assert!(lockers[2].unlock(resource));
    }
}

#[test]
fn x9_a_request_that_leaves_the_queue_lets_others_pass() {
    let (_simulation, manager) = manager();
    let lockers: Vec<Locker> = (0..3).map(|number| manager.locker_in(number)).collect();
    let resource = DATABASE();
    lock(&lockers[0], resource, S);
    let exclusive = begun(&lockers[1], LockRequest::new(resource, X));
    let mut shared = begun(&lockers[2], LockRequest::new(resource, S));
    drop(exclusive);
    assert!(shared.is_woken());
    shared.poll().unwrap().unwrap();
    lockers[2].unlock(resource);
    lockers[0].unlock(resource);
    manager.clean_unused();
    assert_eq!(manager.resource_count(), 0);
}

#[test]
fn x9_conversions_go_before_the_queue() {
    let (_simulation, manager) = manager();
    let lockers: Vec<Locker> = (0..3).map(|number| manager.locker_in(number)).collect();
    let resource = DATABASE();
    lock(&lockers[0], resource, IS);
    let mut exclusive = begun(&lockers[1], LockRequest::new(resource, X));
    // Would be a deadlock if it had to queue behind the one that waits for it.
    lock(&lockers[0], resource, S);
    assert_eq!(lockers[0].mode(resource), Some(S));
    assert!(!lockers[0].unlock(resource), "it was taken twice");
    assert!(lockers[0].unlock(resource));
    exclusive.poll().unwrap().unwrap();
    lockers[1].unlock(resource);
}

#[test]
fn x9_a_conversion_waits_for_other_holders_and_holds_newcomers_off() {
    let (_simulation, manager) = manager();
    let lockers: Vec<Locker> = (0..2).map(|number| manager.locker_in(number)).collect();
    let resource = DATABASE();
    lock(&lockers[0], resource, IS);
    lock(&lockers[1], resource, IS);
    let mut more = begun(&lockers[0], LockRequest::new(resource, X));
    assert!(!is_free(&manager, resource, IS), "what is promised counts");
    assert_eq!(lockers[0].mode(resource), Some(IS), "the old mode is held meanwhile");
    lockers[1].unlock(resource);
    assert!(more.is_woken());
    more.poll().unwrap().unwrap();
    assert_eq!(lockers[0].mode(resource), Some(X));
    assert!(!lockers[0].unlock(resource) && lockers[0].unlock(resource));
}

#[test]
fn x9_a_conversion_given_up_leaves_the_old_mode() {
    let (_simulation, manager) = manager();
    for is_granted_meanwhile in [false, true] {
        let lockers: Vec<Locker> = (0..2).map(|number| manager.locker_in(number)).collect();
        let resource = DATABASE();
        lock(&lockers[0], resource, IS);
        lock(&lockers[1], resource, IX);
        let more = begun(&lockers[0], LockRequest::new(resource, S));
        if is_granted_meanwhile {
            lockers[1].unlock(resource);
            assert!(more.is_woken());
        }
        drop(more);
        assert_eq!(lockers[0].mode(resource), Some(IS));
        assert!(is_free(&manager, resource, IX));
        assert!(lockers[0].unlock(resource), "it is held once");
        assert_eq!(lockers[1].unlock(resource), !is_granted_meanwhile);
        assert!(is_free(&manager, resource, X));
    }
}

#[test]
fn x9_conversions_that_wait_for_each_other_are_refused() {
    let (_simulation, manager) = manager();
    let lockers: Vec<Locker> = (0..2).map(|number| manager.locker_in(number)).collect();
    let resource = DATABASE();
    lock(&lockers[0], resource, S);
    lock(&lockers[1], resource, S);
    let mut first = begun(&lockers[0], LockRequest::new(resource, X));
    let refused = now(lockers[1].lock(LockRequest::new(resource, X), &Wait::FOREVER)).unwrap_err();
    assert_eq!(refused.code(), pando_base::ErrorCode::LockTimeout);
    assert_eq!(manager.stats().of(resource, X).deadlock_count, 1);
    assert_eq!(lockers[1].mode(resource), Some(S));
    lockers[1].unlock(resource);
    first.poll().unwrap().unwrap();
    assert!(!lockers[0].unlock(resource) && lockers[0].unlock(resource));
}

#[test]
fn x9_unrelated_modes_convert_to_one_that_covers_both() {
    let (_simulation, manager) = manager();
    let locker = manager.locker();
    lock(&locker, DATABASE(), S);
    lock(&locker, DATABASE(), IX);
    assert_eq!(locker.mode(DATABASE()), Some(X));
    assert!(!locker.unlock(DATABASE()) && locker.unlock(DATABASE()));
}

#[test]
fn x9_intents_of_all_partitions_are_seen_by_a_strong_request() {
    let (_simulation, manager) = manager();
    let lockers: Vec<Locker> = (0..8).map(|number| manager.locker_in(number)).collect();
    for resource in [DATABASE(), ResourceId::PARALLEL_BATCH_WRITER_MODE] {
        for round in 0..3 {
            lockers.iter().for_each(|locker| lock(locker, resource, if round == 1 { IS } else { IX }));
            let strong = manager.locker();
            let mut exclusive = begun(&strong, LockRequest::new(resource, X));
            for locker in &lockers {
                assert!(!exclusive.is_woken());
                assert!(locker.unlock(resource));
            }
            exclusive.poll().unwrap().unwrap();
            assert!(!is_free(&manager, resource, IS));
            assert!(strong.unlock(resource));
        }
    }
}

#[test]
fn x9_an_intent_may_be_released_where_it_was_not_counted() {
    let (_simulation, manager) = manager();
    let (one, other, strong) = (manager.locker_in(0), manager.locker_in(0), manager.locker_in(1));
    let resource = DATABASE();
    lock(&one, resource, IX);
    // The strong request moves the count to the head; then the partition is opened again by another.
    drop(begun(&strong, LockRequest::new(resource, X)));
    lock(&other, resource, IX);
    assert!(one.unlock(resource));
    let mut exclusive = begun(&strong, LockRequest::new(resource, X));
    assert!(other.unlock(resource));
    exclusive.poll().unwrap().unwrap();
    strong.unlock(resource);
}

#[test]
fn x9_unused_resources_are_forgotten() {
    let (_simulation, manager) = manager();
    let locker = manager.locker();
    for number in 0..100 {
        let resource = ResourceId::mutex(&number.to_string());
        lock(&locker, resource, IX);
        if number != 7 {
            locker.unlock(resource);
        }
    }
    assert_eq!(manager.resource_count(), 100);
    manager.clean_unused();
    assert_eq!(manager.resource_count(), 1);
    assert!(!is_free(&manager, ResourceId::mutex("7"), S));
    locker.unlock(ResourceId::mutex("7"));
}

#[test]
fn x9_lock_info_shows_holders_and_waiters() {
    let (_simulation, manager) = manager();
    let lockers: Vec<Locker> = (0..3).map(|number| manager.locker_in(number)).collect();
    let resource = DATABASE();
    lock(&lockers[0], resource, IX);
    lock(&lockers[1], resource, IS);
    let conversion = begun(&lockers[1], LockRequest::new(resource, S));
    let waiting = begun(&lockers[2], LockRequest::new(resource, X).at_front());
    let info = manager.lock_info();
    let states: Vec<_> = manager.lockers().into_iter().map(|report| (report.locker, report.info.waiting)).collect();
    let mut expected: Vec<_> = lockers
        .iter()
        .zip([None, Some(resource), Some(resource)])
        .map(|(locker, waits)| (locker.id(), waits))
        .collect();
    expected.sort_unstable();
    assert_eq!(sorted(states), expected);
    assert_eq!(info.len(), 1);
    let granted: Vec<_> = info[0].granted.iter().map(|request| (request.mode, request.convert_mode)).collect();
    assert_eq!(granted, [(IX, None), (IS, Some(S))]);
    let pending: Vec<_> = info[0].pending.iter().map(|request| (request.locker, request.mode)).collect();
    assert_eq!(pending, [(lockers[2].id(), X)]);
    assert!(info[0].pending[0].enqueue_at_front && !info[0].pending[0].compatible_first);
    drop((waiting, conversion));
    lockers[0].unlock(resource);
    lockers[1].unlock(resource);
    assert_eq!(manager.lock_info(), []);
    drop(lockers);
    assert_eq!(manager.lockers(), []);
    let again = manager.locker_of(7);
    assert_eq!(
        manager.lockers().iter().map(|report| (report.locker, report.operation)).collect::<Vec<_>>(),
        [(again.id(), 7)]
    );
}

fn sorted<T: Ord>(mut values: Vec<T>) -> Vec<T> {
    values.sort_unstable();
    values
}

/// The rules written down as plainly as possible, without partitions.
#[derive(Default)]
struct Model {
    holders: Vec<Holder>,
    queue: Vec<(usize, LockRequest)>,
}

struct Holder {
    who: usize,
    mode: Mode,
    count: u32,
    compatible_first: bool,
    wanted: Option<Mode>,
}

impl Model {
    fn holder(&mut self, who: usize) -> Option<&mut Holder> {
        self.holders.iter_mut().find(|holder| holder.who == who)
    }

    fn fits_holders(&self, who: usize, mode: Mode) -> bool {
        self.holders.iter().all(|holder| holder.who == who || mode.is_compatible_with(holder.mode))
    }

    fn fits_wanted(&self, mode: Mode) -> bool {
        self.holders.iter().filter_map(|holder| holder.wanted).all(|wanted| mode.is_compatible_with(wanted))
    }

    /// Whether it would be refused as a deadlock.
    fn is_deadlock(&self, who: usize, from: Mode, to: Mode) -> bool {
        let mut others = self.holders.iter().filter(|holder| holder.who != who);
        others.any(|other| {
            other.wanted.is_some_and(|wanted| !wanted.is_compatible_with(from)) && !to.is_compatible_with(other.mode)
        })
    }

    fn ask(&mut self, who: usize, request: LockRequest) {
        let mode = request.mode;
        if let Some(held) = self.holder(who).map(|holder| holder.mode) {
            let to = held.joined_with(mode);
            let (fits, is_deadlock) = (to == held || self.fits_holders(who, to), self.is_deadlock(who, held, to));
            let Some(holder) = self.holder(who) else { return };
            if fits {
                holder.mode = to;
                holder.count += 1;
            } else if !is_deadlock {
                holder.wanted = Some(to);
            }
            return;
        }
        let overtakes = self.queue.iter().any(|(_, other)| !mode.is_compatible_with(other.mode));
        let may_overtake = request.enqueue_at_front || self.holders.iter().any(|holder| holder.compatible_first);
        if self.fits_holders(who, mode) && self.fits_wanted(mode) && (may_overtake || !overtakes) {
            self.hold(who, request);
        } else if request.enqueue_at_front {
            self.queue.insert(0, (who, request));
        } else {
            self.queue.push((who, request));
        }
    }

    fn hold(&mut self, who: usize, request: LockRequest) {
        let LockRequest { mode, compatible_first, .. } = request;
        self.holders.push(Holder { who, mode, count: 1, compatible_first, wanted: None });
    }

    fn give_up(&mut self, who: usize) {
        self.queue.retain(|(waiting, _)| *waiting != who);
        if let Some(holder) = self.holder(who) {
            holder.wanted = None;
        }
        self.settle();
    }

    fn unlock(&mut self, who: usize) {
        if let Some(holder) = self.holder(who) {
            holder.count -= 1;
        }
        self.holders.retain(|holder| holder.count > 0);
        self.settle();
    }

    fn downgrade(&mut self, who: usize, mode: Mode) {
        self.holder(who).unwrap().mode = mode;
        self.settle();
    }

    fn settle(&mut self) {
        // Conversions are few; which of several goes first does not matter as none that fits excludes another that fits.
        for place in 0..self.holders.len() {
            let Holder { who, wanted: Some(wanted), .. } = self.holders[place] else { continue };
            if self.fits_holders(who, wanted) {
                self.holders[place].mode = wanted;
                self.holders[place].count += 1;
                self.holders[place].wanted = None;
            }
        }
        let had_compatible_first = self.holders.iter().any(|holder| holder.compatible_first);
        let mut is_searching = false;
        let mut place = 0;
        while place < self.queue.len() {
            let (who, request) = self.queue[place];
            if self.fits_holders(who, request.mode) && self.fits_wanted(request.mode) {
                self.queue.remove(place);
                self.hold(who, request);
                is_searching |= request.compatible_first && !had_compatible_first;
            } else if place == 0 && !is_searching {
                break;
            } else {
                place += 1;
            }
        }
    }

    fn mode_of(&self, who: usize) -> Option<(Mode, bool)> {
        let holder = self.holders.iter().find(|holder| holder.who == who)?;
        Some((holder.mode, holder.wanted.is_some()))
    }
}

#[test]
fn x9_random_histories_agree_with_the_model() {
    for seed in 0..300 {
        agree_with_model(seed);
    }
}

fn agree_with_model(seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let (_simulation, manager) = manager();
    let count = random.random_range(2..7);
    let lockers: Vec<Locker> = (0..count).map(|number| manager.locker_in(number)).collect();
    let mut pending: Vec<Option<ByHand<'_, Result<()>>>> = (0..count).map(|_| None).collect();
    let resource = if seed.is_multiple_of(2) { DATABASE() } else { ResourceId::GLOBAL };
    let mut model = Model::default();
    for step in 0..200 {
        let who = random.random_range(0..count);
        let held = lockers[who].mode(resource);
        match random.random_range(0..12) {
            0..5 if pending[who].is_none() => {
                let request = random_request(&mut random, resource);
                let mut attempt = ByHand::new(lockers[who].lock(request, &Wait::FOREVER));
                model.ask(who, request);
                pending[who] = attempt.poll().is_none().then_some(attempt);
            }
            5 if pending[who].is_some() => {
                pending[who] = None;
                model.give_up(who);
            }
            6..10 if pending[who].is_none() && held.is_some() => {
                lockers[who].unlock(resource);
                model.unlock(who);
            }
            10 if pending[who].is_none() && held == Some(X) => {
                let mode = Mode::ALL[random.random_range(0..3)];
                lockers[who].downgrade(resource, mode);
                model.downgrade(who, mode);
            }
            11 => manager.clean_unused(),
            _ => {}
        }
        for attempt in &mut pending {
            let is_done = attempt.as_mut().is_some_and(|attempt| attempt.is_woken() && attempt.poll().is_some());
            *attempt = attempt.take().filter(|_| !is_done);
        }
        for (who, locker) in lockers.iter().enumerate() {
            let actual = locker.mode(resource).map(|mode| (mode, pending[who].is_some()));
            assert_eq!(actual, model.mode_of(who), "seed {seed}, step {step}, locker {who}");
            let is_queued = model.queue.iter().any(|(waiting, _)| *waiting == who);
            assert_eq!(actual.is_none() && pending[who].is_some(), is_queued, "seed {seed}, step {step}, locker {who}");
        }
    }
    drop(pending);
    for locker in &lockers {
        while locker.mode(resource).is_some() {
            locker.unlock(resource);
        }
    }
    manager.clean_unused();
    assert_eq!(manager.resource_count(), 0, "seed {seed} left something behind");
}

fn random_request(random: &mut StdRng, resource: ResourceId) -> LockRequest {
    let strong = if random.random_bool(0.3) { 2 } else { 0 };
    let request = LockRequest::new(resource, Mode::ALL[strong + random.random_range(0..2)]);
    match random.random_range(0..10) {
        0 => request.at_front(),
        1 => request.compatible_first(),
        _ => request,
    }
}
