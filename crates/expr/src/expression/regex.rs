//! `$regexMatch`, `$regexFind`, `$regexFindAll`.
//!
//! Places are told in code points. A pattern that is constant is compiled once, when the expression is optimised.

use super::function::NamedFunction;
use super::{Environment, Node, Operand, Values, text};
use crate::Regex;
use crate::regex::{Groups, Search as TextSearch, Subject};
use bstr::BStr;
use pando_base::{Error, Result, operation};
use pando_doc::{DocBuilder, Value};

/// How much the matches of `$regexFindAll` may take together.
const RESULT_BYTES_MAX: usize = 64 << 20;

/// A search whose pattern is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// What it was written as.
    pub(super) function: NamedFunction,
    pub(super) operands: Vec<Option<Node>>,
    regex: Regex,
}

impl Search {
    /// Compiles the pattern of an operator of this family if it is constant; none if it is not, or is null.
    pub(super) fn prepare(function: NamedFunction, operands: &[Option<Node>]) -> Result<Option<Search>> {
        if !matches!(function.name, "$regexMatch" | "$regexFind" | "$regexFindAll") {
            return Ok(None);
        }
        let constant = |operand: &Option<Node>| match operand {
            None => Some(Operand::Missing),
            Some(Node::Constant(value)) => Some(value.clone().map_or(Operand::Missing, Operand::Owned)),
            Some(_) => None,
        };
        let [_, regex, options] = operands else { return Ok(None) };
        let (Some(regex), Some(options)) = (constant(regex), constant(options)) else { return Ok(None) };
        let regex = compile(regex.or_null(), options.or_null(), function.name)?;
        Ok(regex.map(|regex| Search { function, operands: operands.to_vec(), regex }))
    }

    /// The input.
    pub(super) fn input(&self) -> Option<&Node> {
        self.operands.first().and_then(Option::as_ref)
    }

    pub(super) fn evaluate<'a>(&self, input: &Operand<'_>) -> Result<Operand<'a>> {
        let name = self.function.name;
        run(name, check_input(input.or_null(), name)?, Some(&self.regex))
    }
}

fn check_input<'o>(input: Value<'o>, name: &str) -> Result<Option<&'o BStr>> {
    match input {
        Value::String(input) => Ok(Some(input)),
        input if input.is_nullish() => Ok(None),
        _ => Err(Error::location(51104, format!("{name} needs 'input' to be of type string"))),
    }
}

/// The pattern; none if it is null. What is wrong about options is told all the same.
fn compile(regex: Value<'_>, options: Value<'_>, name: &str) -> Result<Option<Regex>> {
    let (pattern, flags) = match regex {
        Value::Regex { pattern, options } => (Some(pattern), options),
        Value::String(pattern) => (Some(pattern), BStr::new("")),
        regex if regex.is_nullish() => (None, BStr::new("")),
        _ => return Err(Error::location(51105, format!("{name} needs 'regex' to be of type string or regex"))),
    };
    let options = match options {
        Value::String(options) => Some(options),
        options if options.is_nullish() => None,
        _ => return Err(Error::location(51106, format!("{name} needs 'options' to be of type string"))),
    };
    if options.is_some() && !flags.is_empty() {
        let reason = format!("{name}: found regex option(s) specified in both 'regex' and 'option' fields");
        return Err(Error::location(51107, reason));
    }
    let options = options.unwrap_or(flags);
    if pattern.is_some_and(|pattern| pattern.contains(&0)) {
        let reason = format!("{name}: regular expression cannot contain an embedded null byte");
        return Err(Error::location(51109, reason));
    }
    if options.contains(&0) {
        let reason = format!("{name}: regular expression options cannot contain an embedded null byte");
        return Err(Error::location(51110, reason));
    }
    let Some(pattern) = pattern else { return Ok(None) };
    let regex = Regex::new(pattern, options, name).map_err(|error| match error.code().number() {
        51091 | 2 => Error::location(51111, format!("Invalid Regex in {name}: {}", error.reason())),
        _ => error,
    })?;
    Ok(Some(regex))
}

/// `input`, `regex`, `options`.
fn search<'a>(operands: &[Option<Operand<'_>>], name: &str) -> Result<Operand<'a>> {
    let value = |place: usize| operands.get(place).and_then(Option::as_ref).map_or(Value::Null, Operand::or_null);
    let input = check_input(value(0), name)?;
    let regex = compile(value(1), value(2), name)?;
    run(name, input, regex.as_ref())
}

fn run<'a>(name: &str, input: Option<&BStr>, regex: Option<&Regex>) -> Result<Operand<'a>> {
    let both = input.zip(regex);
    let search = |(input, regex)| Ok::<_, Error>(TextSearch::new(regex, Subject::checked(input)?));
    match name {
        "$regexMatch" => {
            let found = both.map(|both| search(both)?.is_match()).transpose()?;
            Ok(Operand::from(found.unwrap_or(false)))
        }
        "$regexFind" => match both {
            Some(both) => find(both.0, &mut search(both)?),
            None => Ok(Operand::NULL),
        },
        _ => match both {
            Some(both) => find_all(both.0, &mut search(both)?),
            None => Operand::array([]),
        },
    }
}

/// Counts code points forward, so that many places of one text are told in one walk over it.
#[derive(Default)]
struct Counter {
    offset: usize,
    number: usize,
}

impl Counter {
    /// The number of the code point that begins at this byte; places are asked for in order.
    fn number_at(&mut self, input: &BStr, offset: usize) -> Result<usize> {
        let passed = input.get(self.offset..offset).unwrap_or_default();
        operation::tick_bytes(passed.len())?;
        self.number += text::count(BStr::new(passed));
        self.offset = self.offset.max(offset);
        Ok(self.number)
    }
}

fn write_match(input: &BStr, groups: &Groups, number: usize, builder: &mut DocBuilder) {
    let part = |(start, end): (usize, usize)| Value::String(BStr::new(input.get(start..end).unwrap_or_default()));
    let whole = groups.first().copied().flatten().unwrap_or((0, 0));
    builder.append("match", part(whole));
    builder.append("idx", number as i32);
    builder.array("captures", |captures| {
        for group in groups.iter().skip(1) {
            captures.push(group.map_or(Value::Null, part));
        }
    });
}

fn find<'a>(input: &BStr, search: &mut TextSearch<'_, '_>) -> Result<Operand<'a>> {
    let Some(groups) = search.next(0)? else { return Ok(Operand::NULL) };
    let start = groups.first().copied().flatten().map_or(0, |(start, _)| start);
    let mut builder = DocBuilder::new();
    write_match(input, &groups, Counter::default().number_at(input, start)?, &mut builder);
    Ok(Operand::from(builder.finish()))
}

fn find_all<'a>(input: &BStr, search: &mut TextSearch<'_, '_>) -> Result<Operand<'a>> {
    let mut found = Values::new();
    let mut counter = Counter::default();
    let (mut start, mut size_bytes) = (0, 0);
    loop {
        let Some(groups) = search.next(start)? else { break };
        let texts = groups.iter().flatten().map(|(from, to)| to - from).sum::<usize>();
        size_bytes += texts + groups.len() * size_of::<Value<'_>>();
        if size_bytes > RESULT_BYTES_MAX {
            let reason = "$regexFindAll: the size of buffer to store output exceeded the 64MB limit";
            return Err(Error::location(51151, reason));
        }
        let (from, to) = groups.first().copied().flatten().unwrap_or((start, start));
        let number = counter.number_at(input, from)?;
        found.document(|one| write_match(input, &groups, number, one))?;
        // An empty match moves on by one code point.
        start = if to > from { to } else { next_point(input, to) };
        // Nothing is looked for at the end, unless the text is empty.
        if start >= input.len() {
            break;
        }
    }
    Ok(found.finish())
}

fn next_point(input: &BStr, offset: usize) -> usize {
    let mut next = offset + 1;
    while input.get(next).is_some_and(|byte| text::is_continuation(*byte)) {
        next += 1;
    }
    next
}

pub(super) fn regex_match<'a>(operands: &[Option<Operand<'a>>], _: &Environment<'_>) -> Result<Operand<'a>> {
    search(operands, "$regexMatch")
}

pub(super) fn regex_find<'a>(operands: &[Option<Operand<'a>>], _: &Environment<'_>) -> Result<Operand<'a>> {
    search(operands, "$regexFind")
}

pub(super) fn regex_find_all<'a>(operands: &[Option<Operand<'a>>], _: &Environment<'_>) -> Result<Operand<'a>> {
    search(operands, "$regexFindAll")
}
