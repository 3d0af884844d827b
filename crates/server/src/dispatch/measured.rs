//! How long a command keeps a processor busy, measured for those that are watched: asking the system costs too much for all.

use pando_base::Result;
use pando_commands::Invocation;
use std::future::poll_fn;
use std::pin::pin;

/// Runs a command, and adds the time of the threads that run it to its counters if somebody wants to know.
pub(super) async fn run(invocation: &Invocation, command: impl Future<Output = Result<()>>) -> Result<()> {
    if !invocation.context.is_watched() && invocation.context.meter().is_none() {
        return command.await;
    }
    let clock = invocation.node.env.clock();
    let busy = &invocation.context.statistics().processor_ns;
    let mut command = pin!(command);
    poll_fn(|context| {
        let before_ns = clock.thread_processor_ns();
        let outcome = command.as_mut().poll(context);
        busy.add(clock.thread_processor_ns().saturating_sub(before_ns));
        outcome
    })
    .await
}
