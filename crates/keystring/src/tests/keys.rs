//! Builders, finished keys and their components.

use super::values::value;
use crate::{
    Builder, Discriminator, Error, HeapBuilder, KeyBuffer, KeyOrdering, PooledBuilder, RecordIdKind, StackBuilder,
    Version, component_count, components, discriminator, key_size, prefix_size, to_doc,
};
use bstr::BStr;
use pando_base::RecordId;
use pando_doc::Doc;
use pando_doc::{Collator, OwnedValue, StringComparator, Value, compare, doc};
use proptest::collection::vec;
use proptest::prelude::*;
use std::cmp::Ordering;

const ORDERING: KeyOrdering = KeyOrdering::from_bits(0b10);

fn fill<B: KeyBuffer>(builder: &mut Builder<B>, values: &[OwnedValue], id: &RecordId) {
    for value in values {
        builder.append(value.view()).unwrap();
    }
    builder.finish(Discriminator::Inclusive);
    builder.append_record_id(id);
}

proptest! {
    #![proptest_config(super::cases(300))]

    #[test]
    fn x12_all_builders_write_the_same(keys in vec(vec(value(), 0..4), 1..6)) {
        let mut stack = StackBuilder::new(Version::V1, ORDERING);
        let mut pooled = PooledBuilder::new(Version::V1, ORDERING, 256);
        let mut kept = Vec::new();
        for (number, values) in keys.iter().enumerate() {
            let id = RecordId::Long(number as i64);
            stack.reset(ORDERING);
            fill(&mut stack, values, &id);
            let mut heap = HeapBuilder::new(Version::V1, ORDERING);
            fill(&mut heap, values, &id);
            fill(&mut pooled, values, &id);
            kept.push((stack.to_key_string(), heap.into_key_string(), pooled.take_key_string()));
        }
        // Blocks are shared, so look again when all are written.
        for ((number, values), (stack, heap, pooled)) in keys.iter().enumerate().zip(&kept) {
            for key in [stack, heap, pooled] {
                prop_assert_eq!((key.bytes(), key.type_bits()), (stack.bytes(), stack.type_bits()));
                prop_assert_eq!(key.record_id(RecordIdKind::Long), Ok(Some(RecordId::Long(number as i64))));
                prop_assert_eq!(key.bytes().len(), key.size_without_record_id() + 8);
                let restored = key.to_doc(ORDERING).unwrap();
                prop_assert_eq!(restored.elements().count(), values.len());
                prop_assert!(restored.elements().all(|element| element.name.is_empty()));
            }
        }
    }

    #[test]
    fn x12_components_are_found_without_type_bits(values in vec(value(), 0..4), bits in 0..16_u32) {
        let ordering = KeyOrdering::from_bits(bits);
        let mut builder = StackBuilder::new(Version::V1, ordering);
        let mut ends = vec![0];
        for value in &values {
            builder.append(value.view()).unwrap();
            ends.push(builder.bytes().len());
        }
        builder.finish(Discriminator::Inclusive);
        let size = builder.bytes().len();
        builder.append_record_id(&RecordId::Long(77));
        let key = builder.bytes();
        prop_assert_eq!(key_size(key, ordering, Version::V1), Ok(size));
        prop_assert_eq!(component_count(key, ordering, Version::V1), Ok(values.len()));
        for (count, end) in ends.iter().enumerate() {
            prop_assert_eq!(prefix_size(key, ordering, Version::V1, count), Ok(*end));
        }
        let mut copy = StackBuilder::new(Version::V1, ordering);
        for component in components(key, ordering, Version::V1) {
            copy.append_component(component.unwrap());
        }
        copy.finish(Discriminator::Inclusive);
        prop_assert_eq!(copy.bytes(), &key[..size]);
    }
}

#[test]
fn x12_a_document_becomes_a_key() {
    let mut builder = StackBuilder::new(Version::V1, KeyOrdering::ASCENDING);
    let values = doc! { "": 1.0, "x": "a" };
    for end in [Discriminator::ExclusiveBefore, Discriminator::ExclusiveAfter, Discriminator::Inclusive] {
        builder.reset_to_key(values.view(), KeyOrdering::ASCENDING, end).unwrap();
        assert_eq!(discriminator(builder.bytes(), KeyOrdering::ASCENDING, Version::V1), Ok(end));
        let restored =
            to_doc(builder.bytes(), KeyOrdering::ASCENDING, &builder.encoded_type_bits(), Version::V1).unwrap();
        assert_eq!(restored, doc! { "": 1.0, "": "a" });
    }
    assert_eq!(builder.to_key_string().to_string(), "2B023C610004");
}

/// Case does not matter to this one.
struct Folding;

impl StringComparator for Folding {
    fn compare(&self, left: &BStr, right: &BStr) -> Ordering {
        self.sort_key(left).cmp(&self.sort_key(right))
    }

    fn equality_key(&self, text: &BStr) -> Vec<u8> {
        self.sort_key(text)
    }
}

impl Collator for Folding {
    fn sort_key(&self, text: &BStr) -> Vec<u8> {
        text.to_ascii_uppercase()
    }

    fn specification(&self) -> &Doc {
        static NONE: std::sync::LazyLock<Doc> = std::sync::LazyLock::new(Doc::new);
        &NONE
    }
}

#[test]
fn x12_collators_replace_strings_at_any_depth() {
    let key = |value: Value<'_>| {
        let mut builder = StackBuilder::new(Version::V1, KeyOrdering::ASCENDING);
        builder.append_collated(value, &Folding).unwrap();
        builder.bytes().to_vec()
    };
    assert_eq!(key(Value::String("aB".into())), b"\x3cAB\0");
    let (left, right) = (doc! { "a": ["x", { "b": "y" }] }, doc! { "a": ["X", { "b": "Y" }] });
    assert!(compare(Value::Document(left.view()), Value::Document(right.view())).is_ne());
    assert_eq!(key(Value::Document(left.view())), key(Value::Document(right.view())));
    // Code and its scope are not text.
    let scoped = doc! { "b": "y" };
    let code = key(Value::CodeWithScope { code: "x".into(), scope: scoped.view() });
    assert_eq!(code, b"\xaax\0\x3cb\0\x3cy\0\0");
    let mut builder = StackBuilder::new(Version::V1, KeyOrdering::ASCENDING);
    assert_eq!(builder.append_collated(Value::Symbol("a".into()), &Folding), Err(Error::SymbolWithCollation));
}
