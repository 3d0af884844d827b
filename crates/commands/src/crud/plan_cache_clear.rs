//! `planCacheClear`: forgets the plans of a collection that have won, or that of one shape of query.

use super::collections::refuse_view;
use super::index_filters::{is_of_shape, shape_request};
use super::reading::begin_read;
use crate::table::run_boxed;
use crate::{Access, Action, Admission, CommandRow, Invocation, NamespaceOf, SecondaryOk};
use pando_base::{Component, Result, Severity, log};
use pando_doc::DocBuilder;

pub(super) const ROW: CommandRow = CommandRow {
    name: "planCacheClear",
    help: "Drops one or all plan cache entries in a collection.",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    secondary_ok: SecondaryOk::OptIn,
    admission: Admission::Read,
    namespace: NamespaceOf::FirstField,
    privileges: Access::Collection(&[Action::PlanCacheWrite]),
    ..CommandRow::DEFAULT
};

async fn run(invocation: &Invocation, _reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    let namespace = invocation.collection()?;
    refuse_view(data, &namespace)?;
    // There is nothing to forget, whatever else is said.
    if data.catalog.latest().collection(&namespace).is_none() {
        return Ok(());
    }
    let request = shape_request(invocation)?;
    let is_of_shape = is_of_shape(invocation)?;
    let mut operation = invocation.operation()?;
    begin_read(invocation, data, &mut operation).await?;
    data.query.forget_plans(&mut operation, &request, is_of_shape)?;
    let log = &invocation.node.log;
    log!(log, Severity::Debug(1), Component::Query, 23908, "Cleared plan cache", "namespace" = &namespace);
    Ok(())
}
