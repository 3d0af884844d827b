//! Extended JSON, read: both forms of version 2, and the older ways to write dates, binaries and regular expressions.
//!
//! The JSON itself is read by `serde_json`, into a tree that keeps the order of names and their repetition. An object
//! whose names begin with `$` is a value of another type if it has exactly the shape of one; else it is a document.

use super::json_write::base64_bytes;
use crate::{ArrayBuilder, Doc, DocBuilder, OwnedCodeWithScope, OwnedRegex, OwnedValue, parse_iso_8601};
use bytes::Bytes;
use pando_base::{Error, ErrorCode, Result, Timestamp};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// Reads a document.
pub fn doc_from_json(text: &str) -> Result<Doc> {
    match value_from_json(text)? {
        OwnedValue::Document(doc) => Ok(doc),
        other => Err(fault(format!("expected an object, found {}", other.value_type()))),
    }
}

/// Reads a value.
pub fn value_from_json(text: &str) -> Result<OwnedValue> {
    let json: Json = serde_json::from_str(text).map_err(|error| fault(error.to_string()))?;
    json.into_value()
}

fn fault(reason: impl Into<String>) -> Error {
    Error::new(ErrorCode::FailedToParse, reason)
}

enum Json {
    Null,
    Bool(bool),
    Whole(i64),
    Double(f64),
    String(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    fn into_value(self) -> Result<OwnedValue> {
        Ok(match self {
            Json::Null => OwnedValue::Null,
            Json::Bool(truth) => OwnedValue::Bool(truth),
            Json::Whole(number) => i32::try_from(number).map_or(OwnedValue::Int64(number), OwnedValue::Int32),
            Json::Double(number) => OwnedValue::Double(number),
            Json::String(text) => OwnedValue::String(Bytes::from(text)),
            Json::Array(values) => {
                let mut builder = ArrayBuilder::new();
                for value in values {
                    builder.push(value.into_value()?);
                }
                OwnedValue::Array(builder.finish())
            }
            Json::Object(fields) => match special(&fields)? {
                Some(value) => value,
                None => OwnedValue::Document(into_doc(fields)?),
            },
        })
    }

    fn as_str(&self) -> Option<&str> {
        match self {
            Json::String(text) => Some(text),
            _ => None,
        }
    }

    fn as_whole(&self) -> Option<i64> {
        match self {
            Json::Whole(number) => Some(*number),
            _ => None,
        }
    }

    fn as_object(&self) -> Option<&[(String, Json)]> {
        match self {
            Json::Object(fields) => Some(fields),
            _ => None,
        }
    }

    /// A string field of an object.
    fn text_at(&self, name: &str) -> Option<&str> {
        self.as_object()?.iter().find(|field| field.0 == name)?.1.as_str()
    }

    fn whole_at(&self, name: &str) -> Option<i64> {
        self.as_object()?.iter().find(|field| field.0 == name)?.1.as_whole()
    }
}

fn into_doc(fields: Vec<(String, Json)>) -> Result<Doc> {
    let mut builder = DocBuilder::new();
    for (name, value) in fields {
        if name.contains('\0') {
            return Err(fault("a field name contains a NUL"));
        }
        builder.append(name, value.into_value()?);
    }
    Ok(builder.finish())
}

/// The value of another type that the object stands for.
fn special(fields: &[(String, Json)]) -> Result<Option<OwnedValue>> {
    match fields {
        [(name, value)] if name.starts_with('$') => special_by_one(name, value),
        [(first, value), (second, other)] if first.starts_with('$') => Ok(special_by_two(first, value, second, other)?),
        _ => Ok(None),
    }
}

fn special_by_one(name: &str, value: &Json) -> Result<Option<OwnedValue>> {
    let wrong = || fault(format!("bad value for {name}"));
    let text = || value.as_str().ok_or_else(wrong);
    Ok(Some(match name {
        "$oid" => OwnedValue::ObjectId(text()?.parse().map_err(|_| wrong())?),
        "$numberInt" => OwnedValue::Int32(text()?.parse().map_err(|_| wrong())?),
        "$numberLong" => OwnedValue::Int64(whole(value).ok_or_else(wrong)?),
        "$numberDouble" => OwnedValue::Double(text()?.parse().map_err(|_| wrong())?),
        "$numberDecimal" => OwnedValue::Decimal(text()?.parse().map_err(|_| wrong())?),
        "$date" => OwnedValue::DateTime(date(value).ok_or_else(wrong)?),
        "$symbol" => OwnedValue::Symbol(Bytes::copy_from_slice(text()?.as_bytes())),
        "$code" => OwnedValue::Code(Bytes::copy_from_slice(text()?.as_bytes())),
        "$undefined" => OwnedValue::Undefined,
        "$minKey" => OwnedValue::MinKey,
        "$maxKey" => OwnedValue::MaxKey,
        "$uuid" => OwnedValue::Binary { subtype: 4, bytes: uuid(text()?).ok_or_else(wrong)? },
        "$timestamp" => OwnedValue::Timestamp(timestamp(value).ok_or_else(wrong)?),
        "$binary" => binary(value.text_at("base64"), value.text_at("subType")).ok_or_else(wrong)?,
        "$regularExpression" => {
            let parts = value.text_at("pattern").zip(value.text_at("options"));
            parts.and_then(|(pattern, options)| regex(pattern, options)).ok_or_else(wrong)?
        }
        "$dbPointer" => {
            let id = value.as_object().and_then(|fields| fields.iter().find(|field| field.0 == "$id"));
            let id = id.and_then(|(_, id)| id.text_at("$oid")).and_then(|id| id.parse().ok());
            let (namespace, id) = value.text_at("$ref").zip(id).ok_or_else(wrong)?;
            OwnedValue::DbPointer { namespace: Bytes::copy_from_slice(namespace.as_bytes()), id }
        }
        _ => return Ok(None),
    }))
}

fn special_by_two(first: &str, value: &Json, second: &str, other: &Json) -> Result<Option<OwnedValue>> {
    Ok(match (first, second, value.as_str()) {
        ("$code", "$scope", Some(code)) => {
            let Json::Object(_) = other else { return Err(fault("bad value for $scope")) };
            let scope = into_doc(copy_fields(other))?;
            let code = Bytes::copy_from_slice(code.as_bytes());
            Some(OwnedValue::CodeWithScope(Box::new(OwnedCodeWithScope { code, scope })))
        }
        ("$regex", "$options", Some(pattern)) => other.as_str().and_then(|options| regex(pattern, options)),
        ("$binary", "$type", Some(data)) => binary(Some(data), other.as_str()),
        _ => None,
    })
}

/// The fields of an object once more; scopes are rare enough to be copied.
fn copy_fields(json: &Json) -> Vec<(String, Json)> {
    let fields = json.as_object().unwrap_or_default();
    fields.iter().map(|(name, value)| (name.clone(), copy(value))).collect()
}

fn copy(json: &Json) -> Json {
    match json {
        Json::Null => Json::Null,
        Json::Bool(truth) => Json::Bool(*truth),
        Json::Whole(number) => Json::Whole(*number),
        Json::Double(number) => Json::Double(*number),
        Json::String(text) => Json::String(text.clone()),
        Json::Array(values) => Json::Array(values.iter().map(copy).collect()),
        Json::Object(_) => Json::Object(copy_fields(json)),
    }
}

/// A number, or its digits as a string.
fn whole(value: &Json) -> Option<i64> {
    value.as_whole().or_else(|| value.as_str()?.parse().ok())
}

/// Milliseconds, plain or as `$numberLong`, or ISO 8601.
fn date(value: &Json) -> Option<i64> {
    match value {
        Json::String(text) => parse_iso_8601(text),
        Json::Object(fields) => match fields.as_slice() {
            [(name, milliseconds)] if name == "$numberLong" => whole(milliseconds),
            _ => None,
        },
        other => other.as_whole(),
    }
}

fn timestamp(value: &Json) -> Option<Timestamp> {
    let part = |name| value.whole_at(name).and_then(|part| u32::try_from(part).ok());
    Some(Timestamp::new(part("t")?, part("i")?))
}

fn regex(pattern: &str, options: &str) -> Option<OwnedValue> {
    if pattern.contains('\0') || options.contains('\0') {
        return None;
    }
    let own = |text: &str| Bytes::copy_from_slice(text.as_bytes());
    Some(OwnedValue::Regex(Box::new(OwnedRegex { pattern: own(pattern), options: own(options) })))
}

fn binary(data: Option<&str>, subtype: Option<&str>) -> Option<OwnedValue> {
    let subtype = u8::from_str_radix(subtype?, 16).ok()?;
    Some(OwnedValue::Binary { subtype, bytes: Bytes::from(base64_bytes(data?)?) })
}

fn uuid(text: &str) -> Option<Bytes> {
    let digits: Vec<u8> = text.bytes().filter(|&byte| byte != b'-').collect();
    let (pairs, rest) = digits.as_chunks::<2>();
    if pairs.len() != 16 || !rest.is_empty() {
        return None;
    }
    let digit = |byte: u8| (byte as char).to_digit(16);
    pairs
        .iter()
        .map(|pair| Some((digit(pair[0])? * 16 + digit(pair[1])?) as u8))
        .collect::<Option<Vec<u8>>>()
        .map(Bytes::from)
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Json, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> std::result::Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, truth: bool) -> std::result::Result<Json, E> {
        Ok(Json::Bool(truth))
    }

    fn visit_i64<E>(self, number: i64) -> std::result::Result<Json, E> {
        Ok(Json::Whole(number))
    }

    fn visit_u64<E>(self, number: u64) -> std::result::Result<Json, E> {
        Ok(i64::try_from(number).map_or(Json::Double(number as f64), Json::Whole))
    }

    fn visit_f64<E>(self, number: f64) -> std::result::Result<Json, E> {
        Ok(Json::Double(number))
    }

    fn visit_str<E>(self, text: &str) -> std::result::Result<Json, E> {
        Ok(Json::String(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> std::result::Result<Json, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = sequence.next_element()? {
            values.push(value);
        }
        Ok(Json::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Json, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(Json::Object(fields))
    }
}
