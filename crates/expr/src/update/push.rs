//! `$push` with its modifiers, and `$addToSet`.

use super::operation::{Change, Surroundings};
use crate::expression::sort::Pattern;
use pando_base::{Error, Result, operation};
use pando_doc::{Array, Element, OwnedValue, Value, compare_with, hash_value_with};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};

/// What is pushed where, and what is done with the array then.
#[derive(Clone, Debug)]
pub(super) struct Push {
    values: Vec<OwnedValue>,
    /// Where; from the end if negative, at the end if absent.
    position: Option<i64>,
    sort: Option<Pattern>,
    /// How many stay; the last ones if negative.
    slice: Option<i64>,
}

fn whole(element: Element<'_>, reason: &str) -> Result<i64> {
    let refused = || Error::bad_value(format!("{reason}{}", element.value.value_type()));
    element.value.to_i64_exact().ok_or_else(refused)
}

fn each(element: Element<'_>, operator: &str, code: pando_base::ErrorCode) -> Result<Vec<OwnedValue>> {
    match element.value {
        Value::Array(array) => Ok(array.values().map(|value| value.to_owned()).collect()),
        value => {
            let reason = format!(
                "The argument to $each in {operator} must be an array but it was of type: {}",
                value.value_type()
            );
            Err(Error::new(code, reason))
        }
    }
}

impl Push {
    pub(super) fn parse(value: Value<'_>) -> Result<Push> {
        let plain = |value: Value<'_>| Push { values: vec![value.to_owned()], position: None, sort: None, slice: None };
        let Value::Document(doc) = value else { return Ok(plain(value)) };
        if !doc.contains("$each") {
            return Ok(plain(value));
        }
        let mut push = Push { values: Vec::new(), position: None, sort: None, slice: None };
        for element in doc.elements() {
            match &**element.name {
                b"$each" => push.values = each(element, "$push", pando_base::ErrorCode::BadValue)?,
                b"$slice" => {
                    let reason = "The value for $slice must be an integer value but was given type: ";
                    push.slice = Some(whole(element, reason)?);
                }
                b"$position" => {
                    let reason = "The value for $position must be an integer value, not of type: ";
                    push.position = Some(whole(element, reason)?);
                }
                b"$sort" => {
                    if !matches!(element.value, Value::Document(_)) && !element.value.is_number() {
                        let reason = "The $sort is invalid: use 1/-1 to sort the whole element, or {field:1/-1} to sort embedded fields";
                        return Err(Error::bad_value(reason));
                    }
                    push.sort = Some(Pattern::parse(element.value)?);
                }
                _ => {
                    return Err(Error::bad_value(format!("Unrecognized clause in $push: {}", element.name)));
                }
            }
        }
        Ok(push)
    }

    pub(super) fn apply(&self, value: Option<Value<'_>>, around: &Surroundings<'_>) -> Result<Change> {
        let existing = match value {
            None => Array::new(),
            Some(Value::Array(array)) => array.to_array(),
            Some(value) => {
                let reason = format!(
                    "The field '{}' must be an array but is of type {} in document {}",
                    around.path(),
                    value.value_type(),
                    around.document()
                );
                return Err(Error::bad_value(reason));
            }
        };
        let mut values: Vec<Value<'_>> = existing.values().collect();
        let length = values.len();
        let place = match self.position {
            None => length,
            Some(place @ 0..) => usize::try_from(place).map_or(length, |place| place.min(length)),
            Some(place) => length.saturating_sub(usize::try_from(place.unsigned_abs()).unwrap_or(usize::MAX)),
        };
        values.splice(place..place, self.values.iter().map(OwnedValue::view));
        if let Some(sort) = &self.sort {
            values = operation::sort_by(values, |left, right| sort.compare(*left, *right, &around.options))?;
        }
        if let Some(slice) = self.slice {
            let count = usize::try_from(slice.unsigned_abs()).unwrap_or(usize::MAX);
            if slice >= 0 {
                values.truncate(count);
            } else {
                values.drain(..values.len().saturating_sub(count));
            }
        }
        Ok(Change::Set(OwnedValue::Array(values.into_iter().collect())))
    }
}

/// As many new values are compared with each that is there.
const FEW: usize = 8;

fn hash(value: Value<'_>, around: &Surroundings<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    hash_value_with(value, &around.options, &mut hasher);
    hasher.finish()
}

/// The values of an `$addToSet`.
#[derive(Clone, Debug)]
pub(super) struct AddToSet {
    values: Vec<OwnedValue>,
}

impl AddToSet {
    pub(super) fn parse(value: Value<'_>) -> Result<AddToSet> {
        if let Value::Document(doc) = value
            && let Some(first) = doc.first()
            && first.name == "$each"
        {
            let values = each(first, "$addToSet", pando_base::ErrorCode::TypeMismatch)?;
            if doc.field_count() > 1 {
                let reason = format!("Found unexpected fields after $each in $addToSet: {doc}");
                return Err(Error::bad_value(reason));
            }
            return Ok(AddToSet { values });
        }
        Ok(AddToSet { values: vec![value.to_owned()] })
    }

    pub(super) fn apply(&self, value: Option<Value<'_>>, around: &Surroundings<'_>) -> Result<Change> {
        let mut values: Vec<Value<'_>> = match value {
            None => Vec::new(),
            Some(Value::Array(array)) => array.values().collect(),
            Some(value) => {
                let reason = format!(
                    "Cannot apply $addToSet to a non-array field. Field named '{}' has non-array type {}",
                    around.field(),
                    value.value_type()
                );
                return Err(Error::bad_value(reason));
            }
        };
        let length = values.len();
        // Many are found by their hashes, few by looking at all.
        let mut known = (self.values.len() > FEW).then(HashMap::<u64, Vec<usize>>::new);
        if let Some(known) = &mut known {
            for (place, value) in values.iter().enumerate() {
                operation::tick(1)?;
                known.entry(hash(*value, around)).or_default().push(place);
            }
        }
        for new in self.values.iter().map(OwnedValue::view) {
            let is_equal = |value: &Value<'_>| compare_with(*value, new, &around.options).is_eq();
            let (is_there, places) = match &mut known {
                None => {
                    operation::tick(values.len() as u64)?;
                    (values.iter().any(is_equal), None)
                }
                Some(known) => {
                    operation::tick(1)?;
                    let places = known.entry(hash(new, around)).or_default();
                    (places.iter().filter_map(|place| values.get(*place)).any(is_equal), Some(places))
                }
            };
            if !is_there {
                places.into_iter().for_each(|places| places.push(values.len()));
                values.push(new);
            }
        }
        if value.is_some() && values.len() == length {
            return Ok(Change::Nothing);
        }
        Ok(Change::Set(OwnedValue::Array(values.into_iter().collect())))
    }
}
