//! Documents: `$mergeObjects`, `$objectToArray`, `$arrayToObject`, `$getField`, `$setField`, `$unsetField`.

use super::parse::Parser;
use super::tree::{Node, Variable};
use super::{Environment, Fields, Operand, Values, function::NamedFunction, registry};
use crate::limits::check_value;
use bstr::BStr;
use pando_base::{Error, Result, operation};
use pando_doc::{DocBuilder, Element, OwnedValue, Value};

pub(super) fn merge_objects<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    let mut fields = Fields::default();
    let single = match operands {
        [only] => only.array_operands()?,
        _ => None,
    };
    for operand in single.as_deref().unwrap_or(operands) {
        match operand.or_null() {
            Value::Document(doc) => fields.merge(doc)?,
            value if value.is_nullish() => {}
            value => {
                let reason = format!(
                    "$mergeObjects requires object inputs, but input {value} is of type {}",
                    value.value_type()
                );
                return Err(Error::location(40400, reason));
            }
        }
    }
    Ok(Operand::from(fields.to_doc()))
}

pub(super) fn object_to_array<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    let Some(operand) = operands.first() else { return Ok(Operand::NULL) };
    match operand.or_null() {
        Value::Document(doc) => {
            let mut pairs = Values::new();
            for element in doc.elements() {
                pairs.document(|pair| {
                    pair.append("k", element.name);
                    pair.append("v", element.value);
                })?;
            }
            Ok(pairs.finish())
        }
        value if value.is_nullish() => Ok(Operand::NULL),
        value => {
            let reason = format!("$objectToArray requires a document input, found: {}", value.value_type());
            Err(Error::location(40390, reason))
        }
    }
}

pub(super) fn array_to_object<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    let Some(operand) = operands.first() else { return Ok(Operand::NULL) };
    let array = match operand.or_null() {
        Value::Array(array) => array,
        value if value.is_nullish() => return Ok(Operand::NULL),
        value => {
            let reason = format!("$arrayToObject requires an array input, found: {}", value.value_type());
            return Err(Error::location(40386, reason));
        }
    };
    let is_pairs = match array.get(0) {
        Some(Value::Array(_)) => true,
        Some(Value::Document(_)) | None => false,
        Some(other) => {
            let reason = format!("Unrecognised input type format for $arrayToObject: {}", other.value_type());
            return Err(Error::location(40398, reason));
        }
    };
    let mut fields = Fields::default();
    for value in array.values() {
        let (name, value) = if is_pairs { pair_of_array(value)? } else { pair_of_document(value)? };
        if name.contains(&0) {
            let code = if is_pairs { 4940400 } else { 4940401 };
            return Err(Error::location(code, "Key field cannot contain an embedded null byte"));
        }
        fields.set(name, value)?;
    }
    Ok(Operand::from(fields.to_doc()))
}

fn pair_of_array(value: Value<'_>) -> Result<(&BStr, Value<'_>)> {
    let Value::Array(pair) = value else {
        let reason = format!(
            "$arrayToObject requires a consistent input format. Elements must all be arrays or all be objects. Array was detected, now found: {}",
            value.value_type()
        );
        return Err(Error::location(40396, reason));
    };
    let mut values = pair.values();
    match (values.next(), values.next(), values.next()) {
        (Some(Value::String(name)), Some(value), None) => Ok((name, value)),
        (Some(other), Some(_), None) => {
            let reason = format!(
                "$arrayToObject requires an array of key-value pairs, where the key must be of type string. Found key type: {}",
                other.value_type()
            );
            Err(Error::location(40395, reason))
        }
        _ => {
            let reason =
                format!("$arrayToObject requires an array of size 2 arrays,found array of size: {}", pair.len());
            Err(Error::location(40397, reason))
        }
    }
}

fn pair_of_document(value: Value<'_>) -> Result<(&BStr, Value<'_>)> {
    let Value::Document(pair) = value else {
        let reason = format!(
            "$arrayToObject requires a consistent input format. Elements must all be arrays or all be objects. Object was detected, now found: {}",
            value.value_type()
        );
        return Err(Error::location(40391, reason));
    };
    if pair.field_count() != 2 {
        let reason = format!(
            "$arrayToObject requires an object keys of 'k' and 'v'. Found incorrect number of keys:{}",
            pair.field_count()
        );
        return Err(Error::location(40392, reason));
    }
    match (pair.get("k"), pair.get("v")) {
        (Some(Value::String(name)), Some(value)) => Ok((name, value)),
        (Some(other), Some(_)) => {
            let reason = format!(
                "$arrayToObject requires an object with keys 'k' and 'v', where the value of 'k' must be of type string. Found type: {}",
                other.value_type()
            );
            Err(Error::location(40394, reason))
        }
        _ => {
            let reason = "$arrayToObject requires an object with keys 'k' and 'v'. Missing either or both keys from: ";
            Err(Error::location(40393, format!("{reason}{pair}")))
        }
    }
}

/// `$getField`: with `field` and `input`, or with the name alone, then of the document.
pub(super) fn parse_get_field(parser: &mut Parser<'_>, element: Element<'_>) -> Result<Node> {
    let (field, input) = match element.value {
        Value::Document(doc) if !doc.first().is_some_and(|first| first.name.starts_with(b"$")) => {
            let (mut field, mut input) = (None, None);
            for part in doc.elements() {
                match &**part.name {
                    b"field" => field = Some((part.value, parser.operand(part.value)?)),
                    b"input" => input = Some(parser.operand(part.value)?),
                    _ => {
                        let reason = format!("$getField found an unknown argument: {}", part.name);
                        return Err(Error::location(3041701, reason));
                    }
                }
            }
            let field = field.ok_or_else(|| Error::location(3041702, "$getField requires 'field' to be specified"))?;
            let input = input.ok_or_else(|| Error::location(3041703, "$getField requires 'input' to be specified"))?;
            (field, input)
        }
        value => ((value, parser.operand(value)?), Node::Path { variable: Variable::Root, path: None }),
    };
    check_field_name(field.0, &field.1, "$getField", [5654600, 5654601, 5654602])?;
    Ok(Node::Named { function: registry::GET_FIELD, operands: vec![Some(field.1), Some(input)] })
}

/// A field name has to be a constant string; a text with a dollar in front is one only behind `$literal`.
fn check_field_name<'n>(value: Value<'_>, node: &'n Node, operator: &str, codes: [i32; 3]) -> Result<&'n BStr> {
    let [path, not_constant, not_string] = codes;
    match node {
        Node::Constant(Some(OwnedValue::String(name))) => Ok(BStr::new(name)),
        Node::Constant(value) => {
            let found = value.as_ref().map_or("missing", |value| value.value_type().name());
            let reason = format!("{operator} requires 'field' to evaluate to type String, but got {found}");
            Err(Error::location(not_string, reason))
        }
        Node::Path { .. } => {
            let reason = format!(
                "A field path reference which is not allowed in this context. Did you mean {{$literal: '{value}'}}?"
            );
            Err(Error::location(path, reason))
        }
        _ => {
            let reason =
                format!("{operator} requires 'field' to evaluate to a constant, but got a non-constant argument");
            Err(Error::location(not_constant, reason))
        }
    }
}

/// `field`, `input`.
pub(super) fn get_field<'a>(operands: &[Option<Operand<'a>>], _: &Environment<'_>) -> Result<Operand<'a>> {
    let [Some(field), Some(input)] = operands else { return Ok(Operand::Missing) };
    let Some(Value::String(name)) = field.view() else {
        let reason = format!("$getField requires 'field' to evaluate to type String, but got {}", field.type_name());
        return Err(Error::location(3041704, reason));
    };
    match input {
        Operand::Borrowed(Value::Document(doc)) => Ok(Operand::from(doc.get(name))),
        input => match input.view() {
            Some(Value::Document(doc)) => Ok(input.child(doc.get(name))),
            Some(value) if value.is_nullish() => Ok(Operand::NULL),
            _ => Ok(Operand::Missing),
        },
    }
}

pub(super) fn parse_set_field(parser: &mut Parser<'_>, element: Element<'_>) -> Result<Node> {
    parse_change(parser, element, registry::SET_FIELD, &["field", "input", "value"])
}

pub(super) fn parse_unset_field(parser: &mut Parser<'_>, element: Element<'_>) -> Result<Node> {
    parse_change(parser, element, registry::SET_FIELD, &["field", "input"])
}

fn parse_change(
    parser: &mut Parser<'_>,
    element: Element<'_>,
    function: NamedFunction,
    names: &[&str],
) -> Result<Node> {
    let operator = element.name.to_string();
    let Value::Document(doc) = element.value else {
        let reason = format!("{operator} only supports an object as its argument");
        return Err(Error::location(4161100, reason));
    };
    let mut operands = vec![None, None, None];
    for part in doc.elements() {
        let place = names.iter().position(|name| part.name == *name);
        let Some(slot) = place.and_then(|place| operands.get_mut(place)) else {
            return Err(Error::location(4161101, format!("{operator} found an unknown argument: {}", part.name)));
        };
        *slot = Some(parser.operand(part.value)?);
    }
    // The field is missed before the value, and both before the input.
    for (name, code) in [("field", 4161102), ("value", 4161103), ("input", 4161109)] {
        if names.contains(&name) && doc.get(name).is_none() {
            return Err(Error::location(code, format!("{operator} requires '{name}' to be specified")));
        }
    }
    if let (Some(value), Some(Some(node))) = (doc.get("field"), operands.first()) {
        let name = check_field_name(value, node, "$setField", [4161108, 4161106, 4161107])?;
        if name.contains(&0) {
            return Err(Error::location(9534700, "$setField: 'field' cannot contain an embedded null byte"));
        }
    }
    // Without a value the field is taken away.
    operands.iter_mut().skip(2).for_each(|value| {
        value.get_or_insert(Node::Constant(None));
    });
    Ok(Node::Named { function, operands })
}

/// `field`, `input`, `value`; a missing value takes the field away.
pub(super) fn set_field<'a>(operands: &[Option<Operand<'a>>], _: &Environment<'_>) -> Result<Operand<'a>> {
    let [Some(field), Some(input), Some(value)] = operands else { return Ok(Operand::NULL) };
    let doc = match input.or_null() {
        Value::Document(doc) => doc,
        other if other.is_nullish() => return Ok(Operand::NULL),
        other => {
            let reason =
                format!("$setField requires 'input' to evaluate to type Object, but got {}", other.value_type());
            return Err(Error::location(4161105, reason));
        }
    };
    let Some(Value::String(name)) = field.view() else { return Ok(Operand::NULL) };
    operation::tick_bytes(doc.size_bytes())?;
    let mut builder = DocBuilder::with_capacity(doc.size_bytes() + 16);
    let mut is_set = false;
    for element in doc.raw_elements() {
        if element.name != name {
            builder.append_raw(element);
        } else if let (Some(value), false) = (value.view(), is_set) {
            builder.append(name, value);
            is_set = true;
        }
    }
    if let (Some(value), false) = (value.view(), is_set) {
        builder.append(name, value);
    }
    check_value(builder.size_bytes())?;
    Ok(Operand::from(builder.finish()))
}
