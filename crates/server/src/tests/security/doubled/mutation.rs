//! Requests as trees whose fields can be doubled, moved and given other values.

use pando_doc::{Array, ArrayBuilder, Doc, DocBuilder, DocRef, OwnedValue, Value};
use pando_env::Random;
use pando_env::simulated::SimulatedRandom;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Document(Vec<(String, Node)>),
    Array(Vec<Node>),
    Leaf(OwnedValue),
}

impl Node {
    pub(super) fn of(document: DocRef<'_>) -> Node {
        Node::Document(document.elements().map(|one| (one.name.to_string(), Node::of_value(one.value))).collect())
    }

    fn of_value(value: Value<'_>) -> Node {
        match value {
            Value::Document(document) => Node::of(document),
            Value::Array(array) => Node::Array(array.values().map(Node::of_value).collect()),
            leaf => Node::Leaf(leaf.to_owned()),
        }
    }

    pub(super) fn to_doc(&self) -> Doc {
        let mut document = DocBuilder::new();
        if let Node::Document(fields) = self {
            fields.iter().for_each(|(name, value)| document.append(name, value.to_value().view()));
        }
        document.finish()
    }

    fn to_value(&self) -> OwnedValue {
        match self {
            Node::Document(_) => OwnedValue::Document(self.to_doc()),
            Node::Array(values) => OwnedValue::Array(array(values)),
            Node::Leaf(value) => value.clone(),
        }
    }

    fn children(&self) -> Vec<&Node> {
        match self {
            Node::Document(fields) => fields.iter().map(|(_, value)| value).collect(),
            Node::Array(values) => values.iter().collect(),
            Node::Leaf(_) => Vec::new(),
        }
    }

    /// How many fields there are in all documents of the tree.
    pub(super) fn field_count(&self) -> usize {
        let own = if let Node::Document(fields) = self { fields.len() } else { 0 };
        own + self.children().into_iter().map(Node::field_count).sum::<usize>()
    }

    /// The document with the field of this number, counted through the tree, and the field's place
    /// in it.
    fn holder(&mut self, number: &mut usize) -> Option<(&mut Vec<(String, Node)>, usize)> {
        match self {
            Node::Leaf(_) => None,
            Node::Array(values) => values.iter_mut().find_map(|value| value.holder(number)),
            Node::Document(fields) => {
                if *number < fields.len() {
                    return Some((fields, *number));
                }
                *number -= fields.len();
                fields.iter_mut().find_map(|(_, value)| value.holder(number))
            }
        }
    }

    /// The same with the field of this number once more, with another value: before it or behind
    /// it. None where there is no other value.
    pub(super) fn doubled(&self, number: usize, other: impl Fn(&Node) -> Node, is_before: bool) -> Option<Node> {
        let mut changed = self.clone();
        let (fields, place) = changed.holder(&mut { number })?;
        let (name, value) = fields[place].clone();
        let forbidden = other(&value);
        if forbidden == value {
            return None;
        }
        fields.insert(place + usize::from(!is_before), (name, forbidden));
        Some(changed)
    }

    /// A field of another request comes into any document of this one, with either value.
    pub(super) fn take(&mut self, random: &SimulatedRandom, from: &Node, other: impl Fn(&Node) -> Node) {
        let pick = |node: &Node| random.below(node.field_count().max(1) as u64) as usize;
        let (mut number, mut place) = (pick(from), pick(self));
        let mut from = from.clone();
        let Some((fields, taken)) = from.holder(&mut number) else { return };
        let (name, value) = fields[taken].clone();
        let value = if random.below(2) == 0 { other(&value) } else { value };
        let Some((fields, before)) = self.holder(&mut place) else { return };
        // The command's own name stays in front.
        fields.insert(before + 1, (name, value));
    }

    /// One change of chance.
    pub(super) fn change(&mut self, random: &SimulatedRandom, other: impl Fn(&Node) -> Node) {
        let mut number = random.below(self.field_count().max(1) as u64) as usize;
        let is_top = |number: usize, own: &Node| matches!(own, Node::Document(fields) if number < fields.len());
        let keeps_first = is_top(number, self);
        let Some((fields, place)) = self.holder(&mut number) else { return };
        let (name, value) = fields[place].clone();
        match random.below(6) {
            // The command's own name stays in front.
            0 if !(keeps_first && place == 0) => {
                let first = usize::from(keeps_first);
                let to = first + random.below((fields.len() - first) as u64) as usize;
                fields.swap(place, to);
            }
            1 => fields[place].1 = other(&value),
            2 => fields[place].1 = retyped(&other(&value), random),
            3 => fields.insert(place + 1, (name, retyped(&other(&value), random))),
            4 => fields.insert(place, (name, other(&value))),
            _ => fields.insert(place + 1, (name, other(&value))),
        }
    }
}

fn array(values: &[Node]) -> Array {
    let mut array = ArrayBuilder::new();
    values.iter().for_each(|value| array.push(value.to_value().view()));
    array.finish()
}

/// Something like it of another type.
fn retyped(value: &Node, random: &SimulatedRandom) -> Node {
    let text = match value {
        Node::Leaf(leaf) => leaf.view().as_str().unwrap_or("c2").to_owned(),
        _ => "c2".to_owned(),
    };
    let wrapped = |name: &str, value: Node| Node::Document(vec![(name.to_owned(), value)]);
    let leaf = |value: Value<'_>| Node::Leaf(value.to_owned());
    match random.below(9) {
        0 => leaf(Value::Symbol(text.as_str().into())),
        1 => leaf(Value::Code(text.as_str().into())),
        2 => leaf(Value::Null),
        3 => leaf(Value::Int32(1)),
        4 => leaf(Value::Bool(true)),
        5 => Node::Array(vec![value.clone()]),
        6 => wrapped("coll", value.clone()),
        7 => {
            Node::Document(vec![("db".to_owned(), leaf(Value::String("d".into()))), ("coll".to_owned(), value.clone())])
        }
        _ => leaf(Value::Double(1.0)),
    }
}
