//! The shell's notation, `{ a: 1, b: "x" }`, as it stands in MongoDB's error messages and is matched by driver suites.
//!
//! Strings are not escaped, long ones are cut. Alternate formatting (`{:#}`) cuts nothing.

use super::double;
use crate::{Array, ArrayRef, Doc, DocRef, Element, OwnedValue, Value};
use bstr::BStr;
use std::fmt;

/// Deeper documents are shown as dots.
const DEPTH_MAX: usize = 100;

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_value(f, *self, 0)
    }
}

impl fmt::Display for Element<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.name)?;
        write_value(f, self.value, 0)
    }
}

impl fmt::Display for DocRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_document(f, *self, 0)
    }
}

impl fmt::Display for ArrayRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_array(f, *self, 0)
    }
}

macro_rules! shown_as_view {
    ($($type:ty)*) => {
        $(impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.view(), f)
            }
        })*
    };
}

shown_as_view! { Doc Array OwnedValue }

macro_rules! debug_as_display {
    ($($type:ty)*) => {
        $(impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        })*
    };
}

debug_as_display! { Doc Array DocRef<'_> ArrayRef<'_> }

fn write_document(f: &mut fmt::Formatter<'_>, doc: DocRef<'_>, depth: usize) -> fmt::Result {
    if doc.is_empty() {
        return f.write_str("{}");
    }
    f.write_str("{ ")?;
    for (index, element) in doc.elements().enumerate() {
        f.write_str(if index == 0 { "" } else { ", " })?;
        if depth > DEPTH_MAX {
            f.write_str("...")?;
        } else {
            write!(f, "{}: ", element.name)?;
            write_value(f, element.value, depth)?;
        }
    }
    f.write_str(" }")
}

fn write_array(f: &mut fmt::Formatter<'_>, array: ArrayRef<'_>, depth: usize) -> fmt::Result {
    if array.is_empty() {
        return f.write_str("[]");
    }
    f.write_str("[ ")?;
    for (index, value) in array.values().enumerate() {
        f.write_str(if index == 0 { "" } else { ", " })?;
        write_value(f, value, depth)?;
    }
    f.write_str(" ]")
}

fn write_value(f: &mut fmt::Formatter<'_>, value: Value<'_>, depth: usize) -> fmt::Result {
    if depth > DEPTH_MAX {
        return f.write_str("...");
    }
    match value {
        Value::Document(doc) => write_document(f, doc, depth + 1),
        Value::Array(array) => write_array(f, array, depth + 1),
        Value::Double(number) => double::in_messages(f, number),
        Value::Int32(number) => write!(f, "{number}"),
        Value::Int64(number) => write!(f, "{number}"),
        Value::Decimal(number) => write!(f, "{number}"),
        Value::String(text) | Value::Symbol(text) => {
            f.write_str("\"")?;
            write_cut(f, text, 159, 150)?;
            f.write_str("\"")
        }
        Value::Code(code) => write_cut(f, code, 79, 70),
        Value::CodeWithScope { code, scope } => write!(f, "CodeWScope( {code}, {scope})"),
        Value::DateTime(milliseconds) => write!(f, "new Date({milliseconds})"),
        Value::Timestamp(timestamp) => write!(f, "{timestamp}"),
        Value::Regex { pattern, options } => write!(f, "/{pattern}/{options}"),
        Value::DbPointer { namespace, id } => write!(f, "DBRef('{namespace}',{id})"),
        Value::ObjectId(id) => write!(f, "ObjectId('{id}')"),
        Value::Binary { subtype, bytes } => write_binary(f, subtype, bytes),
        Value::Bool(truth) => write!(f, "{truth}"),
        Value::Undefined => f.write_str("undefined"),
        Value::Null => f.write_str("null"),
        Value::MinKey => f.write_str("MinKey"),
        Value::MaxKey => f.write_str("MaxKey"),
    }
}

/// The text, or its beginning if it is longer than the limit.
fn write_cut(f: &mut fmt::Formatter<'_>, text: &BStr, limit: usize, kept: usize) -> fmt::Result {
    match text.get(..kept) {
        Some(start) if text.len() > limit && !f.alternate() => write!(f, "{}...", BStr::new(start)),
        _ => write!(f, "{text}"),
    }
}

fn write_binary(f: &mut fmt::Formatter<'_>, subtype: u8, bytes: &[u8]) -> fmt::Result {
    if subtype == 4 && bytes.len() == 16 {
        return write!(f, "UUID(\"{}\")", super::json_write::uuid_text(bytes));
    }
    // The old subtype has a second length in front.
    let bytes = if subtype == 2 { bytes.get(4..).unwrap_or(bytes) } else { bytes };
    write!(f, "BinData({subtype}, ")?;
    let (shown, rest) = match bytes.get(..70) {
        Some(start) if bytes.len() > 80 && !f.alternate() => (start, "..."),
        _ => (bytes, ""),
    };
    shown.iter().try_for_each(|byte| write!(f, "{byte:02X}"))?;
    write!(f, "{rest})")
}
