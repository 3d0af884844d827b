//! What can be put into a document as a value, and what becomes an owned one.
//!
//! `ToValue` takes owned and borrowed things alike, so that builders and `doc!` accept `3`, `"x"`, `&doc` and `doc`.

use crate::{Array, ArrayRef, Decimal128, Doc, DocRef, ObjectId, OwnedValue, Value};
use bstr::{BStr, BString};
use bytes::Bytes;
use pando_base::Timestamp;

/// Something that can be seen as a BSON value.
pub trait ToValue {
    /// The value in place.
    fn to_value(&self) -> Value<'_>;
}

impl<T: ToValue + ?Sized> ToValue for &T {
    fn to_value(&self) -> Value<'_> {
        (**self).to_value()
    }
}

macro_rules! to_value {
    ($($type:ty, $self:ident => $value:expr;)*) => {
        $(impl ToValue for $type {
            #[inline]
            fn to_value(&$self) -> Value<'_> {
                $value
            }
        })*
    };
}

to_value! {
    Value<'_>, self => *self;
    OwnedValue, self => self.view();
    f64, self => Value::Double(*self);
    i32, self => Value::Int32(*self);
    i64, self => Value::Int64(*self);
    bool, self => Value::Bool(*self);
    str, self => Value::String(BStr::new(self));
    String, self => Value::String(BStr::new(self));
    BStr, self => Value::String(self);
    BString, self => Value::String(BStr::new(self));
    DocRef<'_>, self => Value::Document(*self);
    Doc, self => Value::Document(self.view());
    ArrayRef<'_>, self => Value::Array(*self);
    Array, self => Value::Array(self.view());
    ObjectId, self => Value::ObjectId(*self);
    Timestamp, self => Value::Timestamp(*self);
    Decimal128, self => Value::Decimal(*self);
}

macro_rules! into_owned {
    ($($type:ty, $name:ident => $value:expr;)*) => {
        $(impl From<$type> for OwnedValue {
            fn from($name: $type) -> OwnedValue {
                $value
            }
        })*
    };
}

into_owned! {
    f64, number => OwnedValue::Double(number);
    i32, number => OwnedValue::Int32(number);
    i64, number => OwnedValue::Int64(number);
    bool, truth => OwnedValue::Bool(truth);
    &str, text => OwnedValue::String(Bytes::copy_from_slice(text.as_bytes()));
    String, text => OwnedValue::String(Bytes::from(text));
    &BStr, text => OwnedValue::String(Bytes::copy_from_slice(text));
    Doc, doc => OwnedValue::Document(doc);
    Array, array => OwnedValue::Array(array);
    ObjectId, id => OwnedValue::ObjectId(id);
    Timestamp, timestamp => OwnedValue::Timestamp(timestamp);
    Decimal128, number => OwnedValue::Decimal(number);
    Value<'_>, value => value.to_owned();
}

impl<T: ToValue> FromIterator<T> for Array {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Array {
        let mut builder = crate::ArrayBuilder::new();
        values.into_iter().for_each(|value| builder.push(value));
        builder.finish()
    }
}

impl<N: AsRef<[u8]>, T: ToValue> FromIterator<(N, T)> for Doc {
    fn from_iter<I: IntoIterator<Item = (N, T)>>(fields: I) -> Doc {
        let mut builder = crate::DocBuilder::new();
        fields.into_iter().for_each(|(name, value)| builder.append(name, value));
        builder.finish()
    }
}
