//! What becomes of a document, with what the oplog gets of it.

use pando_base::{Result, Timestamp};
use pando_doc::{Doc, DocRef, ObjectId, RawElement, Value};
use pando_expr::matcher::MatchDetails;
use pando_expr::{ChangedField, MatchExpression, ParseContext, PathPart, Update, UpdateContext};
use pando_oplog::diff::{Touched, TouchedInside};
use pando_oplog::{update_object, update_object_of_fields, update_object_of_touched};
use std::sync::OnceLock;

/// A document after a change.
#[derive(Clone, Debug)]
pub struct Changed {
    /// The document.
    pub document: Doc,
    /// The field `o` of the oplog entry: a diff, or the whole document.
    pub oplog_object: Doc,
}

/// A change to documents, at one moment.
#[derive(Clone, Debug)]
pub struct DocumentChange {
    update: Update,
    now_ms: i64,
    timestamp: Timestamp,
    /// What its operators touch, if it has any; made when it is needed.
    touched: OnceLock<Option<TouchedInside>>,
}

impl DocumentChange {
    /// An update and the moment in which it happens.
    pub fn new(update: Update, now_ms: i64, timestamp: Timestamp) -> DocumentChange {
        DocumentChange { update, now_ms, timestamp, touched: OnceLock::new() }
    }

    /// True if the place in an array that matched is needed.
    pub fn needs_match_details(&self) -> bool {
        self.update.needs_match_details()
    }

    fn context<'c>(&self, details: Option<&'c MatchDetails>) -> UpdateContext<'c> {
        UpdateContext {
            now: self.now_ms,
            timestamp: self.timestamp,
            is_insert: false,
            array_index: details.and_then(MatchDetails::array_index),
            immutable_paths: &[],
        }
    }

    /// The document after the change; none if it stays as it is.
    pub fn apply(&self, document: DocRef<'_>, details: Option<&MatchDetails>) -> Result<Option<Changed>> {
        let outcome = self.update.apply(document, &self.context(details))?;
        if outcome.is_noop {
            return Ok(None);
        }
        let after = outcome.doc;
        // A replacement is logged as such, however little it changed.
        let oplog_object = match &outcome.changed_fields {
            _ if self.update.is_replacement() => Some(after.clone()),
            Some(fields) => Some(update_object_of_fields(versions(document, after.view(), fields))),
            None => match self.touched.get_or_init(|| touched_by(&self.update)) {
                Some(touched) => update_object_of_touched(document, after.view(), touched),
                None => update_object(document, after.view()),
            },
        };
        Ok(oplog_object.map(|oplog_object| Changed { document: after, oplog_object }))
    }

    /// The document of an upsert: what the filter says, changed.
    pub fn new_document(&self, filter: &MatchExpression, new_id: impl FnOnce() -> ObjectId) -> Result<Doc> {
        self.update.upsert_document(filter, &self.context(None), new_id)
    }

    /// The same where the document was given: it needs no more than an `_id`, which the filter may say.
    pub fn supplied_document(
        &self,
        supplied: DocRef<'_>,
        filter: &MatchExpression,
        new_id: impl FnOnce() -> ObjectId,
    ) -> Result<Doc> {
        let replacement = Update::parse(Value::Document(supplied), &[], &ParseContext::default())?;
        replacement.upsert_document(filter, &self.context(None), new_id)
    }
}

/// What an update touches; none if that is known by comparing alone.
fn touched_by(update: &Update) -> Option<TouchedInside> {
    let mut all = Touched::Inside(TouchedInside::default());
    let mut has_operators = false;
    update.visit_operators(&mut |path, is_push| {
        has_operators = true;
        let leaf = if is_push { Touched::End } else { Touched::Value };
        let own = path.iter().rev().fold(leaf, |below, part| {
            let mut inside = TouchedInside::default();
            match part {
                PathPart::Name(name) => drop(inside.named.insert((*name).to_owned(), below)),
                PathPart::Each => inside.each = Some(Box::new(below)),
            }
            Touched::Inside(inside)
        });
        let before = std::mem::replace(&mut all, Touched::Value);
        all = before.union(own);
    });
    match all {
        Touched::Inside(inside) if has_operators => Some(inside),
        _ => None,
    }
}

/// The fields that changed, in both versions.
fn versions<'a>(
    old: DocRef<'a>,
    new: DocRef<'a>,
    fields: &'a [ChangedField],
) -> impl Iterator<Item = (Option<RawElement<'a>>, RawElement<'a>, bool)> {
    fields.iter().filter_map(move |field| {
        let before = field.old.as_ref().and_then(|place| old.element_at(place.start));
        let after = new.element_at(field.new.start);
        debug_assert!(after.is_some() && before.is_some() == field.old.is_some(), "the places are those of fields");
        Some((before, after?, field.is_push))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::{Value, doc};
    use pando_expr::ParseContext;
    use pando_oplog::UpdateChange;

    /// What is logged does not depend on whether the update told what it changed, and leads to the new version.
    #[test]
    fn x9_operators_log_what_they_set_however_it_is_known() {
        let document = doc! { "_id": 1, "a": 1, "b": { "c": [1, 2], "d": "a text that is long enough" }, "e": "x", "f": [1, 2, 3] };
        let updates = [
            doc! { "$set": { "a": 2 } },
            doc! { "$set": { "e": "another", "z": 1, "y": { "n": 1 } }, "$inc": { "a": 1 } },
            doc! { "$set": { "b": { "c": [1, 2, 3], "d": "a text that is long enough" } } },
            doc! { "$push": { "f": 4 } },
            doc! { "$set": { "a": "a text that makes the diff longer than the rest of it all, so that all of it is logged" }, "$unset": { "e": 1 } },
            doc! { "$set": { "b.d": 1, "f.5": 1 }, "$unset": { "b.c": 1 }, "$rename": { "a": "g" } },
            doc! { "$inc": { "f.$[]": 1 }, "$set": { "new": "a text that is longer than the whole document was before it came to be in there, and longer still, by far" } },
        ];
        for update in updates {
            let parsed = Update::parse(Value::Document(update.view()), &[], &ParseContext::default()).unwrap();
            let change = DocumentChange::new(parsed, 0, Timestamp::NONE);
            let changed = change.apply(document.view(), None).unwrap().unwrap();
            let touched = touched_by(&change.update).unwrap();
            let compared = update_object_of_touched(document.view(), changed.document.view(), &touched).unwrap();
            assert_eq!(changed.oplog_object, compared, "{update}");
            let applied = UpdateChange::parse(compared.view()).unwrap().apply(document.view()).unwrap();
            assert_eq!(applied, changed.document, "{update}");
            assert!(compared.get("diff").is_some(), "{update}");
        }
    }
}
