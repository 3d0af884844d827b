//! A document with one field set by its path, as stages do that add what they found. Documents on the way are made where there are
//! none; arrays on the way are replaced by a document or gone into, as `$addFields` does, by what the stage asks for.

use pando_doc::{Array, ArrayBuilder, ArrayRef, Doc, DocBuilder, DocRef, FieldPath, Value};

/// What becomes of an array on the way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Arrays {
    /// A document takes its place, as it does of any other value.
    Replaced,
    /// The field is set in each of its elements.
    Entered,
}

/// The document with a value at a path; without the field if there is none. Arrays on the way are replaced.
pub(crate) fn with_field(document: DocRef<'_>, path: &FieldPath, value: Option<Value<'_>>) -> Doc {
    with_parts(document, &names(path), value)
}

/// The same with the names of a path.
pub(super) fn with_parts(document: DocRef<'_>, parts: &[&[u8]], value: Option<Value<'_>>) -> Doc {
    Setting { value, arrays: Arrays::Replaced }.done(document, parts)
}

/// The same, written by a builder that has nothing yet.
pub(super) fn append_with_parts(
    builder: &mut DocBuilder,
    document: DocRef<'_>,
    parts: &[&[u8]],
    value: Option<Value<'_>>,
) {
    Setting { value, arrays: Arrays::Replaced }.set(builder, document, parts);
}

/// The same, but arrays on the way are gone into.
pub(super) fn with_field_in_arrays(document: DocRef<'_>, path: &FieldPath, value: Option<Value<'_>>) -> Doc {
    Setting { value, arrays: Arrays::Entered }.done(document, &names(path))
}

/// The names of a path.
pub(super) fn names(path: &FieldPath) -> Vec<&[u8]> {
    path.parts().map(|part| &**part).collect()
}

/// How much longer the document becomes at most, about.
fn added_bytes(parts: &[&[u8]], value: Option<Value<'_>>) -> usize {
    /// A document around a value, and the largest value of a fixed size.
    const AROUND_BYTES: usize = 8;
    const FIXED_BYTES: usize = 16;
    let value_bytes = match value {
        Some(Value::Array(array)) => array.bytes().len(),
        Some(Value::Document(document)) => document.size_bytes(),
        Some(_) => FIXED_BYTES,
        None => 0,
    };
    value_bytes + parts.iter().map(|part| part.len() + AROUND_BYTES).sum::<usize>()
}

/// What is set, and how the way to it is taken.
#[derive(Clone, Copy)]
struct Setting<'v> {
    value: Option<Value<'v>>,
    arrays: Arrays,
}

impl Setting<'_> {
    fn done(self, document: DocRef<'_>, parts: &[&[u8]]) -> Doc {
        let mut builder = DocBuilder::with_capacity(document.size_bytes() + added_bytes(parts, self.value));
        self.set(&mut builder, document, parts);
        builder.finish()
    }

    fn set(self, builder: &mut DocBuilder, document: DocRef<'_>, parts: &[&[u8]]) {
        let Some((name, below)) = parts.split_first() else { return };
        let mut is_set = false;
        for element in document.elements() {
            if is_set || **element.name != **name {
                builder.append_element(element);
                continue;
            }
            is_set = true;
            self.append(builder, name, below, Some(element.value));
        }
        if !is_set {
            self.append(builder, name, below, None);
        }
    }

    fn append(self, builder: &mut DocBuilder, name: &[u8], below: &[&[u8]], existing: Option<Value<'_>>) {
        match (below.is_empty(), existing) {
            (true, _) => {
                if let Some(value) = self.value {
                    builder.append(name, value);
                }
            }
            (false, Some(Value::Array(array))) if self.arrays == Arrays::Entered => {
                builder.append(name, self.in_array(array, below));
            }
            (false, existing) => builder.document(name, |nested| self.set(nested, inside(existing), below)),
        }
    }

    fn in_array(self, array: ArrayRef<'_>, below: &[&[u8]]) -> Array {
        let mut builder = ArrayBuilder::new();
        for item in array.values() {
            match item {
                Value::Array(nested) => builder.push(self.in_array(nested, below)),
                item => builder.document(|nested| self.set(nested, inside(Some(item)), below)),
            }
        }
        builder.finish()
    }
}

/// What a value on the way has below it.
fn inside(value: Option<Value<'_>>) -> DocRef<'_> {
    value.and_then(|value| value.as_document()).unwrap_or(DocRef::EMPTY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::doc;

    #[test]
    fn u5_a_field_is_set_where_its_path_leads_and_replaces_what_is_in_the_way() {
        let check = |document: Doc, path: &str, value: Option<Value<'_>>, expected: Doc| {
            let path = FieldPath::parse(path).expect("a path");
            assert_eq!(with_field(document.view(), &path, value), expected, "{document} {path}");
        };
        let seven = Some(Value::Int32(7));
        check(doc! { "a": 1, "b": 2 }, "a", seven, doc! { "a": 7, "b": 2 });
        check(doc! { "a": 1 }, "b.c", seven, doc! { "a": 1, "b": doc! { "c": 7 } });
        check(doc! { "b": doc! { "d": 1 } }, "b.c", seven, doc! { "b": doc! { "d": 1, "c": 7 } });
        check(doc! { "b": 3 }, "b.c", seven, doc! { "b": doc! { "c": 7 } });
        check(doc! { "a": 1, "b": 2 }, "a", None, doc! { "b": 2 });
    }

    #[test]
    fn u5_arrays_on_the_way_are_replaced_or_gone_into() {
        let document = doc! { "a": [doc! { "b": 1 }, 2, [doc! { "c": 3 }]] };
        let path = FieldPath::parse("a.b").expect("a path");
        let seven = Some(Value::Int32(7));
        assert_eq!(with_field(document.view(), &path, seven), doc! { "a": doc! { "b": 7 } });
        let entered = doc! { "a": [doc! { "b": 7 }, doc! { "b": 7 }, [doc! { "c": 3, "b": 7 }]] };
        assert_eq!(with_field_in_arrays(document.view(), &path, seven), entered);
        let without = doc! { "a": [doc! {}, doc! {}, [doc! { "c": 3 }]] };
        assert_eq!(with_field_in_arrays(document.view(), &path, None), without);
    }
}
