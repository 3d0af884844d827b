//! Writes down what becomes of collections, indexes and databases, when it has become so: an observer of the write path, so that it does
//! not matter who changed them.

use pando_base::{Component, DatabaseName, Log, LogValue, Result, Severity, Uuid};
use pando_doc::{DocRef, JsonFormat, doc_to_json};
use pando_operation::Operation;
use pando_oplog::OpObserver;
use pando_oplog::observer::{CollMod, Collection, CreateCollection, DropCollection, DropIndex, RenameCollection};

/// Writes into this log.
pub(crate) struct SchemaLog {
    log: Log,
}

type Attributes = Vec<(&'static str, LogValue)>;

impl SchemaLog {
    pub(crate) fn new(log: &Log) -> SchemaLog {
        SchemaLog { log: log.clone() }
    }

    /// Writes a line if what is going on is committed.
    fn tell(
        &self,
        operation: &mut Operation,
        component: Component,
        id: i32,
        message: &'static str,
        attributes: Attributes,
    ) -> Result<()> {
        if !self.log.is_enabled(component, Severity::Info) {
            return Ok(());
        }
        let log = self.log.clone();
        operation.recovery_unit.on_commit(move |_| log.write(Severity::Info, component, id, message, attributes))?;
        Ok(())
    }
}

fn named(collection: &Collection<'_>) -> Attributes {
    vec![("namespace", collection.namespace.to_string().into()), ("uuid", shown(collection.uuid))]
}

fn shown(uuid: Uuid) -> LogValue {
    LogValue::Json(format!(r#"{{"uuid":{{"$uuid":"{uuid}"}}}}"#))
}

fn json(document: DocRef<'_>) -> LogValue {
    LogValue::Json(doc_to_json(document, JsonFormat::Relaxed))
}

impl OpObserver<Operation> for SchemaLog {
    fn on_create_collection(&self, operation: &mut Operation, create: &CreateCollection<'_>) -> Result<()> {
        let mut attributes = named(&create.collection);
        attributes.push(("options", json(create.options)));
        self.tell(operation, Component::Storage, 20320, "createCollection", attributes)
    }

    fn on_drop_collection(&self, operation: &mut Operation, drop: &DropCollection<'_>) -> Result<()> {
        let attributes = named(&drop.collection);
        self.tell(operation, Component::Storage, 20318, "Finishing collection drop", attributes)
    }

    fn on_rename_collection(&self, operation: &mut Operation, rename: &RenameCollection<'_>) -> Result<()> {
        let attributes = vec![
            ("uuid", shown(rename.uuid)),
            ("fromName", rename.from.to_string().into()),
            ("toName", rename.to.to_string().into()),
        ];
        self.tell(operation, Component::Storage, 20319, "renameCollection", attributes)
    }

    fn on_coll_mod(&self, operation: &mut Operation, change: &CollMod<'_>) -> Result<()> {
        let mut attributes = named(&change.collection);
        attributes.push(("cmdObj", json(change.command)));
        self.tell(operation, Component::Command, 5_324_200, "CMD: collMod", attributes)
    }

    fn on_drop_index(&self, operation: &mut Operation, drop: &DropIndex<'_>) -> Result<()> {
        let mut attributes = named(&drop.collection);
        attributes.push(("indexes", drop.index_name.into()));
        self.tell(operation, Component::Command, 51806, "CMD: dropIndexes", attributes)
    }

    fn on_drop_database(&self, operation: &mut Operation, database: &DatabaseName) -> Result<()> {
        let attributes = vec![("db", database.to_string().into())];
        self.tell(operation, Component::Storage, 20336, "dropDatabase", attributes)
    }
}
