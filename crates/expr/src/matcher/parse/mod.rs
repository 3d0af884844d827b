//! From a filter document to the tree.
//!
//! A filter is a list of fields. A name that begins with a dollar is an operator on the whole document (`logical`); else it
//! is a path, and behind it stands either a document of operators on what the path leads to (`field`) or a value to be
//! equal to. One file for each family of operators.

mod array;
mod element;
mod evaluation;
mod field;
mod geo;
mod logical;

pub(crate) use field::{is_condition, is_operator_document};

use super::{Comparison, ComparisonOperator, Node, Predicate};
use crate::ParseContext;
use crate::context::strings;
use pando_base::{Error, Result};
use pando_doc::{DocRef, Element, FieldPath, StringComparator, Value};

/// How deep inside the filter a document stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    /// The filter itself, or below `$and` and its kin: operators see the whole document.
    Top,
    /// Inside `$elemMatch`: operators see a nested document.
    Nested,
}

pub(super) fn parse_filter(filter: DocRef<'_>, context: &ParseContext) -> Result<Node> {
    Parser { context }.document(filter, Level::Top)
}

/// Operators on a single value, without a path.
pub(super) fn parse_predicate(condition: DocRef<'_>, context: &ParseContext) -> Result<Predicate> {
    Parser { context }.value_condition(condition)
}

struct Parser<'c> {
    context: &'c ParseContext,
}

impl Parser<'_> {
    fn strings(&self) -> Option<&dyn StringComparator> {
        strings(&self.context.collator)
    }

    /// All fields of a filter.
    fn document(&self, filter: DocRef<'_>, level: Level) -> Result<Node> {
        let mut nodes = Vec::new();
        for element in filter.elements() {
            if element.name.starts_with(b"$") {
                nodes.extend(self.operator_on_document(element, level)?);
            } else {
                self.field(element, &mut nodes)?;
            }
        }
        Ok(match nodes.len() {
            1 => nodes.swap_remove(0),
            _ => Node::And(nodes),
        })
    }

    fn field(&self, element: Element<'_>, nodes: &mut Vec<Node>) -> Result<()> {
        let path = FieldPath::lenient(element.name)?;
        match element.value {
            Value::Document(operators) if is_operator_document(operators) => {
                self.operators_on_path(&path, operators, nodes)
            }
            Value::Regex { pattern, options } => {
                nodes.push(Node::leaf(path, Predicate::Regex(evaluation::regex(pattern, options)?)));
                Ok(())
            }
            value => {
                nodes.push(comparison(&path, ComparisonOperator::Equal, value)?);
                Ok(())
            }
        }
    }
}

fn comparison(path: &FieldPath, operator: ComparisonOperator, value: Value<'_>) -> Result<Node> {
    if matches!(value, Value::Undefined) {
        return Err(Error::bad_value("cannot compare to undefined"));
    }
    if operator != ComparisonOperator::Equal && matches!(value, Value::Regex { .. }) {
        let reason = format!("Can't have RegEx as arg to predicate over field '{path}'.");
        return Err(Error::bad_value(reason));
    }
    let comparison = Comparison { operator, value: value.to_owned() };
    Ok(Node::leaf(path.clone(), Predicate::Comparison(comparison)))
}
