//! The tree of operators and the document, walked together.

use super::mutable::{Mutable, find, write_document};
use super::node::{Node, Object};
use super::operation::{Change, Operation, Surroundings, document_text};
use super::path::place_in_array;
use super::{Operators, UpdateContext};
use crate::context::strings;
use bstr::{BStr, BString, ByteSlice};
use pando_base::{Error, ErrorCode, Result, operation};
use pando_doc::{CompareOptions, Doc, DocRef, FieldPath, OwnedValue, Value};
use std::borrow::Cow;

/// How many nulls may be put before a value that is set far beyond the end of an array.
const PADDING_MAX: usize = 1_500_000;

/// As many fields are gone through in a step.
const FIELDS_PER_STEP: usize = 4;

pub(super) fn apply(operators: &Operators, doc: DocRef<'_>, context: &UpdateContext<'_>) -> Result<Doc> {
    let mut root = Mutable::Raw(Value::Document(doc));
    root.expand();
    let mut walk = Walk { operators, original: doc, context, path: Vec::new(), changes: 0 };
    walk.object(&operators.root, &mut root)?;
    Ok(match &root {
        Mutable::Document(fields) if walk.changes > 0 => write_document(fields, doc.size_bytes() + 64),
        _ => doc.to_doc(),
    })
}

pub(super) struct Walk<'w, 'd> {
    pub(super) operators: &'w Operators,
    original: DocRef<'d>,
    context: &'w UpdateContext<'w>,
    /// Where the walk is.
    pub(super) path: Vec<BString>,
    /// How many values it has changed.
    changes: usize,
}

impl<'d> Walk<'_, 'd> {
    pub(super) fn path_text(&self) -> BString {
        BString::from(bstr::join(".", &self.path))
    }

    /// How messages name the document.
    fn document_text(&self) -> String {
        document_text(self.original)
    }

    fn surroundings(&self) -> Surroundings<'_> {
        Surroundings {
            options: CompareOptions { strings: strings(&self.operators.collator), ..CompareOptions::default() },
            now: self.context.now,
            timestamp: self.context.timestamp,
            is_insert: self.context.is_insert,
            original: self.original,
            path: &self.path,
        }
    }

    /// Operators on the fields or places of a value.
    pub(super) fn object(&mut self, object: &Object, value: &mut Mutable<'d>) -> Result<()> {
        let matched = match &object.matched {
            None => return self.fields(object.fields.iter().map(|(name, node)| (&name.0, node)), value),
            Some(matched) => matched,
        };
        let Some(index) = self.context.array_index else {
            let reason = "The positional operator did not find the match needed from the query.";
            return Err(Error::bad_value(reason));
        };
        // What `$` stands for may be named by its number, too.
        let mut fields: Vec<(BString, Cow<'_, Node>)> = Vec::new();
        let mut is_merged = false;
        for (name, node) in &object.fields {
            let node = if name.0 == index {
                is_merged = true;
                let path = format!("{}.{index}", self.path_text());
                Cow::Owned(Node::merge(node, matched, &path)?)
            } else {
                Cow::Borrowed(node)
            };
            fields.push((name.0.clone(), node));
        }
        if !is_merged {
            fields.push((index.to_owned(), Cow::Borrowed(matched)));
            fields.sort_by_key(|field| super::node::Name(field.0.clone()));
        }
        self.fields(fields.iter().map(|(name, node)| (name, node.as_ref())), value)
    }

    fn fields<'n>(
        &mut self,
        fields: impl Iterator<Item = (&'n BString, &'n Node)>,
        value: &mut Mutable<'d>,
    ) -> Result<()> {
        value.expand();
        for (name, node) in fields {
            self.path.push(name.clone());
            match &mut *value {
                Mutable::Document(existing) => self.field(name.as_bstr(), node, existing)?,
                Mutable::Array(existing) => self.place(name.as_bstr(), node, existing)?,
                other => self.blocked(node, other)?,
            }
            self.path.pop();
        }
        Ok(())
    }

    /// The path goes through something that has no fields.
    fn blocked(&self, node: &Node, value: &Mutable<'_>) -> Result<()> {
        let name = self.path.last().cloned().unwrap_or_default();
        let parent = self.path.len().checked_sub(2).and_then(|index| self.path.get(index));
        let parent = parent.cloned().unwrap_or_default();
        if let Some(rest) = node.way_to_strict() {
            let whole = BString::from(bstr::join(".", self.path.iter().map(|part| part.as_bstr()).chain(rest)));
            return Err(not_viable(name.as_bstr(), whole.as_bstr(), parent.as_bstr(), &value.to_owned_value()));
        }
        if !node.creates(self.context.is_insert) || self.is_idle_rename(node)? {
            return Ok(());
        }
        let reason = format!("Cannot create field '{name}' in element {{{parent}: {}}}", value.to_owned_value());
        Err(Error::new(ErrorCode::PathNotViable, reason))
    }

    /// True if there is nothing to be renamed.
    fn is_idle_rename(&self, node: &Node) -> Result<bool> {
        match node {
            Node::Leaf(Operation::RenameTo(source)) => Ok(self.renamed(source)?.is_none()),
            _ => Ok(false),
        }
    }

    fn field(&mut self, name: &BStr, node: &Node, fields: &mut Vec<(Cow<'d, BStr>, Mutable<'d>)>) -> Result<()> {
        operation::tick(1 + (fields.len() / FIELDS_PER_STEP) as u64)?;
        if let Some(value) = find(fields, name) {
            if self.existing(node, value)? {
                fields.retain(|(field, _)| **field != *name);
            }
            return Ok(());
        }
        if let Some(value) = self.missing(node)? {
            fields.push((Cow::Owned(name.to_owned()), value));
        }
        Ok(())
    }

    fn place(&mut self, name: &BStr, node: &Node, values: &mut Vec<Mutable<'d>>) -> Result<()> {
        let Some(index) = place_in_array(name) else {
            let array = Mutable::Array(values.clone());
            return self.blocked(node, &array);
        };
        if let Some(value) = values.get_mut(index) {
            if self.existing(node, value)? {
                // A value taken out of an array leaves null, so that the others keep their places.
                *value = Mutable::Owned(OwnedValue::Null);
            }
            return Ok(());
        }
        if !node.creates(self.context.is_insert) {
            return Ok(());
        }
        if index > values.len() + PADDING_MAX {
            let reason = format!("can't backfill more than {PADDING_MAX} elements");
            return Err(Error::new(ErrorCode::CannotBackfillArray, reason));
        }
        if let Some(value) = self.missing(node)? {
            values.resize(index, Mutable::Owned(OwnedValue::Null));
            values.push(value);
        }
        Ok(())
    }

    /// Applies a node to a value that is there; true if it has to go.
    pub(super) fn existing(&mut self, node: &Node, value: &mut Mutable<'d>) -> Result<bool> {
        match node {
            Node::Object(object) => self.object(object, value).map(|()| false),
            Node::Array(nodes) => self.array(nodes, value).map(|()| false),
            Node::Leaf(Operation::RenameTo(source)) => {
                if let Some(renamed) = self.renamed(source)? {
                    self.replace(value, renamed)?;
                }
                Ok(false)
            }
            Node::Leaf(operation) => {
                let made;
                let current = match &*value {
                    Mutable::Raw(value) => *value,
                    Mutable::Owned(value) => value.view(),
                    apart => {
                        made = apart.to_owned_value();
                        made.view()
                    }
                };
                match operation.apply(Some(current), &self.surroundings())? {
                    Change::Nothing => Ok(false),
                    Change::Remove => {
                        self.check_rename_source(operation)?;
                        self.changes += 1;
                        Ok(true)
                    }
                    Change::Set(new) => {
                        if !is_identical(current, new.view()) {
                            self.changes += 1;
                            *value = Mutable::Owned(new);
                        }
                        Ok(false)
                    }
                }
            }
        }
    }

    fn replace(&mut self, value: &mut Mutable<'d>, new: OwnedValue) -> Result<()> {
        if !is_identical(value.to_owned_value().view(), new.view()) {
            self.changes += 1;
            *value = Mutable::Owned(new);
        }
        Ok(())
    }

    /// What a node makes where nothing is.
    fn missing(&mut self, node: &Node) -> Result<Option<Mutable<'d>>> {
        match node {
            node if !node.creates(self.context.is_insert) => Ok(None),
            Node::Leaf(Operation::RenameTo(source)) => {
                let renamed = self.renamed(source)?;
                if renamed.is_some() {
                    self.changes += 1;
                }
                Ok(renamed.map(Mutable::Owned))
            }
            Node::Leaf(operation) => match operation.apply(None, &self.surroundings())? {
                Change::Set(new) => {
                    self.changes += 1;
                    Ok(Some(Mutable::Owned(new)))
                }
                Change::Nothing | Change::Remove => Ok(None),
            },
            Node::Object(object) => {
                let changes = self.changes;
                let mut made = Mutable::Document(Vec::new());
                self.object(object, &mut made)?;
                // Operators that found nothing to do leave no empty document.
                Ok((self.changes > changes).then_some(made))
            }
            Node::Array(_) => {
                let reason = format!(
                    "The path '{}' must exist in the document in order to apply array updates.",
                    self.path_text()
                );
                Err(Error::bad_value(reason))
            }
        }
    }

    /// The value that a `$rename` moves; none if there is none.
    fn renamed(&self, source: &FieldPath) -> Result<Option<OwnedValue>> {
        let mut value = Value::Document(self.original);
        let mut parent = BStr::new("");
        for part in source.parts() {
            value = match value {
                Value::Document(doc) => match doc.get(part) {
                    Some(value) => value,
                    None => return Ok(None),
                },
                Value::Array(array) if array.as_doc().get(part).is_some() => {
                    let reason = format!(
                        "The source field cannot be an array element, '{source}' in doc with {} has an array field called '{}'",
                        self.document_text().trim_matches(['{', '}']),
                        array_field(self.original, source)
                    );
                    return Err(Error::bad_value(reason));
                }
                Value::Array(_) if place_in_array(part).is_some() => return Ok(None),
                blocking => return Err(not_viable(part, source.text(), parent, &blocking.to_owned())),
            };
            parent = part;
        }
        self.check_rename_target(source)?;
        Ok(Some(value.to_owned()))
    }

    fn check_rename_target(&self, _source: &FieldPath) -> Result<()> {
        let target = FieldPath::lenient(self.path_text())?;
        let field = array_field(self.original, &target);
        if field.is_empty() {
            return Ok(());
        }
        let reason = format!(
            "The destination field cannot be an array element, '{target}' in doc with {} has an array field called '{field}'",
            self.document_text().trim_matches(['{', '}'])
        );
        Err(Error::bad_value(reason))
    }

    fn check_rename_source(&self, operation: &Operation) -> Result<()> {
        if !matches!(operation, Operation::RenameFrom) {
            return Ok(());
        }
        let source = FieldPath::lenient(self.path_text())?;
        self.renamed_from(&source)
    }

    fn renamed_from(&self, source: &FieldPath) -> Result<()> {
        let field = array_field(self.original, source);
        if field.is_empty() {
            return Ok(());
        }
        let reason = format!(
            "The source field cannot be an array element, '{source}' in doc with {} has an array field called '{field}'",
            self.document_text().trim_matches(['{', '}'])
        );
        Err(Error::bad_value(reason))
    }
}

/// A path that leads through a value without fields, for an operator that does not make its path.
fn not_viable(part: &BStr, path: &BStr, parent: &BStr, value: &OwnedValue) -> Error {
    let reason = format!("Cannot use the part ({part}) of ({path}) to traverse the element ({{{parent}: {value}}})");
    Error::new(ErrorCode::PathNotViable, reason)
}

/// The name of the array that the path goes through; empty if there is none.
fn array_field(doc: DocRef<'_>, path: &FieldPath) -> BString {
    let mut value = Value::Document(doc);
    let count = path.part_count();
    for (index, part) in path.parts().enumerate() {
        value = match value.as_document().and_then(|doc| doc.get(part)) {
            Some(Value::Array(_)) if index + 1 < count => return part.to_owned(),
            Some(value) => value,
            None => break,
        };
    }
    BString::default()
}

/// Equality of type and bytes, so that a change of type is a change.
pub(super) fn is_identical(left: Value<'_>, right: Value<'_>) -> bool {
    match (left, right) {
        (Value::Double(left), Value::Double(right)) => left.to_bits() == right.to_bits(),
        (left, right) => left == right,
    }
}
