//! `startSession`: a session whose id the server makes up.

use crate::{Access, CommandRow, Invocation, run_boxed};
use pando_base::{Result, Uuid};
use pando_doc::{DocBuilder, Value};
use pando_session::{LOCAL_LOGICAL_SESSION_TIMEOUT_MINUTES, LogicalSessionId, MAX_SESSIONS};

pub(super) const ROW: CommandRow = CommandRow {
    name: "startSession",
    help: "start a logical session",
    run: |invocation, reply| run_boxed(std::future::ready(run(invocation, reply))),
    privileges: Access::Nothing,
    ..CommandRow::DEFAULT
};

fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let (data, node) = (invocation.data()?, &invocation.node);
    let mut bytes = [0; 16];
    node.env.random().fill(&mut bytes);
    let session = LogicalSessionId::new(Uuid::from_random(bytes), invocation.user_digest());
    let count_max = usize::try_from(node.parameters.get(&MAX_SESSIONS)).unwrap_or(usize::MAX);
    data.session_cache.vivify(session, node.now_ms(), count_max)?;
    reply.document("id", |id| id.append("id", Value::Binary { subtype: 4, bytes: session.id.as_bytes() }));
    let minutes = i64::from(node.parameters.get(&LOCAL_LOGICAL_SESSION_TIMEOUT_MINUTES));
    reply.append("timeoutMinutes", i32::try_from(minutes).unwrap_or(i32::MAX));
    Ok(())
}
