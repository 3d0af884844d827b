//! Extended JSON, version 2, as MongoDB's server writes it.

use super::double;
use crate::{DocRef, Value, iso_8601};
use base64::Engine;
use bstr::{BStr, ByteSlice};
use std::fmt::{self, Write};

/// The last date that MongoDB writes as text: the end of the year 3000.
const DATE_TEXT_MAX: i64 = 32_535_215_999_000;

/// The two forms of extended JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonFormat {
    /// Every type can be told from the text.
    Canonical,
    /// Numbers and dates as people like to read them.
    Relaxed,
}

/// The document as extended JSON on one line.
pub fn doc_to_json(doc: DocRef<'_>, format: JsonFormat) -> String {
    let mut text = String::with_capacity(doc.size_bytes() * 2);
    let written = write_fields(&mut text, doc, format, true);
    debug_assert!(written.is_ok(), "a string takes all that is written");
    text
}

/// The value as extended JSON on one line.
pub fn value_to_json(value: Value<'_>, format: JsonFormat) -> String {
    let mut text = String::new();
    let written = write_value(&mut text, value, format);
    debug_assert!(written.is_ok(), "a string takes all that is written");
    text
}

fn write_fields(text: &mut String, doc: DocRef<'_>, format: JsonFormat, named: bool) -> fmt::Result {
    text.push(if named { '{' } else { '[' });
    for (index, element) in doc.elements().enumerate() {
        if index > 0 {
            text.push(',');
        }
        if named {
            write_string(text, element.name);
            text.push(':');
        }
        write_value(text, element.value, format)?;
    }
    text.push(if named { '}' } else { ']' });
    Ok(())
}

fn write_value(text: &mut String, value: Value<'_>, format: JsonFormat) -> fmt::Result {
    let relaxed = format == JsonFormat::Relaxed;
    match value {
        Value::Double(number) if relaxed && number.is_finite() => text.push_str(&double::in_json(number)),
        Value::Double(number) => write!(text, r#"{{"$numberDouble":"{}"}}"#, double_text(number))?,
        Value::Int32(number) if relaxed => write!(text, "{number}")?,
        Value::Int32(number) => write!(text, r#"{{"$numberInt":"{number}"}}"#)?,
        Value::Int64(number) if relaxed => write!(text, "{number}")?,
        Value::Int64(number) => write!(text, r#"{{"$numberLong":"{number}"}}"#)?,
        Value::Decimal(number) => write!(text, r#"{{"$numberDecimal":"{number}"}}"#)?,
        Value::DateTime(milliseconds) if relaxed && (0..=DATE_TEXT_MAX).contains(&milliseconds) => {
            write!(text, r#"{{"$date":"{}"}}"#, iso_8601(milliseconds))?;
        }
        Value::DateTime(milliseconds) => write!(text, r#"{{"$date":{{"$numberLong":"{milliseconds}"}}}}"#)?,
        Value::String(string) => write_string(text, string),
        Value::Document(doc) => write_fields(text, doc, format, true)?,
        Value::Array(array) => write_fields(text, array.as_doc(), format, false)?,
        Value::Binary { subtype: 4, bytes } if bytes.len() == 16 => {
            write!(text, r#"{{"$uuid":"{}"}}"#, uuid_text(bytes))?;
        }
        Value::Binary { subtype, bytes } => {
            write!(text, r#"{{"$binary":{{"base64":"{}","subType":"{subtype:x}"}}}}"#, base64_text(bytes))?;
        }
        Value::ObjectId(id) => write!(text, r#"{{"$oid":"{id}"}}"#)?,
        Value::Timestamp(timestamp) => {
            let (seconds, increment) = (timestamp.seconds(), timestamp.increment());
            write!(text, r#"{{"$timestamp":{{"t":{seconds},"i":{increment}}}}}"#)?;
        }
        Value::Bool(truth) => write!(text, "{truth}")?,
        Value::Null => text.push_str("null"),
        Value::Undefined => text.push_str(r#"{"$undefined":true}"#),
        Value::MinKey => text.push_str(r#"{"$minKey":1}"#),
        Value::MaxKey => text.push_str(r#"{"$maxKey":1}"#),
        text_like => write_text_like(text, text_like, format)?,
    }
    Ok(())
}

fn write_text_like(text: &mut String, value: Value<'_>, format: JsonFormat) -> fmt::Result {
    match value {
        Value::Regex { pattern, options } => {
            text.push_str(r#"{"$regularExpression":{"pattern":"#);
            write_string(text, pattern);
            text.push_str(r#","options":"#);
            write_string(text, options);
            text.push('}');
        }
        Value::Symbol(symbol) => {
            text.push_str(r#"{"$symbol":"#);
            write_string(text, symbol);
        }
        Value::Code(code) => {
            text.push_str(r#"{"$code":"#);
            write_string(text, code);
        }
        Value::CodeWithScope { code, scope } => {
            text.push_str(r#"{"$code":"#);
            write_string(text, code);
            text.push_str(r#","$scope":"#);
            write_fields(text, scope, format, true)?;
        }
        Value::DbPointer { namespace, id } => {
            text.push_str(r#"{"$ref":"#);
            write_string(text, namespace);
            write!(text, r#","$id":"{id}""#)?;
        }
        other => {
            debug_assert!(false, "{} is no text", other.value_type());
            text.push('{');
        }
    }
    text.push('}');
    Ok(())
}

fn double_text(number: f64) -> String {
    if number.is_nan() {
        "NaN".to_owned()
    } else if number.is_infinite() {
        if number < 0.0 { "-Infinity" } else { "Infinity" }.to_owned()
    } else {
        double::in_json(number)
    }
}

/// The string in quotes, with what JSON wants escaped.
fn write_string(text: &mut String, string: &BStr) {
    text.push('"');
    for character in string.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            control if control < ' ' || control == '\u{7f}' => {
                let written = write!(text, "\\u{:04x}", control as u32);
                debug_assert!(written.is_ok(), "a string takes all that is written");
            }
            other => text.push(other),
        }
    }
    text.push('"');
}

/// Sixteen bytes in the notation of UUIDs.
pub(super) fn uuid_text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(36);
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        let written = write!(text, "{byte:02x}");
        debug_assert!(written.is_ok(), "a string takes all that is written");
    }
    text
}

pub(super) fn base64_text(bytes: &[u8]) -> String {
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// The bytes of a base64 text, padded or not; none if it is not one.
pub(super) fn base64_bytes(text: &str) -> Option<Vec<u8>> {
    base64::engine::general_purpose::STANDARD_NO_PAD.decode(text.trim_end_matches('=')).ok()
}
