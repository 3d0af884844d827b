//! `listDatabases`: what databases there are, and how large they are on disk.

use crate::arguments::SafeBool;
use crate::locking::lock_for_read;
use crate::{Access, Admission, CommandRow, Data, Invocation, SecondaryOk, arguments, run_boxed};
use pando_base::{DatabaseName, ErrorCode, Result, ensure};
use pando_doc::{Doc, DocBuilder, DocRef};
use pando_env::Place;
use pando_expr::MatchExpression;
use pando_operation::Operation;
use pando_security::{Action, Target};

pub(super) const ROW: CommandRow = CommandRow {
    name: "listDatabases",
    help: "{ listDatabases:1, [filter: <filterObject>] [, nameOnly: true ] }\nlist databases on this server",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    is_admin_only: true,
    secondary_ok: SecondaryOk::OptIn,
    is_in_api_version_1: true,
    is_stopped_when_abandoned: true,
    admission: Admission::Read,
    privileges: Access::Nothing,
    place: Place::Lanes,
    ..CommandRow::DEFAULT
};

arguments! {
    struct ListDatabasesArguments<'a> of "listDatabases" {
        name_only: SafeBool = "nameOnly" or SafeBool(false),
        authorized_databases: Option<bool> = "authorizedDatabases",
        filter: Option<DocRef<'a>> = "filter",
    }
}

async fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    let arguments = ListDatabasesArguments::parse(&invocation.request)?;
    let context = super::names::filter_context(invocation);
    let filter = arguments.filter.map(|filter| MatchExpression::parse(filter, &context)).transpose()?;
    let may_list_all = invocation.may(Target::Cluster, Action::ListDatabases);
    let wants_own = arguments.authorized_databases.unwrap_or(!may_list_all);
    ensure!(wants_own || may_list_all, ErrorCode::Unauthorized, "Insufficient permissions to list all databases");
    let mut operation = invocation.operation()?;
    lock_for_read(&mut operation).await?;
    let mut view = data.catalog.establish(&mut operation)?;
    let databases = view.databases(&data.catalog, &mut operation)?;
    let (mut rows, mut total_bytes) = (Vec::with_capacity(databases.len()), 0_i64);
    for database in databases {
        operation.context.check()?;
        if wants_own && !invocation.may_anything_in(database.as_str()) {
            continue;
        }
        let size_bytes = match arguments.name_only.0 {
            true => None,
            false => Some(disk_bytes(data, &mut view, &mut operation, &database)?),
        };
        let row = row(&database, size_bytes);
        if filter.as_ref().map_or(Ok(true), |filter| filter.try_matches(row.view()))? {
            total_bytes = total_bytes.saturating_add(size_bytes.unwrap_or(0));
            rows.push(row);
        }
    }
    reply.array("databases", |array| rows.iter().for_each(|row| array.push(row)));
    if !arguments.name_only.0 {
        reply.append("totalSize", total_bytes);
        reply.append("totalSizeMb", total_bytes / (1024 * 1024));
    }
    Ok(())
}

fn row(database: &DatabaseName, size_bytes: Option<i64>) -> Doc {
    let mut row = DocBuilder::new();
    row.append("name", database.as_str());
    if let Some(size_bytes) = size_bytes {
        row.append("sizeOnDisk", size_bytes);
        // A database is there as long as it has a collection.
        row.append("empty", false);
    }
    row.finish()
}

fn disk_bytes(
    data: &Data,
    view: &mut pando_catalog::CatalogView,
    operation: &mut Operation,
    database: &DatabaseName,
) -> Result<i64> {
    let mut size_bytes = 0_u64;
    for collection in view.collections(&data.catalog, operation, database)? {
        size_bytes = size_bytes.saturating_add(super::storage_stats::collection_disk_bytes(&collection)?);
    }
    Ok(i64::try_from(size_bytes).unwrap_or(i64::MAX))
}
