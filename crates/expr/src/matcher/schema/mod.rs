//! `$jsonSchema`: conditions on the form of a document, after JSON Schema's draft 4 with BSON's types.
//!
//! A schema is a list of rules on one value. A rule that is made for values of some type lets all others pass: `maximum` says
//! nothing of a string. Arrays are values like others and are never looked into but by the rules on items. The document
//! itself is the first value; its fields are values of the schemas below `properties`.
//!
//! `parse` reads the keywords, `evaluate` asks a value, `explain` tells why one fails, keyword by keyword, as the details of
//! a failed validation.

mod evaluate;
mod explain;
mod operator;
mod parse;
mod unordered;

pub(super) use explain::fulfilled;
pub use operator::SchemaOperator;
pub(super) use operator::property_count;

use super::{Comparison, TypeSet};
use crate::Regex;
use bstr::BString;
use pando_doc::{Doc, DocRef, Number, Value};
use std::collections::BTreeSet;
use unordered::UnorderedSet;

/// A parsed schema.
#[derive(Clone, Debug)]
pub struct Schema {
    /// As it was written.
    source: Doc,
    rules: Vec<Rule>,
}

/// What one keyword asks of a value.
#[derive(Clone, Debug)]
enum Rule {
    Bound(Bound),
    MultipleOf(Number),
    Length(Limit),
    Pattern(Regex),
    ItemCount(Limit),
    UniqueItems,
    /// One schema for every item.
    Items(Box<Schema>),
    /// One schema for each place.
    ItemsByPlace(Vec<Schema>),
    /// What items from this place on must be.
    AdditionalItems(usize, Additional),
    Encrypted(Option<TypeSet>),
    Required(Vec<BString>),
    Properties(Vec<(BString, Schema)>),
    PatternProperties(Vec<(Regex, Schema)>),
    AdditionalProperties(Others),
    PropertyCount(Limit),
    Dependencies(Vec<(BString, Dependency)>),
    Enum(UnorderedSet),
    AllOf(Vec<Schema>),
    AnyOf(Vec<Schema>),
    OneOf(Vec<Schema>),
    Not(Box<Schema>),
    /// `type` and `bsonType`.
    Types(&'static str, TypeSet),
}

/// `maximum` and `minimum`.
#[derive(Clone, Debug)]
struct Bound {
    /// The keyword that decides: an exclusive bound is told of by its own name.
    keyword: &'static str,
    comparison: Comparison,
}

/// A least or greatest number of something.
#[derive(Clone, Copy, Debug)]
struct Limit {
    keyword: &'static str,
    is_least: bool,
    count: u64,
}

/// What is asked of that which no other keyword names.
#[derive(Clone, Debug)]
enum Additional {
    Refused,
    Matching(Box<Schema>),
}

/// The fields that neither `properties` nor `patternProperties` name.
#[derive(Clone, Debug)]
struct Others {
    named: BTreeSet<BString>,
    patterns: Vec<Regex>,
    rule: Additional,
}

/// What has to hold where a field is there.
#[derive(Clone, Debug)]
enum Dependency {
    Fields(Vec<BString>),
    Schema(Schema),
}

impl Limit {
    fn holds(&self, count: usize) -> bool {
        let count = count as u64;
        if self.is_least { count >= self.count } else { count <= self.count }
    }
}

impl Schema {
    /// As it was written.
    pub fn source(&self) -> DocRef<'_> {
        self.source.view()
    }

    /// True if the document has the form.
    pub fn matches(&self, document: DocRef<'_>) -> bool {
        evaluate::matches(self, Value::Document(document))
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Schema) -> bool {
        self.source == other.source
    }
}
