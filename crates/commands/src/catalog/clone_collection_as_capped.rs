//! `cloneCollectionAsCapped`: a capped copy of a collection, without its indexes.

use super::change::lock_exclusively;
use super::copy::{CopyTarget, copy_collection, discard_copy};
use crate::arguments::Truth;
use crate::{Access, Class, CommandRow, Data, Invocation, NamespaceOf, SecondaryOk, arguments, run_boxed};
use pando_base::{ErrorCode, Namespace, Result, bail, ensure};
use pando_catalog::{CAPPED_SIZE_BYTES_MAX, Collection, CollectionOptions};
use pando_doc::{DocBuilder, Value};
use pando_env::Place;
use pando_operation::Operation;
use std::sync::Arc;

pub(super) const ROW: CommandRow = CommandRow {
    name: "cloneCollectionAsCapped",
    help: "{ cloneCollectionAsCapped:<fromName>, toCollection:<toName>, size:<sizeInBytes> }",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    class: Class::Catalog,
    secondary_ok: SecondaryOk::Never,
    takes_write_concern: true,
    namespace: NamespaceOf::FirstField,
    privileges: Access::Checked(crate::access::may_clone),
    place: Place::Lanes,
    ..CommandRow::DEFAULT
};

arguments! {
    struct CloneArguments<'a> of "cloneCollectionAsCapped" lenient {
        to_collection: Option<Value<'a>> = "toCollection",
        size: Option<Value<'a>> = "size",
        temp: Option<Truth> = "temp",
    }
}

async fn run(invocation: &Invocation, _reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    let arguments = CloneArguments::parse(&invocation.request)?;
    let is_text = matches!(invocation.target(), Value::String(_));
    ensure!(is_text, ErrorCode::TypeMismatch, "'cloneCollectionAsCapped' must be of type String");
    let Some(Value::String(to)) = arguments.to_collection else {
        bail!(ErrorCode::TypeMismatch, "'toCollection' must be of type String");
    };
    let from = invocation.collection()?;
    let to = from.sibling(&to.to_string())?;
    to.validate_for_create()?;
    let size_bytes = check_size(arguments.size)?;
    let mut operation = invocation.operation()?;
    lock_exclusively(data, &mut operation, &[&from, &to]).await?;
    let source = source(data, &mut operation, &from)?;
    ensure!(
        data.catalog.collection_for_write(&mut operation, &to)?.is_none(),
        ErrorCode::NamespaceExists,
        "cloneCollectionAsCapped failed - destination collection {to} already exists. source collection: {from}"
    );
    let is_temporary = arguments.temp.is_some_and(|temp| temp.0);
    let copied = clone_as_capped(data, &mut operation, &source, &to, size_bytes, is_temporary).await;
    if copied.is_err() {
        discard_copy(data, &mut operation, &to).await?;
    }
    copied
}

/// A size that a capped collection can have.
pub(super) fn check_size(size: Option<Value<'_>>) -> Result<i64> {
    // What is no number counts as zero.
    let size_bytes = size.map_or(0, |size| size.to_i64_or_zero());
    ensure!(size_bytes > 0, ErrorCode::InvalidOptions, "invalid command spec");
    ensure!(size_bytes <= CAPPED_SIZE_BYTES_MAX, ErrorCode::BadValue, "size cannot exceed 1 PB");
    Ok(size_bytes)
}

/// The collection to be copied, which the caller has locked.
pub(super) fn source(data: &Data, operation: &mut Operation, from: &Namespace) -> Result<Arc<Collection>> {
    if let Some(collection) = data.catalog.collection_for_write(operation, from)? {
        return Ok(collection);
    }
    let is_view = data.catalog.latest().view(from)?.is_some();
    ensure!(!is_view, ErrorCode::CommandNotSupportedOnView, "cloneCollectionAsCapped not supported for views: {from}");
    bail!(ErrorCode::NamespaceNotFound, "source collection {from} does not exist")
}

/// Makes the copy. The caller has locked both names.
pub(super) async fn clone_as_capped(
    data: &Data,
    operation: &mut Operation,
    source: &Arc<Collection>,
    to: &Namespace,
    size_bytes: i64,
    is_temporary: bool,
) -> Result<()> {
    let options = CollectionOptions {
        uuid: None,
        capped: true,
        capped_size_bytes: size_bytes,
        capped_documents_max: 0,
        temp: is_temporary,
        ..(*source.options).clone()
    };
    ensure!(
        !options.is_clustered(),
        ErrorCode::InvalidOptions,
        "a clustered collection cannot be copied into a capped one"
    );
    let target = CopyTarget { namespace: to, options, with_indexes: false };
    copy_collection(data, operation, source, target).await
}
