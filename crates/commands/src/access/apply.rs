//! The check of `applyOps`: who may send it may do what its operations do, and no more.

use super::AccessRequest;
use super::crud::update_actions;
use crate::invocation::namespace;
use crate::replication::{ApplyOpsArguments, UuidUse, read_operation, uuid_use};
use pando_base::{DatabaseName, ErrorCode, Namespace, Result, bail};
use pando_doc::{DocRef, Value};
use pando_oplog::{OpKind, Operation};
use pando_security::{Action, ActionSet, Target};

/// The right to send it, to use ids as it does, and to each operation.
pub(crate) fn may_apply(request: &AccessRequest<'_>) -> Result<bool> {
    let needed = match uuid_use(request.body)? {
        UuidUse::None => Action::ApplyOps.into(),
        UuidUse::Names => ActionSet::of(&[Action::ApplyOps, Action::UseUUID]),
        UuidUse::Forces => ActionSet::of(&[Action::ApplyOps, Action::ForceUUID, Action::UseUUID]),
        UuidUse::Unusual => return Ok(request.may(Target::Any, ActionSet::ALL)),
    };
    Ok(request.may(Target::Cluster, needed) && may_all(request, request.body)?)
}

fn may_all(request: &AccessRequest<'_>, list: DocRef<'_>) -> Result<bool> {
    let Some(Value::Array(operations)) = list.first().map(|first| first.value) else { return Ok(true) };
    let always_upsert = ApplyOpsArguments::parse_document(list)?.always_upsert;
    for operation in operations.values().filter_map(|value| value.as_document()) {
        let may = match read_operation(operation)? {
            Some(operation) => may_one(request, &operation, always_upsert)?,
            None => request.may(Target::Cluster, Action::AppendOplogNote),
        };
        if !may {
            return Ok(false);
        }
    }
    Ok(true)
}

fn may_one(request: &AccessRequest<'_>, operation: &Operation<'_>, always_upsert: bool) -> Result<bool> {
    let named = operation.namespace()?;
    let target = by_id(request, operation).unwrap_or_else(|| named.clone());
    let upserts = always_upsert || operation.upsert == Some(true);
    match operation.kind {
        OpKind::Insert => Ok(request.may(Target::of(&target), Action::Insert)),
        OpKind::Update => Ok(request.may(Target::of(&target), update_actions(upserts))),
        OpKind::Delete => Ok(request.may(Target::of(&target), Action::Remove)),
        OpKind::Command => may_command(request, operation, &named, &target),
        OpKind::Noop => Ok(request.may(Target::Cluster, Action::AppendOplogNote)),
        OpKind::InsertGlobalIndexKey | OpKind::DeleteGlobalIndexKey => {
            bail!(ErrorCode::FailedToParse, "Unrecognized opType")
        }
    }
}

fn by_id(request: &AccessRequest<'_>, operation: &Operation<'_>) -> Option<Namespace> {
    let uuid = operation.uuid.as_ref()?;
    request.invocation.node.data.as_ref()?.catalog.latest().namespace_of(uuid).cloned()
}

/// A command of the oplog needs what the same command needs of a client.
fn may_command(
    request: &AccessRequest<'_>,
    operation: &Operation<'_>,
    named: &Namespace,
    target: &Namespace,
) -> Result<bool> {
    let body = operation.object;
    let name = body.first().map(|first| first.name);
    let Some(entry) = name.and_then(|name| request.invocation.node.table.find(name)) else {
        bail!(ErrorCode::FailedToParse, "Unrecognized command in op");
    };
    let database = match entry.row.name {
        "applyOps" => return may_all(request, body),
        "renameCollection" => DatabaseName::new("admin")?,
        // These are carried out in the database that is named, whatever collection the id is of.
        "create" | "dropDatabase" => named.database_name(),
        _ => target.database_name(),
    };
    let moved = by_id(request, operation).filter(|holder| match entry.row.name {
        "renameCollection" => true,
        // Another collection that has the id gets the name.
        "create" => *holder != namespace(entry.row, body, &database),
        _ => false,
    });
    if moved.is_some_and(|source| !may_move(request, &source)) {
        return Ok(false);
    }
    let is_placed = matches!(entry.row.name, "renameCollection" | "create" | "dropDatabase");
    let has_id = !is_placed && target != named;
    let about = if has_id { target.clone() } else { namespace(entry.row, body, &database) };
    let inner = AccessRequest {
        invocation: request.invocation,
        row: entry.row,
        body,
        database: &database,
        namespace: about,
        is_outer: false,
    };
    inner.is_allowed()
}

/// A collection that is named by its id is the one that goes, whatever the command calls it.
fn may_move(request: &AccessRequest<'_>, source: &Namespace) -> bool {
    request.may(Target::of(source), Action::Find)
        && (request.may(Target::of(source), Action::DropCollection)
            || request.may(Target::Database(source.database()), Action::RenameCollectionSameDB))
}
