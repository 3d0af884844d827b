//! No threads: in a simulation everything happens on the thread that asks for it.

use crate::{BoxedFuture, Tasks, ThreadHandle};
use std::io;
use tokio::runtime::Handle;

/// One processor and no background threads. A component that has background work must offer it as steps that the test
/// calls; asynchronous tasks run on the caller's (single-threaded) runtime.
pub struct SimulatedTasks;

impl Tasks for SimulatedTasks {
    fn spawn_thread(&self, name: &str, _body: Box<dyn FnOnce() + Send>) -> io::Result<Box<dyn ThreadHandle>> {
        let message = format!("no threads in a simulation: {name} must be stepped");
        Err(io::Error::new(io::ErrorKind::Unsupported, message))
    }

    #[allow(clippy::disallowed_methods)]
    fn spawn(&self, task: BoxedFuture<'static, ()>) -> io::Result<()> {
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        runtime.spawn(task);
        Ok(())
    }

    fn blocking(&self, call: &mut dyn FnMut()) {
        call();
    }

    fn aside(&self, call: &mut (dyn FnMut() + Send)) {
        call();
    }

    fn parallelism(&self) -> usize {
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_refused_and_blocking_calls_run_inline() {
        let refused = SimulatedTasks.spawn_thread("checkpointer", Box::new(|| panic!("must not run")));
        assert_eq!(refused.err().map(|error| error.kind()), Some(io::ErrorKind::Unsupported));
        let mut called = 0;
        SimulatedTasks.blocking(&mut || called += 1);
        SimulatedTasks.aside(&mut || called += 1);
        assert_eq!((called, SimulatedTasks.parallelism()), (2, 1));
    }
}
