//! Strings in strings: `$indexOfBytes`, `$indexOfCP`, `$replaceOne`, `$replaceAll`.

use super::array::index_bound;
use super::{Environment, Operand, text};
use crate::limits::check_string;
use bstr::{BStr, ByteSlice};
use pando_base::{Error, Result, operation};
use pando_doc::Value;

/// The two texts of `$indexOf…`; none if the first is null.
fn texts<'o>(operands: &'o [Operand<'_>], name: &str, codes: (i32, i32)) -> Result<Option<(&'o BStr, &'o BStr)>> {
    let (Some(source), Some(token)) = (operands.first(), operands.get(1)) else { return Ok(None) };
    if source.is_nullish() {
        return Ok(None);
    }
    let Some(Value::String(source)) = source.view() else {
        let reason = format!("{name} requires a string as the first argument, found: {}", source.type_name());
        return Err(Error::location(codes.0, reason));
    };
    let Some(Value::String(token)) = token.view() else {
        let reason = format!("{name} requires a string as the second argument, found: {}", token.type_name());
        return Err(Error::location(codes.1, reason));
    };
    Ok(Some((source, token)))
}

pub(super) fn index_of_bytes<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    let name = "$indexOfBytes";
    let Some((source, token)) = texts(operands, name, (40091, 40092))? else { return Ok(Operand::NULL) };
    let start = operands.get(2).map_or(Ok(0), |bound| index_bound(bound, name, "starting"))?;
    let end = operands.get(3).map_or(Ok(source.len()), |bound| index_bound(bound, name, "ending"))?.min(source.len());
    operation::tick_bytes(source.len())?;
    let part = source.get(start..end);
    let found = part.and_then(|part| part.find(token)).map_or(-1, |place| (place + start) as i32);
    Ok(Operand::from(found))
}

pub(super) fn index_of_cp<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    let name = "$indexOfCP";
    let Some((source, token)) = texts(operands, name, (40093, 40094))? else { return Ok(Operand::NULL) };
    let start = operands.get(2).map_or(Ok(0), |bound| index_bound(bound, name, "starting"))?;
    let end = operands.get(3).map_or(Ok(usize::MAX), |bound| index_bound(bound, name, "ending"))?;
    operation::tick_bytes(source.len())?;
    let end = end.min(text::count(source));
    if start >= end {
        let is_all_empty = source.is_empty() && token.is_empty() && start == 0;
        return Ok(Operand::from(if is_all_empty { 0 } else { -1 }));
    }
    // What is found begins before the end, and may end behind it.
    let (from, to) = (text::offset(source, start), text::offset(source, end));
    let found = source.get(from..).and_then(|part| part.find(token)).map(|place| place + from);
    let found = found.filter(|place| *place < to);
    Ok(Operand::from(found.map_or(-1, |place| text::number_at(source, place) as i32)))
}

/// `input`, `find`, `replacement`: texts, or none if one is null.
fn replaced<'a>(operands: &[Option<Operand<'_>>], name: &str, limit: usize) -> Result<Operand<'a>> {
    let mut texts = [BStr::new(""); 3];
    let mut has_null = false;
    let codes = [51746, 51745, 51744];
    for (((text, operand), code), argument) in
        texts.iter_mut().zip(operands).zip(codes).zip(["input", "find", "replacement"])
    {
        match operand.as_ref().map_or(Value::Null, Operand::or_null) {
            Value::String(given) => *text = given,
            value if value.is_nullish() => has_null = true,
            value => {
                let reason = format!("{name} requires that '{argument}' be a string, found: {value}");
                return Err(Error::location(code, reason));
            }
        }
    }
    if has_null {
        return Ok(Operand::NULL);
    }
    let [input, find, replacement] = texts;
    let mut replaced = Vec::with_capacity(input.len());
    let mut rest = 0;
    for place in input.find_iter(find).take(limit) {
        let kept = input.get(rest..place).unwrap_or_default();
        check_string(replaced.len() + kept.len() + replacement.len())?;
        operation::tick_bytes(kept.len() + replacement.len())?;
        replaced.extend_from_slice(kept);
        replaced.extend_from_slice(replacement);
        rest = place + find.len();
    }
    let kept = input.get(rest..).unwrap_or_default();
    operation::tick_bytes(kept.len())?;
    replaced.extend_from_slice(kept);
    Operand::string(replaced)
}

pub(super) fn replace_one<'a>(operands: &[Option<Operand<'a>>], _: &Environment<'_>) -> Result<Operand<'a>> {
    replaced(operands, "$replaceOne", 1)
}

pub(super) fn replace_all<'a>(operands: &[Option<Operand<'a>>], _: &Environment<'_>) -> Result<Operand<'a>> {
    replaced(operands, "$replaceAll", usize::MAX)
}
