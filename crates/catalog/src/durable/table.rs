//! The table itself.

use super::CatalogEntry;
use pando_base::{Context, Error, ErrorCode, RecordId, Result, bail, ensure};
use pando_doc::{Doc, DocRef, doc};
use pando_storage::{Direction, Engine, Record, RecordIdKind, RecordStore, RecoveryUnit, StorageError, TableOptions};
use std::sync::Arc;

/// The ident of the catalog's table.
pub const CATALOG_IDENT: &str = "_mdb_catalog";
/// The mark of the feature document.
const FEATURE_FIELD: &str = "isFeatureDoc";

/// Features that a store needs of whoever opens it, as sets of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CatalogFeatures {
    /// Without these it cannot be opened.
    pub non_repairable: u64,
    /// Without these it can be opened to be repaired.
    pub repairable: u64,
}

impl CatalogFeatures {
    fn to_doc(self) -> Doc {
        doc! {
            "isFeatureDoc": true, "ns": null,
            "nonRepairable": self.non_repairable as i64, "repairable": self.repairable as i64,
        }
    }

    fn parse(document: DocRef<'_>) -> Result<CatalogFeatures> {
        let bits = |field: &str| {
            let value = document.get(field).and_then(|value| value.to_i64_exact());
            let missing = || Error::failed_to_parse(format!("the catalog's feature document has no '{field}'"));
            value.map(|bits| bits as u64).ok_or_else(missing)
        };
        Ok(CatalogFeatures { non_repairable: bits("nonRepairable")?, repairable: bits("repairable")? })
    }
}

/// The durable catalog.
pub struct DurableCatalog {
    records: RecordStore,
}

impl DurableCatalog {
    /// Opens the catalog, or makes it in a new store.
    pub fn open(engine: &Arc<dyn Engine>) -> Result<DurableCatalog> {
        let options = TableOptions { replicated: true, ..TableOptions::default() };
        let table = match engine.open_table(CATALOG_IDENT) {
            Err(StorageError::IdentNotFound(_)) => engine.create_table(CATALOG_IDENT, &options)?,
            opened => opened?,
        };
        Ok(DurableCatalog { records: RecordStore::new(Arc::clone(engine), table, RecordIdKind::Long) })
    }

    /// The entry, as the snapshot has it.
    pub fn get(&self, unit: &mut RecoveryUnit, id: &RecordId) -> Result<Option<CatalogEntry>> {
        self.get_doc(unit, id)?.map(|document| CatalogEntry::parse(document.view())).transpose()
    }

    /// The entry's document, as the snapshot has it.
    pub fn get_doc(&self, unit: &mut RecoveryUnit, id: &RecordId) -> Result<Option<Doc>> {
        let value = self.records.get(unit, id)?;
        let parse = |bytes| Doc::parse(bytes).with_context(|| format!("the catalog's record {id:?}"));
        Ok(value.map(parse).transpose()?.filter(|document| !is_feature_doc(document.view())))
    }

    /// Every entry in the order of creation, as the snapshot has them. An error of the call ends the walk.
    pub fn for_each(
        &self,
        unit: &mut RecoveryUnit,
        mut call: impl FnMut(RecordId, DocRef<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut cursor = self.records.cursor(Direction::Forward);
        while let Some(record) = cursor.next(unit)? {
            let document = parse(&record)?;
            if !is_feature_doc(document) {
                call(record.id.clone(), document)?;
            }
        }
        Ok(())
    }

    /// Every entry, read.
    pub fn entries(&self, unit: &mut RecoveryUnit) -> Result<Vec<(RecordId, CatalogEntry)>> {
        let mut entries = Vec::new();
        self.for_each(unit, |id, document| {
            entries.push((id, CatalogEntry::parse(document)?));
            Ok(())
        })?;
        Ok(entries)
    }

    /// Every record but that of the features, read as far as it can be: for repair.
    pub(crate) fn read_all(&self, unit: &mut RecoveryUnit) -> Result<Vec<(RecordId, Result<CatalogEntry>)>> {
        let (mut entries, mut cursor) = (Vec::new(), self.records.cursor(Direction::Forward));
        while let Some(record) = cursor.next(unit)? {
            let document = parse(&record);
            if document.as_ref().is_ok_and(|document| is_feature_doc(*document)) {
                continue;
            }
            entries.push((record.id.clone(), document.and_then(CatalogEntry::parse)));
        }
        Ok(entries)
    }

    /// Adds an entry. In a unit of work.
    pub fn insert(&self, unit: &mut RecoveryUnit, entry: &CatalogEntry) -> Result<RecordId> {
        Ok(self.records.insert(unit, entry.to_doc().bytes())?)
    }

    /// Replaces an entry. In a unit of work.
    pub fn update(&self, unit: &mut RecoveryUnit, id: &RecordId, entry: &CatalogEntry) -> Result<()> {
        let found = self.records.update(unit, id, entry.to_doc().bytes())?;
        ensure!(found, ErrorCode::NamespaceNotFound, "{} is not in the catalog", entry.namespace);
        Ok(())
    }

    /// Removes an entry. In a unit of work.
    pub fn remove(&self, unit: &mut RecoveryUnit, id: &RecordId) -> Result<()> {
        let found = self.records.delete(unit, id)?;
        ensure!(found, ErrorCode::NamespaceNotFound, "there is no record {id:?} in the catalog");
        Ok(())
    }

    /// The features that the store needs.
    pub fn features(&self, unit: &mut RecoveryUnit) -> Result<CatalogFeatures> {
        Ok(self.feature_record(unit)?.map_or_else(CatalogFeatures::default, |(_, features)| features))
    }

    /// Writes down the features that the store needs. In a unit of work.
    pub fn set_features(&self, unit: &mut RecoveryUnit, features: CatalogFeatures) -> Result<()> {
        match self.feature_record(unit)? {
            Some((_, known)) if known == features => {}
            Some((id, _)) => {
                self.records.update(unit, &id, features.to_doc().bytes())?;
            }
            None => {
                self.records.insert(unit, features.to_doc().bytes())?;
            }
        }
        Ok(())
    }

    /// Fails if the store needs what this version does not know: so far it knows no feature.
    pub fn check_features(&self, unit: &mut RecoveryUnit) -> Result<()> {
        let needed = self.features(unit)?;
        if needed.non_repairable != 0 {
            bail!(
                ErrorCode::MustUpgrade,
                "The data files use features that this version does not know: {:#x}",
                needed.non_repairable
            );
        }
        Ok(())
    }

    fn feature_record(&self, unit: &mut RecoveryUnit) -> Result<Option<(RecordId, CatalogFeatures)>> {
        let mut cursor = self.records.cursor(Direction::Forward);
        while let Some(record) = cursor.next(unit)? {
            let document = parse(&record)?;
            if is_feature_doc(document) {
                return Ok(Some((record.id, CatalogFeatures::parse(document)?)));
            }
        }
        Ok(None)
    }
}

fn parse<'a>(record: &Record<'a>) -> Result<DocRef<'a>> {
    DocRef::parse(record.value).with_context(|| format!("the catalog's record {:?}", record.id))
}

fn is_feature_doc(document: DocRef<'_>) -> bool {
    document.get(FEATURE_FIELD).is_some_and(|value| value.is_true())
}
