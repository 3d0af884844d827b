//! `$pull` and `$pullAll`: which values of an array go.

use super::operation::{Change, Surroundings};
use crate::matcher::is_condition;
use crate::{Features, MatchExpression, ParseContext};
use pando_base::{Error, Result};
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

    fn takes(&self, value: Value<'_>, around: &Surroundings<'_>) -> bool {
        match self {
            Pull::Values(values) => {
                values.iter().any(|other| compare_with(value, other.view(), &around.options).is_eq())
            }
            Pull::Documents(filter) => value.as_document().is_some_and(|doc| filter.matches(doc)),
            Pull::Wrapped(filter) => filter.matches(doc! { "": value }.view()),
        }
    }

    pub(super) fn apply(&self, value: Option<Value<'_>>, around: &Surroundings<'_>) -> Result<Change> {
        let array = match value {
            None => return Ok(Change::Nothing),
            Some(Value::Array(array)) => array,
            Some(_) => return Err(Error::bad_value("Cannot apply $pull to a non-array value")),
        };
        let kept: Vec<Value<'_>> = array.values().filter(|value| !self.takes(*value, around)).collect();
        if kept.len() == array.len() {
            return Ok(Change::Nothing);
        }
        Ok(Change::Set(OwnedValue::Array(kept.into_iter().collect())))
    }
}
