//! A document with one field set by its path, as stages do that add what they found: documents on the way are made where
//! there are none, and what is an array or another value on the way is replaced by a document. (`$addFields` goes into arrays; see
//! `window/source.rs`.)

use pando_doc::{Doc, DocBuilder, DocRef, FieldPath, Value};

/// The document with a value at a path; without the field if there is none.
pub(super) fn with_field(document: DocRef<'_>, path: &FieldPath, value: Option<Value<'_>>) -> Doc {
    let parts: Vec<&[u8]> = path.parts().map(|part| &**part).collect();
    with_parts(document, &parts, value)
}

/// The same with the names of a path.
pub(super) fn with_parts(document: DocRef<'_>, parts: &[&[u8]], value: Option<Value<'_>>) -> Doc {
    let mut builder = DocBuilder::with_capacity(document.size_bytes() + added_bytes(parts, value));
    set(&mut builder, document, parts, value);
    builder.finish()
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

fn set(builder: &mut DocBuilder, document: DocRef<'_>, parts: &[&[u8]], value: Option<Value<'_>>) {
    let Some((name, below)) = parts.split_first() else { return };
    let mut is_set = false;
    for element in document.elements() {
        if is_set || **element.name != **name {
            builder.append_element(element);
            continue;
        }
        is_set = true;
        append(builder, name, below, element.value.as_document().unwrap_or(DocRef::EMPTY), value);
    }
    if !is_set {
        append(builder, name, below, DocRef::EMPTY, value);
    }
}

fn append(builder: &mut DocBuilder, name: &[u8], below: &[&[u8]], inside: DocRef<'_>, value: Option<Value<'_>>) {
    if !below.is_empty() {
        builder.document(name, |nested| set(nested, inside, below, value));
    } else if let Some(value) = value {
        builder.append(name, value);
    }
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
}
