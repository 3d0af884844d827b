//! Threads, tasks and waiting, as traits.

use crate::BoxedFuture;
use parking_lot::{Condvar, Mutex};
use std::io;
use std::sync::Weak;
use std::time::Duration;

/// A thread that can be waited for.
pub trait ThreadHandle: Send + Sync {
    /// Blocks until the thread has ended. An error means that it panicked.
    fn join(self: Box<Self>) -> io::Result<()>;
}

/// Which of the process's runtimes a task runs on. Each has threads of its own, so that none can keep another's from running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// With the requests of clients, nearly all of which are short.
    Requests,
    /// With what takes long. Its threads take processor time only from each other, as far as the system can tell them apart.
    Lanes,
    /// With what has to be answered whatever else goes on: nothing there takes long.
    Control,
}

/// Where threads and tasks come from.
pub trait Tasks: Send + Sync {
    /// Starts a thread.
    fn spawn_thread(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> io::Result<Box<dyn ThreadHandle>>;
    /// Starts a thread that is in no hurry: it takes processor time only from what is in no hurry either, as far as the system can
    /// tell them apart. It must not hold what others wait for.
    fn spawn_thread_aside(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> io::Result<Box<dyn ThreadHandle>> {
        self.spawn_thread(name, body)
    }
    /// Starts an asynchronous task with the requests, or on the current runtime where there are no places.
    fn spawn(&self, task: BoxedFuture<'static, ()>) -> io::Result<()>;
    /// Starts an asynchronous task at a place, or on the current runtime where there are none.
    fn spawn_at(&self, _place: Place, task: BoxedFuture<'static, ()>) -> io::Result<()> {
        self.spawn(task)
    }
    /// The place of the caller's thread; none where everything runs on one runtime, and on threads that belong to no runtime.
    fn place(&self) -> Option<Place> {
        None
    }
    /// To be called from within a task that has kept its worker for a while and goes on: the worker's other tasks go to another
    /// thread, and the caller takes turns with all who have called this, so that a bounded number of them run at once. Waits
    /// for its turn no longer than until `must_stop`. The caller must not hold what others wait for. Does nothing outside of places.
    fn pause_long_work(&self, _must_stop: &dyn Fn() -> bool) {}
    /// Ends what `pause_long_work` has begun on this thread: to be called when the task waits or is done.
    fn end_long_work(&self) {}
    /// Runs a call that may block without starving the asynchronous worker it runs on.
    fn blocking(&self, call: &mut dyn FnMut());
    /// Runs a call that takes long and is in no hurry, where it takes processor time only from what is in no hurry either, as far
    /// as the system can tell them apart. The caller waits as in `blocking`.
    fn aside(&self, call: &mut (dyn FnMut() + Send));
    /// How many threads can run at once; 1 in simulation, so that nothing depends on scheduling.
    fn parallelism(&self) -> usize;
    /// Has this called whenever no worker of the runtime has anything to do, for as long as it is there. It must not wait for anything.
    fn at_rest(&self, _call: Weak<dyn Fn() + Send + Sync>) {}
    /// True if a worker of the runtime has nothing to do.
    fn has_spare_worker(&self) -> bool {
        false
    }
    /// How often a worker of the runtime that had nothing to do was woken, so far.
    fn wakes(&self) -> u64 {
        0
    }
    /// True if a worker of the runtime that asks may wait for the disk for a moment, without handing its tasks to another: one watches for what
    /// comes from outside, or is at work and will.
    fn can_wait_here(&self) -> bool {
        false
    }
    /// Lets other threads of the machine run for a moment, clients among them; false if that took too long lately, and was not done.
    fn give_way(&self) -> bool {
        false
    }
    /// Asks the system not to keep what this process has allocated in large pages: with little memory in use that takes more than is
    /// used, and takes again what the allocator gives back. Never fails.
    fn avoid_large_pages(&self) {}
    /// Asks the system to keep what this process has allocated in large pages, where it does so on request. Random reads of
    /// a large cache are a fifth faster then. To be repeated as the memory grows; never fails.
    fn prefer_large_pages(&self) {}
    /// Moves what was touched before it was asked for, or when no large page was free, into large pages. Takes seconds for a gigabyte: to be
    /// called when memory has stopped growing. Ends early when it is not to go on; never fails.
    fn make_large_pages(&self, _goes_on: &dyn Fn() -> bool) {}
}

/// Wakes a thread early from a timed wait; a ring is never lost.
#[derive(Default)]
pub struct Alarm {
    rung: Mutex<bool>,
    changed: Condvar,
}

impl Alarm {
    /// A silent alarm.
    pub fn new() -> Alarm {
        Alarm::default()
    }

    /// Wakes the waiter, now or when it next waits.
    pub fn ring(&self) {
        *self.rung.lock() = true;
        self.changed.notify_one();
    }

    /// Forgets a ring that nobody has waited for.
    pub fn silence(&self) {
        *self.rung.lock() = false;
    }

    /// Waits until rung or until the time has passed; true if rung.
    pub fn wait(&self, at_most: Duration) -> bool {
        let mut rung = self.rung.lock();
        if !*rung {
            self.changed.wait_for(&mut rung, at_most);
        }
        std::mem::take(&mut *rung)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_before_the_wait_is_not_lost_and_counts_once() {
        let alarm = Alarm::new();
        assert!(!alarm.wait(Duration::ZERO));
        alarm.ring();
        alarm.ring();
        assert!(alarm.wait(Duration::from_secs(3600)));
        assert!(!alarm.wait(Duration::ZERO));
        alarm.ring();
        alarm.silence();
        assert!(!alarm.wait(Duration::ZERO));
    }
}
