//! The check of `applyOps`: who may send it may do what its operations do, and no more.

use super::AccessRequest;
use super::crud::update_actions;
use crate::invocation::namespace;
use crate::replication::{UuidUse, uuid_use};
use pando_base::{DatabaseName, ErrorCode, Namespace, Result, Uuid, bail};
use pando_doc::{DocRef, Value};
use pando_security::{Action, ActionSet, Target};

/// The right to send it, to use ids as it does, and to each operation.
pub(crate) fn may_apply(request: &AccessRequest<'_>) -> Result<bool> {
    let needed = match uuid_use(request.body)? {
        UuidUse::None => Action::ApplyOps.into(),
        UuidUse::Names => ActionSet::of(&[Action::ApplyOps, Action::UseUUID]),
        UuidUse::Forces => ActionSet::of(&[Action::ApplyOps, Action::ForceUUID, Action::UseUUID]),
        UuidUse::Unusual => {
            return Ok(request.may(Target::Cluster, ActionSet::of(&[Action::ApplyOps, Action::Internal])));
        }
    };
    Ok(request.may(Target::Cluster, needed) && may_all(request, request.body)?)
}

fn may_all(request: &AccessRequest<'_>, list: DocRef<'_>) -> Result<bool> {
    let Some(Value::Array(operations)) = list.first().map(|first| first.value) else { return Ok(true) };
    let always_upsert = list.get("alwaysUpsert").is_none_or(|on| on.is_true());
    for operation in operations.values().filter_map(|value| value.as_document()) {
        if !may_one(request, operation, always_upsert)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn may_one(request: &AccessRequest<'_>, operation: DocRef<'_>, always_upsert: bool) -> Result<bool> {
    let kind = operation.get("op").and_then(|kind| kind.as_str()).unwrap_or_default();
    // What names no collection is the command's to refuse.
    let named = operation.get("ns").and_then(|name| name.as_str()).and_then(|name| Namespace::parse(name).ok());
    let Some(named) = named.filter(|_| kind != "n") else { return Ok(true) };
    let target = by_id(request, operation).unwrap_or_else(|| named.clone());
    let upserts = always_upsert || operation.get("b").is_some_and(|on| on.is_true());
    match kind {
        "i" => Ok(request.may(Target::of(&target), Action::Insert)),
        "u" => Ok(request.may(Target::of(&target), update_actions(upserts))),
        "d" => Ok(request.may(Target::of(&target), Action::Remove)),
        "c" => may_command(request, operation, &named, &target),
        _ => bail!(ErrorCode::FailedToParse, "Unrecognized opType"),
    }
}

fn by_id(request: &AccessRequest<'_>, operation: DocRef<'_>) -> Option<Namespace> {
    let Some(Value::Binary { subtype: 4, bytes }) = operation.get("ui") else { return None };
    let uuid = Uuid::from_bytes(bytes.try_into().ok()?);
    request.invocation.node.data.as_ref()?.catalog.latest().namespace_of(&uuid).cloned()
}

/// A command of the oplog needs what the same command needs of a client.
fn may_command(
    request: &AccessRequest<'_>,
    operation: DocRef<'_>,
    named: &Namespace,
    target: &Namespace,
) -> Result<bool> {
    let Some(body) = operation.get("o").and_then(|object| object.as_document()) else { return Ok(true) };
    let name = body.first().map(|first| first.name);
    let Some(entry) = name.and_then(|name| request.invocation.node.table.find(name)) else {
        bail!(ErrorCode::FailedToParse, "Unrecognized command in op");
    };
    let database = match entry.row.name {
        "applyOps" => return may_all(request, body),
        "renameCollection" => DatabaseName::new("admin")?,
        "dropDatabase" => named.database_name(),
        _ => target.database_name(),
    };
    let renames = entry.row.name == "renameCollection";
    if renames && target != named && operation.contains("ui") && !may_move(request, target) {
        return Ok(false);
    }
    let has_id = !renames && target != named && entry.row.name != "dropDatabase" && entry.row.name != "create";
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
