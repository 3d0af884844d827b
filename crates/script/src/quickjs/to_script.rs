//! Values as JavaScript sees them.
//!
//! Fields are defined, never assigned: a field named `__proto__` is a field, and no setter of the clients' code runs. A document keeps
//! in mind which of its numbers were 32-bit integers, so that it comes back as it went in; JavaScript alone would make doubles of them.

use super::{Host, compile};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bstr::{BStr, ByteSlice};
use pando_doc::{DocRef, Value};
use rquickjs::object::Property;
use rquickjs::{Array, BigInt, Ctx, IntoJs, Object, Result, Value as JsValue};

/// The kinds of objects that stand for values of BSON; `prelude.js` has the same numbers.
pub(super) mod kind {
    pub const OBJECT_ID: i32 = 1;
    pub const LONG: i32 = 2;
    pub const INT: i32 = 3;
    pub const DECIMAL: i32 = 4;
    pub const TIMESTAMP: i32 = 5;
    pub const BINARY: i32 = 6;
    pub const MIN_KEY: i32 = 7;
    pub const MAX_KEY: i32 = 8;
    pub const DB_POINTER: i32 = 9;
    pub const CODE: i32 = 10;
    pub const DATE: i32 = 11;
    pub const REGEX: i32 = 12;
    pub const BOXED: i32 = 13;
}

pub(super) fn document<'js>(host: &Host<'js>, ctx: &Ctx<'js>, document: DocRef<'_>) -> Result<Object<'js>> {
    let is_reference = document.first().is_some_and(|first| first.name == "$ref") && document.get("$id").is_some();
    let object = match is_reference {
        true => Object::new_proto(ctx.clone(), Some(&host.reference))?,
        false => Object::new(ctx.clone())?,
    };
    let mut ints = String::new();
    for element in document.elements() {
        let name = element.name.to_str_lossy();
        if matches!(element.value, Value::Int32(_)) {
            ints.push_str(&name);
            ints.push('\0');
        }
        let value = value(host, ctx, element.value)?;
        object.prop(&*name, Property::from(value).writable().enumerable().configurable())?;
    }
    remember_ints(host, &object, ints)?;
    Ok(object)
}

fn array<'js>(host: &Host<'js>, ctx: &Ctx<'js>, values: pando_doc::ArrayRef<'_>) -> Result<Array<'js>> {
    let array = Array::new(ctx.clone())?;
    let mut ints = String::new();
    for (place, item) in values.values().enumerate() {
        if matches!(item, Value::Int32(_)) {
            ints.push_str(&place.to_string());
            ints.push('\0');
        }
        let item = value(host, ctx, item)?;
        let place = u32::try_from(place).unwrap_or(u32::MAX);
        array.as_object().prop(place, Property::from(item).writable().enumerable().configurable())?;
    }
    remember_ints(host, array.as_object(), ints)?;
    Ok(array)
}

fn remember_ints<'js>(host: &Host<'js>, object: &Object<'js>, ints: String) -> Result<()> {
    if ints.is_empty() {
        return Ok(());
    }
    object.prop(host.ints.clone(), Property::from(ints).writable().configurable())
}

pub(super) fn value<'js>(host: &Host<'js>, ctx: &Ctx<'js>, given: Value<'_>) -> Result<JsValue<'js>> {
    let text = |text: &BStr| text.to_str_lossy().into_owned();
    match given {
        Value::Double(number) => Ok(JsValue::new_float(ctx.clone(), number)),
        Value::Int32(number) => Ok(JsValue::new_int(ctx.clone(), number)),
        Value::String(given) | Value::Symbol(given) => given.to_str_lossy().into_js(ctx),
        Value::Document(nested) => document(host, ctx, nested).map(Object::into_value),
        Value::Array(values) => array(host, ctx, values).map(Array::into_value),
        Value::Bool(truth) => Ok(JsValue::new_bool(ctx.clone(), truth)),
        Value::Null => Ok(JsValue::new_null(ctx.clone())),
        Value::Undefined => Ok(JsValue::new_undefined(ctx.clone())),
        Value::ObjectId(id) => host.make.call((kind::OBJECT_ID, id.to_string())),
        Value::Int64(number) => host.make.call((kind::LONG, BigInt::from_i64(ctx.clone(), number)?)),
        Value::Decimal(number) => host.make.call((kind::DECIMAL, number.to_string())),
        Value::Timestamp(timestamp) => {
            host.make.call((kind::TIMESTAMP, f64::from(timestamp.seconds()), f64::from(timestamp.increment())))
        }
        Value::Binary { subtype, bytes } => host.make.call((kind::BINARY, subtype, STANDARD.encode(bytes))),
        Value::DateTime(milliseconds) => host.make.call((kind::DATE, milliseconds as f64)),
        Value::Regex { pattern, options } => {
            let flags: String =
                options.iter().map(|letter| char::from(*letter)).filter(|letter| "ims".contains(*letter)).collect();
            host.make.call((kind::REGEX, text(pattern), flags))
        }
        Value::DbPointer { namespace, id } => host.make.call((kind::DB_POINTER, text(namespace), id.to_string())),
        Value::Code(code) | Value::CodeWithScope { code, .. } => code_value(host, ctx, &code.to_str_lossy()),
        Value::MinKey => host.make.call((kind::MIN_KEY,)),
        Value::MaxKey => host.make.call((kind::MAX_KEY,)),
    }
}

/// Code becomes the function that it is the source of; what is none stays text.
fn code_value<'js>(host: &Host<'js>, ctx: &Ctx<'js>, code: &str) -> Result<JsValue<'js>> {
    match compile::function(ctx, code, &super::Pending::default()) {
        Ok(function) => Ok(function.into_value()),
        Err(_) => host.make.call((kind::CODE, code)),
    }
}
