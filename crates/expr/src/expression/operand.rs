//! A value in an evaluation: missing, borrowed from the document or the expression, or made on the way.

use crate::limits::{check_string, check_value};
use bytes::Bytes;
use pando_base::{Result, operation};
use pando_doc::{Array, ArrayBuilder, Doc, DocBuilder, Number, OwnedValue, RawElement, Value};

/// What an expression evaluates to.
#[derive(Clone, Debug)]
pub enum Operand<'a> {
    /// There is no value: not even null.
    Missing,
    /// A value in place.
    Borrowed(Value<'a>),
    /// A value of its own; a clone shares its bytes.
    Owned(OwnedValue),
}

impl<'a> Operand<'a> {
    /// Null.
    pub const NULL: Operand<'static> = Operand::Borrowed(Value::Null);

    /// The value in place, if there is one.
    #[inline]
    pub fn view(&self) -> Option<Value<'_>> {
        match self {
            Operand::Missing => None,
            Operand::Borrowed(value) => Some(*value),
            Operand::Owned(value) => Some(value.view()),
        }
    }

    /// The value for comparisons, where what is missing is like undefined.
    #[inline]
    pub fn comparable(&self) -> Value<'_> {
        self.view().unwrap_or(Value::Undefined)
    }

    /// The value, null if it is missing.
    pub fn or_null(&self) -> Value<'_> {
        self.view().unwrap_or(Value::Null)
    }

    /// True if there is no value.
    pub fn is_missing(&self) -> bool {
        matches!(self, Operand::Missing)
    }

    /// True for missing, null and undefined.
    pub fn is_nullish(&self) -> bool {
        self.view().is_none_or(|value| value.is_nullish())
    }

    /// True if the value counts as true.
    pub fn is_true(&self) -> bool {
        self.view().is_some_and(|value| value.is_true())
    }

    /// The number, if it is one.
    pub fn as_number(&self) -> Option<Number> {
        self.view().and_then(|value| value.as_number())
    }

    /// The name of the type, "missing" without a value.
    pub fn type_name(&self) -> &'static str {
        self.view().map_or("missing", |value| value.value_type().name())
    }

    /// The value, owned; none if it is missing.
    pub fn into_value(self) -> Option<OwnedValue> {
        match self {
            Operand::Missing => None,
            Operand::Borrowed(value) => Some(value.to_owned()),
            Operand::Owned(value) => Some(value),
        }
    }

    /// A value inside this one, taken along without a copy where that is possible. `part` must come from `self.view()`.
    pub fn child(&self, part: Option<Value<'_>>) -> Operand<'a> {
        let Some(part) = part else { return Operand::Missing };
        match self {
            Operand::Owned(OwnedValue::Document(doc)) => Operand::Owned(part.to_shared(doc)),
            Operand::Owned(OwnedValue::Array(array)) => Operand::Owned(part.to_shared(array.as_doc())),
            _ => Operand::Owned(part.to_owned()),
        }
    }

    /// The values of an array, each as an operand; none if it is no array.
    pub fn array_operands(&self) -> Result<Option<Vec<Operand<'a>>>> {
        let mut operands = Vec::new();
        match self {
            Operand::Borrowed(Value::Array(array)) => {
                for value in array.values() {
                    operation::tick(1)?;
                    operands.push(Operand::Borrowed(value));
                }
            }
            Operand::Owned(OwnedValue::Array(array)) => {
                for value in array.values() {
                    operation::tick(1)?;
                    operands.push(Operand::Owned(value.to_shared(array.as_doc())));
                }
            }
            _ => return Ok(None),
        }
        Ok(Some(operands))
    }

    /// A string, if it is not too long.
    pub fn string(bytes: impl Into<Bytes>) -> Result<Operand<'a>> {
        let bytes = bytes.into();
        check_string(bytes.len())?;
        Ok(Operand::Owned(OwnedValue::String(bytes)))
    }

    /// An array of operands, null in place of what is missing, if it does not get too large.
    pub fn array<'o>(operands: impl IntoIterator<Item = Operand<'o>>) -> Result<Operand<'a>> {
        let mut values = Values::new();
        operands.into_iter().try_for_each(|operand| values.push(operand.or_null()))?;
        Ok(values.finish())
    }
}

/// An array that an expression makes, value by value.
#[derive(Default)]
pub(crate) struct Values(ArrayBuilder);

impl Values {
    pub(crate) fn new() -> Values {
        Values::default()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn push(&mut self, value: Value<'_>) -> Result<()> {
        let before = self.0.size_bytes();
        self.0.push(value);
        self.grown(before)
    }

    /// A value as it is encoded elsewhere.
    pub(crate) fn push_raw(&mut self, element: RawElement<'_>) -> Result<()> {
        let before = self.0.size_bytes();
        self.0.push_raw(element);
        self.grown(before)
    }

    pub(crate) fn document(&mut self, fill: impl FnOnce(&mut DocBuilder)) -> Result<()> {
        let before = self.0.size_bytes();
        self.0.document(fill);
        self.grown(before)
    }

    /// An array inside of it; the values are given one by one.
    pub(crate) fn array<'v>(&mut self, values: impl Iterator<Item = Value<'v>>) -> Result<()> {
        let mut nested = Values::new();
        for value in values {
            nested.push(value)?;
        }
        self.push(Value::Array(nested.0.finish().view()))
    }

    fn grown(&self, before: usize) -> Result<()> {
        check_value(self.0.size_bytes())?;
        operation::tick_bytes(self.0.size_bytes() - before)
    }

    pub(crate) fn finish<'a>(self) -> Operand<'a> {
        Operand::from(self.0.finish())
    }
}

macro_rules! operand_from {
    ($($type:ty)*) => {
        $(impl From<$type> for Operand<'_> {
            fn from(value: $type) -> Self {
                Operand::Owned(OwnedValue::from(value))
            }
        })*
    };
}

operand_from! { bool i32 i64 f64 Number Doc Array &str String }

impl<'a> From<Value<'a>> for Operand<'a> {
    fn from(value: Value<'a>) -> Operand<'a> {
        Operand::Borrowed(value)
    }
}

impl From<OwnedValue> for Operand<'_> {
    fn from(value: OwnedValue) -> Self {
        Operand::Owned(value)
    }
}

impl<'a> From<Option<Value<'a>>> for Operand<'a> {
    fn from(value: Option<Value<'a>>) -> Operand<'a> {
        value.map_or(Operand::Missing, Operand::Borrowed)
    }
}
