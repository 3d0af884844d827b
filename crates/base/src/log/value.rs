//! Values of attributes.

use crate::{Error, Namespace, Timestamp, Uuid};
use std::borrow::Cow;
use std::time::Duration;

/// A value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum LogValue {
    /// Nothing.
    Null,
    /// Yes or no.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A whole number that may be too large for the other kind.
    Unsigned(u64),
    /// A fraction.
    Double(f64),
    /// Text.
    Text(Cow<'static, str>),
    /// JSON already: a document in extended JSON.
    Json(String),
    /// Several values.
    List(Vec<LogValue>),
    /// Values with names.
    Map(Vec<(Cow<'static, str>, LogValue)>),
}

macro_rules! from {
    ($($type:ty as $value:ident => $made:expr;)*) => {
        $(impl From<$type> for LogValue {
            fn from($value: $type) -> LogValue {
                $made
            }
        })*
    };
}

from! {
    bool as value => LogValue::Bool(value);
    i32 as value => LogValue::Int(i64::from(value));
    i64 as value => LogValue::Int(value);
    u16 as value => LogValue::Int(i64::from(value));
    u32 as value => LogValue::Int(i64::from(value));
    u64 as value => LogValue::Unsigned(value);
    usize as value => LogValue::Unsigned(value as u64);
    f64 as value => LogValue::Double(value);
    String as value => LogValue::Text(Cow::Owned(value));
    &str as value => LogValue::Text(Cow::Owned(value.to_owned()));
    &String as value => LogValue::Text(Cow::Owned(value.clone()));
    &Namespace as value => LogValue::Text(Cow::Owned(value.to_string()));
    Uuid as value => uuid(value);
    Timestamp as value => timestamp(value);
    &Error as value => error(value);
    Vec<LogValue> as value => LogValue::List(value);
}

impl<T: Into<LogValue>> From<Option<T>> for LogValue {
    fn from(value: Option<T>) -> LogValue {
        value.map_or(LogValue::Null, Into::into)
    }
}

impl LogValue {
    /// Text that costs nothing to keep.
    pub const fn fixed(text: &'static str) -> LogValue {
        LogValue::Text(Cow::Borrowed(text))
    }

    /// A duration in milliseconds, for an attribute whose name ends in "Millis".
    pub fn millis(duration: Duration) -> LogValue {
        LogValue::Int(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX))
    }
}

fn uuid(uuid: Uuid) -> LogValue {
    let text = LogValue::Text(Cow::Owned(uuid.to_string()));
    named("uuid", LogValue::Map(vec![(Cow::Borrowed("$uuid"), text)]))
}

fn timestamp(timestamp: Timestamp) -> LogValue {
    let (seconds, increment) = (timestamp.seconds().into(), timestamp.increment().into());
    named("$timestamp", LogValue::Map(vec![(Cow::Borrowed("t"), seconds), (Cow::Borrowed("i"), increment)]))
}

fn error(error: &Error) -> LogValue {
    LogValue::Map(vec![
        (Cow::Borrowed("code"), error.code().number().into()),
        (Cow::Borrowed("codeName"), LogValue::Text(error.code().name())),
        (Cow::Borrowed("errmsg"), error.reason().into()),
    ])
}

fn named(name: &'static str, value: LogValue) -> LogValue {
    LogValue::Map(vec![(Cow::Borrowed(name), value)])
}
