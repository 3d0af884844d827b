//! Index keys: values to keys and back, the order of the bytes, and bytes that are no key. The first byte chooses the
//! directions of the components.

use pando_doc::{DocRef, Limits, Value, compare};
use pando_keystring::{Discriminator, HeapBuilder, KeyOrdering, KeyString, Version, components, to_values};
use std::cmp::Ordering;

/// How many fields of a document are taken as a key.
const COMPONENTS_MAX: usize = 8;

/// Reads the bytes as a key, and as two documents whose fields become keys.
pub fn fuzz_keystring(bytes: &[u8]) {
    let Some((directions, bytes)) = bytes.split_first() else {
        return;
    };
    let ordering = KeyOrdering::from_bits(u32::from(*directions));
    read(bytes, ordering);
    let Ok((one, rest)) = DocRef::parse_prefix(bytes, &Limits::default()) else {
        return;
    };
    if !has_plain_arrays(one) {
        return;
    }
    let one = values(one);
    let Some(key) = key(&one, ordering) else {
        return;
    };
    gives_back(&key, &one, ordering);
    if let Ok((other, _)) = DocRef::parse_prefix(rest, &Limits::default())
        && has_plain_arrays(other)
    {
        keeps_order(&one, &values(other), ordering);
    }
}

/// Bytes from a damaged disk: any answer but a panic.
fn read(bytes: &[u8], ordering: KeyOrdering) {
    let (key, type_bits) = bytes.split_at(bytes.len() / 2);
    for version in [Version::V0, Version::V1] {
        drop(to_values(key, ordering, type_bits, version));
        drop(to_values(bytes, ordering, &[], version));
        components(bytes, ordering, version).for_each(drop);
    }
}

/// A key does not keep the names in an array, while the order of values looks at them; so does MongoDB. They agree on
/// arrays whose names are their indexes.
fn has_plain_arrays(document: DocRef<'_>) -> bool {
    document.elements().all(|element| match element.value {
        Value::Document(inner) | Value::CodeWithScope { scope: inner, .. } => has_plain_arrays(inner),
        Value::Array(inner) => {
            let names = inner.as_doc().elements().map(|element| element.name);
            names.enumerate().all(|(index, name)| index.to_string().as_bytes() == &name[..])
                && has_plain_arrays(inner.as_doc())
        }
        _ => true,
    })
}

fn values(document: DocRef<'_>) -> Vec<Value<'_>> {
    document.elements().take(COMPONENTS_MAX).map(|element| element.value).collect()
}

fn key(values: &[Value<'_>], ordering: KeyOrdering) -> Option<KeyString> {
    let mut builder = HeapBuilder::new(Version::V1, ordering);
    values.iter().try_for_each(|value| builder.append(*value)).ok()?;
    builder.finish(Discriminator::Inclusive);
    Some(builder.into_key_string())
}

/// A key and its type bits give back values that compare equal.
fn gives_back(key: &KeyString, values: &[Value<'_>], ordering: KeyOrdering) {
    let back = to_values(key.bytes(), ordering, key.type_bits(), Version::V1).expect("our own key is one");
    assert_eq!(back.len(), values.len());
    for (value, back) in values.iter().zip(&back) {
        assert_eq!(compare(*value, back.view()), Ordering::Equal, "{value:?} came back as {back:?}");
    }
}

/// The order of the bytes is that of the values, component by component.
fn keeps_order(one: &[Value<'_>], other: &[Value<'_>], ordering: KeyOrdering) {
    let count = one.len().min(other.len());
    let (one, other) = (&one[..count], &other[..count]);
    let (Some(left), Some(right)) = (key(one, ordering), key(other, ordering)) else {
        return;
    };
    let by_value = one.iter().zip(other).enumerate().map(|(component, (left, right))| {
        let order = compare(*left, *right);
        if ordering.bits() >> component & 1 == 1 { order.reverse() } else { order }
    });
    let by_value = by_value.fold(Ordering::Equal, Ordering::then);
    assert_eq!(left.bytes().cmp(right.bytes()), by_value, "{one:?} and {other:?}");
}
