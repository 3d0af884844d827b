//! Lineage: what a run file says about its place in time, for a salvage that has no manifest.
//!
//! A table's runs must be read in the right order, and a merge's output must not be read beside what is left of its inputs.
//! Normally the manifest knows. Should it be lost, the hints in the files' directories tell: a run written by a checkpoint
//! is as old as its file's number; a merge's output states the span of ages that it covers, the files it was made of, and
//! the files whose parts were taken over beside it.
//!
//! The hint is a text: the table's name, and behind a separator that no name contains, the lineage.

use crate::FileId;
use std::collections::BTreeSet;

/// Between the name and the lineage.
const SEPARATOR: char = '\u{1f}';

/// The span of time that a run covers, in numbers of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Ages {
    pub first: FileId,
    pub last: FileId,
}

impl Ages {
    /// The age of something in this file.
    pub fn of_file(file: FileId) -> Ages {
        Ages { first: file, last: file }
    }

    /// The span over several files; nothing is as old as can be.
    pub fn of_files(files: impl Iterator<Item = FileId> + Clone) -> Ages {
        Ages { first: files.clone().min().unwrap_or(0), last: files.max().unwrap_or(0) }
    }

    /// The span over both.
    pub fn union(self, other: Ages) -> Ages {
        Ages { first: self.first.min(other.first), last: self.last.max(other.last) }
    }

    /// True if the other lies within.
    pub fn covers(self, other: Ages) -> bool {
        self.first <= other.first && other.last <= self.last
    }
}

/// Where a merge's output comes from.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Lineage {
    pub ages: Ages,
    /// Files whose parts were rewritten.
    pub inputs: BTreeSet<FileId>,
    /// Files whose parts were taken over.
    pub kept: BTreeSet<FileId>,
}

/// The hint of a merge's output.
pub(crate) fn hint(ident: &str, lineage: &Lineage) -> String {
    let list = |files: &BTreeSet<FileId>| files.iter().map(|id| format!("{id:x}")).collect::<Vec<_>>().join(",");
    let Lineage { ages, inputs, kept } = lineage;
    format!("{ident}{SEPARATOR}{:x}-{:x};{};{}", ages.first, ages.last, list(inputs), list(kept))
}

/// The name in a hint.
pub(crate) fn ident_of(hint: &str) -> &str {
    hint.split_once(SEPARATOR).map_or(hint, |(ident, _)| ident)
}

/// The lineage in a hint; `None` for what a checkpoint wrote.
pub(crate) fn lineage_of(hint: &str) -> Option<Lineage> {
    let (_, text) = hint.split_once(SEPARATOR)?;
    let mut fields = text.split(';');
    let (first, last) = fields.next()?.split_once('-')?;
    let ages = Ages { first: number(first)?, last: number(last)? };
    Some(Lineage { ages, inputs: numbers(fields.next()?)?, kept: numbers(fields.next()?)? })
}

fn number(text: &str) -> Option<FileId> {
    FileId::from_str_radix(text, 16).ok()
}

fn numbers(text: &str) -> Option<BTreeSet<FileId>> {
    text.split(',').filter(|item| !item.is_empty()).map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_round_trip() {
        let lineage = Lineage {
            ages: Ages { first: 3, last: 0xab },
            inputs: BTreeSet::from([3, 7, 0xab]),
            kept: BTreeSet::new(),
        };
        let hint = hint("collection-7", &lineage);
        assert_eq!((ident_of(&hint), lineage_of(&hint)), ("collection-7", Some(lineage)));
        assert_eq!((ident_of("index-1"), lineage_of("index-1")), ("index-1", None));
    }
}
