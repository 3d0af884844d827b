//! `$pull` and `$pullAll`: which values of an array go.

use super::operation::{Change, Surroundings};
use crate::matcher::is_condition;
use crate::{Features, MatchExpression, ParseContext};
use pando_base::{Error, Result, operation};
use pando_doc::{OwnedValue, Value, compare_with, doc};

/// Which values go.
#[derive(Clone, Debug)]
pub(super) enum Pull {
    /// Those equal to one of these.
    Values(Vec<OwnedValue>),
    /// Documents that match.
    Documents(MatchExpression),
    /// Values that fulfil operators, behind an empty name.
    Wrapped(MatchExpression),
}

impl Pull {
    pub(super) fn parse(value: Value<'_>, context: &ParseContext) -> Result<Pull> {
        let context = context.clone().with_features(Features::NONE);
        Ok(match value {
            Value::Document(filter) if !filter.first().is_some_and(|first| is_condition(first.name)) => {
                Pull::Documents(MatchExpression::parse(filter, &context)?)
            }
            Value::Document(_) | Value::Regex { .. } => {
                let filter = doc! { "": value };
                Pull::Wrapped(MatchExpression::parse(filter.view(), &context)?)
            }
            value => Pull::Values(vec![value.to_owned()]),
        })
    }

    pub(super) fn parse_all(value: Value<'_>) -> Result<Pull> {
        match value {
            Value::Array(array) => Ok(Pull::Values(array.values().map(|value| value.to_owned()).collect())),
            value => {
                let reason = format!("$pullAll requires an array argument but was given a {}", value.value_type());
                Err(Error::bad_value(reason))
            }
        }
    }

    fn takes(&self, value: Value<'_>, around: &Surroundings<'_>) -> Result<bool> {
        match self {
            Pull::Values(values) => {
                operation::tick(1 + values.len() as u64)?;
                Ok(values.iter().any(|other| compare_with(value, other.view(), &around.options).is_eq()))
            }
            Pull::Documents(filter) => value.as_document().map_or(Ok(false), |doc| filter.try_matches(doc)),
            Pull::Wrapped(filter) => filter.try_matches(doc! { "": value }.view()),
        }
    }

    pub(super) fn apply(&self, value: Option<Value<'_>>, around: &Surroundings<'_>) -> Result<Change> {
        let array = match value {
            None => return Ok(Change::Nothing),
            Some(Value::Array(array)) => array,
            Some(_) => return Err(Error::bad_value("Cannot apply $pull to a non-array value")),
        };
        let mut kept: Vec<Value<'_>> = Vec::new();
        let mut count = 0;
        for value in array.values() {
            count += 1;
            if !self.takes(value, around)? {
                kept.push(value);
            }
        }
        if kept.len() == count {
            return Ok(Change::Nothing);
        }
        Ok(Change::Set(OwnedValue::Array(kept.into_iter().collect())))
    }
}
