//! Writing documents of `system.views` for the catalog, which does not know how documents are written.

use pando_base::Result;
use pando_catalog::{Collection, SystemViewsWriter};
use pando_collection::{DeleteArguments, InsertOptions, InsertStatement, UpdateArguments, WritePath};
use pando_doc::{DocRef, Value};
use pando_operation::Operation;
use std::sync::Arc;

/// Writes through the node's write path, so that the `_id` index and the oplog have it too.
pub(crate) struct ViewDocuments<'a>(pub(crate) &'a WritePath);

impl SystemViewsWriter for ViewDocuments<'_> {
    fn put(&self, operation: &mut Operation, system_views: &Arc<Collection>, document: DocRef<'_>) -> Result<()> {
        let id = document.get("_id").unwrap_or(Value::Null);
        match self.0.find_by_id(operation, system_views, id)? {
            Some((record_id, old)) => {
                let arguments = UpdateArguments::new(record_id, old.view(), document, document);
                self.0.update_document(operation, system_views, &arguments)?;
            }
            None => {
                let statements = [InsertStatement::new(document)];
                self.0.insert_documents(operation, system_views, &statements, InsertOptions::default())?;
            }
        }
        Ok(())
    }

    fn remove(&self, operation: &mut Operation, system_views: &Arc<Collection>, id: &str) -> Result<()> {
        if let Some((record_id, old)) = self.0.find_by_id(operation, system_views, Value::String(id.into()))? {
            self.0.delete_document(operation, system_views, &DeleteArguments::new(record_id, old.view()))?;
        }
        Ok(())
    }
}
