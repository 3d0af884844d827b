//! `$_internalFindAllValuesAtPath`: all values that a path leads to, each once and in their order. It takes arrays apart as `distinct`
//! does, for which it is made: also a number may be a place in an array.

use super::function::{Arity, Evaluation, Function};
use super::parse::Parser;
use super::tree::{Node, Variable};
use super::{Environment, Operand};
use pando_base::{Error, Result, operation};
use pando_doc::{Element, FieldPath, LeafArrays, OwnedValue, PathOptions, Value, compare_with, visit_path};
use std::ops::ControlFlow;

pub(super) const NAME: &str = "$_internalFindAllValuesAtPath";

/// The document itself and the path are its operands.
pub(super) fn parse(_: &mut Parser<'_>, element: Element<'_>) -> Result<Node> {
    let Value::String(path) = element.value else {
        return Err(Error::location(9567000, format!("{NAME} requires argument to be a string")));
    };
    FieldPath::parse(path)?;
    let whole = Node::Path { variable: Variable::Root, path: None };
    let function = Function { name: NAME, arity: Arity::Exactly(2), evaluate: Evaluation::Plain(evaluate) };
    Ok(Node::Call { function, operands: vec![whole, Node::Constant(Some(element.value.to_owned()))] })
}

fn evaluate<'a>(operands: &[Operand<'a>], environment: &Environment<'_>) -> Result<Operand<'a>> {
    let (Some(Value::Document(document)), Some(Value::String(path))) =
        (operands.first().and_then(Operand::view), operands.get(1).and_then(Operand::view))
    else {
        return Operand::array([]);
    };
    let options = environment.options();
    let path = FieldPath::lenient(path)?;
    let walk = PathOptions { leaf: LeafArrays::TraverseOmitArray, ..PathOptions::default() };
    let mut values: Vec<OwnedValue> = Vec::new();
    let _: ControlFlow<()> = visit_path(document, &path, walk, &mut |visit| {
        operation::count(1);
        if let Some(value) = visit.value
            && let Err(place) = values.binary_search_by(|known| compare_with(known.view(), value, &options))
        {
            values.insert(place, value.to_owned());
        }
        ControlFlow::Continue(())
    });
    Operand::array(values.into_iter().map(Operand::Owned))
}
