//! The tree of a filter.

use super::{Bits, BucketGeoWithin, Comparison, InList, Schema, SchemaOperator, TextClause, TypeSet, WhereClause};
use crate::{Expression, Regex};
use pando_doc::FieldPath;
use pando_geo::{GeoPredicate, NearQuery};
use std::sync::Arc;

/// A part of a filter that is true or false of a document.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// All of these; true without any.
    And(Vec<Node>),
    /// One of these at least.
    Or(Vec<Node>),
    /// None of these.
    Nor(Vec<Node>),
    /// Not this.
    Not(Box<Node>),
    /// `$alwaysTrue`.
    AlwaysTrue,
    /// `$alwaysFalse`.
    AlwaysFalse,
    /// What a path leads to fulfils a condition.
    Leaf(Leaf),
    /// `$expr`.
    Expr(Box<Expression>),
    /// `$jsonSchema`.
    Schema(Box<Schema>),
    /// `$text`.
    Text(TextClause),
    /// `$where`.
    Where(WhereClause),
    /// `$_internalBucketGeoWithin`.
    BucketGeo(Arc<BucketGeoWithin>),
}

/// A condition on what a path leads to.
#[derive(Clone, Debug, PartialEq)]
pub struct Leaf {
    /// The path.
    pub path: FieldPath,
    /// The condition.
    pub predicate: Predicate,
}

/// A condition on one value, or on its absence.
#[derive(Clone, Debug, PartialEq)]
pub enum Predicate {
    /// `$eq`, `$lt`, `$lte`, `$gt`, `$gte`.
    Comparison(Comparison),
    /// What a comparison inside `$expr` says of a path, unless an array is on it.
    ExprComparison(Comparison),
    /// `$_internalSchemaMinItems` and its kin.
    Schema(Box<SchemaOperator>),
    /// `$_internalEqHash`: the key that a hashed index has for it.
    EqualHash(i64),
    /// `$in`.
    In(InList),
    /// `$exists: true`.
    Exists,
    /// `$type`.
    Type(TypeSet),
    /// `$size`.
    Size(i32),
    /// `$mod`.
    Mod(Modulo),
    /// `$regex`, or a regular expression in place of a value.
    Regex(Regex),
    /// `$bitsAllSet` and its kin.
    Bits(Bits),
    /// `$elemMatch` with a filter: some document of the array matches it.
    ElemMatchObject(Box<Node>),
    /// `$elemMatch` with operators: some value of the array fulfils them all.
    ElemMatchValue(Box<Predicate>),
    /// `$geoWithin`, `$geoIntersects`.
    Geo(Arc<GeoPredicate>),
    /// `$near` and its kin: true of everything, since the stage that searches by distance decides.
    Near(Arc<NearQuery>),
    /// Not this; only inside `$elemMatch`.
    Not(Box<Predicate>),
    /// All of these; only inside `$elemMatch`.
    And(Vec<Predicate>),
    /// Never; only inside `$elemMatch`.
    Never,
}

/// The numbers of a `$mod`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modulo {
    /// Never zero.
    pub divisor: i64,
    /// What the division has to leave.
    pub remainder: i64,
}

impl Node {
    /// A condition on a path.
    pub fn leaf(path: FieldPath, predicate: Predicate) -> Node {
        Node::Leaf(Leaf { path, predicate })
    }

    /// The negation.
    pub fn negate(node: Node) -> Node {
        Node::Not(Box::new(node))
    }

    /// The nodes right below, if it is a tree of nodes.
    pub fn children(&self) -> &[Node] {
        match self {
            Node::And(children) | Node::Or(children) | Node::Nor(children) => children,
            Node::Not(child) => std::slice::from_ref(child),
            _ => &[],
        }
    }

    /// True if it is a text search or has one below it.
    pub fn has_text(&self) -> bool {
        matches!(self, Node::Text(_)) || self.children().iter().any(Node::has_text)
    }

    /// How many text searches there are in it.
    pub fn text_count(&self) -> usize {
        let below: usize = self.children().iter().map(Node::text_count).sum();
        below + usize::from(matches!(self, Node::Text(_)))
    }

    /// How many searches by distance there are in it.
    pub fn near_count(&self) -> usize {
        match self {
            Node::Leaf(leaf) => leaf.predicate.near_count(),
            other => other.children().iter().map(Node::near_count).sum(),
        }
    }

    /// The path, if it is a leaf.
    pub fn path(&self) -> Option<&FieldPath> {
        match self {
            Node::Leaf(leaf) => Some(&leaf.path),
            _ => None,
        }
    }

    /// True if it is true of everything.
    pub fn is_trivially_true(&self) -> bool {
        match self {
            Node::AlwaysTrue => true,
            Node::And(children) => children.is_empty(),
            _ => false,
        }
    }
}

impl Predicate {
    fn near_count(&self) -> usize {
        match self {
            Predicate::Near(_) => 1,
            Predicate::ElemMatchObject(child) => child.near_count(),
            Predicate::ElemMatchValue(child) | Predicate::Not(child) => child.near_count(),
            Predicate::And(children) => children.iter().map(Predicate::near_count).sum(),
            _ => 0,
        }
    }

    /// True if an array at the end of the path is looked at value by value before it is looked at as a whole.
    pub fn expands_arrays(&self) -> bool {
        !matches!(
            self,
            Predicate::Size(_)
                | Predicate::ElemMatchObject(_)
                | Predicate::ElemMatchValue(_)
                | Predicate::ExprComparison(_)
                | Predicate::EqualHash(_)
                | Predicate::Schema(_)
        )
    }
}
