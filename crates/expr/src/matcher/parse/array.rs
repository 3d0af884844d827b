//! `$elemMatch` and `$all`.

use super::field::is_operator_document;
use super::{Parser, comparison, evaluation};
use crate::matcher::{ComparisonOperator, Leaf, Node, Predicate};
use pando_base::{Error, Result};
use pando_doc::{ArrayRef, DocRef, FieldPath, Value};

/// Operators on documents: an `$elemMatch` that begins with one is a filter.
const ON_DOCUMENTS: &[&str] =
    &["$and", "$or", "$nor", "$where", "$expr", "$comment", "$text", "$jsonSchema", "$alwaysTrue", "$alwaysFalse"];

impl Parser<'_> {
    pub(super) fn elem_match(&self, value: Value<'_>) -> Result<Predicate> {
        let Value::Document(condition) = value else {
            return Err(Error::bad_value("$elemMatch needs an Object"));
        };
        let begins_with_filter =
            condition.raw_elements().next().is_some_and(|first| ON_DOCUMENTS.iter().any(|name| first.name == *name));
        if is_operator_document(condition) && !begins_with_filter {
            return Ok(Predicate::ElemMatchValue(Box::new(self.value_condition(condition)?)));
        }
        Ok(Predicate::ElemMatchObject(Box::new(self.nested(condition)?)))
    }

    /// Operators without a path: parsed with one, which is then taken away.
    pub(super) fn value_condition(&self, condition: DocRef<'_>) -> Result<Predicate> {
        let mut nodes = Vec::new();
        self.operators_on_path(&FieldPath::lenient("")?, condition, &mut nodes)?;
        Ok(without_path(Node::And(nodes)))
    }

    pub(super) fn all(&self, path: &FieldPath, value: Value<'_>) -> Result<Node> {
        let Value::Array(array) = value else {
            return Err(Error::bad_value("$all needs an array"));
        };
        if array.is_empty() {
            return Ok(Node::AlwaysFalse);
        }
        let nodes =
            if is_elem_match(array.get(0)) { self.all_elem_match(path, array)? } else { self.all_values(path, array)? };
        Ok(Node::And(nodes))
    }

    fn all_elem_match(&self, path: &FieldPath, array: ArrayRef<'_>) -> Result<Vec<Node>> {
        let node = |value: Value<'_>| {
            if !is_elem_match(Some(value)) {
                return Err(Error::bad_value("$all/$elemMatch has to be consistent"));
            }
            let condition = value.as_document().and_then(|doc| doc.first()).map_or(Value::Null, |first| first.value);
            Ok(Node::leaf(path.clone(), self.elem_match(condition)?))
        };
        array.values().map(node).collect()
    }

    fn all_values(&self, path: &FieldPath, array: ArrayRef<'_>) -> Result<Vec<Node>> {
        let node = |value: Value<'_>| match value {
            Value::Regex { pattern, options } => {
                Ok(Node::leaf(path.clone(), Predicate::Regex(evaluation::regex(pattern, options)?)))
            }
            Value::Document(doc) if is_operator_document(doc) => Err(Error::bad_value("no $ expressions in $all")),
            value => comparison(path, ComparisonOperator::Equal, value),
        };
        array.values().map(node).collect()
    }
}

fn is_elem_match(value: Option<Value<'_>>) -> bool {
    let first = value.and_then(|value| value.as_document()).and_then(|doc| doc.raw_elements().next());
    first.is_some_and(|first| first.name == "$elemMatch")
}

/// The conditions of a tree whose leaves all have the same path.
fn without_path(node: Node) -> Predicate {
    match node {
        Node::Leaf(Leaf { predicate, .. }) => predicate,
        Node::Not(child) => Predicate::Not(Box::new(without_path(*child))),
        Node::And(mut children) if children.len() == 1 => without_path(children.swap_remove(0)),
        Node::And(children) => Predicate::And(children.into_iter().map(without_path).collect()),
        Node::AlwaysTrue => Predicate::And(Vec::new()),
        other => {
            debug_assert_eq!(other, Node::AlwaysFalse, "operators on paths make no other nodes");
            Predicate::Never
        }
    }
}
