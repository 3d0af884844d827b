//! The runtimes of a process that serves, and how work that takes long leaves the one of requests.
//!
//! - *Requests* has as many workers as the machine has processors. What runs there is short.
//! - *Lanes* has as many, of a lower rank: the system runs them when nobody in a hurry wants the
//!   processor, and stops them when somebody does.
//! - *Control* has one, for what has to be answered whatever happens.
//!
//! Work that turns out to be long in the middle of a call cannot move to another thread. Instead
//! everything else moves: the runtime gives the worker's tasks to a thread that replaces it
//! ([`Places::pause`]), and the call goes on where it is, on a thread that is no worker any more.
//! Such threads take turns, so that a machine with many of them still has processors for others;
//! those of requests lower their rank for as long as the call lasts, where the system lets them
//! take it back.
//!
//! Locks: the turns', held for a push or a pop.

use super::tasks::RealTasks;
use super::turns::Turns;
use super::{rank, workers};
use crate::{Alarm, Place, Tasks};
use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime, RuntimeFlavor};

/// A thread is blocked for each call that is paused, so there may be as many as there are
/// connections.
const PAUSED_THREADS_MAX: usize = 100_000;

/// How long a call waits until its worker has been replaced. It tries again at its next pause.
const REPLACEMENT_WAIT_MAX: Duration = Duration::from_millis(10);

/// How long the runtimes have to end: what still runs then is over with the process.
const END_WAIT_MAX: Duration = Duration::from_millis(500);

thread_local! {
    static PLACE: Cell<Option<Place>> = const { Cell::new(None) };
    static LONG: Cell<LongWork> = const { Cell::new(LongWork::NONE) };
}

/// What a thread that works long has.
#[derive(Clone, Copy)]
struct LongWork {
    /// Another thread has taken its worker's place.
    is_replaced: bool,
    has_turn: bool,
    has_stood_back: bool,
}

impl LongWork {
    const NONE: LongWork = LongWork { is_replaced: false, has_turn: false, has_stood_back: false };
}

/// The runtimes. Their tasks end with it.
pub struct Runtimes {
    requests: Runtime,
    lanes: Runtime,
    control: Runtime,
    places: Arc<Places>,
}

impl Runtimes {
    /// Starts them, for so many processors.
    pub fn start(parallelism: usize) -> io::Result<Runtimes> {
        let mut builder = at(Place::Requests, "worker");
        let requests = workers::prepare_workers(&mut builder, parallelism.max(2)).build()?;
        let lanes = at(Place::Lanes, "lane").worker_threads(parallelism.max(2)).build()?;
        let control = at(Place::Control, "control").worker_threads(1).build()?;
        let places = Arc::new(Places {
            requests: requests.handle().clone(),
            lanes: lanes.handle().clone(),
            control: control.handle().clone(),
            // Those of requests may have the rank of requests: a processor is left to these.
            request_turns: Turns::new(parallelism / 2),
            lane_turns: Turns::new(parallelism),
        });
        Ok(Runtimes { requests, lanes, control, places })
    }

    /// Threads and tasks on them.
    pub fn tasks(&self) -> Arc<dyn Tasks> {
        Arc::new(RealTasks::at(Arc::clone(&self.places)))
    }

    /// Waits for a future, with what has to be answered whatever else goes on: signals come in
    /// there.
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.control.block_on(future)
    }

    /// Ends them.
    pub fn end(self) {
        let Runtimes { requests, lanes, control, places: _ } = self;
        for runtime in [control, lanes, requests] {
            runtime.shutdown_timeout(END_WAIT_MAX);
        }
    }
}

fn at(place: Place, name: &str) -> Builder {
    let mut builder = Builder::new_multi_thread();
    builder.enable_all().thread_name(name).max_blocking_threads(PAUSED_THREADS_MAX);
    builder.on_thread_start(move || {
        PLACE.set(Some(place));
        if place == Place::Lanes {
            rank::stand_back();
        }
    });
    builder
}

/// The ways to the runtimes.
pub(super) struct Places {
    requests: Handle,
    lanes: Handle,
    control: Handle,
    request_turns: Turns,
    lane_turns: Turns,
}

impl Places {
    pub(super) fn handle(&self, place: Place) -> &Handle {
        match place {
            Place::Requests => &self.requests,
            Place::Lanes => &self.lanes,
            Place::Control => &self.control,
        }
    }

    /// The place of this thread.
    pub(super) fn of_this_thread() -> Option<Place> {
        PLACE.get()
    }

    fn turns(&self, place: Place) -> &Turns {
        match place {
            Place::Lanes => &self.lane_turns,
            Place::Requests | Place::Control => &self.request_turns,
        }
    }

    /// Has this thread's worker replaced, and waits for a turn.
    pub(super) fn pause(&self, must_stop: &dyn Fn() -> bool) {
        let Some(place) = PLACE.get() else { return };
        let Ok(runtime) = Handle::try_current() else { return };
        if runtime.runtime_flavor() != RuntimeFlavor::MultiThread {
            return;
        }
        let mut long = LONG.get();
        let replaced = (!long.is_replaced).then(|| run_first(&runtime));
        let turns = self.turns(place);
        // For a thread that is no worker any more this is a plain call.
        tokio::task::block_in_place(|| {
            if let Some(replaced) = &replaced {
                long.is_replaced = replaced.wait(REPLACEMENT_WAIT_MAX);
            }
            if place != Place::Lanes && !long.has_stood_back && rank::can_be_restored() {
                rank::stand_back();
                long.has_stood_back = true;
            }
            long.has_turn = match long.has_turn {
                true => turns.pass_on(must_stop),
                false => turns.take(must_stop),
            };
        });
        LONG.set(long);
    }

    /// Gives back what [`Places::pause`] has taken.
    pub(super) fn end(&self) {
        let long = LONG.replace(LongWork::NONE);
        if let Some(place) = PLACE.get().filter(|_| long.has_turn) {
            self.turns(place).give_back();
        }
        if long.has_stood_back {
            // It was tried before that this succeeds.
            rank::restore();
        }
    }
}

/// Rung by a task that whoever takes over this thread's worker finds among its first.
fn run_first(runtime: &Handle) -> Arc<Alarm> {
    let replaced = Arc::new(Alarm::new());
    let rings = Arc::clone(&replaced);
    runtime.spawn(async move { rings.ring() });
    replaced
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BoxedFuture, Env};
    use std::sync::mpsc;

    fn start() -> (Runtimes, Env) {
        let runtimes = Runtimes::start(2).unwrap();
        let env = Env::real().with_tasks(runtimes.tasks());
        (runtimes, env)
    }

    #[test]
    fn tasks_run_where_they_were_started() {
        let (runtimes, env) = start();
        let (say, hear) = mpsc::channel();
        for place in [Place::Requests, Place::Lanes, Place::Control] {
            let (say, tasks) = (say.clone(), env.clone());
            let task: BoxedFuture<'static, ()> = Box::pin(async move { _ = say.send(tasks.tasks().place()) });
            env.tasks().spawn_at(place, task).unwrap();
            assert_eq!(hear.recv().unwrap(), Some(place));
        }
        assert_eq!(env.tasks().place(), None, "a thread of nobody's");
        runtimes.end();
    }

    #[test]
    fn a_worker_whose_task_is_paused_is_replaced() {
        for place in [Place::Requests, Place::Lanes, Place::Control] {
            let (runtimes, env) = start();
            let (release, released) = mpsc::channel::<()>();
            let released = Arc::new(parking_lot::Mutex::new(released));
            let (say, hear) = mpsc::channel();
            // More than there are workers, and each keeps its thread until the last task has run.
            for _ in 0..4 {
                let (tasks, released) = (env.clone(), Arc::clone(&released));
                let held = async move {
                    // Nobody waits long for a turn: all have to stop. As whatever works long it pauses again and again: on a
                    // machine that is busy the first pause may be over before there is somebody to replace the worker.
                    let mut is_held = true;
                    while is_held {
                        tasks.tasks().pause_long_work(&|| true);
                        let told = released.lock().recv_timeout(Duration::from_millis(1));
                        is_held = told == Err(mpsc::RecvTimeoutError::Timeout);
                    }
                    tasks.tasks().end_long_work();
                };
                env.tasks().spawn_at(place, Box::pin(held)).unwrap();
            }
            env.tasks().spawn_at(place, Box::pin(async move { _ = say.send(()) })).unwrap();
            hear.recv().unwrap();
            drop(release);
            runtimes.end();
        }
    }

    #[test]
    fn turns_are_given_back() {
        let (runtimes, env) = start();
        let (say, hear) = mpsc::channel();
        for _ in 0..20 {
            let (tasks, say) = (env.clone(), say.clone());
            let task = async move {
                tasks.tasks().pause_long_work(&|| false);
                tasks.tasks().pause_long_work(&|| false);
                tasks.tasks().end_long_work();
                _ = say.send(());
            };
            env.tasks().spawn_at(Place::Requests, Box::pin(task)).unwrap();
            hear.recv().unwrap();
        }
        assert!(runtimes.places.request_turns.take(&|| true), "none is taken");
        runtimes.end();
    }
}
