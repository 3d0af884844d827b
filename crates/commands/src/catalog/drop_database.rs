//! `dropDatabase`: every collection of a database goes, then the database.

use super::change::change;
use super::fail_points;
use crate::arguments::Place;
use crate::locking::{lock_database, unlock};
use crate::{Access, Action, Class, CommandRow, Data, Invocation, SecondaryOk, arguments, run_boxed};
use pando_base::{DatabaseName, ErrorCode, Namespace, Result, ensure};
use pando_doc::{DocBuilder, ValueType};
use pando_index_build::ActiveBuild;
use pando_locks::Mode;
use pando_operation::Operation;
use pando_repl::ReplGate;
use pando_storage::StorageError;
use std::sync::Arc;

pub(super) const ROW: CommandRow = CommandRow {
    name: "dropDatabase",
    help: "drop (delete) this database",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    class: Class::Catalog,
    secondary_ok: SecondaryOk::Never,
    is_in_api_version_1: true,
    takes_write_concern: true,
    privileges: Access::Database(&[Action::DropDatabase]),
    counts_in_top: false,
    place: pando_env::Place::Lanes,
    ..CommandRow::DEFAULT
};

arguments! {
    struct DropDatabaseArguments<'a> of "dropDatabase" {}
}

async fn run(invocation: &Invocation, _reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    DropDatabaseArguments::parse(&invocation.request)?;
    let database = &invocation.database;
    ensure!(
        !(database.is_local() && invocation.node.replication.is_replica_set()),
        ErrorCode::IllegalOperation,
        "Cannot drop '{database}' database while replication is active"
    );
    ensure!(!database.is_admin(), ErrorCode::IllegalOperation, "Dropping the '{database}' database is prohibited.");
    let target = invocation.target();
    // What is null is not given, and so not the 1 that it has to be.
    if !target.is_number() && !target.is_nullish() {
        let place = Place::of_command("dropDatabase");
        let numbers = [ValueType::Int64, ValueType::Int32, ValueType::Decimal, ValueType::Double];
        return Err(place.field("dropDatabase".into()).wrong_type(target.value_type(), &numbers));
    }
    // A fraction is cut off.
    ensure!(target.to_i64_or_zero() == 1, ErrorCode::location(5255100), "Have to pass 1 as 'drop' parameter");
    let mut operation = invocation.operation()?;
    lock_database(&mut operation, database, Mode::X).await?;
    // From here on nobody makes a collection there, also while the lock is given back.
    let _pending = data.drops_pending.enter(database)?;
    loop {
        let is_here = |build: &Arc<ActiveBuild>| build.namespace.database_name() == *database;
        let has_builds = data.index_builds.active().iter().any(is_here);
        if !has_builds && !fail_points::AFTER_BUILDS_OF_DATABASE.is_on() {
            break;
        }
        unlock(&operation);
        data.index_builds.abort_database(database, "dropDatabase command").await;
        fail_points::AFTER_BUILDS_OF_DATABASE.rest(&operation.context).await?;
        operation.context.check()?;
        lock_database(&mut operation, database, Mode::X).await?;
    }
    data.replication.check_can_write(&Namespace::from(database.clone()))?;
    drop_database(data, &mut operation, database).await?;
    data.profiler.forget(database);
    Ok(())
}

/// Each collection goes in a unit of its own, views' documents last; then the database, empty by now, is told.
async fn drop_database(data: &Data, operation: &mut Operation, database: &DatabaseName) -> Result<()> {
    if !data.catalog.is_open(database) {
        return Ok(());
    }
    let latest = data.catalog.latest();
    let names: Vec<Namespace> = latest.collections(database).map(|collection| collection.namespace.clone()).collect();
    let (views, others): (Vec<_>, Vec<_>) = names.into_iter().partition(Namespace::is_system_views);
    drop(latest);
    for namespace in others.iter().chain(&views) {
        change(operation, "dropDatabase", namespace, |operation| {
            if fail_points::CONFLICT_OF_DROP_DATABASE.should_fail() {
                return Err(StorageError::WriteConflict.into());
            }
            data.catalog.drop_collection(operation, &*data.observers, namespace).map(|_| ())
        })
        .await?;
    }
    let namespace = Namespace::from(database.clone());
    change(operation, "dropDatabase", &namespace, |operation| {
        data.catalog.drop_database(operation, &*data.observers, database)
    })
    .await
}
