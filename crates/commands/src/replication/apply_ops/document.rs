//! Operations on one document: inserted, changed, deleted, by its `_id`.

use super::{Manner, Outcome};
use crate::crud::{lock_for_write, lock_if_capped};
use crate::locking::unlock;
use crate::{Data, Invocation};
use pando_base::{Error, ErrorCode, Namespace, RecordId, Result, Uuid, ensure};
use pando_catalog::Collection;
use pando_collection::{DeleteArguments, InsertOptions, InsertStatement, UpdateArguments};
use pando_doc::{Doc, DocBuilder, DocRef, Value};
use pando_operation::{Operation, write_conflict_retry};
use pando_oplog::{OpKind, Operation as OplogOperation, UpdateChange, delta_object};
use pando_storage::Direction;
use std::sync::Arc;

/// A failure to change a document fails it alone; what is wrong with the operation itself fails the request.
pub(super) async fn apply(
    invocation: &Invocation,
    what: &OplogOperation<'_>,
    namespace: &Namespace,
    manner: Manner,
) -> Result<Outcome> {
    let data = invocation.data()?;
    if let Some(uuid) = what.uuid {
        check_uuid(data, namespace, uuid)?;
    }
    count(invocation, what.kind);
    let mut operation = invocation.operation()?;
    let Some(collection) = lock_for_write(data, &mut operation, namespace).await? else {
        return missing_collection(what, namespace);
    };
    lock_if_capped(&mut operation, &collection).await?;
    let id = document_id(what)?;
    let change = Change { data, collection: &collection, what, id, manner };
    let outcome = write_conflict_retry(&mut operation, "applyOps", namespace, |operation| {
        operation.in_unit_of_work(|operation| change.apply(operation))
    })
    .await;
    unlock(&operation);
    match outcome {
        Ok(()) => Ok(Outcome::Done),
        Err(error) if error.code() == ErrorCode::UpdateOperationFailed => Ok(Outcome::Failed(error)),
        Err(error) if error.code() == ErrorCode::DocumentValidationFailure && what.kind == OpKind::Insert => {
            Ok(Outcome::Failed(error))
        }
        Err(error) => Err(error),
    }
}

fn check_uuid(data: &Data, namespace: &Namespace, uuid: Uuid) -> Result<()> {
    let latest = data.catalog.latest();
    ensure!(
        latest.namespace_of(&uuid) == Some(namespace),
        ErrorCode::location(3318200),
        "Namespace '{namespace}' and UUID '{uuid}' point to different collections"
    );
    Ok(())
}

fn count(invocation: &Invocation, kind: OpKind) {
    let counters = &invocation.node.counters.operations;
    match kind {
        OpKind::Insert => counters.insert.increment(),
        OpKind::Update => counters.update.increment(),
        _ => counters.delete.increment(),
    }
}

fn missing_collection(what: &OplogOperation<'_>, namespace: &Namespace) -> Result<Outcome> {
    if what.kind == OpKind::Delete {
        return Ok(Outcome::Done);
    }
    let reason =
        format!("cannot apply insert or update operation on a non-existent namespace {namespace}: {}", text(what));
    Err(Error::new(ErrorCode::NamespaceNotFound, reason))
}

fn document_id<'a>(what: &OplogOperation<'a>) -> Result<Value<'a>> {
    what.document_id().ok_or_else(|| {
        let kind = match what.kind {
            OpKind::Insert => "insert",
            OpKind::Update => "update",
            _ => "delete",
        };
        Error::new(ErrorCode::NoSuchKey, format!("Failed to apply {kind} due to missing _id: {}", text(what)))
    })
}

/// An operation as text, for errors.
fn text(what: &OplogOperation<'_>) -> String {
    let mut builder = DocBuilder::new();
    what.append_to(&mut builder);
    builder.finish().to_string()
}

struct Change<'a> {
    data: &'a Data,
    collection: &'a Arc<Collection>,
    what: &'a OplogOperation<'a>,
    id: Value<'a>,
    manner: Manner,
}

impl Change<'_> {
    fn apply(&self, operation: &mut Operation) -> Result<()> {
        match self.what.kind {
            OpKind::Insert => self.insert(operation)?,
            OpKind::Update => self.update(operation)?,
            _ => self.delete(operation)?,
        }
        if self.collection.namespace.is_system_views() {
            self.data.catalog.reload_views(operation, &self.collection.namespace.database_name())?;
        }
        Ok(())
    }

    fn insert(&self, operation: &mut Operation) -> Result<()> {
        let document = self.what.object;
        match self.find(operation)? {
            Some((record_id, before)) => self.replace(operation, record_id, before.view(), document, document),
            None => self.put(operation, document),
        }
    }

    fn update(&self, operation: &mut Operation) -> Result<()> {
        let change = read_change(self.what.object)?;
        if let Some((record_id, before)) = self.find(operation)? {
            let after = change.apply(before.view())?;
            // It is logged as it came.
            let logged = match change {
                UpdateChange::Delta(diff) => delta_object(diff),
                UpdateChange::Replacement(_) => after.clone(),
            };
            return self.replace(operation, record_id, before.view(), after.view(), logged.view());
        }
        if !self.manner.always_upsert && self.what.upsert != Some(true) {
            let reason = match change {
                UpdateChange::Delta(_) => "Couldn't find document",
                UpdateChange::Replacement(_) => "Update of non-mod failed",
            };
            return Err(Error::new(ErrorCode::UpdateOperationFailed, format!("{reason}: {}", text(self.what))));
        }
        let mut only_id = DocBuilder::new();
        only_id.append("_id", self.id);
        let after = change.apply(only_id.finish().view())?;
        self.put(operation, after.view())
    }

    fn delete(&self, operation: &mut Operation) -> Result<()> {
        let Some((record_id, before)) = self.find(operation)? else { return Ok(()) };
        let arguments = DeleteArguments::new(record_id, before.view());
        self.data.write_path().delete_document(operation, self.collection, &arguments).map(|_| ())
    }

    fn put(&self, operation: &mut Operation, document: DocRef<'_>) -> Result<()> {
        let options = InsertOptions { bypass_validation: self.manner.bypass_validation, ..InsertOptions::default() };
        let statements = [InsertStatement::new(document)];
        self.data.write_path().insert_documents(operation, self.collection, &statements, options).map(|_| ())
    }

    fn replace(
        &self,
        operation: &mut Operation,
        record_id: RecordId,
        before: DocRef<'_>,
        after: DocRef<'_>,
        logged: DocRef<'_>,
    ) -> Result<()> {
        if before.bytes() == after.bytes() {
            return Ok(());
        }
        let mut arguments = UpdateArguments::new(record_id, before, after, logged);
        arguments.bypass_validation = self.manner.bypass_validation;
        self.data.write_path().update_document(operation, self.collection, &arguments).map(|_| ())
    }

    fn find(&self, operation: &mut Operation) -> Result<Option<(RecordId, Doc)>> {
        if self.collection.knows_ids() {
            return self.data.write_path().find_by_id(operation, self.collection, self.id);
        }
        let mut cursor = self.collection.records.cursor(Direction::Forward);
        while let Some(record) = cursor.next(&mut operation.recovery_unit)? {
            if DocRef::trusted(record.value).get("_id") == Some(self.id) {
                return Ok(Some((record.id, Doc::trusted(record.value.to_vec()))));
            }
        }
        Ok(None)
    }
}

/// A diff or a whole document; modifiers are of versions that nobody writes any more.
fn read_change(object: DocRef<'_>) -> Result<UpdateChange<'_>> {
    let version = object.get("$v");
    let Some(version) = version else {
        let is_modifier = object.first().is_some_and(|first| first.name.starts_with(b"$"));
        ensure!(!is_modifier, ErrorCode::location(4772600), "Unsupported or missing oplog version, $v: ");
        return Ok(UpdateChange::Replacement(object));
    };
    let is_delta = version.to_double() == Some(2.0);
    match object.get("diff") {
        Some(Value::Document(diff)) if is_delta => Ok(UpdateChange::Delta(diff)),
        _ if is_delta => Err(Error::location(4772601, "Expected 'diff' field for oplog update of version 2")),
        _ => Err(Error::location(4772600, format!("Unrecognized value for '$v' ({version}) field"))),
    }
}
