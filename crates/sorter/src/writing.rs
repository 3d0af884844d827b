//! A range that another thread sorts and writes, while the sorter takes the entries of the next one.

use crate::collected::Collected;
use crate::range::{Place, Written};
use crate::{Result, SorterError, Spilled};
use pando_env::{Env, ThreadHandle};
use parking_lot::Mutex;
use std::sync::Arc;

/// What the thread is given, and then what it leaves.
struct Work<V> {
    collected: Collected<V>,
    written: Option<Result<Written>>,
}

impl<V: Spilled> Work<V> {
    fn run(&mut self, place: &Place) {
        let sorted = self.collected.sort();
        self.written = Some(sorted.and_then(|()| place.write::<V>(self.collected.iter())));
        self.collected.clear();
    }
}

/// A thread that writes; whoever lets go of this waits for it.
pub(crate) struct Writing<V: Spilled> {
    thread: Option<Box<dyn ThreadHandle>>,
    work: Arc<Mutex<Work<V>>>,
}

impl<V: Spilled> Writing<V> {
    /// Begins; without a thread it is done at once.
    pub(crate) fn start(place: Place, collected: Collected<V>, env: &Env) -> Writing<V> {
        let work = Arc::new(Mutex::new(Work { collected, written: None }));
        let place = Arc::new(place);
        let (their_work, their_place) = (Arc::clone(&work), Arc::clone(&place));
        let body = Box::new(move || their_work.lock().run(&their_place));
        let thread = env.tasks().spawn_thread("pando-sorter", body).ok();
        if thread.is_none() {
            work.lock().run(&place);
        }
        Writing { thread, work }
    }

    /// Waits for the end: the memory, and what was written.
    pub(crate) fn end(mut self) -> Result<(Collected<V>, Written)> {
        let joined = self.join();
        let mut work = self.work.lock();
        let collected = std::mem::replace(&mut work.collected, Collected::new());
        match (joined, work.written.take()) {
            (Ok(()), Some(written)) => Ok((collected, written?)),
            (Err(source), _) => Err(SorterError::Thread { source }),
            (Ok(()), None) => Err(SorterError::Thread { source: std::io::Error::other("it left no range") }),
        }
    }

    fn join(&mut self) -> std::io::Result<()> {
        self.thread.take().map_or(Ok(()), ThreadHandle::join)
    }
}

impl<V: Spilled> Drop for Writing<V> {
    fn drop(&mut self) {
        // Its file and memory must not outlive the sorter; an error would have nobody to tell.
        _ = self.join();
    }
}
