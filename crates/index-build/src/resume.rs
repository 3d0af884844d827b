//! What a clean shutdown or a rollback leaves of a build, so that it goes on afterwards.
//!
//! After a shutdown it is one document in a table of its own, `internal-resumable-index-build-...`. The side tables stay as they are; the sorters'
//! ranges stay in their files. Everything is in the checkpoint that ends the shutdown. The next start takes the documents out
//! before it does anything else: what they say is true once.

use crate::arrays::LearntArrays;
use crate::builder::{Builder, Building, Drained, Phase};
use crate::interceptor::{Interceptor, InterceptorIdents};
use pando_base::{Error, ErrorCode, RecordId, Result, Uuid, ensure};
use pando_catalog::{Collection, INTERNAL_PREFIX, MultikeyComponents};
use pando_collection::WritePath;
use pando_doc::{Doc, DocBuilder, DocRef, Value};
use pando_operation::Operation;
use pando_sorter::{Persisted, RangeDescription, Sorter, SorterOptions};
use pando_storage::Engine;
use std::sync::Arc;

/// What for the table is.
pub(crate) const PURPOSE: &str = "resumable-index-build";
/// The key of its one row.
pub(crate) const KEY: &[u8] = b"build";

/// A build as it was put down.
#[derive(Clone, Debug, PartialEq)]
pub struct ResumeInfo {
    /// The build.
    pub build_uuid: Uuid,
    /// Its collection.
    pub collection_uuid: Uuid,
    /// How far it had come.
    pub phase: Phase,
    position: Option<RecordId>,
    documents_read: u64,
    indexes: Vec<ResumeIndex>,
}

#[derive(Clone, Debug, PartialEq)]
struct ResumeIndex {
    name: String,
    ident: String,
    tables: InterceptorIdents,
    /// None once it is loaded.
    sorter: Option<Persisted>,
    arrays: LearntArrays,
}

impl ResumeInfo {
    /// Those that there are, each with the name of its table. What cannot be read is left out: its build begins anew.
    pub fn read_all(engine: &Arc<dyn Engine>) -> Result<Vec<(String, Option<ResumeInfo>)>> {
        let prefix = format!("{INTERNAL_PREFIX}{PURPOSE}-");
        let mut found = Vec::new();
        for ident in engine.idents().into_iter().filter(|ident| ident.starts_with(&prefix)) {
            let mut cursor = engine.committed_cursor(&engine.open_table(&ident)?)?;
            let document = cursor.seek_exact(KEY)?.map(|entry| entry.value.to_vec());
            let info = document.and_then(|bytes| ResumeInfo::parse(DocRef::parse(&bytes).ok()?));
            found.push((ident, info));
        }
        Ok(found)
    }

    /// The files of sorters that it needs.
    pub fn file_names(&self) -> impl Iterator<Item = &str> {
        self.indexes.iter().filter_map(|index| index.sorter.as_ref()?.file_name.as_deref())
    }

    /// The tables that it needs.
    pub(crate) fn idents(&self) -> impl Iterator<Item = &str> {
        self.indexes.iter().flat_map(|index| {
            let InterceptorIdents { side_writes, duplicates, skipped } = &index.tables;
            [Some(side_writes.as_str()), duplicates.as_deref(), Some(skipped.as_str())].into_iter().flatten()
        })
    }

    /// The tables of its indexes.
    pub(crate) fn index_idents(&self) -> impl Iterator<Item = &str> {
        self.indexes.iter().map(|index| index.ident.as_str())
    }

    /// The document.
    pub fn to_doc(&self) -> Doc {
        let mut out = DocBuilder::new();
        out.append("_id", uuid(&self.build_uuid));
        out.append("collectionUUID", uuid(&self.collection_uuid));
        out.append("phase", self.phase.name());
        match &self.position {
            Some(RecordId::Long(id)) => out.append("collectionScanPosition", *id),
            Some(RecordId::Bytes(bytes)) => {
                out.append("collectionScanPosition", Value::Binary { subtype: 0, bytes });
            }
            None => {}
        }
        out.append("documentsRead", signed(self.documents_read));
        out.array("indexes", |indexes| {
            self.indexes.iter().for_each(|index| indexes.document(|out| index.append_to(out)));
        });
        out.finish()
    }

    pub(crate) fn parse(document: DocRef<'_>) -> Option<ResumeInfo> {
        let position = match document.get("collectionScanPosition") {
            None => None,
            Some(Value::Int64(id)) => Some(RecordId::Long(id)),
            Some(Value::Binary { bytes, .. }) => Some(RecordId::Bytes(bytes.into())),
            Some(_) => return None,
        };
        let indexes = document.get("indexes")?.as_array()?;
        Some(ResumeInfo {
            build_uuid: read_uuid(document.get("_id")?)?,
            collection_uuid: read_uuid(document.get("collectionUUID")?)?,
            phase: Phase::named(document.get("phase")?.as_str()?)?,
            position,
            documents_read: read_number(document, "documentsRead")?,
            indexes: indexes.values().map(|index| ResumeIndex::parse(index.as_document()?)).collect::<Option<_>>()?,
        })
    }

    /// The builder that goes on, with the collection's indexes as they were.
    pub(crate) fn open(
        &self,
        engine: &Arc<dyn Engine>,
        collection: &Collection,
        write_path: &Arc<WritePath>,
        sorting: &SorterOptions,
    ) -> Result<Builder> {
        let mut builder = Builder::empty(self.build_uuid, collection, write_path);
        (builder.phase, builder.position, builder.documents_read) =
            (self.phase, self.position.clone(), self.documents_read);
        for state in &self.indexes {
            let index = collection.index(&state.name).filter(|index| {
                !index.ready && index.build_uuid == Some(self.build_uuid) && index.ident() == state.ident
            });
            let changed = || Error::new(ErrorCode::IndexNotFound, format!("the index '{}' is another now", state.name));
            let index = Arc::clone(index.ok_or_else(changed)?);
            ensure!(
                self.phase < Phase::DrainWrites || state.sorter.is_none(),
                ErrorCode::DataCorruptionDetected,
                "the index '{}' is drained and not loaded",
                state.name
            );
            let tracked = index.descriptor.tracked_field_count();
            let interceptor = Interceptor::open(engine, &state.tables, builder.kind, tracked)?;
            let sorter = state.sorter.as_ref().map(|sorter| Sorter::resume(sorting.clone(), sorter)).transpose()?;
            builder.indexes.push(Building {
                access: write_path.indexing().access(&index)?,
                interceptor: Some(Arc::new(interceptor)),
                sorter,
                arrays: state.arrays.clone(),
                index,
                keys_loaded: 0,
                entry: Vec::new(),
                drained: Drained::default(),
            });
        }
        Ok(builder)
    }
}

impl Builder {
    /// Puts the build down. Nobody writes to the collection any more.
    pub(crate) fn put_down(mut self, operation: &mut Operation) -> Result<ResumeInfo> {
        self.settle(operation)?;
        let mut indexes = Vec::with_capacity(self.indexes.len());
        for building in self.indexes {
            let Building { index, interceptor, sorter, mut arrays, .. } = building;
            let interceptor = interceptor.ok_or_else(|| Error::internal("a build without side tables cannot go on"))?;
            arrays.join(&interceptor.arrays());
            indexes.push(ResumeIndex {
                name: index.name().to_owned(),
                ident: index.ident().to_owned(),
                tables: interceptor.idents(),
                sorter: sorter.map(Sorter::persist).transpose()?,
                arrays,
            });
        }
        Ok(ResumeInfo {
            build_uuid: self.build_uuid,
            collection_uuid: self.collection_uuid,
            phase: self.phase,
            position: self.position,
            documents_read: self.documents_read,
            indexes,
        })
    }
}

impl ResumeIndex {
    fn append_to(&self, out: &mut DocBuilder) {
        out.append("name", self.name.as_str());
        out.append("ident", self.ident.as_str());
        out.append("sideWritesTable", self.tables.side_writes.as_str());
        out.append_some("duplicateKeyTrackerTable", self.tables.duplicates.as_deref());
        out.append("skippedRecordTrackerTable", self.tables.skipped.as_str());
        out.append("isMultikey", self.arrays.is_multikey);
        out.array("multikeyPaths", |paths| {
            for components in &self.arrays.paths {
                paths.array(|path| components.iter().for_each(|place| path.push(place as i32)));
            }
        });
        out.append("isLoaded", self.sorter.is_none());
        let Some(sorter) = &self.sorter else { return };
        out.append_some("fileName", sorter.file_name.as_deref());
        out.array("ranges", |ranges| {
            for range in &sorter.ranges {
                ranges.document(|out| {
                    out.append("startOffset", signed(range.start_offset));
                    out.append("endOffset", signed(range.end_offset));
                    out.append("checksum", signed(range.checksum));
                    out.append("entries", signed(range.entries));
                });
            }
        });
    }

    fn parse(document: DocRef<'_>) -> Option<ResumeIndex> {
        let text = |name: &str| Some(document.get(name)?.as_str()?.to_owned());
        let sorter = match document.get("isLoaded")?.as_bool()? {
            true => None,
            false => {
                let ranges = document.get("ranges")?.as_array()?;
                let ranges = ranges.values().map(|range| read_range(range.as_document()?)).collect::<Option<_>>()?;
                Some(Persisted { file_name: text("fileName"), ranges })
            }
        };
        let paths = document.get("multikeyPaths")?.as_array()?;
        let components = |path: Value<'_>| -> Option<MultikeyComponents> {
            Some(path.as_array()?.values().filter_map(|place| usize::try_from(place.to_i64_or_zero()).ok()).collect())
        };
        Some(ResumeIndex {
            name: text("name")?,
            ident: text("ident")?,
            tables: InterceptorIdents {
                side_writes: text("sideWritesTable")?,
                duplicates: text("duplicateKeyTrackerTable"),
                skipped: text("skippedRecordTrackerTable")?,
            },
            sorter,
            arrays: LearntArrays {
                is_multikey: document.get("isMultikey")?.as_bool()?,
                paths: paths.values().map(components).collect::<Option<_>>()?,
            },
        })
    }
}

fn read_range(document: DocRef<'_>) -> Option<RangeDescription> {
    Some(RangeDescription {
        start_offset: read_number(document, "startOffset")?,
        end_offset: read_number(document, "endOffset")?,
        checksum: read_number(document, "checksum")?,
        entries: read_number(document, "entries")?,
    })
}

/// Numbers without a sign, checksums too, are stored as the same 64 bits.
fn signed(number: u64) -> i64 {
    number as i64
}

fn read_number(document: DocRef<'_>, name: &str) -> Option<u64> {
    match document.get(name)? {
        Value::Int64(number) => Some(number as u64),
        _ => None,
    }
}

pub(crate) fn uuid(uuid: &Uuid) -> Value<'_> {
    Value::Binary { subtype: 4, bytes: uuid.as_bytes() }
}

fn read_uuid(value: Value<'_>) -> Option<Uuid> {
    match value {
        Value::Binary { bytes, .. } => Uuid::from_slice(bytes).ok(),
        _ => None,
    }
}
