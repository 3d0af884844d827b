//! Does a version in memory say what the durable catalog does?

use crate::catalog::Catalog;
use crate::{Collection, IndexEntry};
use pando_base::Result;
use pando_operation::Operation;
use std::fmt::Display;

impl Catalog {
    /// What does not agree, one line each, in the operation's snapshot.
    pub fn metadata_faults(&self, operation: &mut Operation, collection: &Collection) -> Result<Vec<String>> {
        let mut faults = Vec::new();
        let entry = self.durable.get(&mut operation.recovery_unit, &collection.catalog_id)?;
        let Some(entry) = entry else {
            faults.push(format!("the durable catalog has no entry of {}", collection.namespace));
            return Ok(faults);
        };
        compare(&mut faults, "namespace", &entry.namespace, &collection.namespace);
        compare(&mut faults, "ident", &entry.ident, &collection.ident());
        match entry.uuid() {
            Some(uuid) => compare(&mut faults, "UUID", &uuid, &collection.uuid),
            None => faults.push("UUID missing on collection.".to_owned()),
        }
        compare(&mut faults, "options", &entry.options.to_doc(), &collection.options.to_doc());
        compare(&mut faults, "number of indexes", &entry.indexes.len(), &collection.indexes.len());
        for index in &entry.indexes {
            check_index(&mut faults, collection, index);
        }
        Ok(faults)
    }
}

fn check_index(faults: &mut Vec<String>, collection: &Collection, entry: &IndexEntry) {
    let name = entry.name();
    let Some(index) = collection.index(name) else {
        faults.push(format!("the index '{name}' is in the durable catalog alone"));
        return;
    };
    compare(faults, &format!("ident of index '{name}'"), &entry.ident, &index.ident());
    compare(faults, &format!("readiness of index '{name}'"), &entry.ready, &index.ready);
    compare(faults, &format!("index '{name}'"), &entry.specification, &index.descriptor.specification);
    if !entry.multikey && entry.multikey_paths.iter().any(|components| !components.is_empty()) {
        faults.push(format!("The 'multikey' field for index {name} was false with non-empty 'multikeyPaths'"));
    }
}

fn compare<S: Display, C: Display>(faults: &mut Vec<String>, what: &str, stored: &S, cached: &C) {
    let (stored, cached) = (stored.to_string(), cached.to_string());
    if stored != cached {
        faults.push(format!("stored value for {what} does not match cached value: {stored} != {cached}"));
    }
}
