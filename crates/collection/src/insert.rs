//! Inserting documents.

use crate::arguments::{InsertOptions, InsertStatement};
use crate::capped::can_batch_inserts;
use crate::cluster_key::cluster_key_of;
use crate::document_key::{KEY_BYTES, append_document_key};
use crate::validation::check_size;
use crate::write_path::{WritePath, count_keys};
use pando_base::{Error, ErrorCode, RecordId, Result, bail};
use pando_catalog::Collection;
use pando_doc::{Collator, Doc, DocRef};
use pando_index::{Constraints, KeyCounts, KeyScratch, duplicate_cluster_key_error};
use pando_operation::Operation;
use pando_oplog::OpTime;
use pando_oplog::observer::{ComingInserts, Insert, Inserts};
use pando_storage::StorageError;
use smallvec::SmallVec;
use std::ops::Range;

/// Most batches are single documents.
type RecordIds = SmallVec<[RecordId; 1]>;
type Slots = SmallVec<[Option<OpTime>; 1]>;

impl WritePath {
    /// Inserts the documents in their order, all or none. Returns where they are.
    pub fn insert_documents(
        &self,
        operation: &mut Operation,
        collection: &Collection,
        statements: &[InsertStatement<'_>],
        options: InsertOptions,
    ) -> Result<RecordIds> {
        if statements.is_empty() {
            return Ok(RecordIds::new());
        }
        if statements.len() > 1 && !can_batch_inserts(collection) {
            bail!(ErrorCode::OperationCannotBeBatched, "Can't batch inserts into indexed capped collections");
        }
        for statement in statements {
            self.check_insert(operation, collection, statement.document, options)?;
        }
        let mut unit = operation.unit_of_work();
        let slots = self.slots_for_inserts(&mut unit, collection, statements)?;
        let (record_ids, counts) =
            self.write_inserts(&mut unit, collection, statements, &slots, options.constraints)?;
        if WritePath::is_observed(collection) {
            self.observe_inserts(&mut unit, collection, statements, (&record_ids, &slots), options)?;
        }
        if let Some(first) = record_ids.first().filter(|_| options.constraints == Constraints::Enforced) {
            self.delete_past_cap(&mut unit, collection, first)?;
        }
        self.tell_watcher(&mut unit, collection)?;
        count_keys(&unit, counts);
        unit.commit()?;
        Ok(record_ids)
    }

    fn check_insert(
        &self,
        operation: &Operation,
        collection: &Collection,
        document: DocRef<'_>,
        options: InsertOptions,
    ) -> Result<()> {
        if collection.knows_ids() && !document.contains("_id") {
            let namespace = &collection.namespace;
            return Err(Error::internal(format!(
                "Collection::insertDocument got document without _id for ns:{namespace}"
            )));
        }
        if options.constraints == Constraints::Relaxed {
            return Ok(());
        }
        check_size(document)?;
        if options.bypass_validation {
            return Ok(());
        }
        self.validate_insert(operation, collection, document)
    }

    /// The documents' places in the oplog: those that the caller has reserved, or those that observers reserve for several.
    fn slots_for_inserts(
        &self,
        operation: &mut Operation,
        collection: &Collection,
        statements: &[InsertStatement<'_>],
    ) -> Result<Slots> {
        let mut slots: Slots = statements.iter().map(|statement| statement.slot).collect();
        if slots.len() > 1 && slots.iter().all(Option::is_none) && WritePath::is_observed(collection) {
            let mut coming = ComingInserts { collection: collection.observed(), slots: &mut slots };
            self.observers.about_to_insert(operation, &mut coming)?;
        }
        Ok(slots)
    }

    /// Writes each record and its keys, under its own timestamp if it has one.
    fn write_inserts(
        &self,
        operation: &mut Operation,
        collection: &Collection,
        statements: &[InsertStatement<'_>],
        slots: &[Option<OpTime>],
        constraints: Constraints,
    ) -> Result<(RecordIds, KeyCounts)> {
        let collator = if collection.is_clustered() { self.cluster_collator(collection)? } else { None };
        let collator = collator.as_deref().map(|collator| collator as &dyn Collator);
        let mut record_ids = RecordIds::with_capacity(statements.len());
        let mut counts = KeyCounts::default();
        let mut scratch = KeyScratch::default();
        for (statement, slot) in statements.iter().zip(slots) {
            if let Some(slot) = slot {
                operation.recovery_unit.set_timestamp(slot.timestamp)?;
            }
            let record_id = insert_record(operation, collection, statement, collator)?;
            let document = statement.document;
            counts += self.indexing.insert(operation, collection, document, &record_id, constraints, &mut scratch)?;
            record_ids.push(record_id);
        }
        Ok((record_ids, counts))
    }

    fn observe_inserts(
        &self,
        operation: &mut Operation,
        collection: &Collection,
        statements: &[InsertStatement<'_>],
        (record_ids, slots): (&[RecordId], &[Option<OpTime>]),
        options: InsertOptions,
    ) -> Result<()> {
        let (keys, places) = document_keys(statements);
        let key = |place: &Range<usize>| DocRef::trusted(keys.get(place.clone()).unwrap_or_default());
        let inserts: SmallVec<[Insert<'_>; 1]> = statements
            .iter()
            .zip(record_ids.iter().zip(slots))
            .zip(&places)
            .map(|((statement, (record_id, slot)), place)| Insert {
                document: statement.document,
                record_id: record_id.clone(),
                document_key: key(place),
                statement_ids: statement.statement_ids.clone(),
                slot: *slot,
                destined_recipient: statement.destined_recipient,
            })
            .collect();
        let inserts =
            Inserts { collection: collection.observed(), inserts: &inserts, from_migrate: options.from_migrate };
        self.observers.on_inserts(operation, &inserts)
    }
}

fn insert_record(
    operation: &mut Operation,
    collection: &Collection,
    statement: &InsertStatement<'_>,
    collator: Option<&dyn Collator>,
) -> Result<RecordId> {
    let (records, unit) = (&collection.records, &mut operation.recovery_unit);
    let document = statement.document;
    let record_id = match (collection.cluster_field(), &statement.record_id) {
        (Some(field), _) => cluster_key_of(document, field, collator)?,
        (None, Some(record_id)) => record_id.clone(),
        (None, None) => {
            return Ok(match statement.shared {
                Some(document) => records.insert_shared(unit, document.shared_bytes().clone())?,
                None => records.insert(unit, document.bytes())?,
            });
        }
    };
    match (records.insert_at(unit, &record_id, document.bytes()), &record_id) {
        (Ok(()), _) => Ok(record_id),
        (Err(StorageError::DuplicateKey), RecordId::Bytes(id)) => {
            let collation = collection.options.collation.as_ref().map(Doc::view);
            let field = collection.cluster_field().unwrap_or("_id");
            Err(duplicate_cluster_key_error(&collection.namespace, field, collation, id))
        }
        (Err(error), _) => Err(error.into()),
    }
}

/// The documents' keys behind each other in one buffer, and where each lies.
fn document_keys(statements: &[InsertStatement<'_>]) -> (Vec<u8>, SmallVec<[Range<usize>; 1]>) {
    let mut buffer = Vec::with_capacity(KEY_BYTES * statements.len());
    let mut places = SmallVec::with_capacity(statements.len());
    for statement in statements {
        let start = buffer.len();
        buffer = append_document_key(buffer, statement.document);
        places.push(start..buffer.len());
    }
    (buffer, places)
}
