//! `setProfilingFilterGlobally`: one filter for the profiler of every database. It has to be allowed at start.

use crate::watch::parse_filter;
use crate::{Access, Action, CommandRow, Invocation, QUERY_GLOBAL_PROFILE_FILTER, run_boxed};
use pando_base::{ErrorCode, Result, ensure};
use pando_doc::{DocBuilder, Value};
use std::sync::Arc;

pub(super) const ROW: CommandRow = CommandRow {
    name: "setProfilingFilterGlobally",
    help: "updates the global filter for profiling and for the log of slow operations",
    run: |invocation, reply| run_boxed(std::future::ready(run(invocation, reply))),
    is_admin_only: true,
    privileges: Access::Cluster(&[Action::EnableProfiler]),
    ..CommandRow::DEFAULT
};

crate::arguments! {
    struct GlobalFilterArguments<'a> of "setProfilingFilterGlobally" {
        filter: Value<'a> = "filter",
    }
}

fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let arguments = GlobalFilterArguments::parse(&invocation.request)?;
    ensure!(
        invocation.node.parameters.get(&QUERY_GLOBAL_PROFILE_FILTER),
        ErrorCode::location(7283301),
        "setProfilingFilterGlobally command requires query knob to be enabled"
    );
    let filter = parse_filter(arguments.filter, invocation.node.now_ms())?;
    let before = invocation.data()?.profiler.set_filter_everywhere(filter.map(Arc::new));
    reply.append_some("was", before.map(|filter| filter.to_document()));
    Ok(())
}
