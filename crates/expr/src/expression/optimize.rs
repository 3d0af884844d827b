//! Folding of constants: a node all of whose operands are constant is evaluated once.

use super::evaluate::Environment;
use super::function::Function;
use super::regex::Search;
use super::tree::Node;
use super::{Operand, scoped};
use pando_base::{Error, Result, operation};
use pando_doc::OwnedValue;

pub(super) fn optimize(node: Node, environment: &Environment<'_>) -> Result<Node> {
    operation::tick(1)?;
    let all = |nodes: Vec<Node>| nodes.into_iter().map(|node| optimize(node, environment)).collect::<Result<Vec<_>>>();
    Ok(match node {
        Node::Call { function, operands } => {
            let operands = all(operands)?;
            if function.name == "$setEquals" {
                refuse_constant_sets(&operands)?;
            }
            match constants(&operands) {
                Some(values) if function.is_pure => constant((function.evaluate)(&values, environment)?),
                _ if matches!(function.name, "$add" | "$multiply") => prefix_folded(function, operands, environment)?,
                _ => Node::Call { function, operands },
            }
        }
        Node::Named { function, operands } => {
            let operands: Vec<Option<Node>> = operands
                .into_iter()
                .map(|operand| operand.map(|node| optimize(node, environment)).transpose())
                .collect::<Result<_>>()?;
            if operands.iter().flatten().all(is_constant) {
                let values: Vec<_> = operands.iter().map(|operand| operand.as_ref().map(value_of)).collect();
                return Ok(constant((function.evaluate)(&values, environment)?));
            }
            match Search::prepare(function, &operands)? {
                Some(search) => Node::Search(Box::new(search)),
                None => Node::Named { function, operands },
            }
        }
        Node::Array(nodes) => {
            let nodes = all(nodes)?;
            match constants(&nodes) {
                Some(values) => constant(Operand::array(values)?),
                None => Node::Array(nodes),
            }
        }
        Node::Object(fields) => object(fields, environment)?,
        Node::And(nodes) => logical(all(nodes)?, false),
        Node::Or(nodes) => logical(all(nodes)?, true),
        Node::IfNull(nodes) => Node::IfNull(all(nodes)?),
        Node::Cond(parts) => {
            let [condition, then, otherwise] = *parts;
            let condition = optimize(condition, environment)?;
            if is_constant(&condition) {
                return optimize(if value_of(&condition).is_true() { then } else { otherwise }, environment);
            }
            Node::Cond(Box::new([condition, optimize(then, environment)?, optimize(otherwise, environment)?]))
        }
        Node::Convert { input, to, on_error, on_null } => {
            let optional = |node: Option<Box<Node>>| -> Result<Option<Box<Node>>> {
                node.map(|node| optimize(*node, environment).map(Box::new)).transpose()
            };
            let (input, to) = (Box::new(optimize(*input, environment)?), Box::new(optimize(*to, environment)?));
            // What cannot be evaluated fails now, though it may never be needed.
            let (on_error, on_null) = (optional(on_error)?, optional(on_null)?);
            let mut is_fixed = on_error.is_none() && on_null.is_none();
            let node = Node::Convert { input, to, on_error, on_null };
            node.for_each_child(&mut |child| is_fixed &= is_constant(child));
            if !is_fixed {
                return Ok(node);
            }
            let root = super::Expression { root: node, slots: 0, collator: None, limits: environment.limits() };
            let mut scope = super::Scope::new(pando_doc::DocRef::EMPTY, &root);
            constant(scoped::evaluate(&root.root, &mut scope)?)
        }
        Node::Let { bindings, body } => {
            let bindings = bindings
                .into_iter()
                .map(|(name, slot, node)| Ok((name, slot, optimize(node, environment)?)))
                .collect::<Result<_>>()?;
            Node::Let { bindings, body: Box::new(optimize(*body, environment)?) }
        }
        Node::Map { input, name, slot, body } => Node::Map {
            input: Box::new(optimize(*input, environment)?),
            name,
            slot,
            body: Box::new(optimize(*body, environment)?),
        },
        Node::Filter { input, name, slot, condition, limit } => Node::Filter {
            input: Box::new(optimize(*input, environment)?),
            name,
            slot,
            condition: Box::new(optimize(*condition, environment)?),
            limit,
        },
        Node::Script(mut call) => {
            call.input = optimize(call.input, environment)?;
            Node::Script(call)
        }
        other => other,
    })
}

/// Sums and products go from left to right: the constants that come first can be one.
fn prefix_folded(function: Function, mut operands: Vec<Node>, environment: &Environment<'_>) -> Result<Node> {
    let count = operands.iter().take_while(|operand| is_constant(operand)).count();
    if count >= 2 {
        let values: Vec<Operand<'_>> = operands.iter().take(count).map(value_of).collect();
        let folded = constant((function.evaluate)(&values, environment)?);
        operands.splice(..count, [folded]);
    }
    Ok(Node::Call { function, operands })
}

fn object(fields: Vec<(bstr::BString, Node)>, environment: &Environment<'_>) -> Result<Node> {
    let fields = fields
        .into_iter()
        .map(|(name, node)| Ok((name, optimize(node, environment)?)))
        .collect::<Result<Vec<(bstr::BString, Node)>>>()?;
    if !fields.iter().all(|(_, node)| is_constant(node)) {
        return Ok(Node::Object(fields));
    }
    let mut builder = pando_doc::DocBuilder::new();
    for (name, node) in &fields {
        if let Some(value) = value_of(node).view() {
            builder.append(name, value);
        }
    }
    Ok(Node::Constant(Some(OwnedValue::Document(builder.finish()))))
}

/// Operands that do not decide are dropped; one that decides ends the list.
fn logical(nodes: Vec<Node>, deciding: bool) -> Node {
    let mut kept = Vec::new();
    for node in nodes {
        if !is_constant(&node) {
            kept.push(node);
        } else if value_of(&node).is_true() == deciding {
            // What stands before it may still fail.
            kept.push(Node::Constant(Some(OwnedValue::Bool(deciding))));
            break;
        }
    }
    let is_decided = kept.first().is_some_and(is_constant);
    match (kept.is_empty(), is_decided, deciding) {
        (true, _, deciding) => Node::Constant(Some(OwnedValue::Bool(!deciding))),
        (_, true, deciding) => Node::Constant(Some(OwnedValue::Bool(deciding))),
        (_, _, true) => Node::Or(kept),
        (_, _, false) => Node::And(kept),
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

/// What is constant and no array is refused before anything is evaluated, with a code of its own.
fn refuse_constant_sets(operands: &[Node]) -> Result<()> {
    // That there are too few is told first.
    let operands = if operands.len() < 2 { &[] } else { operands };
    for (place, operand) in operands.iter().enumerate() {
        let Node::Constant(value) = operand else { continue };
        if !matches!(value, Some(OwnedValue::Array(_))) {
            let found = value.as_ref().map_or("missing", |value| value.value_type().name());
            let reason =
                format!("All operands of $setEquals must be arrays. {}-th argument is of type: {found}", place + 1);
            return Err(Error::location(5887502, reason));
        }
    }
    Ok(())
}
