//! Updates of one document by its `_id` and nothing else, without a plan: what most updates are.
//!
//! It does what the stages would do, in the same order and with the same counts. What it does not know how to do is left to them.
//! When it meets a conflict nothing has happened: others run, and it is tried again.

use super::{DocumentChange, UpdateResult};
use crate::QueryEngine;
use crate::canonical::id_of;
use crate::executor::{YieldCause, cause_of, is_conflict};
use crate::request::UpdateRequest;
use crate::stage::{Examined, find_by_id};
use pando_base::{RecordId, Result, Timestamp};
use pando_catalog::Collection;
use pando_collection::UpdateArguments;
use pando_doc::{Doc, DocRef, OwnedValue, Value};
use pando_expr::{ParseContext, Update};
use pando_operation::{Conflicts, Operation};

/// What came of an update without a plan.
pub(super) enum AtOnce {
    /// It is done.
    Done(UpdateResult),
    /// It needs a plan: it asks for something else, or there is no such document.
    Planned,
    /// It met a conflict: others are to run first.
    Conflict(YieldCause),
}

impl QueryEngine {
    /// Updates the document with the `_id` that the request asks for.
    pub(super) fn update_at_once(
        &self,
        operation: &mut Operation,
        request: &UpdateRequest,
        collection: &Collection,
        conflicts: &mut Conflicts,
    ) -> Result<AtOnce> {
        let asked = by_id(request).filter(|_| is_simple(request, collection));
        let Some((id, update)) = asked else { return Ok(AtOnce::Planned) };
        if operation.context.is_watched() || crate::fail_points::are_on() {
            // Somebody wants to be told of the stages.
            return Ok(AtOnce::Planned);
        }
        let filled = self.filled_replacement(operation, request);
        let update = filled.as_ref().map_or(update, Doc::view);
        let (now_ms, present) = match update.contains("$currentDate") {
            true => (i64::try_from(operation.env.clock().wall_ms()).unwrap_or(i64::MAX), self.present(operation)),
            // Nothing else asks for the time.
            false => (0, Timestamp::NONE),
        };
        let update = Update::parse(Value::Document(update), &[], &ParseContext::new(now_ms))?;
        if update.needs_match_details() {
            return Ok(AtOnce::Planned);
        }
        operation.context.describe(|description| description.plan_summary = "IDHACK".into());
        let change = DocumentChange::new(update, now_ms, present);
        let outcome = match find_by_id(operation, collection, id, None) {
            Ok(Some(found)) => self.change_found(operation, request, collection, &change, found),
            Ok(None) => return Ok(AtOnce::Planned),
            Err(error) => return cause_of(operation, conflicts, error).map(AtOnce::Conflict),
        };
        let is_changed = match outcome {
            Ok(is_changed) => is_changed,
            Err(error) if is_conflict(&error) => return cause_of(operation, conflicts, error).map(AtOnce::Conflict),
            // The document was looked at all the same.
            Err(error) => {
                self.count_one_found(operation);
                return Err(error);
            }
        };
        self.count_one_found(operation);
        let statistics = operation.context.statistics();
        let modified = u64::from(is_changed);
        statistics.matched.add(1);
        statistics.modified.add(modified);
        Ok(AtOnce::Done(UpdateResult { n: 1, modified, ..UpdateResult::default() }))
    }

    fn count_one_found(&self, operation: &Operation) {
        let statistics = operation.context.statistics();
        statistics.keys_examined.add(1);
        statistics.documents_examined.add(1);
        self.counters.examined(Examined { keys: 1, documents: 1 });
    }

    /// True if the document is another now.
    fn change_found(
        &self,
        operation: &mut Operation,
        request: &UpdateRequest,
        collection: &Collection,
        change: &DocumentChange,
        (record_id, document): (RecordId, Doc),
    ) -> Result<bool> {
        let Some(changed) = change.apply(document.view(), None)? else { return Ok(false) };
        let (new, oplog_object) = (changed.document.view(), changed.oplog_object.view());
        let mut arguments = UpdateArguments::new(record_id, document.view(), new, oplog_object);
        arguments.statement_ids = request.statement_ids.clone();
        arguments.bypass_validation = request.bypass_document_validation;
        self.write_path.update_document(operation, collection, &arguments)?;
        Ok(true)
    }
}

/// The `_id` and the update, if that is a document.
fn by_id(request: &UpdateRequest) -> Option<(Value<'_>, DocRef<'_>)> {
    let OwnedValue::Document(update) = &request.update else { return None };
    Some((id_of(request.filter.view())?, update.view()))
}

/// Nothing about it needs the surroundings of the request: collations, variables, scripts.
fn is_simple(request: &UpdateRequest, collection: &Collection) -> bool {
    let is_plain = request.hint.is_none()
        && request.sort.is_empty()
        && request.collation.is_empty()
        && request.variables.is_empty()
        && request.array_filters.is_empty()
        && !request.multi;
    let is_known = collection.options.collation.is_none()
        && collection.options.validator.is_none()
        && collection.id_index().is_some();
    is_plain && is_known && !has_conditions(request)
}

/// True if an operator has a filter of its own, which may ask for anything.
fn has_conditions(request: &UpdateRequest) -> bool {
    matches!(&request.update, OwnedValue::Document(update) if update.view().contains("$pull"))
}
