//! Expressions as `explain` shows them: constants behind `$const`, operands in arrays.

use super::function::NamedFunction;
use super::tree::{Node, Variable};
use bstr::BString;
use pando_doc::{Array, ArrayBuilder, Doc, DocBuilder, OwnedValue, doc};

pub(super) fn to_value(node: &Node) -> OwnedValue {
    match node {
        Node::Constant(None) => OwnedValue::from("$$REMOVE"),
        Node::Constant(Some(value)) => OwnedValue::Document(doc! { "$const": value.view() }),
        Node::Path { variable: Variable::Root, path: Some(path) }
            if crate::metadata::name_of(path.text()).is_some() =>
        {
            let name = crate::metadata::name_of(path.text()).unwrap_or_default();
            operator("$meta", OwnedValue::from(name))
        }
        Node::Path { variable, path } => OwnedValue::from(path_text(*variable, path.as_ref())),
        Node::Unavailable(name) => OwnedValue::from(format!("$${name}")),
        Node::Script(call) => operator(call.name(), OwnedValue::Document(call.to_doc(to_value(&call.input)))),
        Node::Random(_) => operator("$rand", OwnedValue::Document(Doc::new())),
        Node::Object(fields) => {
            let mut builder = DocBuilder::new();
            fields.iter().for_each(|(name, node)| builder.append(name, to_value(node).view()));
            OwnedValue::Document(builder.finish())
        }
        Node::Array(nodes) => OwnedValue::Array(array(nodes)),
        Node::Call { function, operands } if function.name == super::all_values::NAME => match operands.last() {
            Some(Node::Constant(Some(path))) => operator(function.name, path.clone()),
            _ => operator(function.name, OwnedValue::Null),
        },
        Node::Call { function, operands } => operator(function.name, OwnedValue::Array(array(operands))),
        Node::Named { function, operands } => named_call(function, operands),
        Node::Search(search) => named_call(&search.function, &search.operands),
        Node::And(nodes) => operator("$and", OwnedValue::Array(array(nodes))),
        Node::Or(nodes) => operator("$or", OwnedValue::Array(array(nodes))),
        Node::IfNull(nodes) => operator("$ifNull", OwnedValue::Array(array(nodes))),
        Node::Cond(parts) => operator("$cond", OwnedValue::Array(array(&parts[..]))),
        Node::Switch { branches, default } => switch(branches, default.as_deref()),
        Node::Let { bindings, body } => {
            let mut vars = DocBuilder::new();
            bindings.iter().for_each(|(name, _, node)| vars.append(name, to_value(node).view()));
            operator("$let", named(&[("vars", OwnedValue::Document(vars.finish())), ("in", to_value(body))]))
        }
        Node::Map { input, name, body, .. } => {
            operator("$map", named(&[("input", to_value(input)), ("as", text(name)), ("in", to_value(body))]))
        }
        Node::Filter { input, name, condition, limit, .. } => {
            let mut parts = vec![("input", to_value(input)), ("as", text(name)), ("cond", to_value(condition))];
            parts.extend(limit.as_ref().map(|limit| ("limit", to_value(limit))));
            operator("$filter", named(&parts))
        }
        Node::Reduce { input, initial, body, .. } => operator(
            "$reduce",
            named(&[("input", to_value(input)), ("initialValue", to_value(initial)), ("in", to_value(body))]),
        ),
        Node::Percentile { input, is_median: true, .. } => {
            operator("$median", named(&[("input", to_value(input)), ("method", OwnedValue::from("approximate"))]))
        }
        Node::Percentile { input, shares, .. } => {
            let shares = Array::from_iter(shares.iter().map(|share| OwnedValue::Double(*share)));
            let parts = [
                ("input", to_value(input)),
                ("p", OwnedValue::Array(shares)),
                ("method", OwnedValue::from("approximate")),
            ];
            operator("$percentile", named(&parts))
        }
        Node::Convert { input, to, on_error, on_null } => {
            let mut parts = vec![("input", to_value(input)), ("to", to_value(to))];
            parts.extend(on_error.as_ref().map(|node| ("onError", to_value(node))));
            parts.extend(on_null.as_ref().map(|node| ("onNull", to_value(node))));
            operator("$convert", named(&parts))
        }
    }
}

fn named_call(function: &NamedFunction, operands: &[Option<Node>]) -> OwnedValue {
    let mut builder = DocBuilder::new();
    for (argument, operand) in function.arguments.iter().zip(operands) {
        builder.append_some(argument.name, operand.as_ref().map(to_value));
    }
    operator(function.name, OwnedValue::Document(builder.finish()))
}

fn path_text(variable: Variable, path: Option<&pando_doc::FieldPath>) -> String {
    match (variable, path) {
        (Variable::Root, Some(path)) => format!("${path}"),
        (Variable::Root, None) => "$$ROOT".to_owned(),
        (Variable::Slot(slot), Some(path)) => format!("$$v{slot}.{path}"),
        (Variable::Slot(slot), None) => format!("$$v{slot}"),
    }
}

fn text(name: &BString) -> OwnedValue {
    OwnedValue::from(bstr::BStr::new(name))
}

fn switch(branches: &[(Node, Node)], default: Option<&Node>) -> OwnedValue {
    let mut list = ArrayBuilder::new();
    for (condition, value) in branches {
        list.push(named(&[("case", to_value(condition)), ("then", to_value(value))]));
    }
    let mut parts = vec![("branches", OwnedValue::Array(list.finish()))];
    parts.extend(default.map(|node| ("default", to_value(node))));
    operator("$switch", named(&parts))
}

fn array(nodes: &[Node]) -> Array {
    nodes.iter().map(to_value).collect()
}

fn named(parts: &[(&str, OwnedValue)]) -> OwnedValue {
    OwnedValue::Document(parts.iter().map(|(name, value)| (name, value)).collect::<Doc>())
}

fn operator(name: &str, operand: OwnedValue) -> OwnedValue {
    OwnedValue::Document(doc! { (name): operand.view() })
}
