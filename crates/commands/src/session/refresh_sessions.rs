//! `refreshSessions`: the client still wants these sessions.

use super::ids::sessions;
use crate::{Access, CommandRow, Invocation, run_boxed};
use pando_base::Result;
use pando_session::MAX_SESSIONS;

pub(super) const ROW: CommandRow = CommandRow {
    name: "refreshSessions",
    help: "renew a set of logical sessions",
    run: |invocation, _| run_boxed(std::future::ready(run(invocation))),
    is_in_api_version_1: true,
    privileges: Access::Nothing,
    ..CommandRow::DEFAULT
};

crate::arguments! {
    /// What refreshSessions takes beside the list: nothing.
    struct Arguments<'a> of "refreshSessions" {}
}

fn run(invocation: &Invocation) -> Result<()> {
    Arguments::parse(&invocation.request)?;
    let (data, node) = (invocation.data()?, &invocation.node);
    let count_max = usize::try_from(node.parameters.get(&MAX_SESSIONS)).unwrap_or(usize::MAX);
    let now_ms = node.now_ms();
    sessions(invocation)?.into_iter().try_for_each(|session| data.session_cache.vivify(session, now_ms, count_max))
}
