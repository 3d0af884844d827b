//! `getDefaultRWConcern`: the concerns of commands that give none, and who has said so.

use super::defaults::{Defaults, shown};
use crate::{Access, Action, CommandRow, Data, Invocation, run_boxed};
use pando_base::{ErrorCode, Result, ensure};
use pando_doc::{DocBuilder, Value, doc};
use pando_repl::ReplGate;
use std::sync::Arc;

pub(super) const ROW: CommandRow = CommandRow {
    name: "getDefaultRWConcern",
    help: "get the current read/write concern defaults being applied by this node",
    run: |invocation, reply| run_boxed(std::future::ready(run(invocation, reply))),
    is_admin_only: true,
    privileges: Access::Cluster(&[Action::GetDefaultRWConcern]),
    ..CommandRow::DEFAULT
};

crate::arguments! {
    struct Arguments<'a> of "getDefaultRWConcern" {
        in_memory: Option<bool> = "inMemory",
    }
}

fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let arguments = Arguments::parse(&invocation.request)?;
    let data = invocation.data()?;
    check_in_set(invocation, data)?;
    append_defaults(data, arguments.in_memory == Some(true), reply);
    Ok(())
}

/// Without a set nobody waits for others, and there is nothing to set.
pub(super) fn check_in_set(invocation: &Invocation, data: &Data) -> Result<()> {
    let name = invocation.row.name;
    let is_member = data.replication.is_replicated();
    ensure!(is_member, ErrorCode::location(51300), "'{name}' is not supported on standalone nodes.");
    Ok(())
}

/// Appends the defaults that apply. The cache follows every write, so that what is in memory is what is kept.
pub(crate) fn append_defaults(data: &Data, says_in_memory: bool, out: &mut DocBuilder) {
    let set: Arc<Defaults> = Arc::clone(&data.settings.defaults.read());
    let implicit_write = data.replication.default_write_concern();
    let mut applied = Defaults::clone(&set);
    applied.read.get_or_insert_with(|| doc! { "level": "local" });
    if applied.write.is_none() && implicit_write.needs_members() {
        applied.write = Some(implicit_write);
    }
    applied.append_to(out);
    let source = |is_set: bool| if is_set { "global" } else { "implicit" };
    out.append("defaultWriteConcernSource", source(set.write.is_some()));
    out.append("defaultReadConcernSource", source(set.read.is_some()));
    if says_in_memory {
        out.append("inMemory", true);
    }
    out.append("localUpdateWallClockTime", Value::DateTime(set.taken_ms));
    debug_assert!(applied.write.as_ref().is_none_or(|concern| !shown(concern).is_empty()));
}
