//! `renameCollection`: inside a database the name changes; to another database the documents are copied.

use super::change::{change, lock_exclusively};
use super::copy::{CopyTarget, copy_collection, discard_copy, temporary_name};
use super::names::{check_uuid, full_name};
use crate::arguments::Place;
use crate::{Access, Class, CommandRow, Data, Invocation, NamespaceOf, SecondaryOk, arguments, run_boxed};
use pando_base::{ErrorCode, Namespace, Result, Uuid, bail, ensure};
use pando_catalog::{CollectionOptions, RenameOptions};
use pando_doc::{DocBuilder, Value};
use pando_operation::Operation;

pub(super) const ROW: CommandRow = CommandRow {
    name: "renameCollection",
    help: "{ renameCollection: 'db.a', to: 'db.b' }",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    class: Class::Catalog,
    is_admin_only: true,
    secondary_ok: SecondaryOk::Never,
    takes_write_concern: true,
    namespace: NamespaceOf::FullName,
    privileges: Access::Checked(crate::access::may_rename),
    counts_in_top: false,
    place: pando_env::Place::Lanes,
    ..CommandRow::DEFAULT
};

arguments! {
    struct RenameArguments<'a> of "renameCollection" {
        to: Option<Value<'a>> = "to",
        drop_target: Option<Value<'a>> = "dropTarget",
        stay_temp: bool = "stayTemp" or false,
        collection_uuid: Option<Uuid> = "collectionUUID",
    }
}

async fn run(invocation: &Invocation, _reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    let arguments = RenameArguments::parse(&invocation.request)?;
    let from = full_name(invocation.target(), "renameCollection.renameCollection")?;
    let to = arguments.to.filter(|to| !to.is_nullish());
    let to = to.ok_or_else(|| Place::of_command("renameCollection").missing("to"))?;
    let to = full_name(to, "renameCollection.to")?;
    let (drop_target, target_uuid) = drop_target(arguments.drop_target)?;
    ensure!(from != to, ErrorCode::IllegalOperation, "Can't rename a collection to itself");
    check_names(invocation, &from, &to)?;
    let options = RenameOptions { drop_target, stay_temp: arguments.stay_temp };
    let mut operation = invocation.operation()?;
    if from.database() != to.database() {
        ensure!(
            arguments.collection_uuid.is_none() && target_uuid.is_none(),
            ErrorCode::InvalidOptions,
            "The collectionUUID and dropTarget parameters cannot name collections by their ids when renaming a collection \
             between databases"
        );
        return rename_across_databases(data, &mut operation, &from, &to, options).await;
    }
    lock_exclusively(data, &mut operation, &[&from, &to]).await?;
    check_uuid(data, &from, arguments.collection_uuid)?;
    check_uuid(data, &to, target_uuid)?;
    rename(data, &mut operation, &from, &to, options).await
}

/// A flag, or the id of the collection that may be dropped.
fn drop_target(given: Option<Value<'_>>) -> Result<(bool, Option<Uuid>)> {
    match given {
        None | Some(Value::Null | Value::Undefined) => Ok((false, None)),
        Some(Value::Bool(flag)) => Ok((flag, None)),
        Some(Value::Binary { subtype: 4, bytes }) if bytes.len() == 16 => {
            Ok((true, bytes.try_into().map(Uuid::from_bytes).ok()))
        }
        Some(Value::Binary { .. }) => {
            bail!(ErrorCode::InvalidUUID, "uuid must be a 16-byte binary field with UUID (4) subtype")
        }
        Some(number) if number.is_number() => Ok((number.is_true(), None)),
        Some(other) => bail!(
            ErrorCode::TypeMismatch,
            "BSON field 'renameCollection.dropTarget' is the wrong type '{}', expected types '[bool, binData']",
            other.value_type().name()
        ),
    }
}

fn check_names(invocation: &Invocation, from: &Namespace, to: &Namespace) -> Result<()> {
    let code = ErrorCode::IllegalOperation;
    let is_replicating = invocation.node.replication.is_replica_set();
    ensure!(!(is_replicating && from.is_oplog()), code, "can't rename live oplog while replicating");
    ensure!(!(is_replicating && to.is_oplog()), code, "can't rename to live oplog while replicating");
    ensure!(
        from.is_oplog() == to.is_oplog(),
        code,
        "If either the source or target of a rename is an oplog name, both must be"
    );
    let write = |namespace: &Namespace, which: &str| {
        let allowed = namespace.validate_for_write(is_replicating).and_then(|()| namespace.validate_for_create());
        allowed
            .map_err(|error| pando_base::Error::new(code, format!("error with {which} namespace: {}", error.reason())))
    };
    write(from, "source")?;
    write(to, "target")?;
    ensure!(
        !from.is_server_configuration(),
        code,
        "renaming the server configuration collection (admin.system.version) is not allowed"
    );
    for (is_named, name) in [
        (from.is_system_views() || to.is_system_views(), "system.views"),
        (from.is_system_javascript() || to.is_system_javascript(), "system.js"),
        (from.is_system_users() || to.is_system_users(), "system.users"),
    ] {
        ensure!(!is_named, code, "renaming {name} collection or renaming to {name} is not allowed");
    }
    ensure!(!from.is_timeseries_buckets(), code, "Renaming system.buckets collections is not allowed");
    Ok(())
}

async fn rename(
    data: &Data,
    operation: &mut Operation,
    from: &Namespace,
    to: &Namespace,
    options: RenameOptions,
) -> Result<()> {
    change(operation, "renameCollection", from, |operation| {
        data.catalog.rename_collection(operation, &*data.observers, from, to, options).map(|_| ())
    })
    .await
}

/// Copies into a temporary collection of the other database, gives it the name, and drops the source. Writers of the
/// source are kept out until it is gone.
async fn rename_across_databases(
    data: &Data,
    operation: &mut Operation,
    from: &Namespace,
    to: &Namespace,
    options: RenameOptions,
) -> Result<()> {
    ensure!(
        from.is_replicated() == to.is_replicated(),
        ErrorCode::IllegalOperation,
        "Cannot rename collections between a replicated and an unreplicated database"
    );
    let temporary = to.sibling(&temporary_name(operation, "renameCollection"))?;
    lock_exclusively(data, operation, &[from, to, &temporary]).await?;
    let Some(source) = data.catalog.collection_for_write(operation, from)? else {
        let is_view = data.catalog.latest().view(from)?.is_some();
        ensure!(!is_view, ErrorCode::CommandNotSupportedOnView, "cannot rename view: {from}");
        bail!(ErrorCode::NamespaceNotFound, "source namespace does not exist");
    };
    check_free(data, to, options)?;
    let copied = CollectionOptions { uuid: None, temp: true, ..(*source.options).clone() };
    let target = CopyTarget { namespace: &temporary, options: copied, with_indexes: true };
    let mut outcome = copy_collection(data, operation, &source, target).await;
    if outcome.is_ok() {
        outcome = rename(data, operation, &temporary, to, options).await;
    }
    if let Err(error) = outcome {
        discard_copy(data, operation, &temporary).await?;
        return Err(error);
    }
    change(operation, "renameCollection", from, |operation| {
        data.catalog.drop_collection(operation, &*data.observers, from).map(|_| ())
    })
    .await
}

fn check_free(data: &Data, to: &Namespace, options: RenameOptions) -> Result<()> {
    let latest = data.catalog.latest();
    ensure!(
        options.drop_target || latest.collection(to).is_none(),
        ErrorCode::NamespaceExists,
        "target namespace exists"
    );
    ensure!(latest.view(to)?.is_none(), ErrorCode::NamespaceExists, "a view already exists with that name: {to}");
    data.catalog.check_database_case(&to.database_name())
}
