//! What JavaScript gives back, as values of BSON.
//!
//! Numbers are doubles, as in MongoDB, but for those that a document had as 32-bit integers and has still. Reading a property may run code of
//! the client: it can fail, and it can be stopped.

use super::Host;
use super::failure::{self, Pending};
use super::to_script::kind;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pando_base::{Error, ErrorCode, Result, Timestamp};
use pando_doc::{Array, ArrayBuilder, Decimal128, DocBuilder, ObjectId, OwnedValue, Value, is_column};
use rquickjs::{Array as JsArray, Ctx, FromJs, Object, Value as JsValue};

/// MongoDB's bound, which also ends cycles.
const DEPTH_MAX: usize = 150;

/// A document inside the server may be this long.
const SIZE_BYTES_MAX: usize = 16 * 1024 * 1024 + 16 * 1024;

/// The subtype of binary data that is a compressed column.
const COLUMN_SUBTYPE: u8 = 7;

/// The value that something stands for.
pub(super) fn value<'js>(
    host: &Host<'js>,
    ctx: &Ctx<'js>,
    given: &JsValue<'js>,
    pending: &Pending,
) -> Result<OwnedValue> {
    let read = Reader { host, ctx, pending }.value(given, None, "", 0)?;
    check_size(size_bytes(&read))?;
    Ok(read)
}

/// About how much memory a value takes.
pub(super) fn size_bytes(value: &OwnedValue) -> usize {
    let mut builder = DocBuilder::new();
    match value {
        OwnedValue::Document(doc) => return doc.size_bytes(),
        OwnedValue::Array(array) => return array.view().bytes().len(),
        other => builder.append("", other.view()),
    }
    builder.size_bytes()
}

struct Reader<'r, 'js> {
    host: &'r Host<'js>,
    ctx: &'r Ctx<'js>,
    pending: &'r Pending,
}

impl<'js> Reader<'_, 'js> {
    fn failed(&self, error: rquickjs::Error) -> Error {
        failure::of(self.ctx, error, self.pending)
    }

    fn text(&self, given: &JsValue<'js>) -> Result<String> {
        if let Some(Ok(text)) = given.as_string().map(rquickjs::String::to_string) {
            return Ok(text);
        }
        // Half of a pair of surrogates is no text: it is replaced.
        self.ctx.catch();
        self.host.text.call((given.clone(),)).map_err(|error| self.failed(error))
    }

    fn read<T: FromJs<'js>>(&self, kind: i32, object: &Object<'js>) -> Result<T> {
        self.host.read.call((kind, object.clone())).map_err(|error| self.failed(error))
    }

    fn value(&self, given: &JsValue<'js>, ints: Option<&str>, name: &str, depth: usize) -> Result<OwnedValue> {
        if depth >= DEPTH_MAX {
            let reason =
                format!("Exceeded depth limit of {DEPTH_MAX} when converting js object to BSON. Do you have a cycle?");
            return Err(Error::location(17279, reason));
        }
        if let Some(number) = given.as_number() {
            return Ok(self.number(number, ints, name));
        }
        if given.is_undefined() {
            return Ok(OwnedValue::Undefined);
        }
        if given.is_null() {
            return Ok(OwnedValue::Null);
        }
        if let Some(truth) = given.as_bool() {
            return Ok(OwnedValue::Bool(truth));
        }
        if given.is_string() {
            return Ok(Value::String(self.text(given)?.as_str().into()).to_owned());
        }
        if given.is_function() {
            return Ok(Value::Code(self.text(given)?.as_str().into()).to_owned());
        }
        if let Some(big) = given.as_big_int() {
            let whole = big.clone().to_i64().map_err(|error| self.failed(error))?;
            return Ok(OwnedValue::Int64(whole));
        }
        if let Some(array) = given.as_array() {
            return self.array(array, depth).map(OwnedValue::Array);
        }
        match given.as_object() {
            Some(object) => self.object(object, depth),
            None => {
                let reason = format!("unable to convert JavaScript property to mongo element {name}");
                Err(Error::location(16662, reason))
            }
        }
    }

    fn number(&self, number: f64, ints: Option<&str>, name: &str) -> OwnedValue {
        let is_int = number.fract() == 0.0 && (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&number);
        let was_int = || ints.is_some_and(|ints| ints.split('\0').any(|known| known == name));
        if is_int && !(number == 0.0 && number.is_sign_negative()) && was_int() {
            return OwnedValue::Int32(number as i32);
        }
        OwnedValue::Double(number)
    }

    fn object(&self, object: &Object<'js>, depth: usize) -> Result<OwnedValue> {
        let kind: Option<i32> = object.get(self.host.kind.clone()).map_err(|error| self.failed(error))?;
        match kind {
            Some(kind) => self.special(kind, object, depth),
            None => self.document(object, depth).map(OwnedValue::Document),
        }
    }

    fn ints(&self, object: &Object<'js>) -> Option<String> {
        object.get::<_, Option<String>>(self.host.ints.clone()).ok().flatten()
    }

    fn document(&self, object: &Object<'js>, depth: usize) -> Result<pando_doc::Doc> {
        let ints = self.ints(object);
        let mut builder = DocBuilder::new();
        for key in object.keys::<JsValue<'js>>() {
            let key = key.map_err(|error| self.failed(error))?;
            let name = self.text(&key)?;
            if name.contains('\0') {
                let reason = "JavaScript property (name) contains a null char which is not allowed in BSON. ";
                return Err(Error::location(16985, reason));
            }
            let field: JsValue<'js> = object.get(key).map_err(|error| self.failed(error))?;
            let field = self.value(&field, ints.as_deref(), &name, depth + 1)?;
            builder.append(&name, field.view());
            check_size(builder.size_bytes())?;
        }
        Ok(builder.finish())
    }

    fn array(&self, array: &JsArray<'js>, depth: usize) -> Result<Array> {
        let ints = self.ints(array.as_object());
        let mut builder = ArrayBuilder::new();
        for place in 0..array.len() {
            let item: JsValue<'js> = array.get(place).map_err(|error| self.failed(error))?;
            let item = self.value(&item, ints.as_deref(), &place.to_string(), depth + 1)?;
            builder.push(item.view());
            check_size(builder.size_bytes())?;
            if place.is_multiple_of(4096) && self.pending.must_stop() {
                return Err(Error::new(ErrorCode::Interrupted, "operation was interrupted"));
            }
        }
        Ok(builder.finish())
    }

    fn special(&self, kind: i32, object: &Object<'js>, depth: usize) -> Result<OwnedValue> {
        let bad = |what: &str| Error::bad_value(format!("Unable to write {what} value."));
        Ok(match kind {
            kind::OBJECT_ID => OwnedValue::ObjectId(
                self.read::<String>(kind, object)?.parse::<ObjectId>().map_err(|_| bad("ObjectId"))?,
            ),
            kind::LONG | kind::INT | kind::BOXED => {
                self.value(&self.read::<JsValue<'js>>(kind, object)?, None, "", depth + 1).map(|read| match read {
                    OwnedValue::Double(number) if kind == kind::INT => OwnedValue::Int32(number as i32),
                    other => other,
                })?
            }
            kind::DECIMAL => {
                let text: String = self.read(kind, object)?;
                let parsed =
                    Decimal128::parse(&text).map_err(|_| Error::bad_value("Input is not a valid Decimal128 value."))?;
                OwnedValue::Decimal(parsed.value)
            }
            kind::TIMESTAMP => {
                let (seconds, increment) = self.pair::<f64, f64>(kind, object)?;
                let part = |number: f64| (0.0..=f64::from(u32::MAX)).contains(&number).then_some(number as u32);
                let parts = part(seconds).zip(part(increment)).ok_or_else(|| bad("Timestamp"))?;
                OwnedValue::Timestamp(Timestamp::new(parts.0, parts.1))
            }
            kind::BINARY => {
                let (subtype, text) = self.pair::<f64, String>(kind, object)?;
                if !(0.0..=255.0).contains(&subtype) {
                    return Err(Error::location(6123400, "BinData sub type must be between 0 and 255"));
                }
                let bytes = STANDARD.decode(text).map_err(|_| bad("BinData"))?;
                // Others read columns without looking at their form.
                if subtype as u8 == COLUMN_SUBTYPE && !is_column(&bytes) {
                    let reason = "JavaScript has made a column that is none";
                    return Err(Error::new(ErrorCode::InvalidBSONFromJavaScript, reason));
                }
                Value::Binary { subtype: subtype as u8, bytes: &bytes }.to_owned()
            }
            kind::MIN_KEY => OwnedValue::MinKey,
            kind::MAX_KEY => OwnedValue::MaxKey,
            kind::DB_POINTER => {
                let (namespace, id) = self.pair::<String, String>(kind, object)?;
                let id = id.parse::<ObjectId>().map_err(|_| bad("DBPointer"))?;
                Value::DbPointer { namespace: namespace.as_str().into(), id }.to_owned()
            }
            kind::CODE => self.code(object, depth)?,
            kind::DATE => {
                let time: f64 = self.read(kind, object)?;
                OwnedValue::DateTime(time as i64)
            }
            kind::REGEX => {
                let (pattern, flags) = self.pair::<String, String>(kind, object)?;
                if pattern.contains('\0') {
                    return Err(Error::bad_value("Regular expression cannot contain an embedded null byte"));
                }
                Value::Regex { pattern: pattern.as_str().into(), options: flags.as_str().into() }.to_owned()
            }
            _ => OwnedValue::Document(self.document(object, depth)?),
        })
    }

    fn code(&self, object: &Object<'js>, depth: usize) -> Result<OwnedValue> {
        let (code, scope) = self.pair::<JsValue<'js>, JsValue<'js>>(kind::CODE, object)?;
        if !code.is_string() {
            return Err(Error::bad_value("code must be a string"));
        }
        let code = self.text(&code)?;
        Ok(match scope.as_object() {
            Some(scope) => {
                let scope = self.document(scope, depth + 1)?;
                Value::CodeWithScope { code: code.as_str().into(), scope: scope.view() }.to_owned()
            }
            None => Value::Code(code.as_str().into()).to_owned(),
        })
    }

    fn pair<A: FromJs<'js>, B: FromJs<'js>>(&self, kind: i32, object: &Object<'js>) -> Result<(A, B)> {
        let parts: JsArray<'js> = self.read(kind, object)?;
        let first = parts.get(0).map_err(|error| self.failed(error))?;
        Ok((first, parts.get(1).map_err(|error| self.failed(error))?))
    }
}

fn check_size(size_bytes: usize) -> Result<()> {
    if size_bytes <= SIZE_BYTES_MAX {
        return Ok(());
    }
    let reason = format!("BSONObj size: {size_bytes} is invalid. Size must be between 0 and {SIZE_BYTES_MAX}");
    Err(Error::new(ErrorCode::BSONObjectTooLarge, reason))
}
