//! Writing a column.

use super::blocks::encode_stream;
use super::interleave::Interleaving;
use super::{COLUMN_SUBTYPE, Encoded};
use pando_doc::{DocRef, ValueType};

/// The column of these values, missing ones among them; none if a value cannot be in a column: the keys at both ends of the order,
/// and columns themselves.
pub fn encode(values: &[Option<Encoded<'_>>]) -> Option<Vec<u8>> {
    if values.iter().flatten().any(|value| !is_storable(*value)) {
        return None;
    }
    let mut out = Vec::with_capacity(64);
    let mut at = 0;
    while at < values.len() {
        let rest = values.get(at..).unwrap_or_default();
        at += match interleaving(rest) {
            Some((documents, count)) => {
                documents.write(&mut out);
                count
            }
            None => {
                let count = rest.iter().skip(1).take_while(|value| !starts_documents(**value)).count() + 1;
                let plain = rest.get(..count).unwrap_or_default();
                encode_stream(plain, None).iter().for_each(|block| out.extend_from_slice(&block.bytes));
                count
            }
        };
    }
    out.push(0);
    Some(out)
}

fn document(value: Encoded<'_>) -> Option<DocRef<'_>> {
    matches!(value.value_type, ValueType::Document | ValueType::Array).then(|| DocRef::trusted(value.bytes))
}

fn starts_documents(value: Option<Encoded<'_>>) -> bool {
    value.is_some_and(|value| {
        document(value).and_then(|document| Interleaving::begin(value.value_type, document)).is_some()
    })
}

/// The documents at the start that go together, and how many values that are.
fn interleaving<'a>(values: &[Option<Encoded<'a>>]) -> Option<(Interleaving<'a>, usize)> {
    let first = (*values.first()?)?;
    let mut documents = Interleaving::begin(first.value_type, document(first)?)?;
    let mut count = 1;
    for value in values.iter().skip(1) {
        let fits = match value {
            None => documents.skip(),
            Some(value) => document(*value).is_some_and(|document| documents.take(value.value_type, document)),
        };
        if !fits {
            break;
        }
        count += 1;
    }
    Some((documents, count))
}

/// True if a column takes the value.
pub(crate) fn is_storable(value: Encoded<'_>) -> bool {
    match value.value_type {
        ValueType::MinKey | ValueType::MaxKey => false,
        ValueType::Binary => value.bytes.get(4) != Some(&COLUMN_SUBTYPE),
        ValueType::Document | ValueType::Array => DocRef::trusted(value.bytes)
            .raw_elements()
            .all(|element| is_storable(Encoded { value_type: element.value_type, bytes: element.value_bytes })),
        _ => true,
    }
}
