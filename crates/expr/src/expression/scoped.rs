//! Operators that bind variables or evaluate some operands only if need be: `$let`, `$map`, `$filter`, `$reduce`, `$convert`.

use super::evaluate::{Scope, evaluate as evaluate_node};
use super::tree::Node;
use super::{Operand, Values, convert};
use crate::accumulator::percentile_of_operand;
use pando_base::{Error, Result};

pub(super) fn evaluate<'a>(node: &'a Node, scope: &mut Scope<'a>) -> Result<Operand<'a>> {
    match node {
        Node::Let { bindings, body } => {
            // No variable sees another one of the same `$let`.
            let values = bindings.iter().map(|(_, _, node)| evaluate_node(node, scope)).collect::<Result<Vec<_>>>()?;
            bindings.iter().zip(values).for_each(|((_, slot, _), value)| scope.set(*slot, value));
            evaluate_node(body, scope)
        }
        Node::Map { input, slot, body, .. } => map(input, *slot, body, scope),
        Node::Filter { input, slot, condition, limit, .. } => filter(input, *slot, condition, limit.as_deref(), scope),
        Node::Reduce { input, initial, value_slot, this_slot, body } => {
            let input = evaluate_node(input, scope)?;
            if input.is_nullish() {
                return Ok(Operand::NULL);
            }
            let Some(values) = input.array_operands()? else {
                let reason = format!("$reduce requires that 'input' be an array, found: {}", input.or_null());
                return Err(Error::location(40080, reason));
            };
            let mut result = evaluate_node(initial, scope)?;
            for value in values {
                scope.set(*this_slot, value);
                scope.set(*value_slot, result);
                result = evaluate_node(body, scope)?;
            }
            Ok(result)
        }
        Node::Convert { input, to, on_error, on_null } => {
            let value = evaluate_node(input, scope)?;
            let to = evaluate_node(to, scope)?;
            if value.is_nullish() {
                return on_null.as_ref().map_or(Ok(Operand::NULL), |node| evaluate_node(node, scope));
            }
            if to.is_nullish() {
                return Ok(Operand::NULL);
            }
            match (convert::convert(&value, &to), on_error) {
                (Err(error), Some(node)) if convert::is_conversion_failure(&error) => evaluate_node(node, scope),
                (result, _) => result,
            }
        }
        Node::Search(search) => {
            let input = search.input().map_or(Ok(Operand::Missing), |node| evaluate_node(node, scope))?;
            search.evaluate(&input)
        }
        Node::Percentile { input, shares, is_median } => {
            let input = evaluate_node(input, scope)?;
            Ok(Operand::Owned(percentile_of_operand(&input, shares, *is_median)?))
        }
        other => {
            debug_assert!(false, "evaluated elsewhere: {other:?}");
            Ok(Operand::Missing)
        }
    }
}

fn map<'a>(input: &'a Node, slot: usize, body: &'a Node, scope: &mut Scope<'a>) -> Result<Operand<'a>> {
    let input = evaluate_node(input, scope)?;
    if input.is_nullish() {
        return Ok(Operand::NULL);
    }
    let Some(values) = input.array_operands()? else {
        return Err(Error::location(16883, format!("input to $map must be an array not {}", input.type_name())));
    };
    let mut made = Values::new();
    for value in values {
        scope.set(slot, value);
        made.push(evaluate_node(body, scope)?.or_null())?;
    }
    Ok(made.finish())
}

fn filter<'a>(
    input: &'a Node,
    slot: usize,
    condition: &'a Node,
    limit: Option<&'a Node>,
    scope: &mut Scope<'a>,
) -> Result<Operand<'a>> {
    let input = evaluate_node(input, scope)?;
    if input.is_nullish() {
        return Ok(Operand::NULL);
    }
    let Some(values) = input.array_operands()? else {
        return Err(Error::location(28651, format!("input to $filter must be an array not {}", input.type_name())));
    };
    let limit = limit.map(|node| evaluate_node(node, scope)).transpose()?;
    let limit = limit.filter(|limit| !limit.is_nullish()).map(filter_limit).transpose()?;
    let mut kept = Values::new();
    for value in values {
        if limit.is_some_and(|limit| kept.len() >= limit) {
            break;
        }
        scope.set(slot, value.clone());
        if evaluate_node(condition, scope)?.is_true() {
            kept.push(value.or_null())?;
        }
    }
    Ok(kept.finish())
}

fn filter_limit(limit: Operand<'_>) -> Result<usize> {
    let whole = limit.as_number().and_then(|number| number.to_i64_exact()).and_then(|whole| i32::try_from(whole).ok());
    let Some(whole) = whole else {
        let reason = format!("$filter: limit must be represented as a 32-bit integral value: {}", limit.or_null());
        return Err(Error::location(327391, reason));
    };
    if whole < 1 {
        return Err(Error::location(327392, format!("$filter: limit must be greater than 0: {whole}")));
    }
    Ok(whole as usize)
}
