//! The operators of updates on one value.

use super::bit::BitOperation;
use super::pull::Pull;
use super::push::{AddToSet, Push};
use bstr::BString;
use pando_base::{Error, Result, Timestamp};
use pando_doc::{CompareOptions, DocRef, FieldPath, Number, OwnedValue, Value, compare, compare_with};

/// What is done to the value at a path.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    Set(OwnedValue),
    SetOnInsert(OwnedValue),
    Unset,
    Increment(Number),
    Multiply(Number),
    /// `$min`; true for `$max`.
    Extreme(OwnedValue, bool),
    /// `$currentDate`; true for a timestamp.
    CurrentDate(bool),
    Push(Box<Push>),
    AddToSet(AddToSet),
    /// True if from the front.
    Pop(bool),
    Pull(Box<Pull>),
    Bit(Vec<BitOperation>),
    /// The target of a `$rename`.
    RenameTo(FieldPath),
    /// The source of a `$rename`.
    RenameFrom,
}

/// What an operator finds around it.
pub(super) struct Surroundings<'s> {
    pub(super) options: CompareOptions<'s>,
    pub(super) now: i64,
    pub(super) timestamp: Timestamp,
    pub(super) is_insert: bool,
    /// The document as it was, for error messages.
    pub(super) original: DocRef<'s>,
    /// Where the operator is, for error messages.
    pub(super) path: &'s [BString],
}

impl Surroundings<'_> {
    /// How error messages name the document.
    pub(super) fn document(&self) -> String {
        document_text(self.original)
    }

    /// The name of the field.
    pub(super) fn field(&self) -> BString {
        self.path.last().cloned().unwrap_or_default()
    }

    /// The whole path.
    pub(super) fn path(&self) -> BString {
        BString::from(bstr::join(".", self.path))
    }
}

/// How error messages name a document: by its `_id`.
pub(super) fn document_text(doc: DocRef<'_>) -> String {
    match doc.elements().find(|element| element.name == "_id") {
        Some(id) => format!("{{{id}}}"),
        None => "{no id}".to_owned(),
    }
}

/// What became of a value.
pub(super) enum Change {
    Nothing,
    Set(OwnedValue),
    Remove,
}

impl Operation {
    /// True if it makes its path if that is missing.
    pub(super) fn creates(&self, is_insert: bool) -> bool {
        match self {
            Operation::Unset | Operation::Pop(_) | Operation::Pull(_) | Operation::RenameFrom => false,
            Operation::SetOnInsert(_) => is_insert,
            _ => true,
        }
    }

    /// Applies it to a value, or to the absence of one.
    pub(super) fn apply(&self, value: Option<Value<'_>>, around: &Surroundings<'_>) -> Result<Change> {
        match self {
            Operation::Set(new) => Ok(Change::Set(new.clone())),
            Operation::SetOnInsert(new) if around.is_insert => Ok(Change::Set(new.clone())),
            Operation::SetOnInsert(_) | Operation::RenameTo(_) => Ok(Change::Nothing),
            Operation::Unset | Operation::RenameFrom => Ok(Change::Remove),
            Operation::Increment(by) => match value {
                None => Ok(Change::Set(OwnedValue::from(*by))),
                Some(value) => arithmetic(value, *by, "$inc", Number::checked_add, around),
            },
            Operation::Multiply(by) => match value {
                None => Ok(Change::Set(OwnedValue::from(zero_like(*by)))),
                Some(value) => arithmetic(value, *by, "$mul", Number::checked_multiply, around),
            },
            Operation::Extreme(new, is_max) => Ok(match value {
                Some(value) => {
                    let order = compare_with(new.view(), value, &around.options);
                    let is_better = if *is_max { order.is_gt() } else { order.is_lt() };
                    if is_better { Change::Set(new.clone()) } else { Change::Nothing }
                }
                None => Change::Set(new.clone()),
            }),
            Operation::CurrentDate(true) => Ok(Change::Set(OwnedValue::Timestamp(around.timestamp))),
            Operation::CurrentDate(false) => Ok(Change::Set(OwnedValue::DateTime(around.now))),
            Operation::Push(push) => push.apply(value, around),
            Operation::AddToSet(add) => add.apply(value, around),
            Operation::Pop(from_front) => pop(value, *from_front, around),
            Operation::Pull(pull) => pull.apply(value, around),
            Operation::Bit(operations) => super::bit::apply(operations, value, around),
        }
    }
}

fn zero_like(number: Number) -> Number {
    match number {
        Number::Int32(_) => Number::Int32(0),
        Number::Int64(_) => Number::Int64(0),
        Number::Double(_) => Number::Double(0.0),
        Number::Decimal(_) => Number::Decimal(pando_doc::Decimal128::ZERO),
    }
}

fn arithmetic(
    value: Value<'_>,
    by: Number,
    operator: &str,
    reckon: fn(Number, Number) -> Option<Number>,
    around: &Surroundings<'_>,
) -> Result<Change> {
    let Some(number) = value.as_number() else {
        let (document, field) = (around.document(), around.field());
        let reason = format!(
            "Cannot apply {operator} to a value of non-numeric type. {document} has the field '{field}' of non-numeric type {}",
            value.value_type()
        );
        return Err(Error::type_mismatch(reason));
    };
    let result = reckon(number, by).ok_or_else(|| {
        let kind = match number {
            Number::Int32(_) => "NumberInt",
            _ => "NumberLong",
        };
        let document = around.document();
        let reason = format!(
            "Failed to apply {operator} operations to current value (({kind}){}) for document {document}",
            number.truncated_i64()
        );
        Error::bad_value(reason)
    })?;
    // Zeros of either sign are the same to it, and what stays the same stays as it was.
    let is_same_type = Value::from(number).value_type() == Value::from(result).value_type();
    let is_nan = Value::from(result).to_double().is_some_and(f64::is_nan);
    if is_same_type && compare(Value::from(number), Value::from(result)).is_eq() && !is_nan {
        return Ok(Change::Nothing);
    }
    Ok(Change::Set(OwnedValue::from(result)))
}

fn pop(value: Option<Value<'_>>, from_front: bool, around: &Surroundings<'_>) -> Result<Change> {
    match value {
        None => Ok(Change::Nothing),
        Some(Value::Array(array)) => {
            let length = array.len();
            let kept = array.values().enumerate().filter(
                |(index, _)| {
                    if from_front { *index != 0 } else { index + 1 != length }
                },
            );
            Ok(Change::Set(OwnedValue::Array(kept.map(|(_, value)| value).collect())))
        }
        Some(value) => {
            let reason =
                format!("Path '{}' contains an element of non-array type '{}'", around.path(), value.value_type());
            Err(Error::type_mismatch(reason))
        }
    }
}
