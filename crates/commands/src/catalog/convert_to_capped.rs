//! `convertToCapped`: a collection becomes a capped one, by a copy that takes its name.

use super::change::{change, lock_exclusively};
use super::clone_collection_as_capped::{check_size, clone_as_capped, source};
use super::copy::{discard_copy, temporary_name};
use crate::{Access, Action, Class, CommandRow, Invocation, NamespaceOf, SecondaryOk, arguments, run_boxed};
use pando_base::{ErrorCode, Result, ensure};
use pando_catalog::RenameOptions;
use pando_doc::{DocBuilder, Value};
use pando_env::Place;

pub(super) const ROW: CommandRow = CommandRow {
    name: "convertToCapped",
    help: "{ convertToCapped:<fromCollectionName>, size:<sizeInBytes> }",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    class: Class::Catalog,
    secondary_ok: SecondaryOk::Never,
    takes_write_concern: true,
    namespace: NamespaceOf::FirstField,
    privileges: Access::Collection(&[Action::ConvertToCapped]),
    counts_in_top: false,
    place: Place::Lanes,
    ..CommandRow::DEFAULT
};

arguments! {
    struct ConvertArguments<'a> of "convertToCapped" lenient {
        size: Option<Value<'a>> = "size",
    }
}

async fn run(invocation: &Invocation, _reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    let arguments = ConvertArguments::parse(&invocation.request)?;
    let namespace = invocation.collection()?;
    let size_bytes = check_size(arguments.size)?;
    // The copy would be replicated, and what takes its place is not.
    ensure!(!namespace.is_system_profile(), ErrorCode::BadValue, "cannot convert {namespace}, which is not replicated");
    let mut operation = invocation.operation()?;
    let temporary = namespace.sibling(&temporary_name(&operation, "convertToCapped"))?;
    lock_exclusively(data, &mut operation, &[&namespace, &temporary]).await?;
    let database = namespace.database_name();
    ensure!(
        data.catalog.latest().has_database(&database),
        ErrorCode::NamespaceNotFound,
        "database {database} not found"
    );
    let source = source(data, &mut operation, &namespace)?;
    let mut outcome = clone_as_capped(data, &mut operation, &source, &temporary, size_bytes, true).await;
    if outcome.is_ok() {
        let options = RenameOptions { drop_target: true, stay_temp: false };
        outcome = change(&mut operation, "convertToCapped", &namespace, |operation| {
            data.catalog.rename_collection(operation, &*data.observers, &temporary, &namespace, options).map(|_| ())
        })
        .await;
    }
    if outcome.is_err() {
        discard_copy(data, &mut operation, &temporary).await?;
    }
    outcome
}
