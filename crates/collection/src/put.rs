//! One document in place of another, whatever is there.

use crate::arguments::{InsertOptions, InsertStatement, UpdateArguments};
use crate::write_path::WritePath;
use pando_base::{RecordId, Result};
use pando_catalog::Collection;
use pando_doc::{Doc, DocRef, Value};
use pando_index::Constraints;
use pando_operation::Operation;

impl WritePath {
    /// Inserts the document, or puts it in place of the one with its `_id`. For documents that a node writes on its own
    /// account: they are not checked as a client's would be.
    pub fn put_document(&self, operation: &mut Operation, collection: &Collection, document: DocRef<'_>) -> Result<()> {
        self.put_document_near(operation, collection, document, None).map(|_| ())
    }

    /// The same for whoever may know where the document was before. Tells where it is.
    pub fn put_document_near(
        &self,
        operation: &mut Operation,
        collection: &Collection,
        document: DocRef<'_>,
        place: Option<&RecordId>,
    ) -> Result<Option<RecordId>> {
        let known = place.map(|place| self.find_at(operation, collection, document, place)).transpose()?;
        let found = match known.flatten() {
            Some(found) => Some(found),
            None => self.find_by_id(operation, collection, document.get("_id").unwrap_or(Value::Null))?,
        };
        match found {
            Some((record_id, old)) => {
                let mut arguments = UpdateArguments::new(record_id, old.view(), document, document);
                arguments.constraints = Constraints::Relaxed;
                self.update_document(operation, collection, &arguments)?;
                Ok(Some(arguments.record_id))
            }
            None => {
                let options = InsertOptions { constraints: Constraints::Relaxed, ..InsertOptions::default() };
                let ids = self.insert_documents(operation, collection, &[InsertStatement::new(document)], options)?;
                Ok(ids.into_iter().next())
            }
        }
    }

    /// The document at this place, if it has the `_id` of the other: places are no one's for ever.
    fn find_at(
        &self,
        operation: &mut Operation,
        collection: &Collection,
        document: DocRef<'_>,
        place: &RecordId,
    ) -> Result<Option<(RecordId, Doc)>> {
        let Some(old) = self.find(operation, collection, place)? else { return Ok(None) };
        let is_same = match (old.view().get_raw("_id"), document.get_raw("_id")) {
            (Some(old), Some(new)) => old.bytes == new.bytes,
            _ => false,
        };
        Ok(is_same.then(|| (place.clone(), old)))
    }
}
