//! Paths of updates: names, places, and the positional parts `$`, `$[]` and `$[identifier]`.

use bstr::{BStr, BString, ByteSlice};
use pando_base::{Error, ErrorCode, Result};
use pando_doc::FieldPath;

/// How many dots a path may have.
const DOTS_MAX: usize = 255;

/// One part of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// A field, or a place in an array.
    Name(BString),
    /// `$`.
    Matched,
    /// `$[]`, with an empty identifier, or `$[identifier]`.
    Filtered(BString),
}

/// True for a path that is a name and nothing else, as most are: there is nothing about it to take apart or to check.
pub(super) fn is_plain_name(text: &BStr) -> bool {
    text.first().is_some_and(|first| *first != b'$') && !text.contains(&b'.')
}

/// Takes a path apart and checks it.
pub(super) fn parse(text: &BStr) -> Result<Vec<Part>> {
    if text.is_empty() {
        return Err(Error::new(ErrorCode::EmptyFieldName, "An empty update path is not valid."));
    }
    if text.iter().filter(|byte| **byte == b'.').count() > DOTS_MAX {
        let reason = format!("Field paths cannot contain more than {DOTS_MAX} '.'");
        return Err(Error::location(10396001, reason));
    }
    let path = FieldPath::lenient(text)?;
    let mut parts = Vec::with_capacity(path.part_count());
    for (index, part) in path.parts().enumerate() {
        parts.push(parse_part(part, index == 0, text)?);
    }
    if parts.iter().filter(|part| **part == Part::Matched).count() > 1 {
        let reason = format!("Too many positional (i.e. '$') elements found in path '{text}'");
        return Err(Error::bad_value(reason));
    }
    Ok(parts)
}

fn parse_part(part: &BStr, is_first: bool, text: &BStr) -> Result<Part> {
    if part.is_empty() {
        let reason = format!("The update path '{text}' contains an empty field name, which is not allowed.");
        return Err(Error::new(ErrorCode::EmptyFieldName, reason));
    }
    if part == "$" {
        return if is_first { Err(at_first("positional (i.e. '$')", text)) } else { Ok(Part::Matched) };
    }
    if let Some(identifier) = part.strip_prefix(b"$[").and_then(|rest| rest.strip_suffix(b"]")) {
        if is_first {
            return Err(at_first("array filter identifier (i.e. '$[<id>]')", text));
        }
        return Ok(Part::Filtered(identifier.as_bstr().to_owned()));
    }
    if is_first && part.starts_with(b"$") {
        let reason = format!("The dollar ($) prefixed field '{part}' in '{text}' is not valid for storage.");
        return Err(Error::new(ErrorCode::DollarPrefixedFieldName, reason));
    }
    Ok(Part::Name(part.to_owned()))
}

fn at_first(what: &str, text: &BStr) -> Error {
    Error::bad_value(format!("Cannot have {what} element in the first position in path '{text}'"))
}

/// The place of an array that a name leads to: digits only, whatever zeros are in front.
pub(super) fn place_in_array(name: &BStr) -> Option<usize> {
    let is_digits = !name.is_empty() && name.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(name).ok().filter(|_| is_digits)?.parse().ok()
}

/// The place that a name stands for wherever it is, in an array or not: digits only, and no zero in front of others.
pub(super) fn array_index(name: &BStr) -> Option<usize> {
    place_in_array(name).filter(|_| name.len() == 1 || name.first() != Some(&b'0'))
}
