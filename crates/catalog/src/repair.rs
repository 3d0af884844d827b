//! Repair of the durable catalog, before it is read: afterwards [`Catalog::open`](crate::Catalog::open) finds nothing that it refuses.
//!
//! - A record that is no entry, or the second entry of a name or of a table, is removed.
//! - A collection whose table is missing gets an empty one. Its documents are lost; that it was there, and how, is not.
//! - An index whose table is missing gets an empty one, and its collection is to have its indexes rebuilt.
//! - If the catalog itself has lost something, tables of collections that no entry has are what was lost: each becomes the
//!   collection `local.orphan.<ident>`. Otherwise such tables are those of dropped collections, and go as usual.
//!
//! Nothing here has a timestamp: a repaired store is no copy of another one's any more.

use crate::ident::{is_collection, new_index_ident};
use crate::{
    CATALOG_IDENT, CatalogEntry, ClusteredIndex, CollectionOptions, DurableCatalog, Index, IndexDescriptor, IndexEntry,
    MultikeyComponents, default_id_index_spec,
};
use pando_base::{DatabaseName, Namespace, RecordId, RecordIdKind, Result, Uuid};
use pando_doc::Doc;
use pando_env::Env;
use pando_storage::{Engine, NoReplication, RecoveryUnit, TableOptions, WriteUnitOfWork};
use std::collections::BTreeSet;
use std::sync::Arc;

/// With what the names of collections begin that were found without an entry, in the database "local".
const ORPHAN_PREFIX: &str = "orphan.";

/// What was done to the catalog.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CatalogRepair {
    /// In words, one for each change.
    pub changes: Vec<String>,
    /// Tables of collections whose indexes are not what they should be.
    pub to_rebuild: BTreeSet<String>,
}

/// Repairs the catalog of a store that nobody else uses. `is_suspect` says that some of the catalog's table is lost.
pub fn repair_catalog(env: &Env, engine: &Arc<dyn Engine>, is_suspect: bool) -> Result<CatalogRepair> {
    let is_missing = !engine.idents().iter().any(|ident| ident == CATALOG_IDENT);
    let mut work = Work {
        env,
        engine,
        durable: DurableCatalog::open(engine)?,
        unit: RecoveryUnit::new(Arc::clone(engine), Arc::new(NoReplication)),
        done: CatalogRepair::default(),
    };
    let is_new = is_missing && !engine.idents().iter().any(|ident| is_collection(ident));
    if is_missing && !is_new {
        work.done.changes.push("the catalog is lost; a new one was made".to_owned());
    }
    let (entries, has_lost) = work.sound_entries()?;
    for (id, entry) in &entries {
        work.restore_tables(id, entry)?;
    }
    if is_suspect || is_missing || has_lost {
        work.adopt_orphans(&entries)?;
    }
    Ok(work.done)
}

struct Work<'a> {
    env: &'a Env,
    engine: &'a Arc<dyn Engine>,
    durable: DurableCatalog,
    unit: RecoveryUnit,
    done: CatalogRepair,
}

/// Entries with their places.
type Entries = Vec<(RecordId, CatalogEntry)>;

impl Work<'_> {
    /// The entries that can stay; the others are removed. True if there were any.
    fn sound_entries(&mut self) -> Result<(Entries, bool)> {
        let (mut entries, mut bad): (Entries, Vec<(RecordId, String)>) = (Vec::new(), Vec::new());
        for (id, read) in self.durable.read_all(&mut self.unit)? {
            let twice = |entry: &CatalogEntry| {
                entries.iter().any(|(_, known)| known.namespace == entry.namespace || known.ident == entry.ident)
            };
            match read.and_then(sound) {
                Ok(entry) if twice(&entry) => bad.push((id, format!("{} is in the catalog twice", entry.namespace))),
                Ok(entry) => entries.push((id, entry)),
                Err(error) => bad.push((id, error.to_string())),
            }
        }
        self.unit.abandon_snapshot()?;
        for (id, reason) in &bad {
            self.done.changes.push(format!("an entry of the catalog was removed: {reason}"));
            let mut unit = WriteUnitOfWork::begin(&mut self.unit);
            self.durable.remove(&mut unit, id)?;
            unit.commit()?;
        }
        Ok((entries, !bad.is_empty()))
    }

    /// Makes the tables that an entry has and the engine has not.
    fn restore_tables(&mut self, id: &RecordId, entry: &CatalogEntry) -> Result<()> {
        let idents: BTreeSet<String> = self.engine.idents().into_iter().collect();
        let (namespace, replicated) = (&entry.namespace, entry.namespace.is_replicated());
        if !idents.contains(&entry.ident) {
            self.engine.create_table(&entry.ident, &TableOptions { replicated, ..TableOptions::default() })?;
            self.done.to_rebuild.insert(entry.ident.clone());
            self.done.changes.push(format!("the table of {namespace} is missing; it is empty now"));
        }
        let mut kept = entry.clone();
        let kind = crate::catalog::record_id_kind(entry);
        for index in &entry.indexes {
            let Ok(descriptor) = index.descriptor() else {
                kept.indexes.retain(|other| other.name() != index.name());
                let told = format!("the index {} of {namespace} makes no sense and was removed", index.name());
                self.done.changes.push(told);
                continue;
            };
            if !idents.contains(&index.ident) {
                self.engine.create_table(&index.ident, &Index::table_options(&descriptor, kind, replicated))?;
                self.done.to_rebuild.insert(entry.ident.clone());
                let told = format!("the table of the index {} of {namespace} is missing", index.name());
                self.done.changes.push(told);
            }
        }
        if kept != *entry {
            let mut unit = WriteUnitOfWork::begin(&mut self.unit);
            self.durable.update(&mut unit, id, &kept)?;
            unit.commit()?;
        }
        Ok(())
    }

    /// Makes collections of tables that no entry has.
    fn adopt_orphans(&mut self, entries: &Entries) -> Result<()> {
        let known: BTreeSet<&str> = entries.iter().flat_map(|(_, entry)| entry.idents()).collect();
        for ident in self.engine.idents() {
            if known.contains(ident.as_str()) || !is_collection(&ident) {
                continue;
            }
            let table = self.engine.open_table(&ident)?;
            let first = self.engine.committed_cursor(&table)?.first()?.map(|entry| entry.key.to_vec());
            // What is empty is no loss, and may be the oplog's.
            let Some(first) = first else { continue };
            let entry = self.orphan(&ident, kind_of_key(&first))?;
            let namespace = entry.namespace.clone();
            let mut unit = WriteUnitOfWork::begin(&mut self.unit);
            self.durable.insert(&mut unit, &entry)?;
            unit.commit()?;
            self.done.to_rebuild.insert(ident.clone());
            self.done.changes.push(format!("the table {ident} is in no entry of the catalog; it is {namespace} now"));
        }
        Ok(())
    }

    fn orphan(&self, ident: &str, kind: RecordIdKind) -> Result<CatalogEntry> {
        let name = format!("{ORPHAN_PREFIX}{}", ident.replace(['-', '/'], "_"));
        let uuid = Uuid::from_random(self.env.random().id_bytes());
        let mut options = CollectionOptions { uuid: Some(uuid), ..CollectionOptions::default() };
        let mut indexes = Vec::new();
        match kind {
            RecordIdKind::Bytes => options.clustered_index = Some(ClusteredIndex::unnamed()),
            RecordIdKind::Long => indexes.push(self.id_index(&default_id_index_spec(&options))?),
        }
        Ok(CatalogEntry {
            namespace: Namespace::new(&DatabaseName::new(DatabaseName::LOCAL)?, &name)?,
            options,
            indexes,
            ident: ident.to_owned(),
            timeseries_mixed_schema: None,
        })
    }

    fn id_index(&self, specification: &Doc) -> Result<IndexEntry> {
        let descriptor = IndexDescriptor::parse(specification.view())?;
        let ident = new_index_ident(self.env.random());
        self.engine.create_table(&ident, &Index::table_options(&descriptor, RecordIdKind::Long, false))?;
        Ok(IndexEntry {
            specification: specification.clone(),
            ready: true,
            multikey: false,
            multikey_paths: vec![MultikeyComponents::NONE; descriptor.tracked_field_count()].into(),
            background_secondary: false,
            build_uuid: None,
            ident,
        })
    }
}

/// An entry that says everything that a collection needs.
fn sound(entry: CatalogEntry) -> Result<CatalogEntry> {
    match entry.uuid() {
        Some(_) => Ok(entry),
        None => Err(pando_base::Error::failed_to_parse(format!("{} has no uuid", entry.namespace))),
    }
}

/// How the records of a table are named, told by one of its keys.
fn kind_of_key(key: &[u8]) -> RecordIdKind {
    // A number that is counted up from one, with its sign flipped.
    match key {
        [0x80, rest @ ..] if rest.len() == 7 => RecordIdKind::Long,
        _ => RecordIdKind::Bytes,
    }
}
