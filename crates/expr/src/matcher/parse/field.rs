//! Operators on what a path leads to: the table of their names.

use super::{Level, Parser, comparison, element, evaluation, geo};
use crate::matcher::{
    BitTest, Comparison, ComparisonOperator, InList, MatchExpression, Node, Predicate, SchemaOperator,
};
use bstr::BStr;
use pando_base::{Error, Result};
use pando_doc::{ArrayRef, DocRef, Element, FieldPath, Value};

/// True if the document holds operators: its first name begins with a dollar, and it is not a reference.
pub(crate) fn is_operator_document(doc: DocRef<'_>) -> bool {
    let first = doc.raw_elements().next();
    first.is_some_and(|first| first.name.starts_with(b"$")) && !is_reference(doc, false)
}

/// True for the name of an operator on what a path leads to.
pub(crate) fn is_condition(name: &BStr) -> bool {
    const NAMES: &[&str] = &[
        "$all",
        "$bitsAllClear",
        "$bitsAllSet",
        "$bitsAnyClear",
        "$bitsAnySet",
        "$elemMatch",
        "$eq",
        "$exists",
        "$geoIntersects",
        "$geoNear",
        "$geoWithin",
        "$gt",
        "$gte",
        "$in",
        "$lt",
        "$lte",
        "$mod",
        "$ne",
        "$near",
        "$nearSphere",
        "$nin",
        "$options",
        "$regex",
        "$size",
        "$type",
        "$within",
    ];
    NAMES.iter().any(|known| name == *known)
}

fn is_reference(doc: DocRef<'_>, allow_incomplete: bool) -> bool {
    let has = |name: &str| doc.contains(name);
    if allow_incomplete { has("$ref") || has("$id") || has("$db") } else { has("$ref") && has("$id") }
}

impl Parser<'_> {
    pub(super) fn operators_on_path(
        &self,
        path: &FieldPath,
        operators: DocRef<'_>,
        nodes: &mut Vec<Node>,
    ) -> Result<()> {
        if let Some(near) = self.near(operators)? {
            nodes.push(Node::leaf(path.clone(), near));
            return Ok(());
        }
        for element in operators.elements() {
            nodes.extend(self.operator(path, element, operators)?);
        }
        Ok(())
    }

    /// None for an operator that belongs to another one.
    fn operator(&self, path: &FieldPath, element: Element<'_>, all: DocRef<'_>) -> Result<Option<Node>> {
        use ComparisonOperator::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual};
        let value = element.value;
        let leaf = |predicate| Node::leaf(path.clone(), predicate);
        let name = std::str::from_utf8(element.name).unwrap_or_default();
        Ok(Some(match name {
            "$eq" => comparison(path, Equal, value)?,
            "$gt" => comparison(path, Greater, value)?,
            "$gte" => comparison(path, GreaterOrEqual, value)?,
            "$lt" => comparison(path, Less, value)?,
            "$lte" => comparison(path, LessOrEqual, value)?,
            "$_internalExprEq" => expr_comparison(path, Equal, element)?,
            "$_internalEqHash" => match value {
                Value::Int64(hash) => leaf(Predicate::EqualHash(hash)),
                _ => return Err(Error::bad_value("The argument to $_internalEqHash must be of type NumberLong")),
            },
            "$_internalExprGt" => expr_comparison(path, Greater, element)?,
            "$_internalExprGte" => expr_comparison(path, GreaterOrEqual, element)?,
            "$_internalExprLt" => expr_comparison(path, Less, element)?,
            "$_internalExprLte" => expr_comparison(path, LessOrEqual, element)?,
            "$ne" if matches!(value, Value::Regex { .. }) => {
                return Err(Error::bad_value("Can't have regex as arg to $ne."));
            }
            "$ne" => Node::negate(comparison(path, Equal, value)?),
            "$in" => leaf(Predicate::In(self.list(element)?)),
            "$nin" => Node::negate(leaf(Predicate::In(self.list(element)?))),
            "$not" => self.not(path, value)?,
            "$exists" if value.is_true() => leaf(Predicate::Exists),
            "$exists" => Node::negate(leaf(Predicate::Exists)),
            "$type" => leaf(Predicate::Type(element::types(path, value)?)),
            "$size" => leaf(Predicate::Size(element::size(element)?)),
            "$mod" => leaf(Predicate::Mod(evaluation::modulo(value)?)),
            "$regex" => leaf(Predicate::Regex(evaluation::regex_of(all)?)),
            "$options" if all.contains("$regex") => return Ok(None),
            "$options" => return Err(Error::bad_value("$options needs a $regex")),
            "$elemMatch" => leaf(self.elem_match(value)?),
            "$all" => self.all(path, value)?,
            "$bitsAllSet" => leaf(Predicate::Bits(element::bits(BitTest::AllSet, element)?)),
            "$bitsAllClear" => leaf(Predicate::Bits(element::bits(BitTest::AllClear, element)?)),
            "$bitsAnySet" => leaf(Predicate::Bits(element::bits(BitTest::AnySet, element)?)),
            "$bitsAnyClear" => leaf(Predicate::Bits(element::bits(BitTest::AnyClear, element)?)),
            "$geoWithin" | "$within" | "$geoIntersects" => leaf(geo::predicate(all)?),
            "$near" | "$nearSphere" | "$geoNear" => {
                return Err(Error::bad_value(format!("near must be first in: {all}")));
            }
            _ => {
                let filter = |inner: DocRef<'_>| {
                    let node = self.nested(inner)?;
                    Ok(MatchExpression::from_node(node, self.context.collator.clone()))
                };
                match SchemaOperator::parse(element, &filter)? {
                    Some(operator) => leaf(Predicate::Schema(Box::new(operator))),
                    None => return Err(Error::bad_value(format!("unknown operator: {}", element.name))),
                }
            }
        }))
    }

    /// The array of an `$in` or `$nin`.
    fn list(&self, element: Element<'_>) -> Result<InList> {
        let Value::Array(array) = element.value else {
            return Err(Error::bad_value(format!("{} needs an array", element.name)));
        };
        self.list_of(array, element)
    }

    fn list_of(&self, array: ArrayRef<'_>, element: Element<'_>) -> Result<InList> {
        let (mut values, mut regexes) = (Vec::new(), Vec::new());
        for value in array.values() {
            match value {
                Value::Document(doc) if is_operator_document(doc) => {
                    return Err(Error::bad_value(format!("cannot nest $ under {}", element.name)));
                }
                Value::Undefined => return Err(Error::bad_value("InMatchExpression equality cannot be undefined")),
                Value::Regex { pattern, options } => regexes.push(evaluation::regex(pattern, options)?),
                value => values.push(value.to_owned()),
            }
        }
        Ok(InList::new(values, regexes, self.strings()))
    }

    fn not(&self, path: &FieldPath, value: Value<'_>) -> Result<Node> {
        match value {
            Value::Regex { pattern, options } => {
                let regex = evaluation::regex(pattern, options)?;
                Ok(Node::negate(Node::leaf(path.clone(), Predicate::Regex(regex))))
            }
            Value::Document(operators) if operators.is_empty() => Err(Error::bad_value("$not cannot be empty")),
            Value::Document(operators) => {
                let mut nodes = Vec::new();
                self.operators_on_path(path, operators, &mut nodes)?;
                Ok(Node::negate(match nodes.len() {
                    1 => nodes.swap_remove(0),
                    _ => Node::And(nodes),
                }))
            }
            _ => Err(Error::bad_value("$not needs a regex or a document")),
        }
    }

    /// A filter on a nested document.
    pub(super) fn nested(&self, filter: DocRef<'_>) -> Result<Node> {
        self.document(filter, Level::Nested)
    }
}

/// What `explain` shows beside `$expr` may be sent, too.
fn expr_comparison(path: &FieldPath, operator: ComparisonOperator, element: Element<'_>) -> Result<Node> {
    if matches!(element.value, Value::Array(_) | Value::Regex { .. } | Value::Undefined) {
        let reason = format!("{} cannot be compared with {}", element.name, element.value.value_type());
        return Err(Error::bad_value(reason));
    }
    let comparison = Comparison { operator, value: element.value.to_owned() };
    Ok(Node::leaf(path.clone(), Predicate::ExprComparison(comparison)))
}
