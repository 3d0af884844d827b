//! The tables of sessions as collections of this node.

use crate::id::LogicalSessionId;
use crate::pre_image::PreImage;
use crate::record::SessionRecord;
use crate::table::{Image, RecordPlace, SessionTable};
use pando_base::{Error, ErrorCode, Namespace, RecordId, Result};
use pando_catalog::{Catalog, Collection};
use pando_collection::{DeleteArguments, WritePath};
use pando_doc::{Doc, Value};
use pando_operation::Operation;
use std::sync::Arc;

/// `config.transactions`, `config.image_collection` and `config.system.preimages` of this node.
pub struct StoredSessions {
    catalog: Arc<Catalog>,
    /// Without observers: the oplog entry of the write that a record tells of stands for the record too.
    write_path: Arc<WritePath>,
}

impl StoredSessions {
    /// The tables in this catalog. The write path must have no observers.
    pub fn new(catalog: Arc<Catalog>, write_path: Arc<WritePath>) -> StoredSessions {
        StoredSessions { catalog, write_path }
    }

    fn find(&self, operation: &mut Operation, table: &Namespace, session: &LogicalSessionId) -> Result<Option<Doc>> {
        let Some(collection) = self.catalog.collection_for_write(operation, table)? else { return Ok(None) };
        let id = session.to_doc();
        let found = self.write_path.find_by_id(operation, &collection, Value::Document(id.view()))?;
        Ok(found.map(|(_, document)| document))
    }

    fn require(&self, operation: &mut Operation, table: &Namespace) -> Result<Arc<Collection>> {
        self.catalog.collection_for_write(operation, table)?.ok_or_else(|| {
            let reason = format!(
                "Unable to persist transaction state because the session transaction collection is missing. This \
                 indicates that the {table} collection has been manually deleted."
            );
            Error::new(ErrorCode::location(40527), reason)
        })
    }
}

impl SessionTable for StoredSessions {
    fn load(&self, operation: &mut Operation, session: &LogicalSessionId) -> Result<Option<SessionRecord>> {
        let found = self.find(operation, Namespace::session_transactions(), session)?;
        found.map(|document| SessionRecord::parse(document.view())).transpose()
    }

    fn load_children(&self, operation: &mut Operation, parent: &LogicalSessionId) -> Result<Vec<LogicalSessionId>> {
        let table = Namespace::session_transactions();
        let Some(collection) = self.catalog.collection_for_write(operation, table)? else { return Ok(Vec::new()) };
        let (id, mut children) = (parent.to_doc(), Vec::new());
        // Their ids begin with that of their parent, and so come right behind it.
        self.write_path.scan_from_id(operation, &collection, Value::Document(id.view()), |document| {
            let Ok(record) = SessionRecord::parse(document.view()) else { return Ok(false) };
            let is_near = record.session.parent() == *parent;
            if is_near && record.session.is_child() {
                children.push(record.session);
            }
            Ok(is_near)
        })?;
        Ok(children)
    }

    fn store(&self, operation: &mut Operation, record: &SessionRecord) -> Result<()> {
        let collection = self.require(operation, Namespace::session_transactions())?;
        self.write_path.put_document(operation, &collection, record.to_doc().view())
    }

    fn store_at(&self, operation: &mut Operation, record: &SessionRecord, place: &RecordPlace) -> Result<()> {
        let collection = self.require(operation, Namespace::session_transactions())?;
        let (document, known) = (record.to_doc(), place.get());
        let now = self.write_path.put_document_near(operation, &collection, document.view(), known.as_ref())?;
        if now != known {
            place.set(now);
        }
        Ok(())
    }

    fn load_image(&self, operation: &mut Operation, session: &LogicalSessionId) -> Result<Option<Image>> {
        let found = self.find(operation, Namespace::config_images(), session)?;
        found.map(|document| Image::parse(document.view())).transpose()
    }

    fn store_image(&self, operation: &mut Operation, image: &Image) -> Result<()> {
        let collection = self.require(operation, Namespace::config_images())?;
        self.write_path.put_document(operation, &collection, image.to_doc().view())
    }

    fn store_pre_image(&self, operation: &mut Operation, image: &PreImage<'_>) -> Result<()> {
        match self.catalog.collection_for_write(operation, Namespace::pre_images())? {
            Some(collection) => self.write_path.put_document(operation, &collection, image.to_doc().view()),
            None => Ok(()),
        }
    }

    fn remove_pre_images(&self, operation: &mut Operation, expired: &[(RecordId, Doc)]) -> Result<()> {
        let Some(collection) = self.catalog.collection_for_write(operation, Namespace::pre_images())? else {
            return Ok(());
        };
        for (record_id, document) in expired {
            let arguments = DeleteArguments::new(record_id.clone(), document.view());
            self.write_path.delete_document(operation, &collection, &arguments)?;
        }
        Ok(())
    }
}
