//! What operations take of storage and processor, per operation and summed up by database.
//!
//! Off by default. With one of the two switches on, a command of [`MEASURED`] on a database of the users' gets a meter when it
//! begins ([`begin`]); what it took is told with the operation, and, if sums are wanted, added to its database's when it ends.
//! Only commands of clients count, not those of other members, nor what the server does by itself.
//!
//! Sums stay until somebody clears them, also those of databases that were dropped. Their lock is a leaf.

use crate::{Counters, Invocation};
use pando_base::{
    AnyParameter, DatabaseName, OperationContext, Parameter, ParameterSet, ReadResources, ResourceMeter, ResourceUse,
    Settable, UnitSizes, Units, WriteResources,
};
use pando_doc::{Doc, DocBuilder, Value};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

static AGGREGATE: Parameter<bool> = Parameter::new(
    "aggregateOperationResourceConsumptionMetrics",
    false,
    "Sums up by database what operations take of storage and processor; $operationMetrics shows it.",
)
.settable(Settable::AtStartup);

static PROFILE: Parameter<bool> = Parameter::new(
    "profileOperationResourceConsumptionMetrics",
    false,
    "Tells with each operation that is logged or profiled what it took of storage and processor.",
)
.settable(Settable::AtStartup);

static DOCUMENT_UNIT_BYTES: Parameter<i32> =
    Parameter::new("documentUnitSizeBytes", 128, "How many bytes of a document make a unit, where units are counted.")
        .at_least(1)
        .settable(Settable::AtStartup);

static INDEX_ENTRY_UNIT_BYTES: Parameter<i32> = Parameter::new(
    "indexEntryUnitSizeBytes",
    16,
    "How many bytes of an index entry make a unit, where units are counted.",
)
.at_least(1)
.settable(Settable::AtStartup);

static TOTAL_UNIT_WRITE_BYTES: Parameter<i32> = Parameter::new(
    "totalUnitWriteSizeBytes",
    128,
    "How many bytes of a document that is written, its index entries included, make a unit.",
)
.at_least(1)
.settable(Settable::AtStartup);

/// The parameters of this file.
pub static PARAMETERS: &[&dyn AnyParameter] =
    &[&AGGREGATE, &PROFILE, &DOCUMENT_UNIT_BYTES, &INDEX_ENTRY_UNIT_BYTES, &TOTAL_UNIT_WRITE_BYTES];

/// The commands that are measured.
const MEASURED: &[&str] = &[
    "abortTransaction",
    "aggregate",
    "collMod",
    "commitTransaction",
    "convertToCapped",
    "count",
    "create",
    "createIndexes",
    "delete",
    "distinct",
    "drop",
    "dropDatabase",
    "dropIndexes",
    "explain",
    "filemd5",
    "find",
    "findAndModify",
    "getMore",
    "insert",
    "listCollections",
    "listIndexes",
    "renameCollection",
    "update",
];

/// Are sums by database wanted?
pub(crate) fn are_summed(parameters: &ParameterSet) -> bool {
    parameters.get(&AGGREGATE)
}

/// An operation begins: it gets a meter if it is to be measured.
pub(super) fn begin(invocation: &Invocation) {
    let parameters = &invocation.node.parameters;
    if !parameters.get(&AGGREGATE) && !parameters.get(&PROFILE) {
        return;
    }
    if invocation.connection.is_internal() || !MEASURED.contains(&invocation.row.name) {
        return;
    }
    if let Some(meter) = meter_for(parameters, &invocation.database) {
        invocation.context.measure_resources(meter);
    }
}

/// A meter for an operation on this database, if such are to be measured.
pub(crate) fn meter_for(parameters: &ParameterSet, database: &DatabaseName) -> Option<Arc<ResourceMeter>> {
    let is_of_users = !matches!(database.as_str(), "admin" | "config" | "local");
    if !is_of_users || !(parameters.get(&AGGREGATE) || parameters.get(&PROFILE)) {
        return None;
    }
    let size = |parameter| u64::try_from(parameters.get(parameter)).unwrap_or(1);
    let sizes = UnitSizes {
        document_bytes: size(&DOCUMENT_UNIT_BYTES),
        index_entry_bytes: size(&INDEX_ENTRY_UNIT_BYTES),
        total_write_bytes: size(&TOTAL_UNIT_WRITE_BYTES),
    };
    Some(Arc::new(ResourceMeter::new(sizes)))
}

/// An operation is over: what it took is added to its database's.
pub(super) fn end(invocation: &Invocation) {
    let node = &invocation.node;
    if invocation.context.meter().is_some() {
        let is_primary = node.data.as_ref().is_none_or(|data| data.replication.is_writable_primary());
        account(&node.counters, &node.parameters, &invocation.context, &invocation.database, is_primary);
    }
}

/// Adds what an operation took to its database's, if it was measured and sums are wanted.
pub(crate) fn account(
    counters: &Counters,
    parameters: &ParameterSet,
    context: &OperationContext,
    database: &DatabaseName,
    is_primary: bool,
) {
    if let Some(meter) = context.meter().filter(|_| are_summed(parameters)) {
        let processor_ns = context.statistics().processor_ns.get();
        counters.resources.add(database.as_str(), &meter.used(), processor_ns, is_primary);
    }
}

/// What the operation of an invocation took so far, all of it or only what is not zero; none if it is not measured.
pub(crate) fn of_operation(invocation: &Invocation, with_zeros: bool) -> Option<Doc> {
    let used = invocation.context.meter()?.used();
    let processor_ns = invocation.context.statistics().processor_ns.get();
    let mut out = DocBuilder::new();
    let rows = read_rows(&used.read).into_iter().chain(write_rows(&used.written)).chain([("cpuNanos", processor_ns)]);
    rows.filter(|(_, count)| with_zeros || *count > 0).for_each(|(name, count)| out.append(name, long(count)));
    Some(out.finish())
}

fn read_rows(read: &ReadResources) -> [(&'static str, u64); 8] {
    let ReadResources { documents, index_entries, returned, keys_sorted, sorter_spills, cursor_seeks } = read;
    [
        ("docBytesRead", documents.bytes),
        ("docUnitsRead", documents.units),
        ("idxEntryBytesRead", index_entries.bytes),
        ("idxEntryUnitsRead", index_entries.units),
        ("keysSorted", *keys_sorted),
        ("sorterSpills", *sorter_spills),
        ("docUnitsReturned", returned.units),
        ("cursorSeeks", *cursor_seeks),
    ]
}

fn write_rows(written: &WriteResources) -> [(&'static str, u64); 5] {
    let WriteResources { documents: Units { bytes, units }, index_entries, total_units } = written;
    [
        ("docBytesWritten", *bytes),
        ("docUnitsWritten", *units),
        ("idxEntryBytesWritten", index_entries.bytes),
        ("idxEntryUnitsWritten", index_entries.units),
        ("totalUnitsWritten", *total_units),
    ]
}

fn long(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// What the operations on one database took.
#[derive(Clone, Debug, Default)]
struct Sum {
    read_as_primary: ReadResources,
    read_as_secondary: ReadResources,
    written: WriteResources,
    processor_ns: u64,
}

impl Sum {
    fn document(&self, database: &str, now_ms: i64) -> Doc {
        let mut out = DocBuilder::new();
        out.append("db", database);
        out.append("localTime", Value::DateTime(now_ms));
        for (name, read) in [("primaryMetrics", &self.read_as_primary), ("secondaryMetrics", &self.read_as_secondary)] {
            out.document(name, |out| {
                read_rows(read).into_iter().for_each(|(name, count)| out.append(name, long(count)));
            });
        }
        write_rows(&self.written).into_iter().for_each(|(name, count)| out.append(name, long(count)));
        out.append("cpuNanos", long(self.processor_ns));
        out.finish()
    }
}

#[derive(Debug, Default)]
struct Sums {
    by_database: BTreeMap<String, Sum>,
    processor_ns: u64,
}

/// What operations took, by database.
#[derive(Debug, Default)]
pub struct ResourceTotals(Mutex<Sums>);

impl ResourceTotals {
    fn add(&self, database: &str, used: &ResourceUse, processor_ns: u64, is_primary: bool) {
        let mut sums = self.0.lock();
        sums.processor_ns = sums.processor_ns.saturating_add(processor_ns);
        if !sums.by_database.contains_key(database) {
            sums.by_database.insert(database.to_owned(), Sum::default());
        }
        let Some(sum) = sums.by_database.get_mut(database) else { return };
        let read = if is_primary { &mut sum.read_as_primary } else { &mut sum.read_as_secondary };
        read.add(&used.read);
        sum.written.add(&used.written);
        sum.processor_ns = sum.processor_ns.saturating_add(processor_ns);
    }

    /// One document a database, in the order of their names; then, if so wanted, all of it is forgotten.
    pub(crate) fn documents(&self, now_ms: i64, clear: bool) -> Vec<Doc> {
        let by_database = {
            let mut sums = self.0.lock();
            if clear { std::mem::take(&mut sums.by_database) } else { sums.by_database.clone() }
        };
        by_database.iter().map(|(database, sum)| sum.document(database, now_ms)).collect()
    }

    /// The section `resourceConsumption` of serverStatus.
    pub(crate) fn append_section(&self, section: &mut DocBuilder) {
        let sums = self.0.lock();
        let count = sums.by_database.len();
        section.append("cpuNanos", long(sums.processor_ns));
        section.append("memUsage", long((count * size_of::<Sum>()) as u64));
        section.append("numMetrics", long(count as u64));
    }
}
