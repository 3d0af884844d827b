//! What becomes of a document, with what the oplog gets of it.

use pando_base::{Result, Timestamp};
use pando_doc::{Doc, DocRef, ObjectId, RawElement};
use pando_expr::matcher::MatchDetails;
use pando_expr::{ChangedField, MatchExpression, Update, UpdateContext};
use pando_oplog::{update_object, update_object_of_fields};

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
}

impl DocumentChange {
    /// An update and the moment in which it happens.
    pub fn new(update: Update, now_ms: i64, timestamp: Timestamp) -> DocumentChange {
        DocumentChange { update, now_ms, timestamp }
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
            Some(fields) => Some(update_object_of_fields(after.view(), versions(document, after.view(), fields))),
            None => update_object(document, after.view()),
        };
        Ok(oplog_object.map(|oplog_object| Changed { document: after, oplog_object }))
    }

    /// The document of an upsert: what the filter says, changed.
    pub fn new_document(&self, filter: &MatchExpression, new_id: impl FnOnce() -> ObjectId) -> Result<Doc> {
        self.update.upsert_document(filter, &self.context(None), new_id)
    }
}

/// The fields that changed, in both versions.
fn versions<'a>(
    old: DocRef<'a>,
    new: DocRef<'a>,
    fields: &'a [ChangedField],
) -> impl Iterator<Item = (Option<RawElement<'a>>, RawElement<'a>)> {
    fields.iter().filter_map(move |field| {
        let before = field.old.as_ref().and_then(|place| old.element_at(place.start));
        let after = new.element_at(field.new.start);
        debug_assert!(after.is_some() && before.is_some() == field.old.is_some(), "the places are those of fields");
        Some((before, after?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::{Value, doc};
    use pando_expr::ParseContext;

    /// What is logged does not depend on whether the update told what it changed.
    #[test]
    fn x9_diffs_of_told_fields_are_those_of_a_comparison() {
        let document = doc! { "_id": 1, "a": 1, "b": { "c": [1, 2], "d": "a text that is long enough" }, "e": "x", "f": [1, 2, 3] };
        let updates = [
            doc! { "$set": { "a": 2 } },
            doc! { "$set": { "e": "another", "z": 1, "y": { "n": 1 } }, "$inc": { "a": 1 } },
            doc! { "$set": { "b": { "c": [1, 2, 3], "d": "a text that is long enough" } } },
            doc! { "$push": { "f": 4 } },
            doc! { "$set": { "a": "a text that makes the diff longer than the rest of it all, so that all of it is logged" }, "$unset": { "e": 1 } },
            doc! { "$set": { "new": "a text that is longer than the whole document was before it came to be in there, and longer still, by far" } },
        ];
        for update in updates {
            let parsed = Update::parse(Value::Document(update.view()), &[], &ParseContext::default()).unwrap();
            let change = DocumentChange::new(parsed, 0, Timestamp::NONE);
            let changed = change.apply(document.view(), None).unwrap().unwrap();
            let compared = update_object(document.view(), changed.document.view());
            assert_eq!(Some(changed.oplog_object), compared, "{update}");
        }
    }
}
