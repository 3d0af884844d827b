//! `$dateToString`: a date by a format.

use super::calendar::{MONTHS, day_of_year, iso_week, iso_weekday, split, week, weekday};
use super::zone::{MINUTE, Zone};
use crate::expression::convert::coerce_to_date;
use crate::expression::{Environment, Operand};
use bstr::{BStr, BString, ByteSlice};
use pando_base::{Error, Result};
use pando_doc::Value;

const SPECIFIERS: &[u8] = b"bBdGHjLmMSwuUVYzZ";
const DEFAULT_FORMAT: &str = "%Y-%m-%dT%H:%M:%S.%LZ";

/// `date`, `format`, `timezone`, `onNull`.
pub(in crate::expression) fn date_to_string<'a>(
    operands: &[Option<Operand<'a>>],
    _: &Environment<'_>,
) -> Result<Operand<'a>> {
    let [Some(date), format, zone, on_null] = operands else { return Ok(Operand::NULL) };
    let format = match format.as_ref().map(Operand::or_null) {
        None => Some(BStr::new(DEFAULT_FORMAT)),
        Some(Value::String(format)) => {
            check_format(format, SPECIFIERS)?;
            Some(format)
        }
        Some(value) if value.is_nullish() => None,
        Some(value) => {
            let reason = format!(
                "$dateToString requires that 'format' be a string, found: {} with value {value}",
                value.value_type()
            );
            return Err(Error::location(18533, reason));
        }
    };
    let zone = Zone::of_operand(zone.as_ref())?;
    if date.is_nullish() {
        return Ok(on_null.clone().unwrap_or(Operand::NULL));
    }
    let (Some(zone), Some(format)) = (zone, format) else { return Ok(Operand::NULL) };
    let moment = coerce_to_date(date.or_null())?;
    formatted(zone.to_local(moment), zone.offset_at(moment), format).and_then(|text| Operand::string(Vec::from(text)))
}

/// The date in UTC as ISO 8601 has it; years of four digits have a text.
pub(in crate::expression) fn iso_text(moment: i64) -> Result<BString> {
    formatted(moment, 0, BStr::new(DEFAULT_FORMAT))
}

/// Every `%` is followed by itself or one of the letters.
pub(super) fn check_format(format: &BStr, letters: &[u8]) -> Result<()> {
    let mut bytes = format.iter();
    while let Some(byte) = bytes.next() {
        if *byte != b'%' {
            continue;
        }
        match bytes.next() {
            None => return Err(Error::location(18535, "Unmatched '%' at end of format string")),
            Some(letter) if *letter == b'%' || letters.contains(letter) => {}
            Some(other) => {
                let reason = format!("Invalid format character '%{}' in format string", char::from(*other));
                return Err(Error::location(18536, reason));
            }
        }
    }
    Ok(())
}

fn formatted(local: i64, offset: i64, format: &BStr) -> Result<BString> {
    let mut text = BString::default();
    let mut bytes = format.iter();
    while let Some(byte) = bytes.next() {
        match (byte, bytes.as_slice().first()) {
            (b'%', Some(letter)) => {
                bytes.next();
                text.extend_from_slice(specified(*letter, local, offset)?.as_bytes());
            }
            (other, _) => text.push(*other),
        }
    }
    Ok(text)
}

fn specified(letter: u8, local: i64, offset: i64) -> Result<String> {
    let parts = split(local);
    let month_name = (parts.month as usize).checked_sub(1).and_then(|place| MONTHS.get(place)).copied().unwrap_or("");
    let minutes = offset / MINUTE;
    Ok(match letter {
        b'd' => format!("{:02}", parts.day),
        b'G' => year(iso_week(local).0)?,
        b'H' => format!("{:02}", parts.hour),
        b'j' => format!("{:03}", day_of_year(local)),
        b'L' => format!("{:03}", parts.millisecond),
        b'm' => format!("{:02}", parts.month),
        b'M' => format!("{:02}", parts.minute),
        b'S' => format!("{:02}", parts.second),
        b'u' => iso_weekday(local).to_string(),
        b'w' => (weekday(local) + 1).to_string(),
        b'U' => format!("{:02}", week(local)),
        b'V' => format!("{:02}", iso_week(local).1),
        b'Y' => year(parts.year)?,
        b'z' => {
            let sign = if offset < 0 { '-' } else { '+' };
            format!("{sign}{:02}{:02}", minutes.abs() / 60, minutes.abs() % 60)
        }
        b'Z' => minutes.to_string(),
        b'b' => month_name.get(..3).unwrap_or_default().to_owned(),
        b'B' => month_name.to_owned(),
        other => [other].as_bstr().to_string(),
    })
}

fn year(number: i64) -> Result<String> {
    if (0..=9999).contains(&number) {
        return Ok(format!("{number:04}"));
    }
    let reason =
        format!("Could not convert date to string: date component was outside the supported range of 0-9999: {number}");
    Err(Error::location(18537, reason))
}
