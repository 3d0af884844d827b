//! `planCacheClear`: forgets the plans of a collection that have won, or that of one shape of query.

use super::reading::{begin_read, shared_or_empty};
use crate::table::run_boxed;
use crate::{Access, Action, Admission, CommandRow, Invocation, NamespaceOf, SecondaryOk, arguments};
use pando_base::{Component, Error, Result, Severity, log};
use pando_doc::{DocBuilder, DocRef};
use pando_query::request::FindRequest;

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

arguments! {
    struct PlanCacheClearArguments<'a> of "planCacheClear" {
        query: Option<DocRef<'a>> = "query",
        sort: Option<DocRef<'a>> = "sort",
        projection: Option<DocRef<'a>> = "projection",
        collation: Option<DocRef<'a>> = "collation",
    }
}

async fn run(invocation: &Invocation, _reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    let arguments = PlanCacheClearArguments::parse(&invocation.request)?;
    let namespace = invocation.collection()?;
    let is_of_shape = arguments.query.is_some();
    if !is_of_shape && (arguments.sort.is_some() || arguments.projection.is_some() || arguments.collation.is_some()) {
        return Err(Error::bad_value("sort, projection, or collation provided without query"));
    }
    let mut request = FindRequest::new(namespace.clone());
    request.filter = shared_or_empty(invocation, arguments.query);
    request.sort = shared_or_empty(invocation, arguments.sort);
    request.projection = shared_or_empty(invocation, arguments.projection);
    request.collation = shared_or_empty(invocation, arguments.collation);
    let mut operation = invocation.operation()?;
    begin_read(invocation, data, &mut operation).await?;
    data.query.forget_plans(&mut operation, &request, is_of_shape)?;
    let log = &invocation.node.log;
    log!(log, Severity::Debug(1), Component::Query, 23908, "Cleared plan cache", "namespace" = &namespace);
    Ok(())
}
