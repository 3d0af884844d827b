//! Operating system threads and tokio tasks.

use super::places::Places;
use super::rank::stand_back;
use super::{large_pages, workers};
use crate::{BoxedFuture, Place, Tasks, ThreadHandle};
use std::io;
use std::sync::{Arc, OnceLock, Weak};
use std::thread::{Builder, JoinHandle, ScopedJoinHandle};
use tokio::runtime::{Handle, RuntimeFlavor};

/// Threads of this process, and tasks of its runtimes, or of the one that the caller runs in.
#[derive(Default)]
pub struct RealTasks {
    places: Option<Arc<Places>>,
}

impl RealTasks {
    /// Tasks run at these places.
    pub(super) fn at(places: Arc<Places>) -> RealTasks {
        RealTasks { places: Some(places) }
    }
}

impl Tasks for RealTasks {
    fn spawn_thread(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> io::Result<Box<dyn ThreadHandle>> {
        let thread = Builder::new().name(name.to_owned()).spawn(body)?;
        Ok(Box::new(RealThread { thread }))
    }

    fn spawn_thread_aside(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> io::Result<Box<dyn ThreadHandle>> {
        self.spawn_thread(
            name,
            Box::new(|| {
                stand_back();
                body();
            }),
        )
    }

    fn spawn(&self, task: BoxedFuture<'static, ()>) -> io::Result<()> {
        self.spawn_at(Place::Requests, task)
    }

    fn spawn_at(&self, place: Place, task: BoxedFuture<'static, ()>) -> io::Result<()> {
        if let Some(places) = &self.places {
            places.handle(place).spawn(task);
            return Ok(());
        }
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        runtime.spawn(task);
        Ok(())
    }

    fn place(&self) -> Option<Place> {
        self.places.as_ref().and_then(|_| Places::of_this_thread())
    }

    fn pause_long_work(&self, must_stop: &dyn Fn() -> bool) {
        if let Some(places) = &self.places {
            places.pause(must_stop);
        }
    }

    fn end_long_work(&self) {
        if let Some(places) = &self.places {
            places.end();
        }
    }

    fn blocking(&self, call: &mut dyn FnMut()) {
        // Only a multi-threaded runtime can hand its other tasks to another worker; elsewhere there is nobody to starve
        // or nothing to be done about it.
        match Handle::try_current() {
            Ok(runtime) if runtime.runtime_flavor() == RuntimeFlavor::MultiThread => tokio::task::block_in_place(call),
            _ => call(),
        }
    }

    fn aside(&self, call: &mut (dyn FnMut() + Send)) {
        if self.place() == Some(Place::Lanes) {
            return self.blocking(call);
        }
        self.blocking(&mut || {
            // A thread can give up its rank, but not take it back: the call gets one of its own.
            let is_done = std::thread::scope(|scope| {
                let thread = Builder::new().name("pando-aside".to_owned()).spawn_scoped(scope, || {
                    stand_back();
                    call();
                });
                match thread.map(ScopedJoinHandle::join) {
                    Ok(Ok(())) => true,
                    Ok(Err(panic)) => std::panic::resume_unwind(panic),
                    Err(_) => false,
                }
            });
            if !is_done {
                // The system has no thread for it: better here than not at all.
                call();
            }
        });
    }

    fn parallelism(&self) -> usize {
        // The answer costs a dozen system calls, which open the files of control groups, and is asked for at every sync.
        static PARALLELISM: OnceLock<usize> = OnceLock::new();
        *PARALLELISM.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
    }

    fn at_rest(&self, call: Weak<dyn Fn() + Send + Sync>) {
        workers::listen(call);
    }

    fn has_spare_worker(&self) -> bool {
        workers::any_rests()
    }

    fn wakes(&self) -> u64 {
        workers::wakes()
    }

    fn can_wait_here(&self) -> bool {
        // Who works on a lane keeps nobody waiting but other long work.
        self.place() == Some(Place::Lanes) || workers::others_watch()
    }

    fn give_way(&self) -> bool {
        workers::give_way()
    }

    fn avoid_large_pages(&self) {
        large_pages::avoid();
    }

    fn prefer_large_pages(&self) {
        large_pages::prefer();
    }

    fn make_large_pages(&self, goes_on: &dyn Fn() -> bool) {
        large_pages::make(goes_on);
    }
}

struct RealThread {
    thread: JoinHandle<()>,
}

impl ThreadHandle for RealThread {
    fn join(self: Box<Self>) -> io::Result<()> {
        let name = self.thread.thread().name().unwrap_or("unnamed").to_owned();
        self.thread.join().map_err(|_| io::Error::other(format!("thread {name} panicked")))
    }
}
