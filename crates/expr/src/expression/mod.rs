//! Aggregation expressions: values computed from a document and variables.
//!
//! `parse` turns a value into a tree of [`Node`]s, with `registry` as the one table of operators; `optimize` folds what is constant;
//! `evaluate` walks the tree. Most operators are plain functions of their evaluated operands and live in a file for each
//! family; those that bind variables or evaluate only some of their operands are nodes of their own.
//!
//! Invariants: missing is a state of its own ([`Operand::Missing`]), never null; a value that comes from the document is not copied
//! until it is put into a result; variables are numbered when parsing, so that evaluation looks nothing up by name.

mod all_values;
mod api_version;
mod arithmetic;
mod array;
mod array_make;
mod bitwise;
mod boolean;
mod comparison;
mod conditional;
mod convert;
mod convert_number;
mod date;
mod evaluate;
mod fields;
mod function;
mod javascript;
mod meta;
mod misc;
mod object;
mod operand;
mod optimize;
mod parse;
mod path;
mod places;
mod random;
mod regex;
mod registry;
mod scoped;
mod serialize;
mod set;
pub(crate) mod sort;
mod string;
mod string_search;
mod text;
mod timestamp;
mod tree;
mod trigonometry;
mod variables;

#[cfg(test)]
mod tests;

pub(crate) use convert::coerce_to_string;
pub use date::{TimeUnit, add_to_date, date_difference};
pub use evaluate::{Environment, Scope};
pub(crate) use fields::Fields;
pub use javascript::ScriptCall;
pub(crate) use javascript::{function_source, needs_script};
pub use operand::Operand;
pub(crate) use operand::Values;
pub use random::SharedRandom;
pub use tree::{Node, Variable};
pub use variables::check_user_variable;

use crate::ParseContext;
use crate::context::SharedCollator;
use crate::limits::ExpressionLimits;
use bstr::BStr;
use pando_base::{Result, operation};
use pando_doc::{DocRef, FieldPath, OwnedValue, Value};

/// A parsed expression.
#[derive(Clone)]
pub struct Expression {
    root: Node,
    /// How many variables it binds.
    slots: usize,
    collator: Option<SharedCollator>,
    limits: ExpressionLimits,
}

impl Expression {
    /// Reads an expression: a path (`"$a.b"`), an operator, a document or array of expressions, or a constant.
    pub fn parse(value: Value<'_>, context: &ParseContext) -> Result<Expression> {
        let mut parser = parse::Parser::new(context);
        let root = parser.operand(value)?;
        Ok(Expression { root, slots: parser.slots(), collator: context.collator.clone(), limits: context.limits })
    }

    /// True if there is an operator of this name.
    pub fn has_operator(name: &BStr) -> bool {
        std::str::from_utf8(name).is_ok_and(|name| registry::find(name).is_some())
    }

    /// Reads a document whose fields are expressions, also if a name looks like an operator's.
    pub fn parse_object(doc: DocRef<'_>, context: &ParseContext) -> Result<Expression> {
        let mut parser = parse::Parser::new(context);
        let root = parser.object(doc)?;
        Ok(Expression { root, slots: parser.slots(), collator: context.collator.clone(), limits: context.limits })
    }

    /// Reads an expression with variables whose values the caller sets in the [`Scope`], such as those of `$lookup`: the first
    /// of the names has the slot 0, and so on.
    pub fn parse_with_variables(value: Value<'_>, names: &[&str], context: &ParseContext) -> Result<Expression> {
        let mut parser = parse::Parser::new(context);
        names.iter().for_each(|name| {
            parser.bind(name);
        });
        let root = parser.operand(value)?;
        Ok(Expression { root, slots: parser.slots(), collator: context.collator.clone(), limits: context.limits })
    }

    /// A constant.
    pub fn constant(value: OwnedValue) -> Expression {
        Expression { root: Node::Constant(Some(value)), slots: 0, collator: None, limits: ExpressionLimits::default() }
    }

    /// A field of the document.
    pub fn field(path: FieldPath) -> Expression {
        let root = Node::Path { variable: Variable::Root, path: Some(path) };
        Expression { root, slots: 0, collator: None, limits: ExpressionLimits::default() }
    }

    /// The expression with constants folded; an error that is certain is told here. A test may have it left as it is.
    pub fn optimize(self) -> Result<Expression> {
        if crate::DISABLE_PIPELINE_OPTIMIZATION.should_fail() { Ok(self) } else { self.folded() }
    }

    /// Does the same whatever a test wants, for whoever takes constants only.
    pub fn folded(mut self) -> Result<Expression> {
        self.root = optimize::optimize(self.root, &Environment::new(&self.collator, self.limits))?;
        Ok(self)
    }

    /// The tree.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// The value, if the expression is constant.
    pub fn as_constant(&self) -> Option<Option<Value<'_>>> {
        match &self.root {
            Node::Constant(value) => Some(value.as_ref().map(OwnedValue::view)),
            _ => None,
        }
    }

    /// The path, if the expression is nothing but a field of the document.
    pub fn as_field(&self) -> Option<&FieldPath> {
        match &self.root {
            Node::Path { variable: Variable::Root, path } => path.as_ref(),
            _ => None,
        }
    }

    /// The value for a document and the variables of the scope.
    pub fn evaluate<'a>(&'a self, scope: &mut Scope<'a>) -> Result<Operand<'a>> {
        let value = evaluate::evaluate(&self.root, scope)?;
        operation::ended()?;
        Ok(value)
    }

    /// The value for a document.
    #[inline]
    pub fn evaluate_document<'a>(&'a self, doc: DocRef<'a>) -> Result<Operand<'a>> {
        match &self.root {
            // Most expressions are these two, which need no scope.
            Node::Constant(Some(value)) => Ok(Operand::Borrowed(value.view())),
            Node::Path { variable: Variable::Root, path: Some(path) } => Ok(path::in_document(doc, path, 0)),
            _ => self.evaluate(&mut Scope::new(doc, self)),
        }
    }

    /// The expression as `explain` shows it.
    pub fn to_value(&self) -> OwnedValue {
        serialize::to_value(&self.root)
    }

    /// True if each evaluation may give another value, as with `$rand`.
    pub fn is_random(&self) -> bool {
        self.root.is_random()
    }

    /// The paths of the document that the expression looks at; none if it may look at all of it.
    pub fn paths(&self) -> Option<Vec<FieldPath>> {
        let mut found = Vec::new();
        self.root.collect_paths(&mut found).then_some(found)
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Expression) -> bool {
        self.root == other.root
    }
}

impl std::fmt::Debug for Expression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.to_value())
    }
}
