//! Lineage: what a run file says about its place in time, for a salvage that has no manifest.
//!
//! A table's runs must be read in the right order, and a merge's output must not be read beside what is left of its inputs.
//! Normally the manifest knows. Should it be lost, the hints in the files' directories tell: a run written by a checkpoint
//! is as old as its file's number; a merge's output states the span of ages that it covers, the files it was made of, and
//! the files whose parts were taken over beside it.
//!
//! The hint is a text: the table's name, its number, and for a merge's output the lineage; between them a separator that
//! no name contains.

use crate::{FileId, TableId};
use std::collections::BTreeSet;

/// Between the name, the number and the lineage.
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

/// The hint of what is not a merge's output.
pub fn table_hint(ident: &str, table: TableId) -> String {
    format!("{ident}{SEPARATOR}{table:x}")
}

/// The hint of a merge's output.
pub(crate) fn hint(ident: &str, table: TableId, lineage: &Lineage) -> String {
    let list = |files: &BTreeSet<FileId>| files.iter().map(|id| format!("{id:x}")).collect::<Vec<_>>().join(",");
    let Lineage { ages, inputs, kept } = lineage;
    let hint = table_hint(ident, table);
    format!("{hint}{SEPARATOR}{:x}-{:x};{};{}", ages.first, ages.last, list(inputs), list(kept))
}

/// The name in a hint.
pub(crate) fn ident_of(hint: &str) -> &str {
    hint.split_once(SEPARATOR).map_or(hint, |(ident, _)| ident)
}

/// The table's number in a hint.
pub(crate) fn table_of(hint: &str) -> Option<TableId> {
    number(hint.split(SEPARATOR).nth(1)?)
}

/// The lineage in a hint; `None` for what a checkpoint wrote.
pub(crate) fn lineage_of(hint: &str) -> Option<Lineage> {
    let mut fields = hint.split(SEPARATOR).nth(2)?.split(';');
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
        let hint = hint("collection-7", 31, &lineage);
        assert_eq!((ident_of(&hint), table_of(&hint)), ("collection-7", Some(31)));
        assert_eq!(lineage_of(&hint), Some(lineage));
        let plain = table_hint("index-1", 4);
        assert_eq!((ident_of(&plain), table_of(&plain), lineage_of(&plain)), ("index-1", Some(4), None));
        assert_eq!((ident_of("index-1"), table_of("index-1"), lineage_of("index-1")), ("index-1", None, None));
    }
}
