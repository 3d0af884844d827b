//! The first document with several keys for an index.
//!
//! The state is kept in memory and written down when it grows, which is rare. All writers of a collection would meet on
//! its one entry, so where it can be, the write is a unit of its own that commits before the operation's: whatever becomes
//! of the document, an index that is called multikey too early is only slower. The state in memory is raised after the
//! commit that wrote it down, so that nobody relies on what could be rolled back.
//!
//! In the operation's own unit it is written where the document's time is set already (a later time for the state would
//! leave a gap in which the document is there and the state is not), and where the unit has changed the collection itself
//! (the entry is its own then, and another unit would wait for it for ever).

use super::{Observers, not_found, require_unit};
use crate::catalog::Catalog;
use crate::{Collection, Index, MultikeyComponents, MultikeyState, uncommitted};
use pando_base::{Error, ErrorCode, Result};
use pando_doc::doc;
use pando_operation::{Operation, write_conflict_retry_blocking};
use pando_oplog::observer::InternalMessage;
use std::sync::Arc;

impl Catalog {
    /// Learns that a document has several keys, through these components of each path. Does nothing that is known.
    pub fn set_multikey(
        self: &Arc<Self>,
        operation: &mut Operation,
        observers: &Observers,
        collection: &Collection,
        index: &Index,
        paths: &[MultikeyComponents],
    ) -> Result<()> {
        if index.multikey.covers(paths) {
            return Ok(());
        }
        require_unit(operation)?;
        let is_timed = operation.recovery_unit.commit_timestamp().is_some();
        if is_timed || uncommitted::uuid(operation, &collection.uuid).is_some() {
            self.write_multikey(operation, collection, index, paths)?;
            let (state, paths) = (Arc::clone(&index.multikey), paths.to_vec());
            operation.recovery_unit.on_commit(move |_| state.raise(&paths))?;
            return Ok(());
        }
        let mut beside = operation.beside();
        write_conflict_retry_blocking(&mut beside, "set multikey", &collection.namespace, |beside| {
            beside.in_unit_of_work(|beside| {
                let is_new = self.write_multikey(beside, collection, index, paths)?;
                if is_new && collection.is_replicated() {
                    return tell(beside, observers, collection, index);
                }
                Ok(())
            })
        })?;
        index.multikey.raise(paths);
        Ok(())
    }

    /// Lets the state say no more than this: for one who has seen all documents, and lets nobody write meanwhile. Readers
    /// of earlier versions of the collection keep what they know, for they may see documents that are gone.
    pub fn narrow_multikey(
        self: &Arc<Self>,
        operation: &mut Operation,
        collection: &Collection,
        index: &Index,
        is_multikey: bool,
        paths: &[MultikeyComponents],
    ) -> Result<()> {
        require_unit(operation)?;
        // Another index may have been narrowed just before: its state is in the version after this.
        let collection = self.collection_for_ddl(operation, &collection.namespace)?;
        let id = &collection.catalog_id;
        let entry = self.durable.get(&mut operation.recovery_unit, id)?;
        let mut entry = entry.ok_or_else(|| not_found(&collection.namespace))?;
        let written = entry.index_mut(index.name()).filter(|written| written.ident == index.ident());
        let written = written.ok_or_else(|| missing(index))?;
        written.multikey = is_multikey;
        written.multikey_paths.iter_mut().zip(paths).for_each(|(known, new)| *known = *new);
        self.durable.update(&mut operation.recovery_unit, id, &entry)?;
        let mut next = self.instantiate(id.clone(), &entry, collection.minimum_valid_snapshot, Some(&collection))?;
        for place in next.indexes.iter_mut().filter(|place| place.ident() == index.ident()) {
            let tracked = place.descriptor.tracked_field_count();
            let state = MultikeyState::restored(tracked, is_multikey, paths);
            *place = Arc::new(Index { multikey: Arc::new(state), ..Index::clone(place) });
        }
        self.put_uncommitted(operation, &Arc::new(next), Some(&collection.namespace))
    }

    /// Writes the state down; false if it was.
    fn write_multikey(
        &self,
        operation: &mut Operation,
        collection: &Collection,
        index: &Index,
        paths: &[MultikeyComponents],
    ) -> Result<bool> {
        let id = &collection.catalog_id;
        let entry = self.durable.get(&mut operation.recovery_unit, id)?;
        let mut entry = entry.ok_or_else(|| not_found(&collection.namespace))?;
        let written = entry.index_mut(index.name()).filter(|written| written.ident == index.ident());
        let written = written.ok_or_else(|| missing(index))?;
        let before = (written.multikey, written.multikey_paths.clone());
        written.multikey = true;
        written.multikey_paths.iter_mut().zip(paths).for_each(|(known, new)| known.union(new));
        if before == (true, written.multikey_paths.clone()) {
            return Ok(false);
        }
        self.durable.update(&mut operation.recovery_unit, id, &entry)?;
        Ok(true)
    }
}

fn missing(index: &Index) -> Error {
    Error::new(ErrorCode::IndexNotFound, format!("index not found with name [{}]", index.name()))
}

/// A mark in the oplog gives the unit its time.
fn tell(operation: &mut Operation, observers: &Observers, collection: &Collection, index: &Index) -> Result<()> {
    let message = doc! {
        "msg": "Setting index to multikey",
        "coll": (collection.namespace.as_str()),
        "info": (&index.descriptor.specification),
    };
    let message = InternalMessage {
        namespace: Some(&collection.namespace),
        uuid: Some(collection.uuid),
        message: message.view(),
        message2: None,
        slot: None,
    };
    observers.on_internal_message(operation, &message)
}
