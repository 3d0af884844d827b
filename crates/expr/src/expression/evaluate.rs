//! The walk over the tree of an expression, for one document.

use super::function::Evaluation;
use super::places::Places;
use super::tree::{Node, Variable};
use super::{Expression, Operand, javascript, path, random, scoped};
use crate::context::{SharedCollator, strings};
use crate::limits::{ExpressionLimits, check_value};
use pando_base::{Error, Result, operation};
use pando_doc::{CompareOptions, DocBuilder, DocRef, OwnedValue, StringComparator, Value, compare_with};
use std::cmp::Ordering;

/// What functions know beside their operands.
#[derive(Clone, Copy, Default)]
pub struct Environment<'e> {
    strings: Option<&'e dyn StringComparator>,
    limits: ExpressionLimits,
}

impl<'e> Environment<'e> {
    /// With this collation and these limits.
    pub fn new(collator: &'e Option<SharedCollator>, limits: ExpressionLimits) -> Environment<'e> {
        Environment { strings: strings(collator), limits }
    }

    /// How much may be taken.
    pub fn limits(&self) -> ExpressionLimits {
        self.limits
    }

    /// The order of two values.
    pub fn compare(&self, left: Value<'_>, right: Value<'_>) -> Ordering {
        compare_with(left, right, &self.options())
    }

    /// How values are compared.
    pub fn options(&self) -> CompareOptions<'e> {
        CompareOptions { strings: self.strings, ..CompareOptions::default() }
    }
}

/// The document and the variables that an expression sees.
pub struct Scope<'a> {
    root: DocRef<'a>,
    slots: Vec<Operand<'a>>,
    environment: Environment<'a>,
    places: Places<'a>,
}

impl<'a> Scope<'a> {
    /// A document, and room for the variables of the expression.
    #[inline]
    pub fn new(root: DocRef<'a>, expression: &'a Expression) -> Scope<'a> {
        // Few expressions have variables, and one is evaluated for every document.
        let slots = if expression.slots == 0 { Vec::new() } else { vec![Operand::Missing; expression.slots] };
        Scope {
            root,
            slots,
            environment: Environment::new(&expression.collator, expression.limits),
            places: Places::default(),
        }
    }

    /// Sets a variable.
    pub fn set(&mut self, slot: usize, value: Operand<'a>) {
        if slot >= self.slots.len() {
            self.slots.resize(slot + 1, Operand::Missing);
        }
        if let Some(place) = self.slots.get_mut(slot) {
            *place = value;
        }
    }

    /// The variable.
    pub fn get(&self, slot: usize) -> Operand<'a> {
        self.slots.get(slot).cloned().unwrap_or(Operand::Missing)
    }

    /// What functions know.
    pub fn environment(&self) -> Environment<'a> {
        self.environment
    }
}

pub(super) fn evaluate<'a>(node: &'a Node, scope: &mut Scope<'a>) -> Result<Operand<'a>> {
    operation::tick(1)?;
    match node {
        Node::Constant(value) => Ok(value.as_ref().map_or(Operand::Missing, |value| Operand::Borrowed(value.view()))),
        Node::Unavailable(name) => Err(Error::location(51144, format!("Builtin variable '$${name}' is not available"))),
        Node::Random(random) => Ok(random::evaluate(random)),
        Node::Script(call) => javascript::evaluate(call, scope),
        Node::Path { variable: Variable::Root, path } => Ok(match path {
            Some(path) => path::in_document(scope.root, path, 0),
            None => match crate::metadata::without_metadata(scope.root) {
                Some(own) => Operand::from(OwnedValue::Document(own)),
                None => Operand::Borrowed(Value::Document(scope.root)),
            },
        }),
        Node::Path { variable: Variable::Slot(slot), path } => Ok(match path {
            Some(path) => path::in_operand(&scope.get(*slot), path),
            None => scope.get(*slot),
        }),
        Node::Object(fields) => object(fields, scope),
        Node::Array(nodes) => {
            let values = nodes.iter().map(|node| evaluate(node, scope)).collect::<Result<Vec<_>>>()?;
            Operand::array(values)
        }
        Node::Call { function, operands } => call(function.evaluate, operands, scope),
        Node::Named { function, operands } => {
            let mut values = Vec::with_capacity(operands.len());
            for operand in operands {
                values.push(operand.as_ref().map(|node| evaluate(node, scope)).transpose()?);
            }
            (function.evaluate)(&values, &scope.environment)
        }
        Node::And(nodes) => {
            for node in nodes {
                if !evaluate(node, scope)?.is_true() {
                    return Ok(Operand::from(false));
                }
            }
            Ok(Operand::from(true))
        }
        Node::Or(nodes) => {
            for node in nodes {
                if evaluate(node, scope)?.is_true() {
                    return Ok(Operand::from(true));
                }
            }
            Ok(Operand::from(false))
        }
        Node::Cond(parts) => {
            let [condition, then, otherwise] = &**parts;
            let branch = if evaluate(condition, scope)?.is_true() { then } else { otherwise };
            evaluate(branch, scope)
        }
        Node::IfNull(nodes) => if_null(nodes, scope),
        Node::Switch { branches, default } => {
            for (condition, value) in branches {
                if evaluate(condition, scope)?.is_true() {
                    return evaluate(value, scope);
                }
            }
            match default {
                Some(default) => evaluate(default, scope),
                None => {
                    let reason = "$switch could not find a matching branch for an input, and no default was specified.";
                    Err(Error::location(40066, reason))
                }
            }
        }
        scoped => scoped::evaluate(scoped, scope),
    }
}

/// The few operands of most calls stay on the stack.
fn call<'a>(function: Evaluation, operands: &'a [Node], scope: &mut Scope<'a>) -> Result<Operand<'a>> {
    match operands {
        [only] => {
            let value = evaluate(only, scope)?;
            function.call(&[value], &scope.environment, &mut scope.places)
        }
        [left, right] => {
            let values = [evaluate(left, scope)?, evaluate(right, scope)?];
            function.call(&values, &scope.environment, &mut scope.places)
        }
        operands => {
            let values = operands.iter().map(|node| evaluate(node, scope)).collect::<Result<Vec<_>>>()?;
            function.call(&values, &scope.environment, &mut scope.places)
        }
    }
}

fn object<'a>(fields: &'a [(bstr::BString, Node)], scope: &mut Scope<'a>) -> Result<Operand<'a>> {
    let mut builder = DocBuilder::new();
    for (name, node) in fields {
        if let Some(value) = evaluate(node, scope)?.view() {
            builder.append(name, value);
            check_value(builder.size_bytes())?;
        }
    }
    operation::tick_bytes(builder.size_bytes())?;
    Ok(Operand::from(builder.finish()))
}

/// The first operand that is not null; the last one whatever it is.
fn if_null<'a>(nodes: &'a [Node], scope: &mut Scope<'a>) -> Result<Operand<'a>> {
    let mut value = Operand::Missing;
    for node in nodes {
        value = evaluate(node, scope)?;
        if !value.is_nullish() {
            break;
        }
    }
    Ok(value)
}
