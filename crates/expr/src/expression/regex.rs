//! `$regexMatch`, `$regexFind`, `$regexFindAll`.
//!
//! Places are told in code points. A pattern that is constant is compiled for each evaluation for now.

use super::{Environment, Operand, text};
use crate::Regex;
use crate::regex::Groups;
use bstr::BStr;
use pando_base::{Error, Result};
use pando_doc::{ArrayBuilder, DocBuilder, Value};

struct Search<'o> {
    input: &'o BStr,
    regex: Regex,
}

/// `input`, `regex`, `options`; none if input or pattern is null.
fn search<'o>(operands: &'o [Option<Operand<'_>>], name: &str) -> Result<Option<Search<'o>>> {
    let value = |place: usize| operands.get(place).and_then(Option::as_ref).map_or(Value::Null, Operand::or_null);
    let (input, regex, options) = (value(0), value(1), value(2));
    if !matches!(input, Value::String(_)) && !input.is_nullish() {
        let reason = format!("{name} needs 'input' to be of type string");
        return Err(Error::location(51104, reason));
    }
    let (pattern, flags) = match regex {
        Value::Regex { pattern, options } => (pattern, options),
        Value::String(pattern) => (pattern, BStr::new("")),
        regex if regex.is_nullish() => return Ok(None),
        _ => return Err(Error::location(51105, format!("{name} needs 'regex' to be of type string or regex"))),
    };
    let options = match options {
        Value::String(options) if !flags.is_empty() && !options.is_empty() => {
            let reason = format!("{name}: found regex options specified in both 'regex' and 'options' fields");
            return Err(Error::location(51107, reason));
        }
        Value::String(options) if flags.is_empty() => options,
        options if options.is_nullish() || matches!(options, Value::String(_)) => flags,
        _ => return Err(Error::location(51106, format!("{name} needs 'options' to be of type string"))),
    };
    let Value::String(input) = input else { return Ok(None) };
    let regex = Regex::new(pattern, options, name).map_err(|error| match error.code().number() {
        51091 => Error::location(51111, format!("{name}: invalid regular expression: {}", error.reason())),
        _ => error,
    })?;
    Ok(Some(Search { input, regex }))
}

fn write_match(input: &BStr, groups: &Groups, builder: &mut DocBuilder) {
    let part = |(start, end): (usize, usize)| Value::String(BStr::new(input.get(start..end).unwrap_or_default()));
    let whole = groups.first().copied().flatten().unwrap_or((0, 0));
    builder.append("match", part(whole));
    builder.append("idx", text::number_at(input, whole.0) as i32);
    builder.array("captures", |captures| {
        for group in groups.iter().skip(1) {
            captures.push(group.map_or(Value::Null, part));
        }
    });
}

pub(super) fn regex_match<'a>(operands: &[Option<Operand<'a>>], _: &Environment<'_>) -> Result<Operand<'a>> {
    let found = search(operands, "$regexMatch")?.is_some_and(|search| search.regex.is_match(search.input));
    Ok(Operand::from(found))
}

pub(super) fn regex_find<'a>(operands: &[Option<Operand<'a>>], _: &Environment<'_>) -> Result<Operand<'a>> {
    let Some(search) = search(operands, "$regexFind")? else { return Ok(Operand::NULL) };
    let Some(groups) = search.regex.captures_at(search.input, 0)? else { return Ok(Operand::NULL) };
    let mut builder = DocBuilder::new();
    write_match(search.input, &groups, &mut builder);
    Ok(Operand::from(builder.finish()))
}

pub(super) fn regex_find_all<'a>(operands: &[Option<Operand<'a>>], _: &Environment<'_>) -> Result<Operand<'a>> {
    let mut builder = ArrayBuilder::new();
    let Some(search) = search(operands, "$regexFindAll")? else { return Ok(Operand::from(builder.finish())) };
    let mut start = 0;
    while start <= search.input.len() {
        let Some(groups) = search.regex.captures_at(search.input, start)? else { break };
        builder.document(|found| write_match(search.input, &groups, found));
        let (from, to) = groups.first().copied().flatten().unwrap_or((start, start));
        // An empty match moves on by one code point.
        start = if to > from { to } else { next_point(search.input, to) };
    }
    Ok(Operand::from(builder.finish()))
}

fn next_point(input: &BStr, offset: usize) -> usize {
    let mut next = offset + 1;
    while input.get(next).is_some_and(|byte| text::is_continuation(*byte)) {
        next += 1;
    }
    next
}
