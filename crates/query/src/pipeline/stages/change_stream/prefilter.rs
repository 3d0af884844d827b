//! What the filters of a client want, looked at before an event is made.
//!
//! A `$match` right behind a stream often tells by little of an operation whether its event will pass: by what kind it is, by whose
//! document it is. Operations that will not pass become no events: no token is made and no document built. The filters stay where
//! they are; here is only what can be told earlier.
//!
//! Events that end a stream are always made, and so are those that are rare and different: of commands and of views.

use super::event::Moment;
use super::options::{FullDocument, StreamOptions};
use crate::pipeline::{Pushdown, SharedStage};
use pando_doc::{Doc, DocBuilder, FieldPath, Value, doc};
use pando_expr::MatchExpression;
use pando_expr::matcher::Node;
use pando_oplog::{OpKind, Operation, UpdateChange};

/// What documents are told about.
const TYPES: [&str; 4] = ["insert", "update", "replace", "delete"];

/// Filters that can be tried on an operation.
#[derive(Debug, Default)]
pub(super) struct Prefilter {
    /// Conditions on the type alone, tried beforehand: the types that nobody wants.
    unwanted: Vec<&'static str>,
    /// Conditions on what every operation has.
    early: Option<Condition>,
    /// Conditions that look at the document as well, which some events get later.
    on_document: Option<Condition>,
}

/// A condition on some fields of an event.
#[derive(Debug)]
struct Condition {
    filter: MatchExpression,
    fields: Vec<Field>,
}

/// A field of an event that is known as soon as its operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Field {
    OperationType,
    ClusterTime,
    WallTime,
    Namespace,
    DocumentKey,
    FullDocument,
}

impl Field {
    fn of(path: &FieldPath) -> Option<Field> {
        match &**path.parts().next()? {
            b"operationType" => Some(Field::OperationType),
            b"clusterTime" => Some(Field::ClusterTime),
            b"wallTime" => Some(Field::WallTime),
            b"ns" => Some(Field::Namespace),
            b"documentKey" => Some(Field::DocumentKey),
            b"fullDocument" => Some(Field::FullDocument),
            _ => None,
        }
    }
}

impl Prefilter {
    /// What the filters right behind the beginning of a stream tell early. `stages` begins with the stream's own.
    pub(super) fn of(stages: &[SharedStage]) -> Prefilter {
        let mut prefilter = Prefilter::default();
        let (mut early, mut on_document, mut collator) = (Vec::new(), Vec::new(), None);
        for stage in stages {
            match stage.pushdown() {
                Pushdown::Match(filter) if !filter.is_random() => {
                    collator = filter.collator().cloned();
                    for part in parts(filter) {
                        let alone = MatchExpression::from_node(part.clone(), collator.clone());
                        match fields(&alone) {
                            Some(fields) if fields == [Field::OperationType] => prefilter.leave_out(&alone),
                            Some(fields) if fields.contains(&Field::FullDocument) => on_document.push(part),
                            Some(_) => early.push(part),
                            None => {}
                        }
                    }
                }
                _ if stage.name() == super::NAME => {}
                _ => break,
            }
        }
        prefilter.early = Condition::all(early, collator.clone());
        prefilter.on_document = Condition::all(on_document, collator);
        prefilter
    }

    fn leave_out(&mut self, filter: &MatchExpression) {
        // What cannot be told is wanted.
        let is_wanted = |name: &str| filter.try_matches(doc! { "operationType": name }.view()).unwrap_or(true);
        self.unwanted.extend(TYPES.iter().filter(|name| !is_wanted(name)));
    }

    /// False if no event of this operation, which a stream covers, can pass the filters.
    pub(super) fn may_pass(&self, options: &StreamOptions, operation: &Operation<'_>, moment: &Moment) -> bool {
        let operation_type = match operation.kind {
            OpKind::Insert => "insert",
            OpKind::Delete => "delete",
            OpKind::Update => match UpdateChange::parse(operation.object) {
                Ok(UpdateChange::Replacement(_)) => "replace",
                Ok(UpdateChange::Delta(_)) => "update",
                Err(_) => return true,
            },
            _ => return true,
        };
        if operation.ns.ends_with(b".system.views") {
            return true;
        }
        if self.unwanted.contains(&operation_type) {
            return false;
        }
        let passes = |condition: &Option<Condition>| {
            condition.as_ref().is_none_or(|condition| condition.passes(operation_type, operation, moment))
        };
        let has_document = operation_type != "update" || options.full_document == FullDocument::Default;
        passes(&self.early) && (!has_document || passes(&self.on_document))
    }
}

impl Condition {
    fn all(parts: Vec<Node>, collator: Option<pando_expr::SharedCollator>) -> Option<Condition> {
        if parts.is_empty() {
            return None;
        }
        let filter = MatchExpression::from_node(Node::And(parts), collator).optimize();
        let fields = fields(&filter)?;
        Some(Condition { filter, fields })
    }

    /// Tries it on an event that has only the fields that it looks at. What cannot be told passes.
    fn passes(&self, operation_type: &str, operation: &Operation<'_>, moment: &Moment) -> bool {
        let Some(glimpse) = self.glimpse(operation_type, operation, moment) else { return true };
        self.filter.try_matches(glimpse.view()).unwrap_or(true)
    }

    fn glimpse(&self, operation_type: &str, operation: &Operation<'_>, moment: &Moment) -> Option<Doc> {
        let mut event = DocBuilder::new();
        for field in &self.fields {
            match field {
                Field::OperationType => event.append("operationType", operation_type),
                Field::ClusterTime => event.append("clusterTime", moment.cluster_time),
                Field::WallTime => event.append("wallTime", Value::DateTime(moment.wall_ms)),
                Field::Namespace => {
                    let dot = operation.ns.iter().position(|byte| *byte == b'.')?;
                    let (database, collection) = (operation.ns.get(..dot)?, operation.ns.get(dot + 1..)?);
                    event.document("ns", |ns| {
                        ns.append("db", Value::String(database.into()));
                        ns.append("coll", Value::String(collection.into()));
                    });
                }
                Field::DocumentKey => match operation.kind {
                    OpKind::Delete => event.append("documentKey", operation.object),
                    OpKind::Insert if operation.object2.is_none() => {
                        event.document("documentKey", |key| key.append_some("_id", operation.object.get("_id")));
                    }
                    _ => event.append_some("documentKey", operation.object2),
                },
                Field::FullDocument if matches!(operation_type, "insert" | "replace") => {
                    event.append("fullDocument", operation.object);
                }
                Field::FullDocument => {}
            }
        }
        Some(event.finish())
    }
}

/// The conditions that all have to be met.
fn parts(filter: &MatchExpression) -> Vec<Node> {
    match filter.root() {
        Node::And(parts) => parts.clone(),
        other => vec![other.clone()],
    }
}

/// The fields that a filter looks at, if all of them are known early.
fn fields(filter: &MatchExpression) -> Option<Vec<Field>> {
    let paths = filter.paths().filter(|paths| !paths.is_empty())?;
    let mut fields = paths.iter().map(Field::of).collect::<Option<Vec<Field>>>()?;
    fields.sort_unstable();
    fields.dedup();
    Some(fields)
}

#[cfg(test)]
mod tests {
    use super::super::options::BeforeChange;
    use super::super::scope::{Scope, Watched};
    use super::super::token::ResumeToken;
    use super::*;
    use crate::pipeline::stages::match_stage;
    use pando_base::{Namespace, Timestamp, Uuid};
    use pando_expr::ParseContext;
    use std::sync::Arc;

    fn options(full_document: FullDocument) -> StreamOptions {
        StreamOptions {
            scope: Scope::new(Watched::Collection(Namespace::parse("a.b").unwrap()), false, false, false),
            full_document,
            before_change: BeforeChange::Off,
            shows_expanded: false,
            shows_raw_updates: false,
            matches_uuid: false,
            beginning: ResumeToken::high_water_mark(Timestamp::new(1, 1), 2),
            token_version: 2,
        }
    }

    /// Which of an insert, an update, a replacement and a delete of the same document may pass.
    fn passing(filter: &Doc, full_document: FullDocument) -> Vec<&'static str> {
        let filter = MatchExpression::parse(filter.view(), &ParseContext::default()).unwrap();
        let prefilter = Prefilter::of(&[match_stage::of(Arc::new(filter))]);
        let (uuid, key) = (Uuid::from_bytes([1; 16]), doc! { "_id": 7 });
        let whole = doc! { "_id": 7, "x": 1 };
        let delta = doc! { "$v": 2, "diff": { "u": { "x": 1 } } };
        let ns = || "a.b".into();
        let operations = [
            Operation::insert(ns(), uuid, whole.view(), key.view()),
            Operation::update(ns(), uuid, delta.view(), key.view()),
            Operation::update(ns(), uuid, whole.view(), key.view()),
            Operation::delete(ns(), uuid, key.view()),
        ];
        let options = options(full_document);
        let passes = operations.map(|operation| prefilter.may_pass(&options, &operation, &Moment::default()));
        ["insert", "update", "replace", "delete"]
            .into_iter()
            .zip(passes)
            .filter(|(_, passes)| *passes)
            .map(|(name, _)| name)
            .collect()
    }

    #[test]
    fn u13_filters_on_the_kind_and_the_key_are_tried_early() {
        let default = FullDocument::Default;
        assert_eq!(passing(&doc! { "operationType": "delete" }, default), ["delete"]);
        assert_eq!(passing(&doc! { "operationType": { "$in": ["update", "insert"] } }, default), ["insert", "update"]);
        assert_eq!(
            passing(&doc! { "$or": [{ "operationType": "insert" }, { "documentKey._id": 7 }] }, default).len(),
            4
        );
        assert_eq!(passing(&doc! { "documentKey._id": 8 }, default), [""; 0]);
        assert_eq!(passing(&doc! { "ns.coll": "b", "documentKey": { "_id": 7 } }, default).len(), 4);
        assert_eq!(passing(&doc! { "ns": { "db": "a", "coll": "c" } }, default), [""; 0]);
        // Of this nothing is known yet.
        assert_eq!(passing(&doc! { "updateDescription.updatedFields.x": 9 }, default).len(), 4);
        assert_eq!(passing(&doc! { "_id": 9 }, default).len(), 4);
    }

    #[test]
    fn u13_documents_that_come_later_are_not_judged_early() {
        let has_x = doc! { "fullDocument.x": 1 };
        assert_eq!(passing(&has_x, FullDocument::Default), ["insert", "replace"]);
        assert_eq!(passing(&has_x, FullDocument::UpdateLookup), ["insert", "update", "replace"]);
        assert_eq!(passing(&doc! { "fullDocument.x": 2 }, FullDocument::Required), ["update"]);
        let has_none = doc! { "fullDocument": { "$exists": false } };
        assert_eq!(passing(&has_none, FullDocument::Default), ["update", "delete"]);
    }
}
