//! `$dateFromString`, and the dates that `$convert` reads: what was read of a text becomes a date.

use super::calendar::{day_of_iso_week, days_in_month, first_of_month};
use super::read_text::Relative;
use super::zone::Zone;
use super::{read_format, read_text, write_text};
use crate::expression::{Environment, Operand};
use bstr::BStr;
use pando_base::{Error, ErrorCode, Result};
use pando_doc::{OwnedValue, Value};

/// What a text told of a date.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Fields {
    pub(super) year: Option<i64>,
    pub(super) month: Option<i64>,
    pub(super) day: Option<i64>,
    /// The first of January is 0.
    pub(super) day_of_year: Option<i64>,
    pub(super) iso_year: Option<i64>,
    pub(super) iso_week: Option<i64>,
    pub(super) iso_day: Option<i64>,
    pub(super) hour: Option<i64>,
    pub(super) minute: Option<i64>,
    pub(super) second: Option<i64>,
    pub(super) millisecond: i64,
    pub(super) zone: Option<TextZone>,
    /// How far the date is moved.
    pub(super) relative: Relative,
}

/// A zone that stands in the text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TextZone {
    /// Milliseconds east of UTC.
    pub(super) offset: i64,
    /// How it is abbreviated, if it is.
    pub(super) name: Option<String>,
}

/// Why a text is no date: the place, and what is wrong there.
#[derive(Debug, PartialEq)]
pub(super) struct Wrong {
    pub(super) place: usize,
    pub(super) why: &'static str,
}

fn failure(reason: impl Into<String>) -> Error {
    Error::new(ErrorCode::ConversionFailure, reason)
}

fn unreadable(text: &BStr, wrong: &Wrong) -> Error {
    let letter = text.get(wrong.place).map_or(' ', |byte| char::from(*byte));
    failure(format!("Error parsing date string '{text}'; {}: {} '{letter}'", wrong.place, wrong.why))
}

/// `dateString`, `timezone`, `format`, `onNull`, `onError`.
pub(in crate::expression) fn date_from_string<'a>(
    operands: &[Option<Operand<'a>>],
    _: &Environment<'_>,
) -> Result<Operand<'a>> {
    let [Some(text), zone, format, on_null, on_error] = operands else { return Ok(Operand::NULL) };
    let given_format = match format.as_ref().map(Operand::or_null) {
        Some(Value::String(format)) => {
            write_text::check_format(format, read_format::SPECIFIERS)?;
            Some(format)
        }
        Some(value) if !value.is_nullish() => {
            let reason = format!(
                "$dateFromString requires that 'format' be a string, found: {} with value {value}",
                value.value_type()
            );
            return Err(Error::location(40684, reason));
        }
        _ => None,
    };
    let zone = Zone::of_operand(zone.as_ref())?;
    let text = match text.or_null() {
        Value::String(text) => text,
        value if value.is_nullish() => return Ok(on_null.clone().unwrap_or(Operand::NULL)),
        value => {
            let reason = format!(
                "$dateFromString requires that 'dateString' be a string, found: {} with value {value}",
                value.value_type()
            );
            return on_error.clone().ok_or_else(|| failure(reason));
        }
    };
    let Some(zone) = zone else { return Ok(Operand::NULL) };
    let read = match given_format {
        Some(format) => parse_with(text, &zone, |text| read_format::read(text, format)),
        None if format.is_some() => return Ok(Operand::NULL),
        None => parse_date(text, &zone),
    };
    match (read, on_error) {
        (Ok(date), _) => Ok(Operand::Owned(OwnedValue::DateTime(date))),
        (Err(_), Some(on_error)) => Ok(on_error.clone()),
        (Err(error), None) => Err(error),
    }
}

/// The date that a text in one of the usual forms tells.
pub(in crate::expression) fn parse_date(text: &BStr, zone: &Zone) -> Result<i64> {
    parse_with(text, zone, read_text::read)
}

fn parse_with(text: &BStr, zone: &Zone, read: impl FnOnce(&[u8]) -> std::result::Result<Fields, Wrong>) -> Result<i64> {
    let fields = read(text).map_err(|wrong| unreadable(text, &wrong))?;
    let incomplete = || {
        let reason = format!("an incomplete date/time string has been found, with elements missing: \"{text}\"");
        failure(reason)
    };
    let invalid = |why| unreadable(text, &Wrong { place: text.len(), why });
    let days = days_of(&fields).map_err(invalid)?.ok_or_else(incomplete)?;
    let times = [fields.hour, fields.minute, fields.second];
    let [hour, minute, second] = match times {
        [None, None, None] => [0, 0, 0],
        [Some(hour), minute, second] => [hour, minute.unwrap_or(0), second.unwrap_or(0)],
        _ => return Err(incomplete()),
    };
    if hour > 23 || minute > 59 || second > 59 {
        return Err(invalid("The parsed time was invalid"));
    }
    let time = ((hour * 60 + minute) * 60 + second) * 1000 + fields.millisecond;
    let local = fields.relative.applied(days, time);
    let moment = match (&fields.zone, zone.is_utc()) {
        (None, _) => local.and_then(|local| zone.moment_of(local)),
        (Some(TextZone { offset, .. }), true) => local.and_then(|local| local.checked_sub(*offset)),
        (Some(TextZone { name: None, .. }), false) => {
            let reason = "you cannot pass in a date/time string with GMT offset together with a timezone argument";
            return Err(failure(reason));
        }
        (Some(TextZone { name: Some(name), .. }), false) => {
            let reason = format!(
                "you cannot pass in a date/time string with time zone information ('{name}') together with a timezone argument"
            );
            return Err(failure(reason));
        }
    };
    moment.ok_or_else(|| failure(format!("Error parsing date string '{text}': it is out of range")))
}

/// The day since 1970; none if parts of it are missing.
fn days_of(fields: &Fields) -> std::result::Result<Option<i64>, &'static str> {
    const INVALID: &str = "The parsed date was invalid";
    let has_natural = fields.year.is_some() || fields.month.is_some() || fields.day.is_some();
    let is_iso = fields.iso_year.is_some() || fields.iso_week.is_some() || fields.iso_day.is_some();
    if is_iso {
        if has_natural || fields.day_of_year.is_some() {
            return Err("Mixing of ISO dates with natural dates is not allowed");
        }
        let year = fields.iso_year.ok_or(INVALID)?;
        return Ok(day_of_iso_week(year, fields.iso_week.unwrap_or(1), fields.iso_day.unwrap_or(1)));
    }
    if let (Some(year), Some(day)) = (fields.year, fields.day_of_year) {
        return Ok(first_of_month(year, 1).map(|first| first + day));
    }
    let (Some(year), Some(month), Some(day)) = (fields.year, fields.month, fields.day) else { return Ok(None) };
    let is_valid =
        (1..=12).contains(&month) && days_in_month(year, month).is_some_and(|most| (1..=most).contains(&day));
    if !is_valid {
        return Err(INVALID);
    }
    Ok(first_of_month(year, month).map(|first| first + day - 1))
}
