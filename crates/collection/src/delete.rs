//! Deleting a document.

use crate::arguments::DeleteArguments;
use crate::document_key::document_key;
use crate::write_path::{WritePath, count_keys};
use pando_base::{ErrorCode, Result, ensure};
use pando_catalog::Collection;
use pando_doc::DocRef;
use pando_index::KeyScratch;
use pando_operation::Operation;
use pando_oplog::observer::Delete;

impl WritePath {
    /// Deletes a document and its keys.
    pub fn delete_document(
        &self,
        operation: &mut Operation,
        collection: &Collection,
        arguments: &DeleteArguments<'_>,
    ) -> Result<()> {
        ensure!(
            !(collection.is_capped() && operation.in_multi_document_transaction()),
            ErrorCode::IllegalOperation,
            "Cannot remove from a capped collection in a multi-document transaction"
        );
        let mut unit = operation.unit_of_work();
        if let Some(slot) = arguments.slots.last() {
            unit.recovery_unit.set_timestamp(slot.timestamp)?;
        }
        if WritePath::is_observed(collection) {
            self.observers.about_to_delete(&mut unit, &collection.observed(), arguments.document)?;
        }
        self.remove_record(&mut unit, collection, arguments)?;
        if WritePath::is_observed(collection) {
            self.observe_delete(&mut unit, collection, arguments)?;
        }
        unit.commit()?;
        Ok(())
    }

    pub(crate) fn remove_record(
        &self,
        operation: &mut Operation,
        collection: &Collection,
        arguments: &DeleteArguments<'_>,
    ) -> Result<()> {
        let DeleteArguments { record_id, document, .. } = arguments;
        let mut scratch = KeyScratch::default();
        let counts = self.indexing.remove(operation, collection, *document, record_id, &mut scratch)?;
        collection.records.delete_known(&mut operation.recovery_unit, record_id, document.size_bytes())?;
        count_keys(operation, counts);
        Ok(())
    }

    pub(crate) fn observe_delete(
        &self,
        operation: &mut Operation,
        collection: &Collection,
        arguments: &DeleteArguments<'_>,
    ) -> Result<()> {
        let key = document_key(arguments.document);
        let delete = Delete {
            collection: collection.observed(),
            pre_image: arguments.document,
            document_key: DocRef::trusted(&key),
            statement_ids: arguments.statement_ids.clone(),
            retry_image: arguments.retry_image,
            slots: arguments.slots,
            from_migrate: arguments.from_migrate,
            destined_recipient: arguments.destined_recipient,
        };
        self.observers.on_delete(operation, &delete)
    }
}
