//! Units of time and days of the week, as operators name them.

use crate::expression::Operand;
use pando_base::{Error, ErrorCode, Result};
use pando_doc::Value;

/// A unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum TimeUnit {
    Year,
    Quarter,
    Month,
    Week,
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
}

impl TimeUnit {
    const NAMES: [(&'static str, TimeUnit); 9] = [
        ("year", TimeUnit::Year),
        ("quarter", TimeUnit::Quarter),
        ("month", TimeUnit::Month),
        ("week", TimeUnit::Week),
        ("day", TimeUnit::Day),
        ("hour", TimeUnit::Hour),
        ("minute", TimeUnit::Minute),
        ("second", TimeUnit::Second),
        ("millisecond", TimeUnit::Millisecond),
    ];

    /// The unit of this name.
    pub fn parse(name: &[u8]) -> Result<TimeUnit> {
        let known = TimeUnit::NAMES.iter().find(|(known, _)| known.as_bytes() == name);
        known.map(|(_, unit)| *unit).ok_or_else(|| {
            let reason = format!("unknown time unit value: {}", String::from_utf8_lossy(name));
            Error::new(ErrorCode::FailedToParse, reason)
        })
    }

    /// As it is written.
    pub fn name(self) -> &'static str {
        TimeUnit::NAMES.iter().find(|(_, unit)| *unit == self).map_or("", |(name, _)| name)
    }

    /// How many months it is, if it is measured in them.
    pub(super) const fn months(self) -> Option<i64> {
        match self {
            TimeUnit::Year => Some(12),
            TimeUnit::Quarter => Some(3),
            TimeUnit::Month => Some(1),
            _ => None,
        }
    }

    /// How many milliseconds it is on a day without a change of clocks; none for months and longer.
    pub const fn milliseconds(self) -> Option<i64> {
        Some(match self {
            TimeUnit::Week => 7 * 86_400_000,
            TimeUnit::Day => 86_400_000,
            TimeUnit::Hour => 3_600_000,
            TimeUnit::Minute => 60_000,
            TimeUnit::Second => 1000,
            TimeUnit::Millisecond => 1,
            TimeUnit::Year | TimeUnit::Quarter | TimeUnit::Month => return None,
        })
    }

    /// The unit of an operand of this operator; none if it is null.
    pub(super) fn of_operand(operand: &Operand<'_>, operator: &str) -> Result<Option<TimeUnit>> {
        match operand.or_null() {
            Value::String(name) => {
                let unit = TimeUnit::parse(name);
                unit.map(Some)
                    .map_err(|error| error.context(format!("{operator} parameter 'unit' value parsing failed")))
            }
            value if value.is_nullish() => Ok(None),
            value => {
                let reason = format!("{operator} requires 'unit' to be a string, but got {}", value.value_type());
                Err(Error::location(5439013, reason))
            }
        }
    }
}

/// The `startOfWeek` of an operator: Monday is 1. Sunday if it is not given, none if it is null.
pub(super) fn start_of_week(operand: Option<&Operand<'_>>, operator: &str) -> Result<Option<i64>> {
    const DAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    let Some(operand) = operand else { return Ok(Some(7)) };
    let name = match operand.or_null() {
        Value::String(name) => name,
        value if value.is_nullish() => return Ok(None),
        value => {
            let reason = format!("{operator} requires 'startOfWeek' to be a string, but got {}", value.value_type());
            return Err(Error::location(5439015, reason));
        }
    };
    let lower = name.to_ascii_lowercase();
    let is_day = |day: &str| lower == day.as_bytes() || day.as_bytes().get(..3).is_some_and(|short| lower == short);
    let Some(place) = DAYS.iter().position(|day| is_day(day)) else {
        let reason =
            format!("{operator} parameter 'startOfWeek' value cannot be recognized as a day of a week: {name}");
        return Err(Error::location(5439016, reason));
    };
    Ok(Some(place as i64 + 1))
}
