//! `emptycapped`: all documents of a capped collection go at once. For tests.

use super::change::lock_exclusively;
use crate::{Access, Action, Class, CommandRow, Data, Invocation, NamespaceOf, SecondaryOk, arguments, run_boxed};
use pando_base::{ErrorCode, Namespace, Result, bail, ensure};
use pando_catalog::Collection;
use pando_doc::DocBuilder;
use pando_env::Place;
use pando_operation::{Operation, write_conflict_retry};
use std::sync::Arc;

pub(super) const ROW: CommandRow = CommandRow {
    name: "emptycapped",
    help: "empty a capped collection",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    class: Class::Catalog,
    secondary_ok: SecondaryOk::Never,
    takes_write_concern: true,
    namespace: NamespaceOf::FirstField,
    is_for_tests: true,
    privileges: Access::Collection(&[Action::Emptycapped]),
    place: Place::Lanes,
    ..CommandRow::DEFAULT
};

arguments! {
    struct EmptyCappedArguments<'a> of "emptycapped" {}
}

async fn run(invocation: &Invocation, _reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    EmptyCappedArguments::parse(&invocation.request)?;
    let namespace = invocation.collection()?;
    let mut operation = invocation.operation()?;
    lock_exclusively(data, &mut operation, &[&namespace]).await?;
    // Whatever it is called, it empties any collection.
    let collection = find_collection(data, &mut operation, &namespace)?;
    ensure!(
        !namespace.is_system() || namespace.is_system_profile(),
        ErrorCode::IllegalOperation,
        "Cannot truncate a system collection: {namespace}"
    );
    write_conflict_retry(&mut operation, "emptycapped", &namespace, |operation| {
        data.write_path().truncate(operation, &collection)
    })
    .await
}

/// The capped collection of this name, which the caller has locked.
pub(super) fn find_capped(data: &Data, operation: &mut Operation, namespace: &Namespace) -> Result<Arc<Collection>> {
    let collection = find_collection(data, operation, namespace)?;
    ensure!(collection.is_capped(), ErrorCode::IllegalOperation, "collection must be capped");
    Ok(collection)
}

fn find_collection(data: &Data, operation: &mut Operation, namespace: &Namespace) -> Result<Arc<Collection>> {
    if let Some(collection) = data.catalog.collection_for_write(operation, namespace)? {
        return Ok(collection);
    }
    let is_view = data.catalog.latest().view(namespace)?.is_some();
    ensure!(!is_view, ErrorCode::CommandNotSupportedOnView, "emptycapped not supported on view: {namespace}");
    bail!(ErrorCode::NamespaceNotFound, "no such collection")
}
