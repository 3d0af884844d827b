//! Indexes of buckets as indexes of measurements.

use pando_doc::{Doc, DocBuilder, DocRef, Value};
use pando_timeseries::{TimeseriesOptions, index_keys};

/// The specification on measurements for one on buckets; none if it is not one of ours.
pub fn measurements_index(specification: DocRef<'_>, options: &TimeseriesOptions) -> Option<Doc> {
    if let Some(Value::Document(original)) = specification.get("originalSpec") {
        return Some(original.to_doc());
    }
    let Some(Value::Document(key)) = specification.get("key") else { return None };
    let key = index_keys::measurements_key(key, options)?;
    let mut out = DocBuilder::new();
    for element in specification.elements() {
        match element.name == "key" {
            true => out.append("key", &key),
            false => out.append_element(element),
        }
    }
    Some(out.finish())
}
