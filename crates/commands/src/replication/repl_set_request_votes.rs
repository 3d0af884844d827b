//! `replSetRequestVotes`: another member wants to become primary.

use super::{SET_COMMAND, blocking, require_set};
use crate::{Access, Action, CommandRow, Invocation, run_boxed};
use pando_base::Result;
use pando_doc::DocBuilder;
use pando_env::Place;
use pando_repl::topology::VoteRequest;

pub(super) const ROW: CommandRow = CommandRow {
    name: "replSetRequestVotes",
    help: "internal",
    run: |invocation, reply| run_boxed(std::future::ready(run(invocation, reply))),
    privileges: Access::Cluster(&[Action::Internal]),
    place: Place::Control,
    ..SET_COMMAND
};

fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    require_set(data)?;
    let request = VoteRequest::parse(invocation.body())?;
    let answer = blocking(invocation, || data.replication_parts.request_votes(&request))?;
    reply.append("term", answer.term);
    reply.append("voteGranted", answer.refusal.is_none());
    reply.append("reason", answer.refusal.unwrap_or_default());
    Ok(())
}
