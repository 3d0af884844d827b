//! The checks of looking at operations and ending them.

use super::AccessRequest;
use pando_base::Result;
use pando_security::{Action, Target};

/// Everybody may look at their own operations.
pub(crate) fn may_look(request: &AccessRequest<'_>) -> Result<bool> {
    Ok(request.is_on("$ownOps") || request.may(Target::Cluster, Action::Inprog))
}

/// Everybody may end their own operations.
pub(crate) fn may_kill(request: &AccessRequest<'_>) -> Result<bool> {
    if request.may(Target::Cluster, Action::Killop) {
        return Ok(true);
    }
    let number = request.body.get("op").and_then(|number| number.as_number()).map(|number| number.truncated_i64());
    let operations = request.invocation.node.operations.list();
    let found = operations.iter().find(|context| number == Some(i64::from(context.id())));
    Ok(found.is_some_and(|context| request.invocation.is_own_client(context.client())))
}
