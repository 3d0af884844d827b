//! The meta value of a measurement: what tells its source.

use crate::TimeseriesOptions;
use pando_doc::{ArrayBuilder, Doc, DocBuilder, DocRef, OwnedValue, RawElement, Value};

/// The meta value of a measurement, if the collection has a meta field and the measurement has a value.
pub fn measurement_meta<'a>(measurement: DocRef<'a>, options: &TimeseriesOptions) -> Option<RawElement<'a>> {
    measurement.get_raw(options.meta_field.as_deref()?)
}

/// The value with the fields of documents in the order of their names: so sources that differ in that only are one.
pub fn normalized(value: Value<'_>) -> OwnedValue {
    match value {
        Value::Document(doc) => OwnedValue::Document(normalized_document(doc)),
        Value::Array(array) => {
            let mut out = ArrayBuilder::new();
            array.values().for_each(|value| out.push(normalized(value).view()));
            OwnedValue::Array(out.finish())
        }
        other => other.to_owned(),
    }
}

fn normalized_document(doc: DocRef<'_>) -> Doc {
    let mut elements: Vec<_> = doc.elements().collect();
    elements.sort_by(|left, right| left.name.cmp(right.name));
    let mut out = DocBuilder::with_capacity(doc.size_bytes());
    for element in elements {
        out.append(element.name, normalized(element.value).view());
    }
    out.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::doc;

    #[test]
    fn x29_the_order_of_fields_does_not_tell_sources_apart() {
        let one = doc! { "m": { "b": 1, "a": [{ "d": 1, "c": 2 }] } };
        let other = doc! { "m": { "a": [{ "c": 2, "d": 1 }], "b": 1 } };
        let meta = |doc: &Doc| normalized(doc.get("m").unwrap());
        assert_eq!(meta(&one), meta(&other));
        assert_eq!(meta(&other).view(), other.get("m").unwrap());
    }
}
