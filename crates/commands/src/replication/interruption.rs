//! Who writes is told to stop when the node is going to be no primary any more: before it steps down, and before it ends.
//! Index builds are not: they wait until somebody is primary again, or go on after the next start.

use crate::{Class, Data, Node};
use pando_base::{ErrorCode, OperationContext};

/// Tells the writers of clients to stop, but the operation of this id.
pub fn interrupt_writers(node: &Node, data: &Data, except: Option<u32>) {
    let builds: Vec<u32> = data.index_builds.active().iter().map(|build| build.operation_id()).collect();
    let is_meant =
        |other: &OperationContext| Some(other.id()) != except && !builds.contains(&other.id()) && is_write(node, other);
    node.operations.kill_where(ErrorCode::InterruptedDueToReplStateChange, is_meant);
    // Transactions hold the lock that a step down needs.
    data.sessions.abort_all(ErrorCode::InterruptedDueToReplStateChange);
}

fn is_write(node: &Node, other: &OperationContext) -> bool {
    let name = other.description().command_name;
    node.table.find(name.as_bytes()).is_some_and(|entry| matches!(entry.row.class, Class::Write | Class::Catalog))
}
