//! Projections: which fields a result has, and which are computed.
//!
//! A specification either names what to keep or what to drop; `_id` may go against the rest. Fields may be computed by
//! expressions; `find` also knows `$slice`, `$elemMatch` and the positional `a.$`. `$addFields` is the third kind: everything is
//! kept, and fields are set. `parse` makes a tree of names, `apply` walks document and tree side by side and writes the
//! result once.
//!
//! Invariants: kept fields have the order of the document, computed ones follow in the order of the specification; no path of a
//! specification is part of another.

mod add_fields;
mod apply;
mod array_operators;
mod parse;
mod serialize;
mod tree;

#[cfg(test)]
mod tests;

pub use array_operators::Slice;
pub use tree::{Branch, Child};

use crate::context::ParseContext;
use crate::matcher::MatchDetails;
use pando_base::Result;
use pando_doc::{Doc, DocRef, FieldPath};

/// What a projection does with fields that are not named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProjectionKind {
    /// Drops them.
    Inclusion,
    /// Keeps them; named ones are dropped.
    Exclusion,
    /// Keeps them; named ones are set.
    AddFields,
}

/// What is allowed where the projection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProjectionPolicies {
    /// `$slice`, `$elemMatch` and the positional operator, as in `find`.
    pub find_operators: bool,
    /// A specification without fields, which keeps everything.
    pub empty: bool,
    /// Expressions.
    pub computed: bool,
}

impl ProjectionPolicies {
    /// As in `find` and `findAndModify`.
    pub const FIND: ProjectionPolicies = ProjectionPolicies { find_operators: true, empty: true, computed: true };
    /// As in `$project`.
    pub const AGGREGATE: ProjectionPolicies =
        ProjectionPolicies { find_operators: false, empty: false, computed: true };
    /// As in wildcard indexes: names only.
    pub const WILDCARD: ProjectionPolicies =
        ProjectionPolicies { find_operators: false, empty: false, computed: false };
}

/// A parsed projection.
#[derive(Clone, Debug)]
pub struct Projection {
    kind: ProjectionKind,
    root: Branch,
    /// The array of the positional operator.
    positional: Option<FieldPath>,
}

impl Projection {
    /// Reads a specification.
    pub fn parse(spec: DocRef<'_>, policies: ProjectionPolicies, context: &ParseContext) -> Result<Projection> {
        parse::parse(spec, policies, context)
    }

    /// Reads the fields of an `$addFields` or `$set`.
    pub fn parse_add_fields(spec: DocRef<'_>, context: &ParseContext) -> Result<Projection> {
        add_fields::parse(spec, context)
    }

    /// The projection that drops these paths, as `$unset` does.
    pub fn exclude(paths: &[FieldPath]) -> Result<Projection> {
        let mut root = Branch::default();
        for path in paths {
            root.insert(path, 0, Child::Exclude)?;
        }
        Ok(Projection { kind: ProjectionKind::Exclusion, root, positional: None })
    }

    /// What it does with fields that are not named.
    pub fn kind(&self) -> ProjectionKind {
        self.kind
    }

    /// The names and what becomes of them.
    pub fn root(&self) -> &Branch {
        &self.root
    }

    /// True if it needs to know which array element matched.
    pub fn needs_match_details(&self) -> bool {
        self.positional.is_some()
    }

    /// The array of the positional operator, if there is one.
    pub fn positional_path(&self) -> Option<&FieldPath> {
        self.positional.as_ref()
    }

    /// True if every document is left as it is.
    pub fn is_identity(&self) -> bool {
        self.kind != ProjectionKind::Inclusion && self.root.is_empty() && self.positional.is_none()
    }

    /// True if it only keeps whole fields at plain paths: what an index can cover.
    pub fn is_simple_inclusion(&self) -> bool {
        self.kind == ProjectionKind::Inclusion && self.positional.is_none() && self.root.is_simple()
    }

    /// The document as projected.
    pub fn apply(&self, doc: DocRef<'_>, details: Option<&MatchDetails>) -> Result<Doc> {
        let projected = apply::apply(self.kind, &self.root, doc)?;
        match &self.positional {
            Some(path) => array_operators::positional(doc, projected.view(), path, details),
            None => Ok(projected),
        }
    }

    /// The paths that are needed to apply it; none if it is the whole document.
    pub fn paths(&self) -> Option<Vec<FieldPath>> {
        if self.kind != ProjectionKind::Inclusion {
            return None;
        }
        self.looked_at()
    }

    /// The paths that are looked at for what it keeps by name or computes; none if that is the whole document.
    pub fn looked_at(&self) -> Option<Vec<FieldPath>> {
        let mut found = Vec::new();
        self.root.collect_paths(None, &mut found).then_some(found)
    }

    /// True if it computes something.
    pub fn has_computed(&self) -> bool {
        self.root.has_computed()
    }
}
