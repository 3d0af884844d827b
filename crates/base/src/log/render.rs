//! Lines as text: MongoDB's JSON, and a form for people.

use super::line::LogLine;
use super::value::LogValue;
use crate::date::DateParts;
use std::fmt::Write;

/// Widths to which severity, component and id are filled up with blanks, so that lines align.
const SEVERITY_WIDTH: usize = 5;
const COMPONENT_WIDTH: usize = 11;
const ID_WIDTH: usize = 8;

/// A text attribute of which something was left out: its name and whole length.
type Truncated = (&'static str, usize);

impl LogLine {
    /// The line as JSON, without its end. Attributes of more than so many bytes are cut, and the line says so.
    pub fn to_json(&self, attribute_bytes_max: usize) -> String {
        let mut out = String::with_capacity(256);
        let date = self.date();
        let (day, time) = (date.day_text(), date.time_text());
        put(&mut out, format_args!("{{\"t\":{{\"$date\":\"{day}T{time}+00:00\"}},\"s\":"));
        padded(&mut out, SEVERITY_WIDTH, format_args!("\"{}\"", self.severity.name()));
        out.push_str("\"c\":");
        padded(&mut out, COMPONENT_WIDTH, format_args!("\"{}\"", self.component.name()));
        out.push_str("\"id\":");
        padded(&mut out, ID_WIDTH, format_args!("{}", self.id));
        out.push_str("\"ctx\":");
        quoted(&mut out, &self.context);
        out.push_str(",\"msg\":");
        quoted(&mut out, self.message);
        let truncated = self.put_attributes(&mut out, attribute_bytes_max);
        put_truncated(&mut out, &truncated);
        if self.is_startup_warning {
            out.push_str(",\"tags\":[\"startupWarnings\"]");
        }
        out.push('}');
        out
    }

    fn put_attributes(&self, out: &mut String, bytes_max: usize) -> Vec<Truncated> {
        let mut truncated = Vec::new();
        if self.attributes.is_empty() {
            return truncated;
        }
        out.push_str(",\"attr\":");
        let mut separator = '{';
        for (name, value) in &self.attributes {
            out.push(separator);
            separator = ',';
            quoted(out, name);
            out.push(':');
            match value {
                LogValue::Text(text) if text.len() > bytes_max => {
                    quoted(out, &text[..text.floor_char_boundary(bytes_max)]);
                    truncated.push((*name, text.len()));
                }
                LogValue::Json(json) if json.len() > bytes_max => {
                    quoted(out, &json[..json.floor_char_boundary(bytes_max)]);
                    truncated.push((*name, json.len()));
                }
                value => put_json(out, value),
            }
        }
        out.push('}');
        truncated
    }

    fn date(&self) -> DateParts {
        DateParts::from_milliseconds(i64::try_from(self.time_ms).unwrap_or(i64::MAX))
    }

    /// The line for a person at a terminal, without its end.
    pub fn to_text(&self) -> String {
        let mut out = String::with_capacity(128);
        let date = self.date();
        let (day, time) = (date.day_text(), date.time_text());
        let (severity, component) = (self.severity.name(), self.component);
        put(&mut out, format_args!("{day} {time} {severity:<2} {component:<8} [{}] {}", self.context, self.message));
        let mut separator = ": ";
        for (name, value) in &self.attributes {
            put(&mut out, format_args!("{separator}{name}="));
            put_json(&mut out, value);
            separator = ", ";
        }
        out
    }
}

fn put_truncated(out: &mut String, truncated: &[Truncated]) {
    let mut separator = ",\"truncated\":{";
    for (name, length) in truncated {
        out.push_str(separator);
        quoted(out, name);
        put(out, format_args!(":{{\"type\":\"string\",\"size\":{length}}}"));
        separator = ",";
    }
    if !truncated.is_empty() {
        out.push('}');
    }
}

fn put_json(out: &mut String, value: &LogValue) {
    match value {
        LogValue::Null => out.push_str("null"),
        LogValue::Bool(value) => put(out, format_args!("{value}")),
        LogValue::Int(value) => put(out, format_args!("{value}")),
        LogValue::Unsigned(value) => put(out, format_args!("{value}")),
        LogValue::Double(value) => put_double(out, *value),
        LogValue::Text(text) => quoted(out, text),
        LogValue::Json(json) => out.push_str(json),
        LogValue::List(values) => {
            out.push('[');
            for (index, value) in values.iter().enumerate() {
                if index != 0 {
                    out.push(',');
                }
                put_json(out, value);
            }
            out.push(']');
        }
        LogValue::Map(fields) => {
            out.push('{');
            for (index, (name, value)) in fields.iter().enumerate() {
                if index != 0 {
                    out.push(',');
                }
                quoted(out, name);
                out.push(':');
                put_json(out, value);
            }
            out.push('}');
        }
    }
}

/// JSON has no words for what is not finite; extended JSON does.
fn put_double(out: &mut String, value: f64) {
    if value.is_finite() {
        return put(out, format_args!("{value:?}"));
    }
    let name = if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    };
    put(out, format_args!("{{\"$numberDouble\":\"{name}\"}}"));
}

fn quoted(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\0'..='\u{1f}' | '\u{7f}' => put(out, format_args!("\\u{:04x}", character as u32)),
            _ => out.push(character),
        }
    }
    out.push('"');
}

/// What was written, a comma, and blanks up to the width.
fn padded(out: &mut String, width: usize, written: std::fmt::Arguments<'_>) {
    let before = out.len();
    put(out, written);
    let blanks = width.saturating_sub(out.len() - before);
    out.push(',');
    out.extend(std::iter::repeat_n(' ', blanks));
}

fn put(out: &mut String, written: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = out.write_fmt(written);
}
