//! Copying a collection's documents into a new one: for renames to another database and for capped copies.
//!
//! The caller holds the source and the copy in X, so neither changes meanwhile. The copy's documents are ordinary inserts: they
//! leave entries in the oplog, batch by batch, with the node's other work in between.

use super::change::change;
use crate::Data;
use pando_base::{Namespace, RecordId, Result};
use pando_catalog::{Collection, CollectionOptions, PreparedIndex};
use pando_collection::{InsertOptions, InsertStatement, can_batch_inserts};
use pando_doc::Doc;
use pando_operation::{Operation, write_conflict_retry};
use pando_query::executor::yield_now;
use pando_storage::Direction;
use std::sync::Arc;

/// As many documents are copied between two yields.
const BATCH_COUNT_MAX: usize = 64;
/// As many bytes.
const BATCH_BYTES_MAX: usize = 256 * 1024;

/// What is to be made.
pub(super) struct CopyTarget<'a> {
    pub(super) namespace: &'a Namespace,
    pub(super) options: CollectionOptions,
    /// With the source's indexes, not only the one on `_id`.
    pub(super) with_indexes: bool,
}

/// Makes a copy.
pub(super) async fn copy_collection(
    data: &Data,
    operation: &mut Operation,
    source: &Arc<Collection>,
    target: CopyTarget<'_>,
) -> Result<()> {
    let copy = create(data, operation, source, &target).await?;
    let mut after = first_to_copy(operation, source, &copy)?;
    loop {
        operation.context.check()?;
        let documents = next_documents(operation, source, after.as_ref())?;
        let Some((last, _)) = documents.last() else { return Ok(()) };
        after = Some(last.clone());
        insert(data, operation, &copy, &documents).await?;
        yield_now().await;
    }
}

/// Makes the empty copy with its indexes.
async fn create(
    data: &Data,
    operation: &mut Operation,
    source: &Collection,
    target: &CopyTarget<'_>,
) -> Result<Arc<Collection>> {
    let namespace = target.namespace;
    let mut copy = change(operation, "create", namespace, |operation| {
        data.catalog.create_collection(operation, &*data.observers, namespace, target.options.clone())
    })
    .await?;
    let wanted = source.indexes.iter().filter(|index| target.with_indexes && !index.descriptor.is_id_index());
    for index in wanted {
        let specification = &index.descriptor.specification;
        let prepared = data.catalog.prepare_stored_index(&copy, specification.clone())?;
        let PreparedIndex::New(specification) = prepared else { continue };
        copy = change(operation, "createIndexes", namespace, |operation| {
            data.catalog.create_index_on_empty(operation, &*data.observers, &copy, &specification)
        })
        .await?;
    }
    Ok(copy)
}

/// The document after which to begin: documents that would be pushed out of a capped copy again are not copied at all.
fn first_to_copy(operation: &mut Operation, source: &Collection, copy: &Collection) -> Result<Option<RecordId>> {
    if !copy.is_capped() {
        return Ok(None);
    }
    let mut excess_bytes = source.records.data_size_bytes()? - copy.options.capped_size_bytes;
    let mut cursor = source.records.cursor(Direction::Forward);
    let mut after = None;
    while excess_bytes > 0 {
        let Some(record) = cursor.next(&mut operation.recovery_unit)? else { break };
        excess_bytes -= record.value.len() as i64;
        after = Some(record.id);
    }
    drop(cursor);
    operation.recovery_unit.abandon_snapshot()?;
    Ok(after)
}

/// The next documents, and nothing held open.
pub(super) fn next_documents(
    operation: &mut Operation,
    source: &Collection,
    after: Option<&RecordId>,
) -> Result<Vec<(RecordId, Doc)>> {
    let (mut documents, mut size_bytes) = (Vec::new(), 0);
    let mut cursor = source.records.cursor(Direction::Forward);
    let unit = &mut operation.recovery_unit;
    let mut id = match after {
        Some(after) => cursor.seek(unit, after)?,
        None => cursor.next(unit)?,
    }
    .map(|record| record.id);
    while let Some(found) = id.filter(|_| documents.len() < BATCH_COUNT_MAX && size_bytes < BATCH_BYTES_MAX) {
        if Some(&found) != after
            && let Some(bytes) = cursor.value_bytes()
        {
            size_bytes += bytes.len();
            documents.push((found, Doc::trusted(bytes)));
        }
        id = cursor.next(unit)?.map(|record| record.id);
    }
    drop(cursor);
    unit.abandon_snapshot()?;
    Ok(documents)
}

async fn insert(
    data: &Data,
    operation: &mut Operation,
    copy: &Collection,
    documents: &[(RecordId, Doc)],
) -> Result<()> {
    let group = if can_batch_inserts(copy) { BATCH_COUNT_MAX } else { 1 };
    let options = InsertOptions { bypass_validation: true, ..InsertOptions::default() };
    for group in documents.chunks(group) {
        let statements: Vec<InsertStatement<'_>> =
            group.iter().map(|(_, document)| InsertStatement::new(document.view())).collect();
        write_conflict_retry(operation, "insert", &copy.namespace, |operation| {
            data.write_path().insert_documents(operation, copy, &statements, options).map(|_| ())
        })
        .await?;
    }
    Ok(())
}

/// Drops a copy that is not wanted after all, if it was made.
pub(super) async fn discard_copy(data: &Data, operation: &mut Operation, namespace: &Namespace) -> Result<()> {
    if data.catalog.collection_for_write(operation, namespace)?.is_none() {
        return Ok(());
    }
    change(operation, "drop", namespace, |operation| {
        data.catalog.drop_collection(operation, &*data.observers, namespace).map(|_| ())
    })
    .await
}

/// A name for a copy that nobody else thinks of.
pub(crate) fn temporary_name(operation: &Operation, purpose: &str) -> String {
    const LETTERS: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let mut random = [0; 5];
    operation.env.random().fill(&mut random);
    let letter = |byte: &u8| char::from(LETTERS.get(usize::from(*byte) % LETTERS.len()).copied().unwrap_or(b'0'));
    let middle: String = random.iter().map(letter).collect();
    format!("tmp{middle}.{purpose}")
}
