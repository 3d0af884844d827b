//! Operators with forms of their own: `$cond`, `$ifNull`, `$switch`, `$and`, `$or`, `$let`, `$map`, `$filter`, `$reduce`,
//! `$convert`, `$literal`: how they are parsed. What they do is in `evaluate` and `scoped`.

use super::function::Arity;
use super::parse::Parser;
use super::tree::Node;
use super::variables::check_user_variable;
use bstr::BStr;
use pando_base::{Error, ErrorCode, Result, operation};
use pando_doc::{DocRef, Element, OwnedValue, Value};

pub(super) fn parse_literal(_: &mut Parser<'_>, element: Element<'_>) -> Result<Node> {
    check_binary_values(element.value)?;
    Ok(Node::Constant(Some(element.value.to_owned())))
}

/// Binary values whose form stands for something have to have it, and compressed columns are refused.
fn check_binary_values(value: Value<'_>) -> Result<()> {
    const UUID_BYTES: usize = 16;
    operation::tick(1)?;
    let refused = |reason: String| Err(Error::failed_to_parse(reason));
    match value {
        Value::Binary { subtype: 2, bytes } if !has_length_in_front(bytes) => {
            refused("BinData subtype ByteArrayDeprecated (2) requires a valid inner length prefix".to_owned())
        }
        Value::Binary { subtype: subtype @ (3 | 5), bytes } if bytes.len() != UUID_BYTES => {
            refused(format!("BinData subtype {subtype} requires exactly {UUID_BYTES} bytes as an expression literal"))
        }
        Value::Binary { subtype: 7, .. } => {
            refused("BSONColumn (BinData subtype 7) is not allowed as an expression literal".to_owned())
        }
        Value::Document(document) => document.elements().try_for_each(|element| check_binary_values(element.value)),
        Value::Array(array) => array.values().try_for_each(check_binary_values),
        Value::CodeWithScope { scope, .. } => {
            scope.elements().try_for_each(|element| check_binary_values(element.value))
        }
        _ => Ok(()),
    }
}

/// The old form of binary values says its own length once more.
fn has_length_in_front(bytes: &[u8]) -> bool {
    let Some((length, rest)) = bytes.split_first_chunk::<4>() else { return false };
    usize::try_from(i32::from_le_bytes(*length)).is_ok_and(|length| length == rest.len())
}

pub(super) fn parse_and(parser: &mut Parser<'_>, element: Element<'_>) -> Result<Node> {
    Ok(Node::And(parser.operands(element.value)?))
}

pub(super) fn parse_or(parser: &mut Parser<'_>, element: Element<'_>) -> Result<Node> {
    Ok(Node::Or(parser.operands(element.value)?))
}

pub(super) fn parse_if_null(parser: &mut Parser<'_>, element: Element<'_>) -> Result<Node> {
    let operands = parser.operands(element.value)?;
    if operands.len() < 2 {
        let reason = format!("$ifNull needs at least two arguments, had: {}", operands.len());
        return Err(Error::location(1257300, reason));
    }
    Ok(Node::IfNull(operands))
}

/// The named operands of a special operator, and what is said if there is another, or none.
struct Names<'n> {
    operator: &'n str,
    not_object: i32,
    unknown: i32,
    names: &'n [&'n str],
}

impl Names<'_> {
    /// The values by the order of the names.
    fn take<'a>(&self, element: Element<'a>) -> Result<Vec<Option<Value<'a>>>> {
        let operator = self.operator;
        let Value::Document(doc) = element.value else {
            let reason = format!("{operator} only supports an object as its argument");
            return Err(Error::location(self.not_object, reason));
        };
        self.take_from(doc)
    }

    fn take_from<'a>(&self, doc: DocRef<'a>) -> Result<Vec<Option<Value<'a>>>> {
        let mut values = vec![None; self.names.len()];
        for field in doc.elements() {
            let place = self.names.iter().position(|name| field.name == *name);
            match place.and_then(|place| values.get_mut(place)) {
                Some(place) => *place = Some(field.value),
                None => {
                    let reason = format!("Unrecognized parameter to {}: {}", self.operator, field.name);
                    return Err(Error::location(self.unknown, reason));
                }
            }
        }
        Ok(values)
    }
}

fn required<'a>(value: Option<Value<'a>>, code: i32, operator: &str, name: &str) -> Result<Value<'a>> {
    value.ok_or_else(|| Error::location(code, format!("Missing '{name}' parameter to {operator}")))
}

pub(super) fn parse_cond(parser: &mut Parser<'_>, element: Element<'_>) -> Result<Node> {
    let parts = match element.value {
        Value::Document(doc) => {
            let names = Names { operator: "$cond", not_object: 0, unknown: 17083, names: &["if", "then", "else"] };
            let values = names.take_from(doc)?;
            let mut values = values.into_iter().zip([(17080, "if"), (17081, "then"), (17082, "else")]);
            let mut next = |parser: &mut Parser<'_>| match values.next() {
                Some((value, (code, name))) => parser.operand(required(value, code, "$cond", name)?),
                None => Ok(Node::Constant(None)),
            };
            [next(parser)?, next(parser)?, next(parser)?]
        }
        value => {
            let operands = parser.operands(value)?;
            Arity::Exactly(3).check("$cond", operands.len())?;
            match <[Node; 3]>::try_from(operands) {
                Ok(parts) => parts,
                Err(_) => return Err(Error::internal("$cond has three operands")),
            }
        }
    };
    Ok(Node::Cond(Box::new(parts)))
}

pub(super) fn parse_switch(parser: &mut Parser<'_>, element: Element<'_>) -> Result<Node> {
    let Value::Document(doc) = element.value else {
        let reason = format!("$switch requires an object as an argument, found: {}", element.value.value_type());
        return Err(Error::location(40060, reason));
    };
    let (mut branches, mut default) = (Vec::new(), None);
    for field in doc.elements() {
        match &**field.name {
            b"branches" => {
                let Value::Array(array) = field.value else {
                    let found = field.value.value_type();
                    let reason = format!("$switch expected an array for 'branches', found: {found}");
                    return Err(Error::location(40061, reason));
                };
                for value in array.values() {
                    branches.push(parse_branch(parser, value)?);
                }
            }
            b"default" => default = Some(Box::new(parser.operand(field.value)?)),
            _ => {
                return Err(Error::location(40067, format!("$switch found an unknown argument: {}", field.name)));
            }
        }
    }
    if branches.is_empty() {
        return Err(Error::location(40068, "$switch requires at least one branch."));
    }
    Ok(Node::Switch { branches, default })
}

fn parse_branch(parser: &mut Parser<'_>, value: Value<'_>) -> Result<(Node, Node)> {
    let Value::Document(doc) = value else {
        let reason = format!("$switch expected each branch to be an object, found: {}", value.value_type());
        return Err(Error::location(40062, reason));
    };
    let (mut condition, mut then) = (None, None);
    for field in doc.elements() {
        match &**field.name {
            b"case" => condition = Some(parser.operand(field.value)?),
            b"then" => then = Some(parser.operand(field.value)?),
            _ => {
                let reason = format!("$switch found an unknown argument to a branch: {}", field.name);
                return Err(Error::location(40063, reason));
            }
        }
    }
    let condition =
        condition.ok_or_else(|| Error::location(40064, "$switch requires each branch have a 'case' expression"))?;
    let then = then.ok_or_else(|| Error::location(40065, "$switch requires each branch have a 'then' expression."))?;
    Ok((condition, then))
}

pub(super) fn parse_let(parser: &mut Parser<'_>, element: Element<'_>) -> Result<Node> {
    let names = Names { operator: "$let", not_object: 16874, unknown: 16875, names: &["vars", "in"] };
    let values = names.take(element)?;
    let [vars, body] = values[..] else { return Err(Error::internal("$let has two operands")) };
    let vars = required(vars, 16876, "$let", "vars")?;
    let body = required(body, 16877, "$let", "in")?;
    let vars = match vars {
        Value::Document(vars) => vars,
        // The places are no names of variables, but an empty array has none.
        Value::Array(vars) => vars.as_doc(),
        _ => return Err(Error::location(10065, "invalid parameter: expected an object (vars)")),
    };
    let mut nodes = Vec::new();
    for field in vars.elements() {
        nodes.push(parser.operand(field.value)?);
    }
    vars.elements().try_for_each(|field| check_user_variable(field.name))?;
    let names: Vec<&BStr> = vars.elements().map(|field| field.name).collect();
    parser.within(&names, |parser, slots| {
        let bindings = names.iter().zip(slots).zip(nodes);
        let bindings = bindings.map(|((name, slot), node)| ((*name).to_owned(), *slot, node)).collect();
        Ok(Node::Let { bindings, body: Box::new(parser.operand(body)?) })
    })
}

/// The name behind `as`, which is a constant.
fn variable_name<'a>(value: Option<Value<'a>>) -> Result<&'a BStr> {
    match value {
        None => Ok(BStr::new("this")),
        Some(Value::String(name)) => check_user_variable(name).map(|()| name),
        Some(other) => {
            check_user_variable(b"")?;
            Err(Error::new(ErrorCode::TypeMismatch, format!("'as' must be a string, found {other}")))
        }
    }
}

pub(super) fn parse_map(parser: &mut Parser<'_>, element: Element<'_>) -> Result<Node> {
    let names = Names { operator: "$map", not_object: 16878, unknown: 16879, names: &["input", "as", "in"] };
    let values = names.take(element)?;
    let [input, name, body] = values[..] else { return Err(Error::internal("$map has three operands")) };
    let input = Box::new(parser.operand(required(input, 16880, "$map", "input")?)?);
    let name = variable_name(name)?;
    let body = required(body, 16882, "$map", "in")?;
    parser.within(&[name], |parser, slots| {
        let slot = slots.first().copied().unwrap_or_default();
        Ok(Node::Map { input, name: name.to_owned(), slot, body: Box::new(parser.operand(body)?) })
    })
}

pub(super) fn parse_filter(parser: &mut Parser<'_>, element: Element<'_>) -> Result<Node> {
    let names =
        Names { operator: "$filter", not_object: 28646, unknown: 28647, names: &["input", "as", "cond", "limit"] };
    let values = names.take(element)?;
    let [input, name, condition, limit] = values[..] else {
        return Err(Error::internal("$filter has four operands"));
    };
    let input = Box::new(parser.operand(required(input, 28648, "$filter", "input")?)?);
    let name = variable_name(name)?;
    let condition = required(condition, 28650, "$filter", "cond")?;
    let limit = limit.map(|limit| parser.operand(limit)).transpose()?.map(Box::new);
    parser.within(&[name], |parser, slots| {
        let slot = slots.first().copied().unwrap_or_default();
        let condition = Box::new(parser.operand(condition)?);
        Ok(Node::Filter { input, name: name.to_owned(), slot, condition, limit })
    })
}

pub(super) fn parse_reduce(parser: &mut Parser<'_>, element: Element<'_>) -> Result<Node> {
    let names =
        Names { operator: "$reduce", not_object: 40075, unknown: 40076, names: &["input", "initialValue", "in"] };
    let values = names.take(element)?;
    let [input, initial, body] = values[..] else { return Err(Error::internal("$reduce has three operands")) };
    let input = Box::new(parser.operand(required(input, 40077, "$reduce", "input")?)?);
    let initial = Box::new(parser.operand(required(initial, 40078, "$reduce", "initialValue")?)?);
    let body = required(body, 40079, "$reduce", "in")?;
    parser.within(&[BStr::new("value"), BStr::new("this")], |parser, slots| {
        let [value_slot, this_slot] = slots[..] else { return Err(Error::internal("two variables were bound")) };
        Ok(Node::Reduce { input, initial, value_slot, this_slot, body: Box::new(parser.operand(body)?) })
    })
}

pub(super) fn parse_convert(parser: &mut Parser<'_>, element: Element<'_>) -> Result<Node> {
    let names = Names {
        operator: "$convert",
        not_object: ErrorCode::FailedToParse.number(),
        unknown: ErrorCode::FailedToParse.number(),
        names: &["input", "to", "onError", "onNull"],
    };
    let values = names.take(element)?;
    let [input, to, on_error, on_null] = values[..] else {
        return Err(Error::internal("$convert has four operands"));
    };
    let code = ErrorCode::FailedToParse.number();
    let input = Box::new(parser.operand(required(input, code, "$convert", "input")?)?);
    let to = Box::new(parser.operand(required(to, code, "$convert", "to")?)?);
    let on_error = on_error.map(|value| parser.operand(value)).transpose()?.map(Box::new);
    let on_null = on_null.map(|value| parser.operand(value)).transpose()?.map(Box::new);
    Ok(Node::Convert { input, to, on_error, on_null })
}

/// `$toInt` and its kin: `$convert` with the type in the name.
pub(super) fn conversion_to(parser: &mut Parser<'_>, element: Element<'_>, to: &str) -> Result<Node> {
    let operands = parser.operands(element.value)?;
    let count = operands.len();
    if count != 1 {
        let reason = format!("{} requires a single argument, got {count}", element.name);
        return Err(Error::location(50723, reason));
    }
    let input = operands.into_iter().next().unwrap_or(Node::Constant(None));
    let to = Box::new(Node::Constant(Some(OwnedValue::from(to))));
    Ok(Node::Convert { input: Box::new(input), to, on_error: None, on_null: None })
}

pub(super) fn parse_percentile_expression(parser: &mut Parser<'_>, element: Element<'_>) -> Result<Node> {
    let is_median = element.name == "$median";
    let not_object = if is_median { 7436201 } else { 7436200 };
    let (shares, input) = crate::accumulator::parse_percentile(element, not_object, parser.context())?;
    Ok(Node::Percentile { input: Box::new(parser.operand(input)?), shares, is_median })
}
