//! Does every index say what the documents say?
//!
//! For tests and for whoever doubts: it reads the whole collection and every index and keeps all keys in memory. `validate`
//! will do the same within bounds.

use pando_base::{RecordId, Result};
use pando_catalog::{Collection, Index, MultikeyComponents};
use pando_doc::DocRef;
use pando_index::{IndexAccess, Indexing, KeySet};
use pando_keystring::{Version, to_doc};
use pando_operation::Operation;
use pando_storage::Direction;
use std::collections::BTreeMap;

/// Key and record id, and the type bits behind them.
type Entries = BTreeMap<(Vec<u8>, RecordId), Vec<u8>>;

/// What is wrong, one line each; nothing if the ready indexes have exactly the documents' keys, their multikey state covers
/// them, uniqueness holds, and the counts are right. Counts are looked at only outside a unit of work, since they are of
/// the newest commit.
pub fn check_indexes(operation: &mut Operation, indexing: &Indexing, collection: &Collection) -> Result<Vec<String>> {
    let mut faults = check_counts(operation, collection)?;
    for index in collection.indexes.iter().filter(|index| index.ready) {
        let access = indexing.access(index)?;
        let expected = expected_entries(operation, collection, index, &access, &mut faults)?;
        let found = found_entries(operation, index)?;
        compare(index, &access, &expected, &found, &mut faults);
        check_unique(index, &found, &mut faults);
    }
    Ok(faults)
}

fn check_counts(operation: &mut Operation, collection: &Collection) -> Result<Vec<String>> {
    let (mut records, mut bytes, mut faults) = (0, 0, Vec::new());
    let mut cursor = collection.records.cursor(Direction::Forward);
    while let Some(record) = cursor.next(&mut operation.recovery_unit)? {
        records += 1;
        bytes += record.value.len() as i64;
        if let Err(error) = DocRef::parse(record.value) {
            faults.push(format!("{:?} is no document: {error}", record.id));
        }
    }
    if operation.recovery_unit.in_unit_of_work() {
        return Ok(faults);
    }
    let counted = (collection.records.num_records()?, collection.records.data_size_bytes()?);
    if counted != (records, bytes) {
        faults.push(format!("counts are {counted:?}, there are {:?}", (records, bytes)));
    }
    Ok(faults)
}

fn expected_entries(
    operation: &mut Operation,
    collection: &Collection,
    index: &Index,
    access: &IndexAccess,
    faults: &mut Vec<String>,
) -> Result<Entries> {
    let mut entries = Entries::new();
    let mut keys = KeySet::new();
    let mut cursor = collection.records.cursor(Direction::Forward);
    while let Some(record) = cursor.next(&mut operation.recovery_unit)? {
        if let Err(error) = access.keys(DocRef::trusted(record.value), &mut keys) {
            faults.push(format!("{}: {:?} cannot be indexed: {error}", index.name(), record.id));
        }
        let paths: &[MultikeyComponents] = keys.multikey_paths();
        if keys.is_multikey() && !index.multikey.covers(paths) {
            faults.push(format!("{}: {:?} makes it multikey, which is not known", index.name(), record.id));
        }
        for key in keys.iter() {
            entries.insert((key.bytes.to_vec(), record.id.clone()), key.type_bits.to_vec());
        }
    }
    Ok(entries)
}

fn found_entries(operation: &mut Operation, index: &Index) -> Result<Entries> {
    let mut entries = Entries::new();
    let mut cursor = index.data.cursor(Direction::Forward);
    while let Some(entry) = cursor.next(&mut operation.recovery_unit)? {
        entries.insert((entry.key.to_vec(), entry.record_id), entry.type_bits.to_vec());
    }
    Ok(entries)
}

fn compare(index: &Index, access: &IndexAccess, expected: &Entries, found: &Entries, faults: &mut Vec<String>) {
    let ordering = access.generator().ordering();
    let mut tell = |what: &str, (key, record_id): &(Vec<u8>, RecordId), type_bits: &[u8]| {
        let values =
            to_doc(key, ordering, type_bits, Version::V1).map_or_else(|e| e.to_string(), |doc| doc.to_string());
        faults.push(format!("{}: {what} {values} of {record_id:?}", index.name()));
    };
    for (entry, type_bits) in expected {
        match found.get(entry) {
            None => tell("misses", entry, type_bits),
            Some(other) if other != type_bits => tell("has other types than", entry, type_bits),
            Some(_) => {}
        }
    }
    found.iter().filter(|(entry, _)| !expected.contains_key(*entry)).for_each(|(entry, bits)| {
        tell("has too much:", entry, bits);
    });
}

fn check_unique(index: &Index, found: &Entries, faults: &mut Vec<String>) {
    if !(index.descriptor.unique || index.descriptor.is_id_index()) {
        return;
    }
    let shared = found.keys().zip(found.keys().skip(1)).filter(|(first, second)| first.0 == second.0);
    faults.extend(
        shared.map(|(first, second)| format!("{}: {:?} and {:?} share a key", index.name(), first.1, second.1)),
    );
}
