//! What becomes of a document, with what the oplog gets of it.

use pando_base::{Result, Timestamp};
use pando_doc::{Doc, DocRef, ObjectId};
use pando_expr::matcher::MatchDetails;
use pando_expr::{MatchExpression, Update, UpdateContext};
use pando_oplog::update_object;

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
        let oplog_object =
            if self.update.is_replacement() { Some(after.clone()) } else { update_object(document, after.view()) };
        Ok(oplog_object.map(|oplog_object| Changed { document: after, oplog_object }))
    }

    /// The document of an upsert: what the filter says, changed.
    pub fn new_document(&self, filter: &MatchExpression, new_id: impl FnOnce() -> ObjectId) -> Result<Doc> {
        self.update.upsert_document(filter, &self.context(None), new_id)
    }
}
