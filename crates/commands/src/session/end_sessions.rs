//! `endSessions`: the client will not use these sessions any more. The next refresh forgets them; their cursors go at once.

use super::ids::sessions;
use super::killing::close_cursors;
use crate::{Access, CommandRow, Invocation, run_boxed};
use pando_base::Result;

pub(super) const ROW: CommandRow = CommandRow {
    name: "endSessions",
    help: "end a set of logical sessions",
    run: |invocation, _| run_boxed(std::future::ready(run(invocation))),
    is_allowed_before_authentication: true,
    is_in_api_version_1: true,
    privileges: Access::Nothing,
    ..CommandRow::DEFAULT
};

crate::arguments! {
    /// What endSessions takes beside the list: nothing.
    struct Arguments<'a> of "endSessions" {}
}

fn run(invocation: &Invocation) -> Result<()> {
    Arguments::parse(&invocation.request)?;
    let sessions = sessions(invocation)?;
    let Some(data) = &invocation.node.data else { return Ok(()) };
    data.session_cache.end(&sessions)?;
    close_cursors(data, |session| sessions.contains(&session));
    Ok(())
}
