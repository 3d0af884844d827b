//! The tree of an expression.

use super::function::{Function, NamedFunction};
use super::javascript::ScriptCall;
use super::random::SharedRandom;
use super::regex::Search;
use bstr::BString;
use pando_doc::{FieldPath, OwnedValue};

/// Where a path starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variable {
    /// The document.
    Root,
    /// A variable bound by `$let`, `$map` and their kin, or given by the caller.
    Slot(usize),
}

/// A part of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// A constant; none is missing, as `$$REMOVE` is.
    Constant(Option<OwnedValue>),
    /// What a path leads to.
    Path {
        /// Where it starts.
        variable: Variable,
        /// None for the variable itself.
        path: Option<FieldPath>,
    },
    /// A variable of the system that has no value where the expression stands.
    Unavailable(BString),
    /// `$rand`.
    Random(SharedRandom),
    /// `$function` and `$_internalJsEmit`.
    Script(Box<ScriptCall>),
    /// A document of expressions.
    Object(Vec<(BString, Node)>),
    /// An array of expressions.
    Array(Vec<Node>),
    /// An operator that evaluates all its operands.
    Call {
        /// What is called.
        function: Function,
        /// With what.
        operands: Vec<Node>,
    },
    /// An operator with named operands, in the order of its table; none where one was not given.
    Named {
        /// What is called.
        function: NamedFunction,
        /// With what.
        operands: Vec<Option<Node>>,
    },
    /// `$and`.
    And(Vec<Node>),
    /// `$or`.
    Or(Vec<Node>),
    /// `$cond`: condition, then, else.
    Cond(Box<[Node; 3]>),
    /// `$ifNull`.
    IfNull(Vec<Node>),
    /// `$switch`.
    Switch {
        /// Conditions and values.
        branches: Vec<(Node, Node)>,
        /// The value if no condition holds.
        default: Option<Box<Node>>,
    },
    /// `$let`: slots and their values, then the expression that sees them.
    Let {
        /// The variables: name, slot, value.
        bindings: Vec<(BString, usize, Node)>,
        /// What is evaluated.
        body: Box<Node>,
    },
    /// `$map`.
    Map {
        /// The array.
        input: Box<Node>,
        /// The name of the variable for each value.
        name: BString,
        /// Its slot.
        slot: usize,
        /// What is evaluated for each value.
        body: Box<Node>,
    },
    /// `$filter`.
    Filter {
        /// The array.
        input: Box<Node>,
        /// The name of the variable for each value.
        name: BString,
        /// Its slot.
        slot: usize,
        /// Which values stay.
        condition: Box<Node>,
        /// How many at most.
        limit: Option<Box<Node>>,
    },
    /// `$reduce`; `$$value` and `$$this` have these slots.
    Reduce {
        /// The array.
        input: Box<Node>,
        /// What `$$value` is at first.
        initial: Box<Node>,
        /// The slot of `$$value`.
        value_slot: usize,
        /// The slot of `$$this`.
        this_slot: usize,
        /// What is evaluated for each value.
        body: Box<Node>,
    },
    /// `$percentile` and `$median` of an array.
    Percentile {
        /// The array, or a number.
        input: Box<Node>,
        /// From 0 to 1.
        shares: Vec<f64>,
        /// One value, not an array.
        is_median: bool,
    },
    /// `$regexMatch` and its kin with a pattern that is compiled.
    Search(Box<Search>),
    /// `$convert`; `on_error` is evaluated only after an error.
    Convert {
        /// The value.
        input: Box<Node>,
        /// The type.
        to: Box<Node>,
        /// The value if the conversion fails.
        on_error: Option<Box<Node>>,
        /// The value for null and missing.
        on_null: Option<Box<Node>>,
    },
}

impl Node {
    /// Calls the visitor for each node right below.
    pub fn for_each_child<'n>(&'n self, visit: &mut dyn FnMut(&'n Node)) {
        match self {
            Node::Constant(_) | Node::Path { .. } | Node::Unavailable(_) | Node::Random(_) => {}
            Node::Script(call) => visit(&call.input),
            Node::Object(fields) => fields.iter().for_each(|(_, node)| visit(node)),
            Node::Array(nodes) | Node::And(nodes) | Node::Or(nodes) | Node::IfNull(nodes) => {
                nodes.iter().for_each(visit);
            }
            Node::Call { operands, .. } => operands.iter().for_each(visit),
            Node::Named { operands, .. } => operands.iter().flatten().for_each(visit),
            Node::Cond(parts) => parts.iter().for_each(visit),
            Node::Switch { branches, default } => {
                branches.iter().for_each(|(condition, value)| {
                    visit(condition);
                    visit(value);
                });
                default.iter().for_each(|node| visit(node));
            }
            Node::Let { bindings, body } => {
                bindings.iter().for_each(|(_, _, node)| visit(node));
                visit(body);
            }
            Node::Map { input, body, .. } => [input, body].into_iter().for_each(|node| visit(node)),
            Node::Filter { input, condition, limit, .. } => {
                [input, condition].into_iter().chain(limit).for_each(|node| visit(node));
            }
            Node::Reduce { input, initial, body, .. } => {
                [input, initial, body].into_iter().for_each(|node| visit(node));
            }
            Node::Percentile { input, .. } => visit(input),
            Node::Search(search) => search.operands.iter().flatten().for_each(visit),
            Node::Convert { input, to, on_error, on_null } => {
                [input, to].into_iter().chain(on_error).chain(on_null).for_each(|node| visit(node));
            }
        }
    }

    /// True if each evaluation may give another value.
    pub(super) fn is_random(&self) -> bool {
        let mut is_random = matches!(self, Node::Random(_) | Node::Script(_));
        self.for_each_child(&mut |child| is_random |= child.is_random());
        is_random
    }

    /// Collects the paths of the document that are looked at; false if it may be all of it.
    pub(super) fn collect_paths(&self, found: &mut Vec<FieldPath>) -> bool {
        if let Node::Path { variable: Variable::Root, path } = self {
            return match path {
                Some(path) => {
                    if !found.contains(path) {
                        found.push(path.clone());
                    }
                    true
                }
                None => false,
            };
        }
        let mut is_known = true;
        self.for_each_child(&mut |child| is_known &= child.collect_paths(found));
        is_known
    }
}
