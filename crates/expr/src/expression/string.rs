//! Strings: joined, cut, split, trimmed, measured, in other case.

use super::convert::coerce_to_long;
use super::{Environment, Operand, Values, coerce_to_string, text};
use crate::limits::check_string;
use bstr::{BStr, ByteSlice};
use pando_base::{Error, Result, operation};
use pando_doc::Value;
use std::collections::HashSet;

pub(super) fn concat<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    let mut joined = Vec::new();
    for operand in operands {
        match operand.or_null() {
            Value::String(text) => {
                check_string(joined.len() + text.len())?;
                operation::tick_bytes(text.len())?;
                joined.extend_from_slice(text);
            }
            value if value.is_nullish() => return Ok(Operand::NULL),
            value => {
                let reason = format!("$concat only supports strings, not {}", value.value_type());
                return Err(Error::location(16702, reason));
            }
        }
    }
    Operand::string(joined)
}

fn coerced<'a>(operands: &[Operand<'a>], change: impl Fn(u8) -> u8) -> Result<Operand<'a>> {
    let text = coerce_to_string(operands.first().unwrap_or(&Operand::Missing))?;
    operation::tick_bytes(text.len())?;
    Operand::string(text.iter().map(|byte| change(*byte)).collect::<Vec<u8>>())
}

/// Only letters of ASCII have a case here.
pub(super) fn to_lower<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    coerced(operands, |byte| byte.to_ascii_lowercase())
}

pub(super) fn to_upper<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    coerced(operands, |byte| byte.to_ascii_uppercase())
}

pub(super) fn strcasecmp<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    let [left, right] = operands else { return Ok(Operand::NULL) };
    let (left, right) = (coerce_to_string(left)?.to_ascii_uppercase(), coerce_to_string(right)?.to_ascii_uppercase());
    Ok(Operand::from(left.cmp(&right) as i32))
}

pub(super) fn str_len_bytes<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    length(operands, "$strLenBytes", 34473, |text| text.len())
}

pub(super) fn str_len_cp<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    length(operands, "$strLenCP", 34471, text::count)
}

fn length<'a>(operands: &[Operand<'_>], name: &str, code: i32, measure: fn(&BStr) -> usize) -> Result<Operand<'a>> {
    match operands.first().and_then(Operand::view) {
        Some(Value::String(text)) => {
            operation::tick_bytes(text.len())?;
            Ok(Operand::from(measure(text) as i32))
        }
        other => {
            let found = other.map_or("missing", |value| value.value_type().name());
            Err(Error::location(code, format!("{name} requires a string argument, found: {found}")))
        }
    }
}

pub(super) fn substr_bytes<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    let [source, start, length] = operands else { return Ok(Operand::NULL) };
    let source = coerce_to_string(source)?;
    let number = |operand: &Operand<'_>, code, what: &str| {
        let found = operand.type_name();
        match operand.as_number() {
            Some(_) => coerce_to_long(operand),
            None => {
                let reason = format!("$substrBytes:  {what} must be a numeric type (is BSON type {found})");
                Err(Error::location(code, reason))
            }
        }
    };
    let start = number(start, 16034, "starting index")?;
    let length = number(length, 16035, "length")?;
    let start = usize::try_from(start).map_err(|_| {
        Error::location(50752, format!("$substrBytes:  starting index must be non-negative (got: {start})"))
    })?;
    // A negative length means the rest.
    let end = usize::try_from(length).map_or(source.len(), |length| start.saturating_add(length)).min(source.len());
    let is_inside = |place: usize| source.get(place).is_some_and(|byte| text::is_continuation(*byte));
    if is_inside(start) {
        let reason = "$substrBytes:  Invalid range, starting index is a UTF-8 continuation byte.";
        return Err(Error::location(28656, reason));
    }
    if is_inside(end) {
        let reason = "$substrBytes:  Invalid range, ending index is in the middle of a UTF-8 character.";
        return Err(Error::location(28657, reason));
    }
    operation::tick_bytes(end.saturating_sub(start))?;
    Operand::string(source.get(start..end).unwrap_or_default().to_vec())
}

pub(super) fn substr_cp<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    let [source, start, length] = operands else { return Ok(Operand::NULL) };
    let source = coerce_to_string(source)?;
    let whole = |operand: &Operand<'_>, codes: (i32, i32, i32), what: &str| {
        let Some(number) = operand.as_number() else {
            let found = operand.type_name();
            let reason = format!("$substrCP: {what} must be a numeric type (is BSON type {found})");
            return Err(Error::location(codes.0, reason));
        };
        let Some(whole) = number.to_i64_exact().and_then(|whole| i32::try_from(whole).ok()) else {
            let shown = Value::from(number);
            let reason = format!("$substrCP: {what} cannot be represented as a 32-bit integral value: {shown}");
            return Err(Error::location(codes.1, reason));
        };
        let refused = |_| Error::location(codes.2, format!("$substrCP: {what} must be a nonnegative integer."));
        usize::try_from(whole).map_err(refused)
    };
    let start = whole(start, (34450, 34451, 34455), "starting index")?;
    let length = whole(length, (34452, 34453, 34454), "length")?;
    let source = BStr::new(&source);
    operation::tick_bytes(source.len())?;
    let (from, to) = (text::offset(source, start), text::offset(source, start.saturating_add(length)));
    Operand::string(source.get(from..to).unwrap_or_default().to_vec())
}

pub(super) fn split<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    let [source, separator] = operands else { return Ok(Operand::NULL) };
    if source.is_nullish() || separator.is_nullish() {
        return Ok(Operand::NULL);
    }
    let string = |operand: &Operand<'_>, code, which: &str| {
        let found = operand.type_name();
        let reason =
            format!("$split requires an expression that evaluates to a string as a {which} argument, found: {found}");
        Error::location(code, reason)
    };
    let Some(Value::String(text)) = source.view() else { return Err(string(source, 40085, "first")) };
    let Some(Value::String(by)) = separator.view() else { return Err(string(separator, 40086, "second")) };
    if by.is_empty() {
        return Err(Error::location(40087, "$split requires a non-empty separator"));
    }
    let mut parts = Values::new();
    text.split_str(by).try_for_each(|part| parts.push(Value::String(part.as_bstr())))?;
    Ok(parts.finish())
}

/// What is trimmed if nothing is said: white space and the zero.
const WHITE_SPACE: &str = "\0 \t\n\u{b}\u{c}\r\u{a0}\u{1680}\u{2000}\u{2001}\u{2002}\u{2003}\u{2004}\u{2005}\u{2006}\u{2007}\u{2008}\u{2009}\u{200a}";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
    Both,
}

fn trimmed<'a>(operands: &[Option<Operand<'a>>], name: &str, side: Side) -> Result<Operand<'a>> {
    let [Some(input), chars] = operands else { return Ok(Operand::NULL) };
    if input.is_nullish() {
        return Ok(Operand::NULL);
    }
    let Some(Value::String(source)) = input.view() else {
        let reason = format!(
            "{name} requires its input to be a string, got {} (of type {}) instead.",
            input.or_null(),
            input.type_name()
        );
        return Err(Error::location(50699, reason));
    };
    let chars = match chars {
        None => BStr::new(WHITE_SPACE),
        Some(chars) if chars.is_nullish() => return Ok(Operand::NULL),
        Some(chars) => match chars.view() {
            Some(Value::String(chars)) => chars,
            _ => {
                let reason = format!(
                    "{name} requires 'chars' to be a string, got {} (of type {}) instead.",
                    chars.or_null(),
                    chars.type_name()
                );
                return Err(Error::location(50700, reason));
            }
        },
    };
    operation::tick_bytes(chars.len())?;
    let trimmed_points: HashSet<&BStr> = text::points(chars).into_iter().collect();
    let mut start = 0;
    if side != Side::Right {
        while let Some(point) = text::first_point(BStr::new(source.get(start..).unwrap_or_default())) {
            operation::tick(1)?;
            if !trimmed_points.contains(point) {
                break;
            }
            start += point.len();
        }
    }
    let mut end = source.len();
    if side != Side::Left {
        while let Some(point) = text::last_point(BStr::new(source.get(start..end).unwrap_or_default())) {
            operation::tick(1)?;
            if !trimmed_points.contains(point) {
                break;
            }
            end -= point.len();
        }
    }
    operation::tick_bytes(end - start)?;
    Operand::string(source.get(start..end).unwrap_or_default().to_vec())
}

pub(super) fn trim<'a>(operands: &[Option<Operand<'a>>], _: &Environment<'_>) -> Result<Operand<'a>> {
    trimmed(operands, "$trim", Side::Both)
}

pub(super) fn ltrim<'a>(operands: &[Option<Operand<'a>>], _: &Environment<'_>) -> Result<Operand<'a>> {
    trimmed(operands, "$ltrim", Side::Left)
}

pub(super) fn rtrim<'a>(operands: &[Option<Operand<'a>>], _: &Environment<'_>) -> Result<Operand<'a>> {
    trimmed(operands, "$rtrim", Side::Right)
}
