//! Comparing two versions of a document.
//!
//! One walk over both. As long as names agree, values are compared; a field of the old version that is not next in the
//! new one is removed, perhaps to come again at the end. Sizes are estimated while walking, so that a comparison that
//! does not pay ends early.

use super::format::{self, ARRAY_BASE_BYTES, DOCUMENT_BASE_BYTES, RESIZE_BYTES, SECTION_BYTES};
use super::touched;
use bstr::BStr;
use pando_doc::{Doc, DocRef, RawElement, ValueType};
use std::collections::{BTreeSet, HashSet};

/// What `$v` and the name `diff` around the diff cost.
const WRAPPER_BYTES: usize = 15;
/// Up to so many names a list is searched faster than a set is built.
const FEW_NAMES: usize = 8;

/// What became of a document.
#[derive(Clone, Debug, PartialEq)]
pub enum Difference {
    /// Both versions are the same, byte for byte.
    None,
    /// This diff leads from the old to the new one.
    Diff(Doc),
    /// Log the new version as a whole: a diff would not be smaller, or cannot say it.
    Whole,
}

/// Compares two versions of a document.
pub fn compute(pre: DocRef<'_>, post: DocRef<'_>) -> Difference {
    if pre.bytes() == post.bytes() {
        return Difference::None;
    }
    let Some(diff) = document(pre, post, WRAPPER_BYTES) else {
        return Difference::Whole;
    };
    let written = format::write(&diff);
    if written.size_bytes() < post.size_bytes() { Difference::Diff(written) } else { Difference::Whole }
}

/// The diff of two versions of which is known what operators have set: the fields of the old version with those of the new one, in
/// its order, and whether only the end of an array may have changed. Each name is that of one field only.
pub(crate) fn of_fields<'a>(
    fields: impl Iterator<Item = (Option<RawElement<'a>>, RawElement<'a>, bool)>,
) -> DocumentNode<'a> {
    let mut node = DocumentNode::new(WRAPPER_BYTES);
    for (old, new, is_end) in fields {
        match old {
            Some(old) => match is_end.then(|| touched::end(old, new)).flatten() {
                Some(inner) => node.push_inner(new.name, inner),
                None => node.update(new),
            },
            None => node.insert(new),
        }
    }
    node
}

/// A diff, not yet written.
pub(crate) enum Node<'a> {
    Document(DocumentNode<'a>),
    Array(ArrayNode<'a>),
}

/// The changes of a document.
pub(crate) struct DocumentNode<'a> {
    pub(super) deletes: Vec<&'a BStr>,
    pub(super) updates: Vec<RawElement<'a>>,
    pub(super) inserts: Vec<RawElement<'a>>,
    pub(super) inner: Vec<(&'a BStr, Node<'a>)>,
    size_bytes: usize,
}

/// The changes of an array.
pub(crate) struct ArrayNode<'a> {
    pub(super) length: Option<usize>,
    pub(super) changes: Vec<(usize, Change<'a>)>,
    size_bytes: usize,
}

/// What happened to one place of an array.
pub(crate) enum Change<'a> {
    Set(RawElement<'a>),
    Inner(Node<'a>),
}

impl Node<'_> {
    fn size_bytes(&self) -> usize {
        match self {
            Node::Document(node) => node.size_bytes,
            Node::Array(node) => node.size_bytes,
        }
    }
}

impl<'a> DocumentNode<'a> {
    pub(super) fn new(padding_bytes: usize) -> DocumentNode<'a> {
        let size_bytes = DOCUMENT_BASE_BYTES + padding_bytes;
        let (updates, inserts) = (Vec::new(), Vec::new());
        DocumentNode { deletes: Vec::new(), updates, inserts, inner: Vec::new(), size_bytes }
    }

    /// About how long it will be.
    pub(crate) fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    pub(super) fn delete(&mut self, name: &'a BStr) {
        self.account(self.deletes.is_empty(), name, 1);
        self.deletes.push(name);
    }

    pub(super) fn update(&mut self, element: RawElement<'a>) {
        self.account(self.updates.is_empty(), element.name, element.value_bytes.len());
        self.updates.push(element);
    }

    pub(super) fn insert(&mut self, element: RawElement<'a>) {
        self.account(self.inserts.is_empty(), element.name, element.value_bytes.len());
        self.inserts.push(element);
    }

    fn change(&mut self, pre: RawElement<'a>, post: RawElement<'a>) {
        match inner(pre, post) {
            Some(node) => self.push_inner(pre.name, node),
            None => self.update(post),
        }
    }

    pub(super) fn push_inner(&mut self, name: &'a BStr, node: Node<'a>) {
        self.account(false, name, node.size_bytes() + 1);
        self.inner.push((name, node));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.deletes.is_empty() && self.updates.is_empty() && self.inserts.is_empty() && self.inner.is_empty()
    }

    fn account(&mut self, opens_section: bool, name: &BStr, value_bytes: usize) {
        let section_bytes = if opens_section { SECTION_BYTES } else { 0 };
        self.size_bytes += section_bytes + name.len() + 2 + value_bytes;
    }

    /// Does each name stand for one field only? `changed` is how many of the old version's fields the diff is about.
    fn addresses_single_fields(&self, pre: DocRef<'a>, changed: usize) -> bool {
        let set = self.updates.iter().chain(&self.inserts).map(|element| element.name);
        let names: Vec<&BStr> =
            self.deletes.iter().copied().chain(set).chain(self.inner.iter().map(|(name, _)| *name)).collect();
        let count_in_pre = |contains: &dyn Fn(&BStr) -> bool| pre.raw_elements().filter(|e| contains(e.name)).count();
        if names.len() <= FEW_NAMES {
            let is_repeated = |(place, name)| names.iter().take(place).any(|earlier| *earlier == name);
            return !names.iter().copied().enumerate().any(is_repeated)
                && count_in_pre(&|name| names.contains(&name)) == changed;
        }
        let distinct: HashSet<&BStr> = names.iter().copied().collect();
        distinct.len() == names.len() && count_in_pre(&|name| distinct.contains(name)) == changed
    }
}

/// The diff of two documents; none if it does not pay or cannot say it.
fn document<'a>(pre: DocRef<'a>, post: DocRef<'a>, padding_bytes: usize) -> Option<DocumentNode<'a>> {
    let mut node = DocumentNode::new(padding_bytes);
    let (mut old_fields, mut new_fields) = (pre.raw_elements().peekable(), post.raw_elements().peekable());
    let mut displaced: BTreeSet<&BStr> = BTreeSet::new();
    let mut changed = 0;
    while let (Some(old), Some(new)) = (old_fields.peek().copied(), new_fields.peek().copied()) {
        if node.size_bytes > post.size_bytes() {
            return None;
        }
        old_fields.next();
        if old.bytes == new.bytes {
            new_fields.next();
            continue;
        }
        changed += 1;
        if old.name == new.name {
            new_fields.next();
            node.change(old, new);
        } else {
            displaced.insert(old.name);
        }
    }
    for old in old_fields {
        changed += 1;
        node.delete(old.name);
    }
    for new in new_fields {
        displaced.remove(new.name);
        node.insert(new);
    }
    displaced.into_iter().for_each(|name| node.delete(name));
    let pays = node.size_bytes < post.size_bytes();
    (pays && node.addresses_single_fields(pre, changed)).then_some(node)
}

/// The diff of two arrays; none if it does not pay or cannot say it.
fn array<'a>(pre: DocRef<'a>, post: DocRef<'a>) -> Option<ArrayNode<'a>> {
    let mut node = ArrayNode::new();
    let mut old_values = pre.raw_elements();
    let mut length = 0;
    for new in post.raw_elements() {
        if node.size_bytes > post.size_bytes() {
            return None;
        }
        let old = old_values.next();
        if old.is_none_or(|old| old.bytes != new.bytes) {
            node.change(length, old, new)?;
        }
        length += 1;
    }
    if old_values.next().is_some() {
        node.length = Some(length);
        node.size_bytes += RESIZE_BYTES;
    }
    (node.size_bytes < post.size_bytes()).then_some(node)
}

impl<'a> ArrayNode<'a> {
    pub(super) fn new() -> ArrayNode<'a> {
        ArrayNode { length: None, changes: Vec::new(), size_bytes: ARRAY_BASE_BYTES }
    }

    /// None if the new value has a name other than its index, which a diff cannot say.
    fn change(&mut self, index: usize, old: Option<RawElement<'a>>, new: RawElement<'a>) -> Option<()> {
        let digits = format::Digits::of(index);
        if new.name != digits.as_bstr() {
            return None;
        }
        let change = match old.and_then(|old| inner(old, new)) {
            Some(node) => Change::Inner(node),
            None => Change::Set(new),
        };
        self.push(index, change);
        Some(())
    }

    pub(super) fn push(&mut self, index: usize, change: Change<'a>) {
        let value_bytes = match &change {
            Change::Inner(node) => node.size_bytes(),
            Change::Set(element) => element.value_bytes.len(),
        };
        self.size_bytes += 1 + format::Digits::of(index).as_bstr().len() + 2 + value_bytes;
        self.changes.push((index, change));
    }
}

/// The diff of two values, if both are documents or both are arrays and it pays.
fn inner<'a>(pre: RawElement<'a>, post: RawElement<'a>) -> Option<Node<'a>> {
    let (old, new) = (DocRef::trusted(pre.value_bytes), DocRef::trusted(post.value_bytes));
    match (pre.value_type, post.value_type) {
        (ValueType::Document, ValueType::Document) => document(old, new, 0).map(Node::Document),
        (ValueType::Array, ValueType::Array) => array(old, new).map(Node::Array),
        _ => None,
    }
}
