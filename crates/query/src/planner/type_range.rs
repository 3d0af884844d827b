//! The range of values that one type takes in the order of all values.

use super::Interval;
use bytes::Bytes;
use pando_base::Timestamp;
use pando_doc::{Array, Doc, ObjectId, OwnedCodeWithScope, OwnedRegex, OwnedValue, ValueType};

/// All values whose type shares the canonical place of this one: all numbers, strings with symbols.
pub(super) fn of_type(value_type: ValueType) -> Interval {
    let (end, end_inclusive) = greatest(value_type);
    Interval::new(least(value_type), true, end, end_inclusive)
}

/// All values that are strings or may have them inside.
pub(super) fn holding_strings() -> Interval {
    let (end, end_inclusive) = greatest(ValueType::Array);
    Interval::new(least(ValueType::String), true, end, end_inclusive)
}

/// The least value of the type; for numbers NaN.
pub(super) fn least(value_type: ValueType) -> OwnedValue {
    match value_type {
        ValueType::MinKey => OwnedValue::MinKey,
        ValueType::Undefined => OwnedValue::Undefined,
        ValueType::Null => OwnedValue::Null,
        ValueType::Double | ValueType::Int32 | ValueType::Int64 | ValueType::Decimal => OwnedValue::Double(f64::NAN),
        ValueType::String | ValueType::Symbol => OwnedValue::String(Bytes::new()),
        ValueType::Document => OwnedValue::Document(Doc::new()),
        ValueType::Array => OwnedValue::Array(Array::new()),
        ValueType::Binary => pando_doc::Value::Binary { subtype: 0, bytes: &[] }.to_owned(),
        ValueType::ObjectId => OwnedValue::ObjectId(ObjectId::from_bytes([0; 12])),
        ValueType::Bool => OwnedValue::Bool(false),
        ValueType::DateTime => OwnedValue::DateTime(i64::MIN),
        ValueType::Timestamp => OwnedValue::Timestamp(Timestamp(0)),
        ValueType::Regex => OwnedValue::Regex(Box::new(OwnedRegex { pattern: Bytes::new(), options: Bytes::new() })),
        ValueType::DbPointer => {
            let empty = bstr::BStr::new("");
            pando_doc::Value::DbPointer { namespace: empty, id: ObjectId::from_bytes([0; 12]) }.to_owned()
        }
        ValueType::Code => OwnedValue::Code(Bytes::new()),
        ValueType::CodeWithScope => {
            OwnedValue::CodeWithScope(Box::new(OwnedCodeWithScope { code: Bytes::new(), scope: Doc::new() }))
        }
        ValueType::MaxKey => OwnedValue::MaxKey,
    }
}

/// The greatest value of the type, or the least of the next type, which is left out.
pub(super) fn greatest(value_type: ValueType) -> (OwnedValue, bool) {
    match value_type {
        ValueType::Double | ValueType::Int32 | ValueType::Int64 | ValueType::Decimal => {
            (OwnedValue::Double(f64::INFINITY), true)
        }
        ValueType::String | ValueType::Symbol => (least(ValueType::Document), false),
        ValueType::Document => (least(ValueType::Array), false),
        ValueType::Array => (least(ValueType::Binary), false),
        ValueType::Binary => (least(ValueType::ObjectId), false),
        ValueType::ObjectId => (OwnedValue::ObjectId(ObjectId::from_bytes([u8::MAX; 12])), true),
        ValueType::Bool => (OwnedValue::Bool(true), true),
        ValueType::DateTime => (OwnedValue::DateTime(i64::MAX), true),
        ValueType::Timestamp => (OwnedValue::Timestamp(Timestamp(u64::MAX)), true),
        ValueType::Regex => (least(ValueType::DbPointer), false),
        ValueType::DbPointer => (least(ValueType::Code), false),
        ValueType::Code => (least(ValueType::CodeWithScope), false),
        ValueType::CodeWithScope => (OwnedValue::MaxKey, false),
        single @ (ValueType::MinKey | ValueType::Undefined | ValueType::Null | ValueType::MaxKey) => {
            (least(single), true)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::compare;

    #[test]
    fn the_ranges_of_types_follow_each_other() {
        let mut types = ValueType::ALL.to_vec();
        types.sort_by_key(|value_type| value_type.canonical_order());
        types.dedup_by_key(|value_type| value_type.canonical_order());
        for pair in types.windows(2) {
            let (first, second) = (of_type(pair[0]), of_type(pair[1]));
            let order = compare(first.end.view(), second.start.view());
            assert!(if first.end_inclusive { order.is_lt() } else { order.is_eq() }, "{} {}", pair[0], pair[1]);
        }
    }
}
