//! Memory and disk for what takes in everything before it gives anything out: sorts, groups, buckets, windows.
//!
//! Each of them gets [`StageResources`]: how much memory it may take, and, if the client or the server's default allows it, the directory
//! that it may go on in. What goes to disk and back is defined here; what was spilled is counted for serverStatus.

use crate::limits::{HELD_BYTES_MAX, STAGES_MAX};
use crate::memory::{Account, HeldByNode};
use pando_base::{AnyParameter, Counter, MetricTree, Parameter, ParameterSet, RecordId, Result};
use pando_doc::{Doc, OwnedValue, Value, doc};
use pando_operation::Operation;
use pando_sorter::{Sorter, SorterOptions, SpillDirectory, SpillStatistics, Spilled, SpilledList, SpilledRanges};
use std::sync::Arc;

/// Whether stages may use the disk where the client does not say.
pub static ALLOW_DISK_USE_BY_DEFAULT: Parameter<bool> = Parameter::new(
    "allowDiskUseByDefault",
    true,
    "Whether stages that take more than 100 megabytes may use the disk where the client does not say.",
);

/// How much memory a sort may take.
pub static SORT_MEMORY_BYTES_MAX: Parameter<i64> = Parameter::new(
    "internalQueryMaxBlockingSortMemoryUsageBytes",
    100 * 1024 * 1024,
    "How many bytes a sort in memory may take.",
)
.at_least(0);

/// How much memory a group may take.
pub static GROUP_MEMORY_BYTES_MAX: Parameter<i64> = Parameter::new(
    "internalDocumentSourceGroupMaxMemoryBytes",
    100 * 1024 * 1024,
    "How many bytes the groups of a $group may take in memory.",
)
.at_least(1);

/// Another bound for groups, under the name that it has for MongoDB's other engine.
pub static HASH_AGGREGATION_BYTES_MAX: Parameter<i64> = Parameter::new(
    "internalQuerySlotBasedExecutionHashAggApproxMemoryUseInBytesBeforeSpill",
    100 * 1024 * 1024,
    "How many bytes the groups of a $group may take in memory; the smaller of the two bounds holds.",
)
.at_least(1);

/// How much of its input a `$facet` takes in at a time.
pub static FACET_BUFFER_BYTES: Parameter<i32> = Parameter::new(
    "internalQueryFacetBufferSizeBytes",
    100 * 1024 * 1024,
    "How many bytes of its input a $facet takes in before its pipelines look at them.",
)
.at_least(1);

/// How large the document of a `$facet` may become.
pub static FACET_OUTPUT_BYTES_MAX: Parameter<i64> = Parameter::new(
    "internalQueryFacetMaxOutputDocSizeBytes",
    100 * 1024 * 1024,
    "How large the document of a $facet may become inside a pipeline, in bytes.",
)
.at_least(1);

/// How large what a `$lookup` finds for one document may become.
pub static LOOKUP_BYTES_MAX: Parameter<i64> = Parameter::new(
    "internalLookupStageIntermediateDocumentMaxSizeBytes",
    100 * 1024 * 1024,
    "How many bytes of documents a $lookup may find for one document; not those that an $unwind behind it parts.",
)
.at_least(16 * 1024 * 1024);

/// How much memory the windows of a partition may take.
pub static WINDOW_MEMORY_BYTES_MAX: Parameter<i64> = Parameter::new(
    "internalDocumentSourceSetWindowFieldsMaxMemoryBytes",
    100 * 1024 * 1024,
    "How many bytes $setWindowFields may take in memory.",
)
.at_least(1);

/// How much memory the other collection of a `$lookup` may take.
pub static HASH_LOOKUP_BYTES_MAX: Parameter<i64> = Parameter::new(
    "internalQuerySlotBasedExecutionHashLookupApproxMemoryUseInBytesBeforeSpill",
    100 * 1024 * 1024,
    "How many bytes the other collection of a $lookup may take in memory; a larger one is searched for each document.",
)
.at_least(1);

/// No tables for `$lookup`.
pub static HASH_LOOKUP_OFF: Parameter<bool> = Parameter::new(
    "internalQueryDisableLookupExecutionUsingHashJoin",
    false,
    "Whether the other collection of a $lookup is never read into a table.",
);

/// How many documents a `$densify` may make.
pub static DENSIFIED_DOCUMENTS_MAX: Parameter<i32> =
    Parameter::new("internalQueryMaxAllowedDensifyDocs", 500_000, "How many documents a $densify may make.")
        .at_least(0);

/// How much memory a `$densify` may take.
pub static DENSIFY_MEMORY_BYTES_MAX: Parameter<i64> = Parameter::new(
    "internalDocumentSourceDensifyMaxMemoryBytes",
    100 * 1024 * 1024,
    "How many bytes what a $densify knows of its partitions may take in memory.",
)
.at_least(1);

/// How much space has to be left.
pub static SPILL_FREE_BYTES_MIN: Parameter<i64> = Parameter::new(
    "internalQuerySpillingMinAvailableDiskSpaceBytes",
    500 * 1024 * 1024,
    "How many bytes have to be free before a stage writes to disk.",
)
.at_least(0);

/// All of them.
pub static PARAMETERS: &[&dyn AnyParameter] = &[
    &ALLOW_DISK_USE_BY_DEFAULT,
    &SORT_MEMORY_BYTES_MAX,
    &GROUP_MEMORY_BYTES_MAX,
    &HASH_AGGREGATION_BYTES_MAX,
    &FACET_BUFFER_BYTES,
    &FACET_OUTPUT_BYTES_MAX,
    &LOOKUP_BYTES_MAX,
    &WINDOW_MEMORY_BYTES_MAX,
    &HASH_LOOKUP_BYTES_MAX,
    &HASH_LOOKUP_OFF,
    &DENSIFIED_DOCUMENTS_MAX,
    &DENSIFY_MEMORY_BYTES_MAX,
    &SPILL_FREE_BYTES_MIN,
];

/// What all stages of a node have spilled.
#[derive(Default)]
pub struct SpillCounters {
    sort_spills: Counter,
    sort_spilled_bytes: Counter,
    sorted_keys: Counter,
    sorted_bytes: Counter,
    group_spills: Counter,
    group_spilled_bytes: Counter,
    group_spilled_records: Counter,
    group_spilled_storage_bytes: Counter,
    window_spills: Counter,
    window_spilled_bytes: Counter,
    window_spilled_records: Counter,
    window_spilled_storage_bytes: Counter,
}

type Read = fn(&SpillCounters) -> &Counter;

impl SpillCounters {
    /// Adds what serverStatus shows.
    pub fn add_metrics(self: &Arc<Self>, tree: &mut MetricTree) -> Result<()> {
        let rows: [(&str, Read); 12] = [
            ("sort.spillToDisk", |counters| &counters.sort_spills),
            ("sort.spillToDiskBytes", |counters| &counters.sort_spilled_bytes),
            ("sort.totalKeysSorted", |counters| &counters.sorted_keys),
            ("sort.totalBytesSorted", |counters| &counters.sorted_bytes),
            ("group.spills", |counters| &counters.group_spills),
            ("group.spilledBytes", |counters| &counters.group_spilled_bytes),
            ("group.spilledRecords", |counters| &counters.group_spilled_records),
            ("group.spilledDataStorageSize", |counters| &counters.group_spilled_storage_bytes),
            ("setWindowFields.spills", |counters| &counters.window_spills),
            ("setWindowFields.spilledBytes", |counters| &counters.window_spilled_bytes),
            ("setWindowFields.spilledRecords", |counters| &counters.window_spilled_records),
            ("setWindowFields.spilledDataStorageSize", |counters| &counters.window_spilled_storage_bytes),
        ];
        for (name, read) in rows {
            let counters = Arc::clone(self);
            let value = move || pando_base::MetricValue::Long(read(&counters).get() as i64);
            tree.add(&format!("metrics.query.{name}"), Arc::new(value))?;
        }
        Ok(())
    }

    /// Counts a sort that is over.
    pub(crate) fn sorted(&self, operation: &Operation, statistics: &SpillStatistics) {
        note_sorted(operation, statistics);
        self.sort_spills.add(statistics.spills);
        self.sort_spilled_bytes.add(statistics.spilled_storage_bytes);
        self.sorted_keys.add(statistics.entries);
        self.sorted_bytes.add(statistics.data_bytes);
    }

    /// Counts a group that is over.
    pub(crate) fn grouped(&self, operation: &Operation, statistics: &SpillStatistics) {
        if statistics.spills > 0 {
            // Groups are sorted only when they go to disk.
            let sorted = SpillStatistics { entries: statistics.spilled_entries, ..*statistics };
            note_sorted(operation, &sorted);
        }
        self.group_spills.add(statistics.spills);
        self.group_spilled_bytes.add(statistics.spilled_memory_bytes);
        self.group_spilled_records.add(statistics.spilled_entries);
        self.group_spilled_storage_bytes.add(statistics.spilled_storage_bytes);
    }

    /// Counts a partition of windows that is over.
    pub(crate) fn windowed(&self, statistics: &SpillStatistics) {
        self.window_spills.add(statistics.spills);
        self.window_spilled_bytes.add(statistics.spilled_memory_bytes);
        self.window_spilled_records.add(statistics.spilled_entries);
        self.window_spilled_storage_bytes.add(statistics.spilled_storage_bytes);
    }
}

/// Accounts for a sort that is over, if anybody does.
pub(crate) fn note_sorted(operation: &Operation, statistics: &SpillStatistics) {
    if let Some(meter) = operation.context.meter() {
        meter.sorted(statistics.entries, statistics.spills);
    }
}

/// What the stages of a node share.
pub struct Spilling {
    parameters: Arc<ParameterSet>,
    directory: Option<Arc<SpillDirectory>>,
    counters: Arc<SpillCounters>,
    held: Arc<HeldByNode>,
}

impl Spilling {
    /// Into this directory, if there is one.
    pub fn new(parameters: &Arc<ParameterSet>, directory: Option<Arc<SpillDirectory>>) -> Spilling {
        Spilling { parameters: Arc::clone(parameters), directory, counters: Arc::default(), held: Arc::default() }
    }

    /// What the stages of all requests hold.
    pub fn held(&self) -> &Arc<HeldByNode> {
        &self.held
    }

    /// What was spilled.
    pub fn counters(&self) -> &Arc<SpillCounters> {
        &self.counters
    }

    /// What a stage may take, as the parameters say. `allow_disk_use` is what the client said.
    pub fn resources(&self, allow_disk_use: Option<bool>) -> StageResources {
        let bytes = |parameter: &'static Parameter<i64>| u64::try_from(self.parameters.get(parameter)).unwrap_or(0);
        let is_joined = !self.parameters.get(&HASH_LOOKUP_OFF);
        let is_allowed = allow_disk_use.unwrap_or_else(|| self.parameters.get(&ALLOW_DISK_USE_BY_DEFAULT));
        StageResources {
            sort_memory_bytes_max: bytes(&SORT_MEMORY_BYTES_MAX),
            group_memory_bytes_max: bytes(&GROUP_MEMORY_BYTES_MAX).min(bytes(&HASH_AGGREGATION_BYTES_MAX)),
            window_memory_bytes_max: bytes(&WINDOW_MEMORY_BYTES_MAX),
            join_memory_bytes_max: if is_joined { bytes(&HASH_LOOKUP_BYTES_MAX) } else { 0 },
            densified_documents_max: u64::try_from(self.parameters.get(&DENSIFIED_DOCUMENTS_MAX)).unwrap_or(0),
            densify_memory_bytes_max: bytes(&DENSIFY_MEMORY_BYTES_MAX),
            account: Account::new(bytes(&HELD_BYTES_MAX), &self.held),
            stages_max: usize::try_from(self.parameters.get(&STAGES_MAX)).unwrap_or(usize::MAX),
            directory: self.directory.as_ref().filter(|_| is_allowed).cloned(),
            facet_buffer_bytes: u64::try_from(self.parameters.get(&FACET_BUFFER_BYTES)).unwrap_or(1),
            facet_output_bytes_max: bytes(&FACET_OUTPUT_BYTES_MAX),
            lookup_bytes_max: bytes(&LOOKUP_BYTES_MAX),
            free_bytes_min: bytes(&SPILL_FREE_BYTES_MIN),
            counters: Arc::clone(&self.counters),
        }
    }
}

/// What a stage may take.
#[derive(Clone)]
pub struct StageResources {
    /// Memory of a sort.
    pub sort_memory_bytes_max: u64,
    /// Memory of groups.
    pub group_memory_bytes_max: u64,
    /// Memory of what a `$densify` knows of its partitions.
    pub densify_memory_bytes_max: u64,
    /// Memory of windows.
    pub window_memory_bytes_max: u64,
    /// Memory of the other collection of a `$lookup`; none if it is not to be kept in memory.
    pub join_memory_bytes_max: u64,
    /// How many documents a `$densify` may make.
    pub densified_documents_max: u64,
    /// What all stages of the request hold.
    pub account: Arc<Account>,
    /// How many stages a pipeline may have.
    pub stages_max: usize,
    /// How much of its input a `$facet` takes in at a time.
    pub facet_buffer_bytes: u64,
    /// How large the document of a `$facet` may become.
    pub facet_output_bytes_max: u64,
    /// How large what a `$lookup` finds for one document may become.
    pub lookup_bytes_max: u64,
    /// Where it may write, if it may.
    pub directory: Option<Arc<SpillDirectory>>,
    free_bytes_min: u64,
    /// What is told of it afterwards.
    pub counters: Arc<SpillCounters>,
}

impl StageResources {
    /// A sorter with the memory of a sort.
    pub(crate) fn sorter<V: Spilled>(&self, limit: Option<u64>) -> Sorter<V> {
        Sorter::new(SorterOptions {
            memory_bytes_max: self.sort_memory_bytes_max,
            limit,
            directory: self.directory.clone(),
            purpose: "sort-executor",
            free_bytes_min: self.free_bytes_min,
            readers_memory_bytes_max: None,
            helper: None,
        })
    }

    /// Ranges for groups; none if the disk is not allowed.
    pub(crate) fn ranges<V: Spilled>(&self) -> Option<SpilledRanges<V>> {
        let directory = self.directory.as_ref()?;
        Some(SpilledRanges::new(Arc::clone(directory), "doc-group", self.free_bytes_min))
    }

    /// A list for the documents of a partition.
    pub(crate) fn list<V: Spilled + Clone>(&self) -> SpilledList<V> {
        SpilledList::new(self.directory.clone(), "window", self.window_memory_bytes_max, self.free_bytes_min)
    }
}

/// A document on its way through a sorter.
#[derive(Clone)]
pub(crate) struct SpilledDocument(pub(crate) Doc);

impl Spilled for SpilledDocument {
    fn memory_bytes(&self) -> usize {
        self.0.size_bytes() + size_of::<Doc>()
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.0.bytes());
    }

    fn read(bytes: &[u8]) -> Option<SpilledDocument> {
        Some(SpilledDocument(Doc::trusted(bytes.to_vec())))
    }
}

/// A document with the value that it is sorted by.
pub(crate) struct KeyedDocument {
    pub(crate) key: OwnedValue,
    pub(crate) document: Doc,
}

impl Spilled for KeyedDocument {
    fn memory_bytes(&self) -> usize {
        self.document.size_bytes() + size_of::<KeyedDocument>()
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(doc! { "k": &self.key, "d": &self.document }.bytes());
    }

    fn read(bytes: &[u8]) -> Option<KeyedDocument> {
        let both = Doc::trusted(bytes.to_vec());
        let (key, Value::Document(document)) = (both.get("k")?.to_owned(), both.get("d")?) else { return None };
        Some(KeyedDocument { key, document: document.to_doc() })
    }
}

/// Appends a record id: its kind, then what it is.
pub(crate) fn write_record_id(id: Option<&RecordId>, out: &mut Vec<u8>) {
    match id {
        None => out.push(0),
        Some(RecordId::Long(number)) => {
            out.push(1);
            out.extend_from_slice(&number.to_le_bytes());
        }
        Some(RecordId::Bytes(bytes)) => {
            out.push(2);
            out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            out.extend_from_slice(bytes);
        }
    }
}

/// Takes a record id off a slice.
pub(crate) fn read_record_id(rest: &mut &[u8]) -> Option<Option<RecordId>> {
    let (kind, behind) = rest.split_first()?;
    *rest = behind;
    match kind {
        0 => Some(None),
        1 => Some(Some(RecordId::Long(i64::from_le_bytes(take(rest)?)))),
        2 => {
            let length = u32::from_le_bytes(take(rest)?) as usize;
            let (bytes, behind) = rest.split_at_checked(length)?;
            *rest = behind;
            Some(Some(RecordId::Bytes(Box::from(bytes))))
        }
        _ => None,
    }
}

/// Takes so many bytes off a slice.
pub(crate) fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (bytes, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(*bytes)
}
