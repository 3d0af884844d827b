//! `cloneCollectionAsCapped`: a capped copy of a collection, without its indexes.

use super::change::lock_exclusively;
use super::copy::{CopyTarget, copy_collection, discard_copy};
use crate::arguments::{SafeBool, SafeLong};
use crate::{Access, Class, CommandRow, Data, Invocation, NamespaceOf, SecondaryOk, arguments, run_boxed};
use pando_base::{ErrorCode, Namespace, Result, bail, ensure};
use pando_catalog::{Collection, CollectionOptions};
use pando_doc::DocBuilder;
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
    struct CloneArguments<'a> of "cloneCollectionAsCapped" {
        to_collection: &'a str = "toCollection",
        size: SafeLong = "size" or SafeLong(0),
        temp: Option<SafeBool> = "temp",
    }
}

async fn run(invocation: &Invocation, _reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    let arguments = CloneArguments::parse(&invocation.request)?;
    let from = invocation.collection()?;
    let to = from.sibling(arguments.to_collection)?;
    to.validate_for_create()?;
    let size_bytes = check_size(arguments.size.0)?;
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
pub(super) fn check_size(size_bytes: i64) -> Result<i64> {
    ensure!(size_bytes > 0, ErrorCode::InvalidOptions, "invalid command spec");
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
