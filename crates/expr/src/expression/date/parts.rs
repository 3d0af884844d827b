//! Parts of dates: `$year` and its kin, `$dateToParts`, `$dateFromParts`.

use super::calendar::{day_of_iso_week, day_of_year, first_of_month, iso_week, iso_weekday, split, week, weekday};
use super::zone::{DAY, Zone};
use crate::expression::convert::coerce_to_date;
use crate::expression::function::{Argument, EvaluateNamed, NamedFunction};
use crate::expression::parse::Parser;
use crate::expression::{Environment, Node, Operand};
use pando_base::{Error, ErrorCode, Result};
use pando_doc::{DocBuilder, Element, Number, OwnedValue, Value};

fn part<'a>(operands: &[Option<Operand<'_>>], take: impl FnOnce(i64) -> i64) -> Result<Operand<'a>> {
    let (Some(Some(date)), zone) = (operands.first(), operands.get(1)) else { return Ok(Operand::NULL) };
    if date.is_nullish() {
        return Ok(Operand::NULL);
    }
    let moment = coerce_to_date(date.or_null())?;
    let zone = Zone::of_operand(zone.and_then(Option::as_ref))?;
    Ok(zone.map_or(Operand::NULL, |zone| Operand::from(Number::narrowest(take(zone.to_local(moment))))))
}

macro_rules! parts {
    ($($function:ident, $take:expr;)*) => {
        $(pub(in crate::expression) fn $function<'a>(
            operands: &[Option<Operand<'a>>],
            _: &Environment<'_>,
        ) -> Result<Operand<'a>> {
            part(operands, $take)
        })*
    };
}

parts! {
    year, |date| split(date).year;
    month, |date| split(date).month.into();
    day_of_month, |date| split(date).day.into();
    hour, |date| split(date).hour.into();
    minute, |date| split(date).minute.into();
    second, |date| split(date).second.into();
    millisecond, |date| split(date).millisecond.into();
    number_in_year, day_of_year;
    day_of_week, |date| weekday(date) + 1;
    iso_day_of_week, iso_weekday;
    week_of_year, week;
    iso_week_of_year, |date| iso_week(date).1;
}

/// A long, whatever its size.
pub(in crate::expression) fn iso_week_year<'a>(
    operands: &[Option<Operand<'a>>],
    _: &Environment<'_>,
) -> Result<Operand<'a>> {
    let year = part(operands, |date| iso_week(date).0)?;
    Ok(year.as_number().and_then(Number::to_i64_exact).map_or(Operand::NULL, Operand::from))
}

/// A part of a date: `{$year: date}`, `{$year: [date]}` or `{$year: {date, timezone}}`.
pub(in crate::expression) fn parse_part(
    parser: &mut Parser<'_>,
    element: Element<'_>,
    name: &'static str,
    evaluate: EvaluateNamed,
) -> Result<Node> {
    const ARGUMENTS: &[Argument] =
        &[Argument { name: "date", required: Some(40539) }, Argument { name: "timezone", required: None }];
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
            Ok(Node::Named { function, operands: vec![operands.pop(), None] })
        }
    }
}

/// `date`, `timezone`, `iso8601`.
pub(in crate::expression) fn date_to_parts<'a>(
    operands: &[Option<Operand<'a>>],
    _: &Environment<'_>,
) -> Result<Operand<'a>> {
    let [Some(date), zone, iso] = operands else { return Ok(Operand::NULL) };
    let Some(zone) = Zone::of_operand(zone.as_ref())? else { return Ok(Operand::NULL) };
    let is_iso = match iso.as_ref().map(Operand::or_null) {
        None => false,
        Some(Value::Bool(is_iso)) => is_iso,
        Some(value) if value.is_nullish() => return Ok(Operand::NULL),
        Some(value) => {
            let reason = format!("iso8601 must evaluate to a bool, found {}", value.value_type());
            return Err(Error::location(40521, reason));
        }
    };
    if date.is_nullish() {
        return Ok(Operand::NULL);
    }
    let local = zone.to_local(coerce_to_date(date.or_null())?);
    let parts = split(local);
    let mut builder = DocBuilder::new();
    if is_iso {
        let (year, week) = iso_week(local);
        builder.append("isoWeekYear", Number::narrowest(year));
        builder.append("isoWeek", week as i32);
        builder.append("isoDayOfWeek", iso_weekday(local) as i32);
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

/// The names of the operands of `$dateFromParts`; the first seven are those of a natural date, then three of an ISO date.
pub(in crate::expression) const FROM_PARTS: NamedFunction = {
    const fn optional(name: &'static str) -> Argument {
        Argument { name, required: None }
    }
    const ARGUMENTS: &[Argument] = &[
        optional("year"),
        optional("month"),
        optional("day"),
        optional("hour"),
        optional("minute"),
        optional("second"),
        optional("millisecond"),
        optional("isoWeekYear"),
        optional("isoWeek"),
        optional("isoDayOfWeek"),
        optional("timezone"),
    ];
    NamedFunction {
        name: "$dateFromParts",
        arguments: ARGUMENTS,
        not_object: 40519,
        unknown: 40518,
        evaluate: date_from_parts,
    }
};

/// A natural date and an ISO date cannot be mixed.
pub(in crate::expression) fn parse_from_parts(parser: &mut Parser<'_>, element: Element<'_>) -> Result<Node> {
    let node = parser.named(FROM_PARTS, element)?;
    let Value::Document(given) = element.value else { return Ok(node) };
    let has = |names: &[&str]| names.iter().any(|name| given.get(name).is_some());
    if !has(&["year", "isoWeekYear"]) {
        let reason = "$dateFromParts requires either 'year' or 'isoWeekYear' to be present";
        return Err(Error::location(40516, reason));
    }
    if has(&["year"]) && has(&["isoWeekYear", "isoWeek", "isoDayOfWeek"]) {
        let reason = "$dateFromParts does not allow mixing natural dates with ISO dates";
        return Err(Error::location(40489, reason));
    }
    if has(&["isoWeekYear"]) && has(&["year", "month", "day"]) {
        let reason = "$dateFromParts does not allow mixing ISO dates with natural dates";
        return Err(Error::location(40525, reason));
    }
    Ok(node)
}

/// A part of the wanted date; none if it is null.
fn given_part(operands: &[Option<Operand<'_>>], place: usize, default: i64, is_bounded: bool) -> Result<Option<i64>> {
    let Some(operand) = operands.get(place).and_then(Option::as_ref) else { return Ok(Some(default)) };
    if operand.is_nullish() {
        return Ok(None);
    }
    let name = FROM_PARTS.arguments.get(place).map_or("", |argument| argument.name);
    let Some(whole) = operand.as_number().and_then(Number::to_i64_exact) else {
        let (kind, value) = (operand.type_name(), operand.or_null());
        let reason = format!("'{name}' must evaluate to an integer, found {kind} with value {value}");
        return Err(Error::location(40515, reason));
    };
    if is_bounded && i16::try_from(whole).is_err() {
        let reason =
            format!("'{name}' must evaluate to a value in the range [-32768, 32767]; value {whole} is not in range");
        return Err(Error::location(31034, reason));
    }
    Ok(Some(whole))
}

fn check_year(name: &str, code: i32, year: i64) -> Result<()> {
    if (1..=9999).contains(&year) {
        return Ok(());
    }
    let reason = format!("'{name}' must evaluate to an integer in the range 1 to 9999, found {year}");
    Err(Error::location(code, reason))
}

fn date_from_parts<'a>(operands: &[Option<Operand<'a>>], _: &Environment<'_>) -> Result<Operand<'a>> {
    let number = |place, default, is_bounded| given_part(operands, place, default, is_bounded);
    let times = [number(3, 0, true)?, number(4, 0, true)?, number(5, 0, false)?, number(6, 0, false)?];
    let [Some(hour), Some(minute), Some(second), Some(millisecond)] = times else { return Ok(Operand::NULL) };
    let Some(zone) = Zone::of_operand(operands.get(10).and_then(Option::as_ref))? else { return Ok(Operand::NULL) };
    let is_natural = operands.first().is_some_and(Option::is_some);
    let places = if is_natural { [0, 1, 2] } else { [7, 8, 9] };
    let [year, month, day] = places;
    let [Some(year), Some(month), Some(day)] =
        [number(year, 1970, false)?, number(month, 1, true)?, number(day, 1, true)?]
    else {
        return Ok(Operand::NULL);
    };
    let days = if is_natural {
        check_year("year", 40523, year)?;
        first_of_month(year, month).map(|first| first + day - 1)
    } else {
        check_year("isoWeekYear", 31095, year)?;
        day_of_iso_week(year, month, day)
    };
    let moment = days.and_then(|days| {
        // MongoDB reckons in microseconds.
        millisecond.checked_mul(1000)?;
        let seconds = second.checked_mul(1000)?;
        let time = ((hour * 60 + minute) * 60_000).checked_add(seconds)?.checked_add(millisecond)?;
        zone.moment_of(days.checked_mul(DAY)?.checked_add(time)?)
    });
    let overflow = || {
        let reason = "Overflow casting from a lower-precision duration to a higher-precision duration";
        Error::new(ErrorCode::DurationOverflow, reason)
    };
    Ok(Operand::Owned(OwnedValue::DateTime(moment.ok_or_else(overflow)?)))
}
