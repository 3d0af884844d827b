//! `distinct`.

use super::find::namespace_or_uuid;
use super::reading::{append_snapshot_time, begin_whole_read, hint, shared_or_empty};
use crate::table::run_boxed;
use crate::{Access, Admission, Class, CommandRow, Invocation, NamespaceOf, SecondaryOk, arguments};
use pando_base::{Namespace, OperationKind, Result};
use pando_doc::{DocBuilder, DocRef, Value};
use pando_query::request::DistinctRequest;

pub(super) const ROW: CommandRow = CommandRow {
    name: "distinct",
    help: "{ distinct : 'collection name' , key : 'a.b' , query : {} }",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    class: Class::Read,
    secondary_ok: SecondaryOk::OptIn,
    is_allowed_in_transaction: true,
    takes_read_concern: true,
    is_stopped_when_abandoned: true,
    admission: Admission::Read,
    kind: OperationKind::Command,
    namespace: NamespaceOf::FirstField,
    privileges: Access::Checked(crate::access::may_read),
    ..CommandRow::DEFAULT
};

arguments! {
    pub(super) struct DistinctArguments<'a> of "distinct" {
        key: &'a str = "key",
        query: Option<DocRef<'a>> = "query",
        collation: Option<DocRef<'a>> = "collation",
        hint: Option<Value<'a>> = "hint",
        collection_uuid: Option<pando_base::Uuid> = "collectionUUID",
    }
}

impl DistinctArguments<'_> {
    pub(super) fn request(&self, invocation: &Invocation, namespace: Namespace) -> Result<DistinctRequest> {
        Ok(DistinctRequest {
            namespace,
            key: self.key.to_owned(),
            filter: shared_or_empty(invocation, self.query),
            hint: hint(self.hint)?,
            collation: shared_or_empty(invocation, self.collation),
        })
    }
}

async fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    let arguments = DistinctArguments::parse(&invocation.request)?;
    let namespace = namespace_or_uuid(invocation, data)?;
    super::collections::check_uuid(data, &namespace, arguments.collection_uuid)?;
    let request = arguments.request(invocation, namespace)?;
    request.validate()?;
    let mut operation = invocation.operation()?;
    begin_whole_read(invocation, data, &mut operation).await?;
    let values = match super::views::is_view(data, &request.namespace)? {
        true => {
            invocation.say_whole_ok();
            super::views::distinct(data, &mut operation, &request).await?
        }
        false => data.query.distinct(&mut operation, &request).await?,
    };
    reply.append("values", &values);
    append_snapshot_time(&operation, reply);
    Ok(())
}
