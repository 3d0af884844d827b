//! Operating system threads and tokio tasks.

use super::large_pages;
use crate::{BoxedFuture, Tasks, ThreadHandle};
use std::io;
use std::sync::OnceLock;
use std::thread::{Builder, JoinHandle};
use tokio::runtime::{Handle, RuntimeFlavor};

/// Threads of this process, and tasks of the tokio runtime that the caller runs in.
pub struct RealTasks;

impl Tasks for RealTasks {
    fn spawn_thread(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> io::Result<Box<dyn ThreadHandle>> {
        let thread = Builder::new().name(name.to_owned()).spawn(body)?;
        Ok(Box::new(RealThread { thread }))
    }

    fn spawn(&self, task: BoxedFuture<'static, ()>) -> io::Result<()> {
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        runtime.spawn(task);
        Ok(())
    }

    fn blocking(&self, call: &mut dyn FnMut()) {
        // Only a multi-threaded runtime can hand its other tasks to another worker; elsewhere there is nobody to starve
        // or nothing to be done about it.
        match Handle::try_current() {
            Ok(runtime) if runtime.runtime_flavor() == RuntimeFlavor::MultiThread => tokio::task::block_in_place(call),
            _ => call(),
        }
    }

    fn parallelism(&self) -> usize {
        // The answer costs a dozen system calls, which open the files of control groups, and is asked for at every sync.
        static PARALLELISM: OnceLock<usize> = OnceLock::new();
        *PARALLELISM.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
    }

    fn prefer_large_pages(&self) {
        large_pages::prefer();
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
