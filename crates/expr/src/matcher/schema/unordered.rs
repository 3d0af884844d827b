//! Values whose documents may have their fields in any order, as schemas compare.
//!
//! Two of them are equal if they are after their fields were put in order, at every depth. So each value is put in order once, and
//! then sorted and searched as any other: the cost does not grow with the square of how many there are.

use pando_base::operation;
use pando_doc::{ArrayBuilder, ArrayRef, DocBuilder, DocRef, Element, OwnedValue, Value, compare};

/// A value whose documents have their fields by name.
#[derive(Clone, Debug)]
enum Unordered<'a> {
    /// It holds no documents.
    Plain(Value<'a>),
    Sorted(OwnedValue),
}

impl<'a> Unordered<'a> {
    fn new(value: Value<'a>) -> Unordered<'a> {
        match value {
            Value::Document(document) => {
                let mut builder = DocBuilder::with_capacity(document.size_bytes());
                append_fields(&mut builder, document);
                Unordered::Sorted(OwnedValue::Document(builder.finish()))
            }
            Value::Array(array) => {
                let mut builder = ArrayBuilder::new();
                push_items(&mut builder, array);
                Unordered::Sorted(OwnedValue::Array(builder.finish()))
            }
            plain => Unordered::Plain(plain),
        }
    }

    fn view(&self) -> Value<'_> {
        match self {
            Unordered::Plain(value) => *value,
            Unordered::Sorted(value) => value.view(),
        }
    }
}

fn append_fields(builder: &mut DocBuilder, document: DocRef<'_>) {
    let mut fields: Vec<Element<'_>> = document.elements().collect();
    fields.sort_by_key(|field| field.name);
    for field in fields {
        operation::count(1);
        match field.value {
            Value::Document(nested) => builder.document(field.name, |builder| append_fields(builder, nested)),
            Value::Array(nested) => builder.array(field.name, |builder| push_items(builder, nested)),
            _ => builder.append_element(field),
        }
    }
}

fn push_items(builder: &mut ArrayBuilder, array: ArrayRef<'_>) {
    for item in array.values() {
        operation::count(1);
        match item {
            Value::Document(nested) => builder.document(|builder| append_fields(builder, nested)),
            Value::Array(nested) => builder.array(|builder| push_items(builder, nested)),
            _ => builder.push(item),
        }
    }
}

/// The first item that was there before.
pub(super) fn duplicate(array: ArrayRef<'_>) -> Option<Value<'_>> {
    let mut sorted: Vec<(usize, Value<'_>, Unordered<'_>)> =
        array.values().enumerate().map(|(place, item)| (place, item, Unordered::new(item))).collect();
    sorted.sort_by(|left, right| {
        operation::count(1);
        compare(left.2.view(), right.2.view()).then(left.0.cmp(&right.0))
    });
    let repeated = sorted.windows(2).filter_map(|pair| match pair {
        [left, right] if compare(left.2.view(), right.2.view()).is_eq() => Some((right.0, right.1)),
        _ => None,
    });
    repeated.min_by_key(|(place, _)| *place).map(|(_, value)| value)
}

/// Values to find others among.
#[derive(Clone, Debug)]
pub(super) struct UnorderedSet {
    sorted: Vec<OwnedValue>,
}

impl UnorderedSet {
    pub(super) fn new(array: ArrayRef<'_>) -> UnorderedSet {
        let mut sorted: Vec<OwnedValue> = array.values().map(|value| Unordered::new(value).view().to_owned()).collect();
        sorted.sort_by(|left, right| compare(left.view(), right.view()));
        UnorderedSet { sorted }
    }

    pub(super) fn contains(&self, value: Value<'_>) -> bool {
        let value = Unordered::new(value);
        self.sorted.binary_search_by(|known| compare(known.view(), value.view())).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::{Array, Doc, doc};

    fn items(documents: impl Iterator<Item = Doc>) -> Array {
        let mut builder = ArrayBuilder::new();
        documents.for_each(|document| builder.push(document));
        builder.finish()
    }

    #[test]
    fn u4_the_order_of_fields_does_not_tell_items_apart() {
        let nested = |a: i32, b: i32, is_turned: bool| match is_turned {
            false => doc! { "x": [doc! { "a": a, "b": b }], "y": 1 },
            true => doc! { "y": 1.0, "x": [doc! { "b": b, "a": a }] },
        };
        let twice = items([nested(1, 2, false), nested(2, 1, true), nested(1, 2, true)].into_iter());
        assert_eq!(duplicate(twice.view()), Some(Value::Document(nested(1, 2, true).view())));
        let once = items([nested(1, 2, false), nested(2, 1, true), doc! { "y": 1 }].into_iter());
        assert_eq!(duplicate(once.view()), None);
        let set = UnorderedSet::new(once.view());
        assert!(set.contains(Value::Document(nested(1, 2, true).view())));
        assert!(!set.contains(Value::Document(nested(2, 2, true).view())) && !set.contains(Value::Int32(1)));
    }

    /// Comparing each with each would be 20,000,000,000 comparisons of documents: hours.
    #[test]
    fn u4_a_large_array_of_documents_is_searched_for_duplicates_in_one_go() {
        let numbered = |number: i32| doc! { "a": doc! { "n": number, "m": 1 }, "b": [number] };
        let mut all: Vec<Doc> = (0..200_000).map(numbered).collect();
        assert_eq!(duplicate(items(all.iter().cloned()).view()), None);
        let again = doc! { "b": [70_000], "a": doc! { "m": 1, "n": 70_000 } };
        all.push(again.clone());
        assert_eq!(duplicate(items(all.into_iter()).view()), Some(Value::Document(again.view())));
    }
}
