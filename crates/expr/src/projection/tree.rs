//! The names of a projection as a tree.

use super::Slice;
use crate::{Expression, MatchExpression};
use bstr::{BStr, BString};
use pando_base::{Error, Result, operation};
use pando_doc::FieldPath;
use std::collections::HashMap;

/// What becomes of a field.
#[derive(Clone, Debug)]
pub enum Child {
    /// It is kept.
    Include,
    /// It is dropped.
    Exclude,
    /// It is computed.
    Computed(Expression),
    /// A part of an array is kept.
    Slice(Slice),
    /// The first value of an array that matches is kept.
    ElemMatch(Box<MatchExpression>),
    /// Its own fields are projected.
    Nested(Branch),
}

impl Child {
    /// True if the value is made, not taken from the document as it is.
    pub fn is_computed(&self) -> bool {
        matches!(self, Child::Computed(_) | Child::Slice(_) | Child::ElemMatch(_))
    }
}

/// The fields named on one level, in the order of the specification.
#[derive(Clone, Debug, Default)]
pub struct Branch {
    children: Vec<(BString, Child)>,
    /// The places of many names.
    places: HashMap<BString, usize>,
}

/// As many names are gone through without a table of their places.
const NAMES_WITHOUT_TABLE_MAX: usize = 16;

impl Branch {
    /// True without names.
    pub fn is_empty(&self) -> bool {
        self.children.is_empty()
    }

    /// The names and what becomes of them.
    pub fn children(&self) -> &[(BString, Child)] {
        &self.children
    }

    /// What becomes of the field with this name.
    #[inline]
    pub fn get(&self, name: &BStr) -> Option<&Child> {
        self.place(name).and_then(|place| self.children.get(place)).map(|(_, child)| child)
    }

    #[inline]
    fn place(&self, name: &BStr) -> Option<usize> {
        if self.places.is_empty() {
            return self.children.iter().position(|(child, _)| child == name);
        }
        self.places.get(name).copied()
    }

    fn push(&mut self, name: &BStr, child: Child) {
        self.children.push((name.to_owned(), child));
        let count = self.children.len();
        if count == NAMES_WITHOUT_TABLE_MAX {
            self.places = self.children.iter().map(|(name, _)| name.clone()).zip(0..).collect();
        } else if count > NAMES_WITHOUT_TABLE_MAX {
            self.places.insert(name.to_owned(), count - 1);
        }
    }

    /// True if something below is computed.
    pub fn has_computed(&self) -> bool {
        self.children.iter().any(|(_, child)| match child {
            Child::Nested(branch) => branch.has_computed(),
            child => child.is_computed(),
        })
    }

    pub(super) fn is_simple(&self) -> bool {
        self.children.iter().all(|(name, child)| match child {
            Child::Include => true,
            Child::Exclude => name == "_id",
            Child::Nested(branch) => branch.is_simple(),
            _ => false,
        })
    }

    /// What is named below this path, if the path ends between others.
    pub(super) fn nested_mut(&mut self, path: &FieldPath) -> Option<&mut Branch> {
        let mut branch = self;
        for part in path.parts() {
            let place = branch.place(part)?;
            match branch.children.get_mut(place) {
                Some((_, Child::Nested(nested))) => branch = nested,
                _ => return None,
            }
        }
        Some(branch)
    }

    /// Forgets a name.
    pub(super) fn remove(&mut self, name: &BStr) {
        let children = std::mem::take(&mut self.children);
        self.places.clear();
        children
            .into_iter()
            .filter(|(other, _)| other != name)
            .for_each(|(other, child)| self.push(other.as_ref(), child));
    }

    /// Adds a path from this part on; two paths must not overlap.
    pub(super) fn insert(&mut self, path: &FieldPath, part: usize, child: Child) -> Result<()> {
        let name = path.part(part);
        let is_last = part + 1 >= path.part_count();
        operation::tick(1)?;
        let place = self.place(name).and_then(|place| self.children.get_mut(place));
        match place {
            Some((_, Child::Nested(branch))) if !is_last => branch.insert(path, part + 1, child),
            Some((_, Child::Nested(_))) => Err(Error::location(31250, format!("Path collision at {path}"))),
            Some(_) if is_last => Err(Error::location(31250, format!("Path collision at {path}"))),
            Some(_) => {
                let rest: Vec<&BStr> = path.parts().skip(1).collect();
                let rest = BString::from(bstr::join(".", rest));
                Err(Error::location(31249, format!("Path collision at {path} remaining portion {rest}")))
            }
            None if is_last => {
                self.push(name, child);
                Ok(())
            }
            None => {
                let mut branch = Branch::default();
                branch.insert(path, part + 1, child)?;
                self.push(name, Child::Nested(branch));
                Ok(())
            }
        }
    }

    /// Collects what is looked at; false if it is the whole document.
    pub(super) fn collect_paths(&self, prefix: Option<&FieldPath>, found: &mut Vec<FieldPath>) -> bool {
        for (name, child) in &self.children {
            let Ok(own) = FieldPath::lenient(name) else { return false };
            let Ok(path) = prefix.map_or(Ok(own.clone()), |prefix| prefix.join(&own)) else { return false };
            match child {
                Child::Exclude => {}
                Child::Include | Child::Slice(_) | Child::ElemMatch(_) => found.push(path),
                Child::Computed(expression) => match expression.paths() {
                    Some(paths) => found.extend(paths),
                    None => return false,
                },
                Child::Nested(branch) => {
                    if branch.has_computed() {
                        found.push(path.clone());
                    }
                    if !branch.collect_paths(Some(&path), found) {
                        return false;
                    }
                }
            }
        }
        true
    }
}
