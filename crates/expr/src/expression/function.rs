//! Operators that are plain functions of their evaluated operands.

use super::places::Places;
use super::{Environment, Operand};
use pando_base::{Error, Result};
use std::fmt;

/// A function of operands in order.
pub(super) type Evaluate = for<'a> fn(&[Operand<'a>], &Environment<'_>) -> Result<Operand<'a>>;
/// A function of operands in order that remembers where the values of an array lie.
pub(super) type EvaluateInPlaces = for<'a> fn(&[Operand<'a>], &Environment<'_>, &mut Places<'a>) -> Result<Operand<'a>>;
/// A function of named operands; none where one was not given.
pub(super) type EvaluateNamed = for<'a> fn(&[Option<Operand<'a>>], &Environment<'_>) -> Result<Operand<'a>>;

/// How many operands an operator takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arity {
    Exactly(usize),
    Between(usize, usize),
    Any,
}

impl Arity {
    pub(super) fn check(self, name: &str, count: usize) -> Result<()> {
        match self {
            Arity::Exactly(expected) if count != expected => Err(Error::location(
                16020,
                format!("Expression {name} takes exactly {expected} arguments. {count} were passed in."),
            )),
            Arity::Between(least, most) if !(least..=most).contains(&count) => Err(Error::location(
                28667,
                format!(
                    "Expression {name} takes at least {least} arguments, and at most {most}, but {count} were passed in."
                ),
            )),
            _ => Ok(()),
        }
    }
}

/// How an operator with operands in order is evaluated.
#[derive(Clone, Copy)]
pub(super) enum Evaluation {
    Plain(Evaluate),
    InPlaces(EvaluateInPlaces),
}

impl Evaluation {
    pub(super) fn call<'a>(
        self,
        operands: &[Operand<'a>],
        environment: &Environment<'_>,
        places: &mut Places<'a>,
    ) -> Result<Operand<'a>> {
        match self {
            Evaluation::Plain(evaluate) => evaluate(operands, environment),
            Evaluation::InPlaces(evaluate) => evaluate(operands, environment, places),
        }
    }
}

/// An operator with operands in order.
#[derive(Clone, Copy)]
pub struct Function {
    pub(super) name: &'static str,
    pub(super) arity: Arity,
    pub(super) evaluate: Evaluation,
}

impl PartialEq for Function {
    fn eq(&self, other: &Function) -> bool {
        self.name == other.name
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// One named operand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Argument {
    pub(super) name: &'static str,
    /// The code of the error if it is not given; none if it need not be.
    pub(super) required: Option<i32>,
}

/// An operator with named operands.
#[derive(Clone, Copy)]
pub struct NamedFunction {
    pub(super) name: &'static str,
    pub(super) arguments: &'static [Argument],
    /// The code of the error if the operand is not a document.
    pub(super) not_object: i32,
    /// The code of the error for an operand that is not in the table.
    pub(super) unknown: i32,
    pub(super) evaluate: EvaluateNamed,
}

impl PartialEq for NamedFunction {
    fn eq(&self, other: &NamedFunction) -> bool {
        self.name == other.name
    }
}

impl fmt::Debug for NamedFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Function {
    /// As it is written.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }
}
