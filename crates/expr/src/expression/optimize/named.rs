//! Operators with named operands. What is wrong about the constants among the operands is told
//! before there is a document.

use super::{constant, is_constant, optimize, value_of};
use crate::expression::date::check_constants;
use crate::expression::evaluate::Environment;
use crate::expression::function::NamedFunction;
use crate::expression::regex::Search;
use crate::expression::tree::Node;
use pando_base::Result;
use pando_doc::OwnedValue;

/// Operators that stay as they are written.
const UNTOUCHED: &[&str] = &["$getField", "$setField", "$firstN", "$lastN", "$maxN", "$minN"];
/// Operators that are evaluated for each document, be all their operands constant.
const EVALUATED: &[&str] =
    &["$regexMatch", "$regexFind", "$regexFindAll", "$replaceOne", "$replaceAll", "$zip", "$sortArray"];

pub(super) fn call(
    function: NamedFunction,
    operands: Vec<Option<Node>>,
    environment: &Environment<'_>,
) -> Result<Node> {
    if UNTOUCHED.contains(&function.name) {
        return Ok(Node::Named { function, operands });
    }
    let operands: Vec<Option<Node>> = operands
        .into_iter()
        .map(|operand| operand.map(|node| optimize(node, environment)).transpose())
        .collect::<Result<_>>()?;
    if EVALUATED.contains(&function.name) {
        return Ok(match Search::prepare(function, &operands)? {
            Some(search) => Node::Search(Box::new(search)),
            None => Node::Named { function, operands },
        });
    }
    if operands.iter().flatten().all(is_constant) {
        let values: Vec<_> = operands.iter().map(|operand| operand.as_ref().map(value_of)).collect();
        return Ok(constant((function.evaluate)(&values, environment)?));
    }
    let given = |name: &str| {
        let place = function.arguments.iter().position(|argument| argument.name == name)?;
        operands.get(place)?.as_ref().filter(|node| is_constant(node)).map(value_of)
    };
    if check_constants(function.name, &given)? {
        return Ok(Node::Constant(Some(OwnedValue::Null)));
    }
    Ok(Node::Named { function, operands })
}
