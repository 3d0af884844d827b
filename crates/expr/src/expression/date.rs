//! Dates in UTC and at fixed offsets: their parts, texts and arithmetic.
//!
//! Named time zones need a table of them, which is not here yet: only UTC and offsets such as `+05:30` are known.

use super::convert::coerce_to_date;
use super::convert_number::parse_date;
use super::{Environment, Operand};
use bstr::BStr;
use pando_base::{Error, ErrorCode, Result};
use pando_doc::{DateParts, DocBuilder, Number, OwnedValue, Value};

const MINUTE: i64 = 60_000;
const DAY: i64 = 86_400_000;

/// The offset of a zone from UTC, in milliseconds.
fn zone_offset(operand: Option<&Operand<'_>>) -> Result<Option<i64>> {
    let Some(operand) = operand else { return Ok(Some(0)) };
    let name = match operand.or_null() {
        Value::String(name) => name,
        value if value.is_nullish() => return Ok(None),
        value => {
            let reason = format!("timezone must evaluate to a string, found {}", value.value_type());
            return Err(Error::location(40517, reason));
        }
    };
    if matches!(&**name, b"UTC" | b"GMT" | b"Z" | b"Etc/UTC" | b"Etc/GMT") {
        return Ok(Some(0));
    }
    fixed_offset(name)
        .map(Some)
        .ok_or_else(|| Error::location(40485, format!("unrecognized time zone identifier: \"{name}\"")))
}

/// `+hh`, `+hhmm` or `+hh:mm`.
fn fixed_offset(name: &BStr) -> Option<i64> {
    let text = std::str::from_utf8(name).ok()?;
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits: String = text.get(1..)?.chars().filter(|c| *c != ':').collect();
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) || !matches!(digits.len(), 2 | 4) {
        return None;
    }
    let hours: i64 = digits.get(..2)?.parse().ok()?;
    let minutes: i64 = digits.get(2..).filter(|rest| !rest.is_empty()).map_or(Some(0), |rest| rest.parse().ok())?;
    Some(sign * (hours * 60 + minutes) * MINUTE)
}

/// The local date of `date` and `timezone`; none if one is null.
fn local(date: &Operand<'_>, zone: Option<&Operand<'_>>) -> Result<Option<(i64, i64)>> {
    let Some(offset) = zone_offset(zone)? else { return Ok(None) };
    if date.is_nullish() {
        return Ok(None);
    }
    let milliseconds = coerce_to_date(date.or_null())?;
    Ok(Some((milliseconds.saturating_add(offset), offset)))
}

fn part<'a>(operands: &[Option<Operand<'_>>], take: impl FnOnce(i64) -> i64) -> Result<Operand<'a>> {
    let (Some(Some(date)), zone) = (operands.first(), operands.get(1)) else { return Ok(Operand::NULL) };
    Ok(match local(date, zone.and_then(Option::as_ref))? {
        Some((milliseconds, _)) => Operand::from(Number::narrowest(take(milliseconds))),
        None => Operand::NULL,
    })
}

macro_rules! parts {
    ($($function:ident, $take:expr;)*) => {
        $(pub(super) fn $function<'a>(operands: &[Option<Operand<'a>>], _: &Environment<'_>) -> Result<Operand<'a>> {
            part(operands, $take)
        })*
    };
}

fn split(milliseconds: i64) -> DateParts {
    DateParts::from_milliseconds(milliseconds)
}

parts! {
    year, |date| split(date).year;
    month, |date| split(date).month.into();
    day_of_month, |date| split(date).day.into();
    hour, |date| split(date).hour.into();
    minute, |date| split(date).minute.into();
    second, |date| split(date).second.into();
    millisecond, |date| split(date).millisecond.into();
    day_of_year, day_of_year_number;
    day_of_week, |date| weekday(date) + 1;
    iso_day_of_week, iso_weekday;
    week, |date| (day_of_year_number(date) + 6 - weekday(date)) / 7;
    iso_week, |date| iso_week_of(date).1;
    iso_week_year, |date| iso_week_of(date).0;
}

/// Sunday is 0.
fn weekday(date: i64) -> i64 {
    (date.div_euclid(DAY) + 4).rem_euclid(7)
}

/// Monday is 1, Sunday is 7.
fn iso_weekday(date: i64) -> i64 {
    (weekday(date) + 6) % 7 + 1
}

fn first_of_year(year: i64) -> i64 {
    let first = DateParts { year, month: 1, day: 1, hour: 0, minute: 0, second: 0, millisecond: 0 };
    first.to_milliseconds().unwrap_or(0)
}

fn day_of_year_number(date: i64) -> i64 {
    (date.div_euclid(DAY) - first_of_year(split(date).year).div_euclid(DAY)) + 1
}

/// The year and number of the week that holds the Thursday of this one.
fn iso_week_of(date: i64) -> (i64, i64) {
    let thursday = (date.div_euclid(DAY) + 4 - iso_weekday(date)).saturating_mul(DAY);
    (split(thursday).year, (day_of_year_number(thursday) - 1) / 7 + 1)
}

/// `date`, `timezone`, `iso8601`.
pub(super) fn date_to_parts<'a>(operands: &[Option<Operand<'a>>], _: &Environment<'_>) -> Result<Operand<'a>> {
    let [Some(date), zone, iso] = operands else { return Ok(Operand::NULL) };
    let Some((milliseconds, _)) = local(date, zone.as_ref())? else { return Ok(Operand::NULL) };
    let parts = split(milliseconds);
    let mut builder = DocBuilder::new();
    if iso.as_ref().is_some_and(Operand::is_true) {
        let (year, week) = iso_week_of(milliseconds);
        builder.append("isoWeekYear", Number::narrowest(year));
        builder.append("isoWeek", week as i32);
        builder.append("isoDayOfWeek", iso_weekday(milliseconds) as i32);
    } else {
        builder.append("year", Number::narrowest(parts.year));
        builder.append("month", parts.month as i32);
        builder.append("day", parts.day as i32);
    }
    builder.append("hour", parts.hour as i32);
    builder.append("minute", parts.minute as i32);
    builder.append("second", parts.second as i32);
    builder.append("millisecond", parts.millisecond as i32);
    Ok(Operand::from(builder.finish()))
}

/// `date`, `format`, `timezone`, `onNull`.
pub(super) fn date_to_string<'a>(operands: &[Option<Operand<'a>>], _: &Environment<'_>) -> Result<Operand<'a>> {
    let [Some(date), format, zone, on_null] = operands else { return Ok(Operand::NULL) };
    let format = match format.as_ref().map(Operand::or_null) {
        None if zone.is_some() => "%Y-%m-%dT%H:%M:%S.%L".to_owned(),
        None => "%Y-%m-%dT%H:%M:%S.%LZ".to_owned(),
        Some(Value::String(format)) => format.to_string(),
        Some(value) if value.is_nullish() => return Ok(Operand::NULL),
        Some(value) => {
            let reason = format!(
                "$dateToString requires that 'format' be a string, found: {} with value {value}",
                value.value_type()
            );
            return Err(Error::location(18533, reason));
        }
    };
    match local(date, zone.as_ref())? {
        Some((milliseconds, offset)) => Ok(Operand::string(formatted(milliseconds, offset, &format)?)),
        None => Ok(on_null.clone().unwrap_or(Operand::NULL)),
    }
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

fn formatted(milliseconds: i64, offset: i64, format: &str) -> Result<String> {
    let parts = split(milliseconds);
    let mut text = String::new();
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            text.push(letter);
            continue;
        }
        let Some(letter) = letters.next() else {
            return Err(Error::location(18535, "Unmatched '%' at end of format string"));
        };
        let month_name = MONTHS.get(parts.month as usize - 1).copied().unwrap_or_default();
        let minutes = (offset / MINUTE).abs();
        let sign = if offset < 0 { '-' } else { '+' };
        text.push_str(&match letter {
            '%' => "%".to_owned(),
            'd' => format!("{:02}", parts.day),
            'G' => format!("{:04}", iso_week_of(milliseconds).0),
            'H' => format!("{:02}", parts.hour),
            'j' => format!("{:03}", day_of_year_number(milliseconds)),
            'L' => format!("{:03}", parts.millisecond),
            'm' => format!("{:02}", parts.month),
            'M' => format!("{:02}", parts.minute),
            'S' => format!("{:02}", parts.second),
            'u' => iso_weekday(milliseconds).to_string(),
            'w' => (weekday(milliseconds) + 1).to_string(),
            'U' => format!("{:02}", (day_of_year_number(milliseconds) + 6 - weekday(milliseconds)) / 7),
            'V' => format!("{:02}", iso_week_of(milliseconds).1),
            'Y' if !(0..=9999).contains(&parts.year) => {
                let reason = format!("$dateToString is only defined on year 0-9999, tried to use year {}", parts.year);
                return Err(Error::location(18537, reason));
            }
            'Y' => format!("{:04}", parts.year),
            'z' => format!("{sign}{:02}{:02}", minutes / 60, minutes % 60),
            'Z' => (offset / MINUTE).to_string(),
            'b' => month_name.get(..3).unwrap_or_default().to_owned(),
            'B' => month_name.to_owned(),
            other => {
                return Err(Error::location(18536, format!("Invalid format character '%{other}' in format string")));
            }
        });
    }
    Ok(text)
}

/// `dateString`, `timezone`, `onNull`.
pub(super) fn date_from_string<'a>(operands: &[Option<Operand<'a>>], _: &Environment<'_>) -> Result<Operand<'a>> {
    let [Some(text), zone, on_null, on_error] = operands else { return Ok(Operand::NULL) };
    let text = match text.or_null() {
        Value::String(text) => text,
        value if value.is_nullish() => return Ok(on_null.clone().unwrap_or(Operand::NULL)),
        value => {
            let reason = format!(
                "$dateFromString requires that 'dateString' be a string, found: {} with value {value}",
                value.value_type()
            );
            return on_error.clone().ok_or_else(|| Error::new(ErrorCode::ConversionFailure, reason));
        }
    };
    let Some(offset) = zone_offset(zone.as_ref())? else { return Ok(Operand::NULL) };
    match parse_date(text) {
        Some(date) => Ok(Operand::Owned(OwnedValue::DateTime(date.saturating_sub(offset)))),
        None => on_error.clone().ok_or_else(|| {
            let reason = format!("Error parsing date string '{text}'; 0: Unexpected character");
            Error::new(ErrorCode::ConversionFailure, reason)
        }),
    }
}

/// A unit of time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Months(i64),
    Milliseconds(i64),
}

fn unit(operand: &Operand<'_>, name: &str) -> Result<Option<Unit>> {
    let text = match operand.or_null() {
        Value::String(text) => text,
        value if value.is_nullish() => return Ok(None),
        value => {
            let reason = format!("{name} requires 'unit' to be a string, but got {}", value.value_type());
            return Err(Error::location(5439013, reason));
        }
    };
    Ok(Some(match &**text {
        b"year" => Unit::Months(12),
        b"quarter" => Unit::Months(3),
        b"month" => Unit::Months(1),
        b"week" => Unit::Milliseconds(7 * DAY),
        b"day" => Unit::Milliseconds(DAY),
        b"hour" => Unit::Milliseconds(60 * MINUTE),
        b"minute" => Unit::Milliseconds(MINUTE),
        b"second" => Unit::Milliseconds(1000),
        b"millisecond" => Unit::Milliseconds(1),
        _ => {
            let reason = format!("{name} parameter 'unit' value cannot be recognized as a time unit: {text}");
            return Err(Error::new(ErrorCode::FailedToParse, reason));
        }
    }))
}

/// `startDate`, `unit`, `amount`, `timezone`.
pub(super) fn date_add<'a>(operands: &[Option<Operand<'a>>], _: &Environment<'_>) -> Result<Operand<'a>> {
    shifted(operands, "$dateAdd", 1)
}

pub(super) fn date_subtract<'a>(operands: &[Option<Operand<'a>>], _: &Environment<'_>) -> Result<Operand<'a>> {
    shifted(operands, "$dateSubtract", -1)
}

fn shifted<'a>(operands: &[Option<Operand<'_>>], name: &str, sign: i64) -> Result<Operand<'a>> {
    let [Some(date), Some(unit_name), Some(amount), zone] = operands else { return Ok(Operand::NULL) };
    let (Some(offset), false, false) = (zone_offset(zone.as_ref())?, date.is_nullish(), amount.is_nullish()) else {
        return Ok(Operand::NULL);
    };
    let Some(unit) = unit(unit_name, name)? else { return Ok(Operand::NULL) };
    let start = coerce_to_date(date.or_null())
        .map_err(|_| Error::location(5166403, format!("{name} requires startDate to be convertible to a date")))?;
    let amount = amount
        .as_number()
        .and_then(Number::to_i64_exact)
        .ok_or_else(|| Error::location(5166405, format!("{name} expects integer amount of time units")))?;
    let overflow = || Error::location(5166406, format!("{name} overflowed"));
    let amount = amount.checked_mul(sign).ok_or_else(overflow)?;
    let moved = match unit {
        Unit::Milliseconds(length) => amount.checked_mul(length).and_then(|by| start.checked_add(by)),
        Unit::Months(months) => amount
            .checked_mul(months)
            .and_then(|months| add_months(start.checked_add(offset)?, months))
            .and_then(|local| local.checked_sub(offset)),
    };
    Ok(Operand::Owned(OwnedValue::DateTime(moved.ok_or_else(overflow)?)))
}

/// The same day and time that many months later, the last of the month if it has no such day.
fn add_months(date: i64, months: i64) -> Option<i64> {
    let parts = split(date);
    let total = parts.year.checked_mul(12)?.checked_add(i64::from(parts.month) - 1)?.checked_add(months)?;
    let (year, month) = (total.div_euclid(12), total.rem_euclid(12) as u32 + 1);
    (0..4).find_map(|cut| DateParts { year, month, day: parts.day.checked_sub(cut)?, ..parts }.to_milliseconds())
}

/// `startDate`, `endDate`, `unit`, `timezone`, `startOfWeek`.
pub(super) fn date_diff<'a>(operands: &[Option<Operand<'a>>], _: &Environment<'_>) -> Result<Operand<'a>> {
    let [Some(start), Some(end), Some(unit_name), zone, _] = operands else { return Ok(Operand::NULL) };
    let (Some((start, _)), Some((end, _))) = (local(start, zone.as_ref())?, local(end, zone.as_ref())?) else {
        return Ok(Operand::NULL);
    };
    let Some(unit) = unit(unit_name, "$dateDiff")? else { return Ok(Operand::NULL) };
    let months = |date: i64| split(date).year * 12 + i64::from(split(date).month) - 1;
    let count = match unit {
        Unit::Months(length) => months(end).div_euclid(length) - months(start).div_euclid(length),
        // Weeks begin on Sunday.
        Unit::Milliseconds(length) if length == 7 * DAY => {
            let week = |date: i64| (date.div_euclid(DAY) + 4).div_euclid(7);
            week(end) - week(start)
        }
        Unit::Milliseconds(length) => end.div_euclid(length).saturating_sub(start.div_euclid(length)),
    };
    Ok(Operand::from(count))
}

/// A part of a date: `{$year: date}`, `{$year: [date]}` or `{$year: {date, timezone}}`.
pub(super) fn parse_part(
    parser: &mut super::parse::Parser<'_>,
    element: pando_doc::Element<'_>,
    evaluate: super::function::EvaluateNamed,
) -> Result<super::Node> {
    use super::function::{Argument, NamedFunction};
    const ARGUMENTS: &[Argument] =
        &[Argument { name: "date", required: Some(40539) }, Argument { name: "timezone", required: None }];
    let name = PART_NAMES.iter().find(|name| element.name == **name).copied().unwrap_or("$year");
    let function = NamedFunction { name, arguments: ARGUMENTS, not_object: 40535, unknown: 40535, evaluate };
    match element.value {
        Value::Document(doc) if !doc.first().is_some_and(|first| first.name.starts_with(b"$")) => {
            parser.named(function, element)
        }
        Value::Array(array) if array.len() != 1 => {
            let reason =
                format!("{name} accepts exactly one argument if given an array, but was given {}", array.len());
            Err(Error::location(40536, reason))
        }
        value => {
            let mut operands = parser.operands(value)?;
            Ok(super::Node::Named { function, operands: vec![operands.pop(), None] })
        }
    }
}

const PART_NAMES: &[&str] = &[
    "$year",
    "$month",
    "$dayOfMonth",
    "$hour",
    "$minute",
    "$second",
    "$millisecond",
    "$dayOfYear",
    "$dayOfWeek",
    "$week",
    "$isoWeek",
    "$isoWeekYear",
    "$isoDayOfWeek",
];
