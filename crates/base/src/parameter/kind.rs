//! The types a parameter can have, and how each is kept, read from text and from a value.

use super::cell::Cell;
use super::value::{ParameterValue, out_of_bounds, parse_bool, parse_double, parse_long, wrong_type};
use crate::Result;
use parking_lot::RwLock;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The type of a parameter: `bool`, `i32`, `i64`, `f64`, `str`, [`Document`].
pub trait Kind: 'static {
    /// How the default is written in a static.
    type Default: Copy + Send + Sync + 'static;
    /// What a read gives.
    type Value: Clone + Send + Sync + 'static;
    /// What a validator looks at.
    type View: ?Sized;

    /// The default as a value.
    fn of_default(default: Self::Default) -> Self::Value;
    /// What a validator looks at.
    fn view(value: &Self::Value) -> &Self::View;
    /// The value without its type.
    fn erase(value: &Self::Value) -> ParameterValue;
    /// From a value of any type that can pass for one of this.
    fn of_value(value: ParameterValue) -> Result<Self::Value>;
    /// From the text of a command line; `None` if that takes a parser of its own.
    fn of_text(text: &str) -> Option<Result<ParameterValue>>;
    /// A new place for the value.
    #[doc(hidden)]
    fn make(value: Self::Value) -> Cell;
    /// Reads the place; `None` if it is of another kind.
    #[doc(hidden)]
    fn load(cell: &Cell) -> Option<Self::Value>;
    /// Writes the place.
    #[doc(hidden)]
    fn store(cell: &Cell, value: Self::Value);
}

/// A kind that can have bounds.
pub trait Number: Kind<Default = Self, Value = Self> + Copy + PartialOrd + Display {}

impl Number for i32 {}
impl Number for i64 {}
impl Number for f64 {}

/// The kind of parameters that are BSON documents; this crate knows only that they are bytes.
pub enum Document {}

macro_rules! bits_kind {
    ($kind:ty, $variant:ident, $to_bits:expr, $of_bits:expr, $of_value:expr, $of_text:expr) => {
        impl Kind for $kind {
            type Default = $kind;
            type Value = $kind;
            type View = $kind;

            fn of_default(default: $kind) -> $kind {
                default
            }

            fn view(value: &$kind) -> &$kind {
                value
            }

            fn erase(value: &$kind) -> ParameterValue {
                ParameterValue::$variant(*value)
            }

            fn of_value(value: ParameterValue) -> Result<$kind> {
                $of_value(&value)
            }

            fn of_text(text: &str) -> Option<Result<ParameterValue>> {
                Some($of_text(text).map(ParameterValue::$variant))
            }

            fn make(value: $kind) -> Cell {
                Cell::Bits(AtomicU64::new($to_bits(value)))
            }

            #[inline]
            fn load(cell: &Cell) -> Option<$kind> {
                match cell {
                    Cell::Bits(bits) => Some($of_bits(bits.load(Ordering::Relaxed))),
                    _ => None,
                }
            }

            fn store(cell: &Cell, value: $kind) {
                match cell {
                    Cell::Bits(bits) => bits.store($to_bits(value), Ordering::Relaxed),
                    _ => debug_assert!(false, "a cell is of its definition's kind"),
                }
            }
        }
    };
}

bits_kind!(bool, Bool, u64::from, |bits| bits != 0, |value: &ParameterValue| Ok(value.to_bool()), parse_bool);
bits_kind!(i32, Int, |value: i32| value as u64, |bits| bits as i32, int_of_value, parse_int);
bits_kind!(i64, Long, |value: i64| value as u64, |bits| bits as i64, ParameterValue::to_long, parse_long);
bits_kind!(f64, Double, f64::to_bits, f64::from_bits, ParameterValue::to_double, parse_double);

fn int_of_value(value: &ParameterValue) -> Result<i32> {
    i32::try_from(value.to_long()?).map_err(|_| out_of_bounds())
}

fn parse_int(text: &str) -> Result<i32> {
    let overflow = |_| crate::Error::new(crate::ErrorCode::Overflow, "Overflow");
    i32::try_from(parse_long(text)?).map_err(overflow)
}

impl Kind for str {
    type Default = &'static str;
    type Value = Arc<str>;
    type View = str;

    fn of_default(default: &'static str) -> Arc<str> {
        Arc::from(default)
    }

    fn view(value: &Arc<str>) -> &str {
        value
    }

    fn erase(value: &Arc<str>) -> ParameterValue {
        ParameterValue::String(value.to_string())
    }

    fn of_value(value: ParameterValue) -> Result<Arc<str>> {
        match value {
            ParameterValue::String(text) => Ok(Arc::from(text)),
            _ => Err(wrong_type()),
        }
    }

    fn of_text(text: &str) -> Option<Result<ParameterValue>> {
        Some(Ok(ParameterValue::String(text.to_owned())))
    }

    fn make(value: Arc<str>) -> Cell {
        Cell::Text(RwLock::new(value))
    }

    fn load(cell: &Cell) -> Option<Arc<str>> {
        match cell {
            Cell::Text(text) => Some(Arc::clone(&text.read())),
            _ => None,
        }
    }

    fn store(cell: &Cell, value: Arc<str>) {
        match cell {
            Cell::Text(text) => *text.write() = value,
            _ => debug_assert!(false, "a cell is of its definition's kind"),
        }
    }
}

impl Kind for Document {
    type Default = &'static [u8];
    type Value = Arc<[u8]>;
    type View = [u8];

    fn of_default(default: &'static [u8]) -> Arc<[u8]> {
        Arc::from(default)
    }

    fn view(value: &Arc<[u8]>) -> &[u8] {
        value
    }

    fn erase(value: &Arc<[u8]>) -> ParameterValue {
        ParameterValue::Document(value.to_vec())
    }

    fn of_value(value: ParameterValue) -> Result<Arc<[u8]>> {
        match value {
            ParameterValue::Document(bytes) => Ok(Arc::from(bytes)),
            _ => Err(wrong_type()),
        }
    }

    fn of_text(_: &str) -> Option<Result<ParameterValue>> {
        None
    }

    fn make(value: Arc<[u8]>) -> Cell {
        Cell::Bytes(RwLock::new(value))
    }

    fn load(cell: &Cell) -> Option<Arc<[u8]>> {
        match cell {
            Cell::Bytes(bytes) => Some(Arc::clone(&bytes.read())),
            _ => None,
        }
    }

    fn store(cell: &Cell, value: Arc<[u8]>) {
        match cell {
            Cell::Bytes(bytes) => *bytes.write() = value,
            _ => debug_assert!(false, "a cell is of its definition's kind"),
        }
    }
}
