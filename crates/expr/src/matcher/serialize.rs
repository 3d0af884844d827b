//! Filters as `explain` shows them: every operator spelled out.

use super::expr_comparison::name_of;
use super::{Node, Predicate};
use bstr::BStr;
use pando_doc::{Doc, DocBuilder, Value};

pub(super) fn to_document(node: &Node) -> Doc {
    let mut builder = DocBuilder::new();
    write_node(node, &mut builder);
    builder.finish()
}

fn write_node(node: &Node, builder: &mut DocBuilder) {
    match node {
        Node::And(children) if children.is_empty() => {}
        Node::And(children) => write_list("$and", children, builder),
        Node::Or(children) => write_list("$or", children, builder),
        Node::Nor(children) => write_list("$nor", children, builder),
        Node::Not(child) => write_not(child, builder),
        Node::AlwaysTrue => builder.append("$alwaysTrue", 1_i32),
        Node::AlwaysFalse => builder.append("$alwaysFalse", 1_i32),
        Node::Leaf(leaf) => {
            builder.document(leaf.path.text(), |operators| write_predicate(&leaf.predicate, operators));
        }
        Node::Expr(expression) => builder.append("$expr", expression.to_value().view()),
        Node::Schema(schema) => builder.append("$jsonSchema", schema.source()),
        Node::BucketGeo(within) => builder.append("$_internalBucketGeoWithin", within.to_doc()),
        Node::Text(clause) => builder.append("$text", clause.to_doc()),
        Node::Where(clause) => builder.append("$where", Value::Code(BStr::new(clause.code()))),
    }
}

fn write_list(name: &str, children: &[Node], builder: &mut DocBuilder) {
    builder.array(name, |array| {
        for child in children {
            array.document(|nested| write_node(child, nested));
        }
    });
}

/// The negation of a condition stands behind the path; that of anything else is a `$nor` of one.
fn write_not(child: &Node, builder: &mut DocBuilder) {
    match child {
        Node::Leaf(leaf) => builder.document(leaf.path.text(), |operators| {
            operators.document("$not", |negated| write_predicate(&leaf.predicate, negated));
        }),
        Node::And(children) => match common_path(children) {
            Some(path) => builder.document(path, |operators| {
                operators
                    .document("$not", |negated| children.iter().for_each(|child| write_behind_path(child, negated)));
            }),
            None => write_list("$nor", std::slice::from_ref(child), builder),
        },
        other => write_list("$nor", std::slice::from_ref(other), builder),
    }
}

fn common_path(children: &[Node]) -> Option<&BStr> {
    let first = children.first()?.path()?;
    children.iter().all(|child| child.path() == Some(first)).then(|| first.text())
}

fn write_behind_path(node: &Node, operators: &mut DocBuilder) {
    if let Node::Leaf(leaf) = node {
        write_predicate(&leaf.predicate, operators);
    }
}

fn write_predicate(predicate: &Predicate, operators: &mut DocBuilder) {
    match predicate {
        Predicate::Comparison(comparison) => operators.append(comparison.operator.name(), comparison.value.view()),
        Predicate::ExprComparison(comparison) => {
            operators.append(name_of(comparison.operator), comparison.value.view());
        }
        Predicate::In(list) => operators.array("$in", |array| {
            list.values().iter().for_each(|value| array.push(value));
            for regex in list.regexes() {
                array.push(Value::Regex { pattern: regex.pattern(), options: regex.options() });
            }
        }),
        Predicate::Schema(operator) => operators.append(operator.name(), operator.argument().view()),
        Predicate::EqualHash(hash) => operators.append("$_internalEqHash", *hash),
        Predicate::Exists => operators.append("$exists", true),
        Predicate::Type(types) => operators.array("$type", |array| types.write(array)),
        Predicate::Size(size) => operators.append("$size", *size),
        Predicate::Mod(modulo) => operators.array("$mod", |array| {
            array.push(modulo.divisor);
            array.push(modulo.remainder);
        }),
        Predicate::Regex(regex) => {
            operators.append("$regex", regex.pattern());
            if !regex.options().is_empty() {
                operators.append("$options", regex.options());
            }
        }
        Predicate::Bits(bits) => operators.array(bits.test().name(), |array| {
            bits.positions().iter().for_each(|position| array.push(i64::from(*position) as i32));
        }),
        Predicate::Geo(geo) => operators.append_all(geo.source().view()),
        Predicate::Near(near) => operators.append_all(near.source().view()),
        Predicate::ElemMatchObject(child) => operators.document("$elemMatch", |nested| write_node(child, nested)),
        Predicate::ElemMatchValue(child) => operators.document("$elemMatch", |nested| write_predicate(child, nested)),
        Predicate::Not(child) => operators.document("$not", |nested| write_predicate(child, nested)),
        Predicate::And(children) => children.iter().for_each(|child| write_predicate(child, operators)),
        Predicate::Never => operators.append("$in", pando_doc::ArrayRef::EMPTY),
    }
}
