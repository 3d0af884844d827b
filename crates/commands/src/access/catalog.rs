//! The checks of what changes and lists collections.

use super::AccessRequest;
use super::crud::may_on_named;
use super::pipeline::may_define_pipeline;
use pando_base::{ErrorCode, Namespace, Result, ensure};
use pando_doc::{ArrayRef, Value};
use pando_security::{Action, ActionSet, Target};

/// Without the right to list, one who may do anything in the database may see the names of what they may use.
pub(crate) fn may_list_collections(request: &AccessRequest<'_>) -> Result<bool> {
    let wants_own_names = request.is_on("authorizedCollections") && request.is_on("nameOnly");
    if wants_own_names && request.invocation.may_anything_in(request.database.as_str()) {
        return Ok(true);
    }
    Ok(request.may(Target::Database(request.database.as_str()), Action::ListCollections))
}

pub(crate) fn may_list_indexes(request: &AccessRequest<'_>) -> Result<bool> {
    may_on_named(request, Action::ListIndexes.into())
}

/// A collection: also one who may insert may create it. A view: reading it must not show more than could be seen before.
pub(crate) fn may_create(request: &AccessRequest<'_>) -> Result<bool> {
    let target = Target::of(&request.namespace);
    if request.is_on("capped") && !request.may(target, Action::ConvertToCapped) {
        return Ok(false);
    }
    let may_create = request.may(target, Action::CreateCollection);
    match request.body.get("viewOn") {
        None => Ok(may_create || request.may(target, Action::Insert)),
        Some(view_on) => Ok(may_create && may_define_view(request, view_on)?),
    }
}

pub(crate) fn may_change(request: &AccessRequest<'_>) -> Result<bool> {
    if !request.may(Target::of(&request.namespace), Action::CollMod) {
        return Ok(false);
    }
    let view_on = request.body.get("viewOn");
    ensure!(
        view_on.is_some() == request.body.contains("pipeline"),
        ErrorCode::InvalidOptions,
        "Must specify both 'viewOn' and 'pipeline' when modifying a view and auth is enabled"
    );
    view_on.map_or(Ok(true), |view_on| may_define_view(request, view_on))
}

/// Who cannot read the view learns nothing by defining it.
fn may_define_view(request: &AccessRequest<'_>, view_on: Value<'_>) -> Result<bool> {
    if !request.may(Target::of(&request.namespace), Action::Find) {
        return Ok(true);
    }
    // A name that is none is the command's to refuse.
    let Some(view_on) = view_on.as_str().and_then(|name| Namespace::new(request.database, name).ok()) else {
        return Ok(true);
    };
    let pipeline = match request.body.get("pipeline") {
        Some(Value::Array(pipeline)) => pipeline,
        _ => ArrayRef::EMPTY,
    };
    may_define_pipeline(request, &view_on, pipeline)
}

pub(crate) fn may_clone(request: &AccessRequest<'_>) -> Result<bool> {
    let named = |field: &str| request.body.get(field).and_then(|name| name.as_str());
    let (Some(from), Some(to)) = (named("cloneCollectionAsCapped"), named("toCollection")) else { return Ok(true) };
    let database = request.database.as_str();
    let onto = ActionSet::of(&[Action::Insert, Action::CreateIndex, Action::ConvertToCapped]);
    Ok(request.may(Target::Collection(database, from), Action::Find)
        && request.may(Target::Collection(database, to), onto))
}

/// Inside a database there is an action for it; otherwise it is reading, dropping and writing.
pub(crate) fn may_rename(request: &AccessRequest<'_>) -> Result<bool> {
    let named = |field: &str| {
        request.body.get(field).and_then(|name| name.as_str()).and_then(|name| Namespace::parse(name).ok())
    };
    let (Some(from), Some(to)) = (named("renameCollection"), named("to")) else { return Ok(true) };
    let drops_target = request.is_on("dropTarget");
    if from.database() == to.database() && from.is_normal() && to.is_normal() {
        let may_rename = request.may(Target::Database(from.database()), Action::RenameCollectionSameDB);
        let may_drop = !drops_target || request.may(Target::of(&to), Action::DropCollection);
        // Nobody may come to read what they could not read before.
        let hides = request.may(Target::of(&from), Action::Find) || !request.may(Target::of(&to), Action::Find);
        if may_rename && may_drop && hides {
            return Ok(true);
        }
    }
    let from_actions = ActionSet::of(&[Action::Find, Action::DropCollection]);
    let mut to_actions = ActionSet::of(&[Action::Insert, Action::CreateIndex]);
    if drops_target {
        to_actions = to_actions.with(Action::DropCollection.into());
    }
    Ok(request.may(Target::of(&from), from_actions) && request.may(Target::of(&to), to_actions))
}
