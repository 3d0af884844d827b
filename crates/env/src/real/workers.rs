//! What the workers of the runtime do when they have run out of work.
//!
//! When no worker has anything to do, those who asked are told ([`Tasks::at_rest`](crate::Tasks::at_rest)): whoever puts work off for the sake of
//! others need not do so any longer. They may be told although work has come at that very moment.
//!
//! Before a worker sleeps it gives way ([`give_way`]), so that it finds several requests at once and is woken less often.
//!
//! The first worker that has nothing to do waits for what comes from outside, the others only for each other. One that comes back from there leaves
//! nobody in its place until it, or another, has run out of work again. Whoever wants to wait for something else meanwhile looks first
//! ([`others_watch`]); it may be told yes although the last one to watch has just left, and then what comes waits as long as it does.
//!
//! The state belongs to the process, as workers do: there is one runtime with many workers in it.

use super::RealClock;
use super::giving_way::GivingWay;
use parking_lot::RwLock;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{LazyLock, Weak};
use tokio::runtime::Builder;

/// Told when no worker has anything to do.
type Listener = Weak<dyn Fn() + Send + Sync>;

/// So many workers have nothing to do.
static RESTING: AtomicUsize = AtomicUsize::new(0);
static LISTENERS: RwLock<Vec<Listener>> = RwLock::new(Vec::new());
/// So often one of them was woken.
static WAKES: AtomicU64 = AtomicU64::new(0);
/// So many workers there are.
static WORKERS: AtomicUsize = AtomicUsize::new(0);
/// One of them waits for what comes from outside.
static IS_WATCHED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// It is this one.
    static WATCHES: Cell<bool> = const { Cell::new(false) };
}

static GIVING_WAY: GivingWay = GivingWay::new();
static CLOCK: LazyLock<RealClock> = LazyLock::new(RealClock::new);

/// Gives a runtime so many workers, which behave as told above.
pub fn prepare_workers(builder: &mut Builder, count: usize) -> &mut Builder {
    builder.worker_threads(count);
    WORKERS.store(count, Ordering::Relaxed);
    builder.on_thread_park(move || {
        give_way();
        WATCHES.set(!IS_WATCHED.swap(true, Ordering::Relaxed));
        if RESTING.fetch_add(1, Ordering::Relaxed) + 1 >= count {
            tell();
        }
    });
    builder.on_thread_unpark(|| {
        RESTING.fetch_sub(1, Ordering::Relaxed);
        WAKES.fetch_add(1, Ordering::Relaxed);
        if WATCHES.replace(false) {
            IS_WATCHED.store(false, Ordering::Relaxed);
        }
    })
}

/// Lets other threads of the machine run for a moment; false if that took too long lately, and was not done.
pub(super) fn give_way() -> bool {
    GIVING_WAY.give_way(&*CLOCK, std::thread::yield_now)
}

/// Whether a worker has nothing to do.
pub(super) fn any_rests() -> bool {
    RESTING.load(Ordering::Relaxed) > 0
}

/// How often a worker that had nothing to do was woken.
pub(super) fn wakes() -> u64 {
    WAKES.load(Ordering::Relaxed)
}

/// To be asked by a worker: whether another watches for what comes from outside, or is at work and will.
pub(super) fn others_watch() -> bool {
    IS_WATCHED.load(Ordering::Relaxed) || RESTING.load(Ordering::Relaxed) + 1 < WORKERS.load(Ordering::Relaxed)
}

/// Adds one who is told, for as long as it is there.
pub(super) fn listen(listener: Listener) {
    let mut listeners = LISTENERS.write();
    listeners.retain(|listener| listener.strong_count() > 0);
    listeners.push(listener);
}

fn tell() {
    for listener in LISTENERS.read().iter().filter_map(Weak::upgrade) {
        listener();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Env;
    use std::sync::Arc;
    use std::sync::mpsc;

    #[test]
    fn who_asked_is_told_when_no_worker_has_work_and_not_after_it_went() {
        let mut builder = Builder::new_multi_thread();
        let runtime = prepare_workers(&mut builder, 2).build().unwrap();
        let (told, heard) = mpsc::channel();
        let (after_going, nothing) = mpsc::channel();
        let call: Arc<dyn Fn() + Send + Sync> = Arc::new(move || _ = told.send(()));
        let gone: Arc<dyn Fn() + Send + Sync> = Arc::new(move || _ = after_going.send(()));
        let env = Env::real();
        env.tasks().at_rest(Arc::downgrade(&call));
        env.tasks().at_rest(Arc::downgrade(&gone));
        drop(gone);
        // A task has a worker run out of work again, whatever both did before.
        runtime.spawn(async {});
        heard.recv().unwrap();
        assert!(nothing.recv().is_err(), "nobody is left who could call it");
    }

    #[test]
    fn a_worker_that_is_woken_is_counted() {
        let mut builder = Builder::new_multi_thread();
        let runtime = prepare_workers(&mut builder, 2).build().unwrap();
        let before = wakes();
        // A worker that has not come to rest yet is not woken.
        let is_counted = (0..100_000).any(|_| {
            runtime.block_on(runtime.spawn(async {})).unwrap();
            wakes() > before
        });
        assert!(is_counted);
    }
}
