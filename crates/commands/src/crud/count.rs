//! `count`.

use super::find::namespace_or_uuid;
use super::reading::{begin_whole_read, hint, shared_or_empty};
use crate::arguments::{CountLimit, SafeLong};
use crate::table::run_boxed;
use crate::{Access, Admission, Class, CommandRow, Invocation, NamespaceOf, SecondaryOk, arguments};
use pando_base::{Namespace, OperationKind, Result};
use pando_doc::{DocBuilder, DocRef, Value};
use pando_query::request::CountRequest;

pub(super) const ROW: CommandRow = CommandRow {
    name: "count",
    help: "count objects in collection",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    class: Class::Read,
    secondary_ok: SecondaryOk::OptIn,
    is_in_api_version_1: true,
    takes_read_concern: true,
    refuses_snapshot: true,
    is_stopped_when_abandoned: true,
    admission: Admission::Read,
    kind: OperationKind::Command,
    namespace: NamespaceOf::FirstField,
    privileges: Access::Checked(crate::access::may_read),
    ..CommandRow::DEFAULT
};

arguments! {
    pub(super) struct CountArguments<'a> of "count" {
        query: Option<DocRef<'a>> = "query",
        limit: Option<CountLimit> = "limit",
        skip: Option<SafeLong> = "skip",
        hint: Option<Value<'a>> = "hint",
        collation: Option<DocRef<'a>> = "collation",
        fields: Option<Value<'a>> = "fields",
        collection_uuid: Option<pando_base::Uuid> = "collectionUUID",
        encryption: Option<DocRef<'a>> = "encryptionInformation",
    }
}

impl CountArguments<'_> {
    pub(super) fn request(&self, invocation: &Invocation, namespace: Namespace) -> Result<CountRequest> {
        Ok(CountRequest {
            namespace,
            filter: shared_or_empty(invocation, self.query),
            skip: self.skip.map(|skip| skip.0),
            limit: self.limit.map(|limit| limit.0),
            hint: hint(self.hint)?,
            collation: shared_or_empty(invocation, self.collation),
        })
    }
}

async fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    let arguments = CountArguments::parse(&invocation.request)?;
    let namespace = namespace_or_uuid(invocation, data)?;
    super::collections::check_uuid(data, &namespace, arguments.collection_uuid)?;
    let request = arguments.request(invocation, namespace)?;
    request.validate()?;
    let mut operation = invocation.operation()?;
    begin_whole_read(invocation, data, &mut operation).await?;
    let count = match super::views::is_view(data, &request.namespace)? {
        true => {
            invocation.say_whole_ok();
            super::views::count(data, &mut operation, &request).await?
        }
        false => data.query.count(&mut operation, &request).await?,
    };
    match i32::try_from(count) {
        Ok(count) => reply.append("n", count),
        Err(_) => reply.append("n", i64::try_from(count).unwrap_or(i64::MAX)),
    }
    Ok(())
}
