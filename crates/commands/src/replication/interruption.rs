//! Who writes is told to stop when the node is going to be no primary any more: before it steps down, and before it ends.
//! Index builds are not: they wait until somebody is primary again, or go on after the next start.

use crate::{Class, Data, Node};
use pando_base::{ErrorCode, OperationContext};
use pando_operation::yield_now;
use std::time::Duration;

/// How long writers that were told to stop have to say so before the server ends: so often this long.
const END_WAITS_MAX: usize = 50;
const END_WAIT: Duration = Duration::from_millis(10);

/// Tells the writers of clients to stop, but the operation of this id; the ids of those who are told.
pub fn interrupt_writers(node: &Node, data: &Data, except: Option<u32>) -> Vec<u32> {
    let active = data.index_builds.active();
    let builds: Vec<u32> = active.iter().map(|build| build.operation_id()).collect();
    let is_meant =
        |other: &OperationContext| Some(other.id()) != except && !builds.contains(&other.id()) && is_write(node, other);
    let told: Vec<u32> =
        node.operations.list().iter().filter(|other| is_meant(other)).map(OperationContext::id).collect();
    for id in &told {
        node.operations.kill(*id, ErrorCode::InterruptedDueToReplStateChange);
    }
    active.iter().for_each(|build| build.make_way());
    // Transactions hold the lock that a step down needs.
    data.sessions.abort_all(ErrorCode::InterruptedDueToReplStateChange);
    told
}

/// Waits a little until they have ended: whoever is stopped by the end of the server says so, and is taken for another failure.
pub async fn await_ends(node: &Node, data: &Data, told: &[u32]) {
    for _ in 0..END_WAITS_MAX {
        if told.iter().all(|id| node.operations.find(*id).is_none()) {
            return;
        }
        data.services.env.clock().sleep(END_WAIT).await;
        // Simulated time does not wait for tasks.
        yield_now().await;
    }
}

fn is_write(node: &Node, other: &OperationContext) -> bool {
    let name = other.description().command_name;
    node.table.find(name.as_bytes()).is_some_and(|entry| matches!(entry.row.class, Class::Write | Class::Catalog))
}
