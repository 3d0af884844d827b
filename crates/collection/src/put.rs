//! One document in place of another, whatever is there.

use crate::arguments::{InsertOptions, InsertStatement, UpdateArguments};
use crate::write_path::WritePath;
use pando_base::Result;
use pando_catalog::Collection;
use pando_doc::{DocRef, Value};
use pando_index::Constraints;
use pando_operation::Operation;

impl WritePath {
    /// Inserts the document, or puts it in place of the one with its `_id`. For documents that a node writes on its own
    /// account: they are not checked as a client's would be.
    pub fn put_document(&self, operation: &mut Operation, collection: &Collection, document: DocRef<'_>) -> Result<()> {
        let id = document.get("_id").unwrap_or(Value::Null);
        match self.find_by_id(operation, collection, id)? {
            Some((record_id, old)) => {
                let mut arguments = UpdateArguments::new(record_id, old.view(), document, document);
                arguments.constraints = Constraints::Relaxed;
                self.update_document(operation, collection, &arguments)?;
            }
            None => {
                let options = InsertOptions { constraints: Constraints::Relaxed, ..InsertOptions::default() };
                self.insert_documents(operation, collection, &[InsertStatement::new(document)], options)?;
            }
        }
        Ok(())
    }
}
