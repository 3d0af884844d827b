//! What can be known of an expression before there is a document: operators whose operands are all
//! constant are evaluated once, branches that are never taken go away, and what is wrong about
//! constants is told.
//!
//! What is folded and what is not can be seen: in what `explain` shows, and in errors of
//! collections that are empty. So some operators are left alone on purpose.

mod named;
mod nary;

use super::evaluate::Environment;
use super::function::{Evaluation, Function};
use super::tree::Node;
use super::{Operand, scoped, set};
use bstr::BString;
use pando_base::{Error, Result, operation};
use pando_doc::{DocBuilder, DocRef, OwnedValue};

pub(super) fn optimize(node: Node, environment: &Environment<'_>) -> Result<Node> {
    operation::tick(1)?;
    let one = |node: Box<Node>| -> Result<Box<Node>> { Ok(Box::new(optimize(*node, environment)?)) };
    let some = |node: Option<Box<Node>>| node.map(one).transpose();
    let all = |nodes: Vec<Node>| nodes.into_iter().map(|node| optimize(node, environment)).collect::<Result<Vec<_>>>();
    Ok(match node {
        Node::Call { function, operands } => {
            let operands = all(operands)?;
            match function.name {
                "$setEquals" => {
                    refuse_constant_sets(&operands)?;
                    Node::Call { function, operands }
                }
                _ => check_call(nary::call(function, operands, environment)?)?,
            }
        }
        Node::Named { function, operands } => named::call(function, operands, environment)?,
        Node::Array(nodes) => {
            let nodes = all(nodes)?;
            match constants(&nodes) {
                Some(values) => constant(Operand::array(values)?),
                None => Node::Array(nodes),
            }
        }
        Node::Object(fields) => object(fields, environment)?,
        Node::And(nodes) => nary::logical(all(nodes)?, false)?,
        Node::Or(nodes) => nary::logical(all(nodes)?, true)?,
        Node::IfNull(nodes) => if_null(all(nodes)?),
        Node::Cond(parts) => {
            let [condition, then, otherwise] = *parts;
            let condition = optimize(condition, environment)?;
            let (then, otherwise) = (optimize(then, environment)?, optimize(otherwise, environment)?);
            match is_constant(&condition) {
                true if value_of(&condition).is_true() => then,
                true => otherwise,
                false => Node::Cond(Box::new([condition, then, otherwise])),
            }
        }
        Node::Switch { branches, default } => switch(branches, some(default)?, environment)?,
        Node::Convert { input, to, on_error, on_null } => {
            let (input, to, on_error, on_null) = (one(input)?, one(to)?, some(on_error)?, some(on_null)?);
            let node = Node::Convert { input, to, on_error, on_null };
            let mut is_fixed = true;
            node.for_each_child(&mut |child| is_fixed &= is_constant(child));
            if is_fixed { evaluated(node, environment)? } else { node }
        }
        Node::Let { bindings, body } if bindings.is_empty() => optimize(*body, environment)?,
        Node::Let { bindings, body } => {
            let bindings = bindings
                .into_iter()
                .map(|(name, slot, node)| Ok((name, slot, optimize(node, environment)?)))
                .collect::<Result<_>>()?;
            Node::Let { bindings, body: one(body)? }
        }
        Node::Map { input, name, slot, body } => Node::Map { input: one(input)?, name, slot, body: one(body)? },
        Node::Filter { input, name, slot, condition, limit } => {
            Node::Filter { input: one(input)?, name, slot, condition: one(condition)?, limit: some(limit)? }
        }
        Node::Reduce { input, initial, value_slot, this_slot, body } => {
            let (input, initial, body) = (one(input)?, one(initial)?, one(body)?);
            Node::Reduce { input, initial, value_slot, this_slot, body }
        }
        Node::Script(mut call) => {
            call.input = optimize(call.input, environment)?;
            Node::Script(call)
        }
        other => other,
    })
}

/// The constant that a node without a document comes to.
fn evaluated(node: Node, environment: &Environment<'_>) -> Result<Node> {
    let root = super::Expression { root: node, slots: 0, collator: None, limits: environment.limits() };
    let mut scope = super::Scope::new(DocRef::EMPTY, &root);
    Ok(constant(scoped::evaluate(&root.root, &mut scope)?))
}

fn object(fields: Vec<(BString, Node)>, environment: &Environment<'_>) -> Result<Node> {
    let fields = fields
        .into_iter()
        .map(|(name, node)| Ok((name, optimize(node, environment)?)))
        .collect::<Result<Vec<(BString, Node)>>>()?;
    if !fields.iter().all(|(_, node)| is_constant(node)) {
        return Ok(Node::Object(fields));
    }
    let mut builder = DocBuilder::new();
    for (name, node) in &fields {
        if let Some(value) = value_of(node).view() {
            builder.append(name, value);
        }
    }
    Ok(Node::Constant(Some(OwnedValue::Document(builder.finish()))))
}

/// Without constants that are null, unless last, and without what comes after a constant that is
/// not.
fn if_null(mut nodes: Vec<Node>) -> Node {
    let last = nodes.pop();
    let mut kept = Vec::with_capacity(nodes.len() + 1);
    let mut is_decided = false;
    for node in nodes {
        is_decided = is_constant(&node) && !value_of(&node).is_nullish();
        if is_decided || !is_constant(&node) {
            kept.push(node);
        }
        if is_decided {
            break;
        }
    }
    kept.extend(last.filter(|_| !is_decided));
    match <[Node; 1]>::try_from(kept) {
        Ok([only]) => only,
        Err(kept) => Node::IfNull(kept),
    }
}

/// A branch whose condition is constant goes away, or is the default for all that come after. What
/// is never evaluated may still be wrong: the default, and the values of the branches that stay.
fn switch(branches: Vec<(Node, Node)>, mut default: Option<Box<Node>>, environment: &Environment<'_>) -> Result<Node> {
    let mut kept = Vec::with_capacity(branches.len());
    for (condition, value) in branches {
        let condition = optimize(condition, environment)?;
        if !is_constant(&condition) {
            kept.push((condition, optimize(value, environment)?));
        } else if value_of(&condition).is_true() {
            default = Some(Box::new(optimize(value, environment)?));
            break;
        }
    }
    match default {
        Some(default) if kept.is_empty() => Ok(*default),
        None if kept.is_empty() => {
            let reason = "Cannot execute a switch statement where all the cases evaluate to false without a default";
            Err(Error::location(40069, reason))
        }
        default => Ok(Node::Switch { branches: kept, default }),
    }
}

fn is_constant(node: &Node) -> bool {
    matches!(node, Node::Constant(_))
}

fn value_of(node: &Node) -> Operand<'_> {
    match node {
        Node::Constant(Some(value)) => Operand::Borrowed(value.view()),
        _ => Operand::Missing,
    }
}

fn constants(nodes: &[Node]) -> Option<Vec<Operand<'_>>> {
    nodes.iter().all(is_constant).then(|| nodes.iter().map(value_of).collect())
}

fn constant(value: Operand<'_>) -> Node {
    Node::Constant(value.into_value())
}

/// Arrays that are looked into for each document and are constant are no arrays: told with codes of
/// their own.
fn check_call(node: Node) -> Result<Node> {
    let Node::Call { function, operands } = &node else { return Ok(node) };
    match (function.name, &operands[..]) {
        ("$indexOfArray", [Node::Constant(array), ..]) => match array {
            Some(OwnedValue::Array(_)) => Ok(node),
            None | Some(OwnedValue::Null | OwnedValue::Undefined) => Ok(Node::Constant(Some(OwnedValue::Null))),
            Some(other) => {
                let found = other.value_type();
                let reason = "First operand of $indexOfArray must be an array. First argument is of type:";
                Err(Error::location(50809, format!("{reason} {found}")))
            }
        },
        ("$setIsSubset", [_, Node::Constant(array)]) if !matches!(array, Some(OwnedValue::Array(_))) => {
            let reason = "both operands of $setIsSubset must be arrays. Second argument is of type:";
            Err(Error::location(17311, format!("{reason} {}", value_type_name(array))))
        }
        ("$setIsSubset", [_, Node::Constant(_)]) => {
            let function = Function { evaluate: Evaluation::Plain(set::is_subset_of_constant), ..*function };
            Ok(Node::Call { function, operands: operands.clone() })
        }
        _ => Ok(node),
    }
}

fn value_type_name(value: &Option<OwnedValue>) -> &'static str {
    value.as_ref().map_or("missing", |value| value.value_type().name())
}

/// What is constant and no array is refused before anything is evaluated, with a code of its own.
fn refuse_constant_sets(operands: &[Node]) -> Result<()> {
    // That there are too few is told first.
    let operands = if operands.len() < 2 { &[] } else { operands };
    for (place, operand) in operands.iter().enumerate() {
        let Node::Constant(value) = operand else { continue };
        if !matches!(value, Some(OwnedValue::Array(_))) {
            let found = value_type_name(value);
            let reason =
                format!("All operands of $setEquals must be arrays. {}-th argument is of type: {found}", place + 1);
            return Err(Error::location(5887502, reason));
        }
    }
    Ok(())
}
