//! Comparisons of one value with a constant, and with a list of constants.

use super::plain_texts::PlainTexts;
use crate::Regex;
use pando_base::operation;
use pando_doc::{CompareOptions, OwnedValue, StringComparator, Value, compare_with};
use std::cmp::Ordering;
use std::sync::Arc;

/// How a value has to stand to the constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ComparisonOperator {
    Equal,
    LessOrEqual,
    Less,
    Greater,
    GreaterOrEqual,
}

impl ComparisonOperator {
    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            ComparisonOperator::Equal => "$eq",
            ComparisonOperator::LessOrEqual => "$lte",
            ComparisonOperator::Less => "$lt",
            ComparisonOperator::Greater => "$gt",
            ComparisonOperator::GreaterOrEqual => "$gte",
        }
    }

    /// True if this order of value and constant fulfils it.
    #[inline]
    pub const fn accepts(self, order: Ordering) -> bool {
        match self {
            ComparisonOperator::Equal => order.is_eq(),
            ComparisonOperator::LessOrEqual => order.is_le(),
            ComparisonOperator::Less => order.is_lt(),
            ComparisonOperator::Greater => order.is_gt(),
            ComparisonOperator::GreaterOrEqual => order.is_ge(),
        }
    }
}

/// A comparison with a constant.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// How.
    pub operator: ComparisonOperator,
    /// With what.
    pub value: OwnedValue,
}

impl Comparison {
    /// True if the value, or its absence, fulfils the comparison.
    #[inline]
    pub fn matches(&self, value: Option<Value<'_>>, strings: Option<&dyn StringComparator>) -> bool {
        let constant = self.value.view();
        // What is missing has the place of undefined.
        let order = value.map_or(0, |value| value.value_type().canonical_order());
        let constant_order = constant.value_type().canonical_order();
        match value {
            Some(value) if order == constant_order => self.matches_same_type(value, constant, strings),
            _ if order == constant_order => self.operator.accepts(Ordering::Equal),
            _ => self.matches_other_type(order, constant),
        }
    }

    fn matches_same_type(&self, value: Value<'_>, constant: Value<'_>, strings: Option<&dyn StringComparator>) -> bool {
        if is_nan(constant) || is_nan(value) {
            return is_nan(constant) && is_nan(value) && self.operator.accepts(Ordering::Equal);
        }
        let options = CompareOptions { strings, ..CompareOptions::default() };
        self.operator.accepts(compare_with(value, constant, &options))
    }

    /// Types do not mix, with two exceptions: null is like undefined and what is missing, and the two keys are beyond
    /// everything.
    fn matches_other_type(&self, order: i8, constant: Value<'_>) -> bool {
        match constant {
            Value::Null => order == 0 && self.operator.accepts(Ordering::Equal),
            Value::MaxKey => matches!(self.operator, ComparisonOperator::Less | ComparisonOperator::LessOrEqual),
            Value::MinKey => matches!(self.operator, ComparisonOperator::Greater | ComparisonOperator::GreaterOrEqual),
            _ => false,
        }
    }
}

#[inline]
fn is_nan(value: Value<'_>) -> bool {
    match value {
        Value::Double(number) => number.is_nan(),
        Value::Decimal(number) => number.is_nan(),
        _ => false,
    }
}

/// The constants and patterns of an `$in`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct InList {
    values: Vec<OwnedValue>,
    regexes: Vec<Regex>,
    /// Those of the patterns that are plain texts, if they are many, and the places of the others.
    plain: Option<Arc<(PlainTexts, Vec<usize>)>>,
    has_null: bool,
}

impl InList {
    /// A list; sorts the values and drops those that are equal to others.
    pub fn new(mut values: Vec<OwnedValue>, regexes: Vec<Regex>, strings: Option<&dyn StringComparator>) -> InList {
        let options = CompareOptions { strings, ..CompareOptions::default() };
        values.sort_by(|left, right| compare_with(left.view(), right.view(), &options));
        values.dedup_by(|left, right| compare_with(left.view(), right.view(), &options).is_eq());
        let has_null = values.iter().any(|value| matches!(value, OwnedValue::Null));
        let plain = PlainTexts::among(&regexes).map(Arc::new);
        InList { values, regexes, plain, has_null }
    }

    /// The constants, ascending, each once.
    pub fn values(&self) -> &[OwnedValue] {
        &self.values
    }

    /// The patterns.
    pub fn regexes(&self) -> &[Regex] {
        &self.regexes
    }

    /// True if null is among the constants, which also matches what is missing.
    pub fn has_null(&self) -> bool {
        self.has_null
    }

    /// True if the value, or its absence, is in the list.
    pub fn matches(&self, value: Option<Value<'_>>, strings: Option<&dyn StringComparator>) -> bool {
        let Some(value) = value.filter(|value| !(self.has_null && matches!(value, Value::Undefined))) else {
            return self.has_null;
        };
        let options = CompareOptions { strings, ..CompareOptions::default() };
        let found = self.values.binary_search_by(|constant| compare_with(constant.view(), value, &options));
        found.is_ok() || self.matches_pattern(value)
    }

    fn matches_pattern(&self, value: Value<'_>) -> bool {
        let matches = |regex: &Regex| operation::goes_on(1) && regex_matches(regex, value);
        match (&self.plain, value) {
            (Some(plain), Value::String(text) | Value::Symbol(text)) => {
                let (plain, others) = &**plain;
                plain.match_text(text) || others.iter().filter_map(|place| self.regexes.get(*place)).any(matches)
            }
            (_, Value::String(_) | Value::Symbol(_) | Value::Regex { .. }) => self.regexes.iter().any(matches),
            _ => false,
        }
    }
}

/// A pattern matches text that it occurs in, and the same pattern as a value.
pub(super) fn regex_matches(regex: &Regex, value: Value<'_>) -> bool {
    match value {
        Value::String(text) | Value::Symbol(text) => regex.is_match(text),
        Value::Regex { pattern, options } => pattern == regex.pattern() && options == regex.options(),
        _ => false,
    }
}
