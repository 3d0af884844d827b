//! The checks of reads and writes.

use super::AccessRequest;
use crate::crud::MapReduceOutput;
use crate::invocation::namespace;
use pando_base::{Namespace, Result, Uuid};
use pando_doc::Value;
use pando_security::{Action, ActionSet, Target};

/// Reading a collection: `find`, `count`, `distinct`.
pub(crate) fn may_read(request: &AccessRequest<'_>) -> Result<bool> {
    // Reads with a term are those of other members.
    if request.body.contains("term") && !request.may(Target::Cluster, Action::Internal) {
        return Ok(false);
    }
    may_on_named(request, Action::Find.into())
}

/// Something on the collection that the command's own field names, by its name or by its id.
pub(super) fn may_on_named(request: &AccessRequest<'_>, actions: ActionSet) -> Result<bool> {
    let first = request.body.first().map(|element| element.value);
    let Some(Value::Binary { subtype: 4, bytes }) = first else {
        return Ok(request.may(Target::of(&request.namespace), actions));
    };
    if !request.may(Target::Cluster, Action::UseUUID) {
        return Ok(false);
    }
    // What is not there is the command's to tell, to one who may ask by id.
    let named = bytes.try_into().ok().map(Uuid::from_bytes).and_then(|uuid| by_id(request, &uuid));
    Ok(named.is_none_or(|namespace| request.may(Target::of(&namespace), actions)))
}

fn by_id(request: &AccessRequest<'_>, uuid: &Uuid) -> Option<Namespace> {
    request.invocation.node.data.as_ref()?.catalog.latest().namespace_of(uuid).cloned()
}

pub(crate) fn may_insert(request: &AccessRequest<'_>) -> Result<bool> {
    Ok(request.may(Target::of(&request.namespace), with_bypass(request, Action::Insert.into())))
}

pub(crate) fn may_update(request: &AccessRequest<'_>) -> Result<bool> {
    let upserts =
        request.statements("updates").iter().any(|update| update.get("upsert").is_some_and(|on| on.is_true()));
    Ok(request.may(Target::of(&request.namespace), with_bypass(request, update_actions(upserts))))
}

pub(crate) fn may_modify(request: &AccessRequest<'_>) -> Result<bool> {
    let change = match request.is_on("remove") {
        true => Action::Remove.into(),
        false => update_actions(request.is_on("upsert")),
    };
    let actions = with_bypass(request, change.with(Action::Find.into()));
    Ok(request.may(Target::of(&request.namespace), actions))
}

/// Reading a collection, and writing the one that the results go to.
pub(crate) fn may_map_reduce(request: &AccessRequest<'_>) -> Result<bool> {
    if !request.may(Target::of(&request.namespace), Action::Find) {
        return Ok(false);
    }
    // What makes no sense is the command's to refuse.
    let Some(Ok(output)) = request.body.get("out").map(MapReduceOutput::parse) else { return Ok(true) };
    let Some(target) = output.target() else { return Ok(true) };
    let change = match output {
        MapReduceOutput::Replace(_) => Action::Remove,
        _ => Action::Update,
    };
    let database = target.database.as_deref().unwrap_or(request.database.as_str());
    let Ok(namespace) = Namespace::of(database, &target.collection) else { return Ok(true) };
    let actions = with_bypass(request, ActionSet::of(&[Action::Insert, change]));
    Ok(request.may(Target::of(&namespace), actions))
}

pub(super) fn update_actions(upserts: bool) -> ActionSet {
    match upserts {
        true => ActionSet::of(&[Action::Update, Action::Insert]),
        false => Action::Update.into(),
    }
}

pub(super) fn with_bypass(request: &AccessRequest<'_>, actions: ActionSet) -> ActionSet {
    match request.is_on("bypassDocumentValidation") {
        true => actions.with(Action::BypassDocumentValidation.into()),
        false => actions,
    }
}

/// Who may run a command may have it explained.
pub(crate) fn may_explain(request: &AccessRequest<'_>) -> Result<bool> {
    let Some(Value::Document(inner)) = request.body.first().map(|element| element.value) else { return Ok(true) };
    let name = inner.first().map(|element| element.name);
    // What cannot be explained is explain's to refuse.
    let Some(entry) = name.and_then(|name| request.invocation.node.table.find(name)) else { return Ok(true) };
    let inner = AccessRequest {
        invocation: request.invocation,
        row: entry.row,
        body: inner,
        database: request.database,
        namespace: namespace(entry.row, inner, request.database),
        is_outer: false,
    };
    match entry.row.name {
        "explain" => Ok(true),
        _ => inner.is_allowed(),
    }
}
