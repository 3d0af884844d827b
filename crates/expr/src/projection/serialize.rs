//! Projections as `explain` shows them: names that are kept or dropped as booleans, `_id` told in any case, expressions as they are
//! evaluated.

use super::{Branch, Child, Projection, ProjectionKind};
use pando_doc::{Doc, DocBuilder};

impl Projection {
    /// The projection as `explain` shows it. Operators that only `find` has are left to those who know how they were written.
    pub fn to_doc(&self) -> Doc {
        let mut out = DocBuilder::new();
        let has_id = self.root.get("_id".into()).is_some();
        if let (Some(Child::Include), ProjectionKind::Inclusion) = (self.root.get("_id".into()), self.kind) {
            out.append("_id", true);
        }
        let is_inclusion = self.kind == ProjectionKind::Inclusion;
        append(&mut out, &self.root, is_inclusion);
        match self.kind {
            ProjectionKind::Inclusion if is_id_dropped(&self.root) => out.append("_id", false),
            ProjectionKind::Exclusion if !has_id => out.append("_id", true),
            _ => {}
        }
        out.finish()
    }
}

fn is_id_dropped(root: &Branch) -> bool {
    matches!(root.get("_id".into()), None | Some(Child::Exclude))
}

/// Appends the plain names, then what is nested or computed. With `is_id_told` a plain `_id` is told elsewhere.
fn append(out: &mut DocBuilder, branch: &Branch, is_id_told: bool) {
    let plain = branch.children().iter().filter(|(name, _)| !(is_id_told && name == "_id"));
    for (name, child) in plain {
        match child {
            Child::Include => out.append(name, true),
            Child::Exclude => out.append(name, false),
            _ => {}
        }
    }
    for (name, child) in branch.children() {
        match child {
            Child::Computed(expression) => out.append(name, expression.to_value()),
            Child::Nested(below) => out.document(name, |nested| append(nested, below, false)),
            Child::Include | Child::Exclude | Child::Slice(_) | Child::ElemMatch(_) => {}
        }
    }
}
