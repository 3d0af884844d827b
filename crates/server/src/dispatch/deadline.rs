//! Running a command with its deadline in view.
//!
//! Work that goes over rows asks for the deadline itself. This is for work that waits: when the time is over the operation
//! is told to stop, and the command then ends where it next looks.

use pando_base::Result;
use pando_commands::Invocation;
use pando_doc::DocBuilder;
use std::time::Duration;

/// Runs the command.
pub(super) async fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let context = &invocation.context;
    context.check()?;
    let mut running = (invocation.row.run)(invocation, reply);
    let Some(remaining_ns) = context.remaining_ns() else {
        return running.await;
    };
    tokio::select! {
        biased;
        outcome = &mut running => return outcome,
        () = invocation.node.env.clock().sleep(Duration::from_nanos(remaining_ns)) => {}
    }
    context.kill(context.timeout_code());
    running.await
}
