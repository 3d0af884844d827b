//! Entries of what is not a document's change.

use super::OplogWriter;
use super::batch::Batch;
use pando_base::{DatabaseName, ErrorCode, Namespace, Result, Uuid, ensure};
use pando_doc::{Doc, DocRef};
use pando_operation::Operation;
use pando_oplog::observer as events;
use pando_oplog::{OpTime, Operation as OplogOperation, build};

/// What a command's entry has beside the command.
#[derive(Default)]
struct Beside {
    object2: Option<Doc>,
    slot: Option<OpTime>,
    from_migrate: bool,
}

impl OplogWriter {
    fn write_command(
        &self,
        operation: &mut Operation,
        database: &DatabaseName,
        uuid: Option<Uuid>,
        object: &Doc,
        beside: Beside,
    ) -> Result<()> {
        let ns = Namespace::command(database);
        let mut command = OplogOperation::command(ns.as_str().into(), uuid, object.view());
        command.tenant = database.tenant().map(|tenant| pando_doc::ObjectId::from_bytes(tenant.0));
        command.object2 = beside.object2.as_ref().map(Doc::view);
        command.from_migrate = beside.from_migrate.then_some(true);
        if Batch::add(operation, &command)? {
            return Ok(());
        }
        self.append_operation(operation, command, beside.slot).map(|_| ())
    }

    fn write_collection_command(
        &self,
        operation: &mut Operation,
        collection: &events::Collection<'_>,
        object: &Doc,
        beside: Beside,
    ) -> Result<()> {
        if !Self::is_logged(operation, collection.namespace)? {
            return Ok(());
        }
        let database = collection.namespace.database_name();
        self.write_command(operation, &database, Some(collection.uuid), object, beside)
    }

    pub(super) fn write_create(&self, operation: &mut Operation, create: &events::CreateCollection<'_>) -> Result<()> {
        let name = create.collection.namespace.collection();
        let object = build::create_object(name, create.options, create.id_index.filter(is_told));
        let beside = Beside { object2: None, slot: create.slot, from_migrate: create.from_migrate };
        self.write_collection_command(operation, &create.collection, &object, beside)
    }

    pub(super) fn write_drop(&self, operation: &mut Operation, drop: &events::DropCollection<'_>) -> Result<()> {
        let namespace = drop.collection.namespace;
        if namespace.is_session_transactions() {
            ensure!(
                !self.sessions.has_prepared(),
                ErrorCode::location(4852500),
                "Unable to drop transactions table ({namespace}) while a transaction is in prepared state"
            );
            // What sessions know comes from there; nothing of it holds any more.
            self.invalidate_sessions(operation)?;
        }
        let object = build::drop_object(namespace.collection());
        let object2 = Some(build::record_count_object2(drop.record_count));
        let beside = Beside { object2, slot: None, from_migrate: drop.from_migrate };
        self.write_collection_command(operation, &drop.collection, &object, beside)
    }

    pub(super) fn write_rename(&self, operation: &mut Operation, rename: &events::RenameCollection<'_>) -> Result<()> {
        if !Self::is_logged(operation, rename.from)? {
            return Ok(());
        }
        let object = build::rename_object(rename.from, rename.to, rename.stay_temp, rename.dropped_target);
        let object2 = rename.dropped_target.map(|_| build::record_count_object2(rename.dropped_record_count));
        let beside = Beside { object2, slot: None, from_migrate: rename.from_migrate };
        self.write_command(operation, &rename.from.database_name(), Some(rename.uuid), &object, beside)
    }

    pub(super) fn write_coll_mod(&self, operation: &mut Operation, change: &events::CollMod<'_>) -> Result<()> {
        let object = build::coll_mod_object(change.command, change.index);
        let object2 = Some(build::coll_mod_object2(change.collection.uuid, change.old_options, change.index));
        self.write_collection_command(operation, &change.collection, &object, Beside { object2, ..Beside::default() })
    }

    pub(super) fn write_empty_capped(
        &self,
        operation: &mut Operation,
        collection: &events::Collection<'_>,
    ) -> Result<()> {
        let object = build::empty_capped_object(collection.namespace.collection());
        self.write_collection_command(operation, collection, &object, Beside::default())
    }

    pub(super) fn write_drop_database(&self, operation: &mut Operation, database: &DatabaseName) -> Result<()> {
        if database.is_local() {
            return Ok(());
        }
        self.write_command(operation, database, None, &build::drop_database_object(), Beside::default())
    }

    pub(super) fn write_create_index(&self, operation: &mut Operation, index: &events::CreateIndex<'_>) -> Result<()> {
        let name = index.collection.namespace.collection();
        let object = build::create_indexes_object(name, index.specification);
        let beside = Beside { from_migrate: index.from_migrate, ..Beside::default() };
        self.write_collection_command(operation, &index.collection, &object, beside)
    }

    pub(super) fn write_drop_index(&self, operation: &mut Operation, index: &events::DropIndex<'_>) -> Result<()> {
        let object = build::drop_indexes_object(index.collection.namespace.collection(), index.index_name);
        let object2 = Some(index.specification.to_doc());
        self.write_collection_command(operation, &index.collection, &object, Beside { object2, ..Beside::default() })
    }

    pub(super) fn write_index_build(
        &self,
        operation: &mut Operation,
        build: &events::IndexBuildArguments<'_>,
        object: impl FnOnce(&str, Uuid, &[DocRef<'_>]) -> Doc,
    ) -> Result<()> {
        let name = build.collection.namespace.collection();
        let object = object(name, build.build_uuid, build.specifications);
        let beside = Beside { from_migrate: build.from_migrate, ..Beside::default() };
        self.write_collection_command(operation, &build.collection, &object, beside)
    }
}

/// An index on `_id` of version 1 is what a collection has of which none is told.
fn is_told(id_index: &DocRef<'_>) -> bool {
    id_index.get("v").and_then(|version| version.to_double()) != Some(1.0)
}
