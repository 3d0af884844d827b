//! What a diff says to readers of change streams: which fields were set, which were removed, which arrays got shorter.
//!
//! Paths are dotted. Where a dotted path could mean several fields (a name with a dot in it, or of digits below another
//! field), it is also given part by part, array indexes as numbers.

use super::format::{ArrayChange, ArrayDiff, DiffRef, Digits, DocumentDiff};
use bstr::{BStr, BString, ByteSlice};
use pando_base::{Error, Result};
use pando_doc::{ArrayBuilder, Doc, DocBuilder, DocRef, RawElement};

/// A part of a path.
#[derive(Clone, Copy)]
enum Part<'a> {
    Name(&'a BStr),
    Index(usize),
}

/// What was found so far, and where it is being looked for.
#[derive(Default)]
struct Description<'a> {
    path: Vec<Part<'a>>,
    updated: DocBuilder,
    removed: ArrayBuilder,
    truncated: ArrayBuilder,
    disambiguated: DocBuilder,
}

/// The `updateDescription` of an update that carries this diff: `{updatedFields, removedFields, truncatedArrays}`, and
/// `disambiguatedPaths` if they are wanted.
pub fn describe(diff: DocRef<'_>, wants_disambiguated_paths: bool) -> Result<Doc> {
    let mut description = Description::default();
    match DiffRef::read(diff)? {
        DiffRef::Document(document) => description.read_document(&document)?,
        DiffRef::Array(_) => return Err(Error::location(6697700, "Invalid diff or parsing error")),
    }
    let mut builder = DocBuilder::with_capacity(diff.size_bytes() + 96);
    builder.append("updatedFields", description.updated.finish());
    builder.append("removedFields", description.removed.finish());
    builder.append("truncatedArrays", description.truncated.finish());
    if wants_disambiguated_paths {
        builder.append("disambiguatedPaths", description.disambiguated.finish());
    }
    Ok(builder.finish())
}

impl<'a> Description<'a> {
    fn read(&mut self, part: Part<'a>, diff: DocRef<'a>) -> Result<()> {
        self.path.push(part);
        match DiffRef::read(diff)? {
            DiffRef::Document(document) => self.read_document(&document)?,
            DiffRef::Array(array) => self.read_array(array)?,
        }
        self.path.pop();
        Ok(())
    }

    fn read_document(&mut self, diff: &DocumentDiff<'a>) -> Result<()> {
        let set = [diff.updates, diff.inserts].into_iter().flatten();
        for element in set.flat_map(DocRef::raw_elements) {
            self.set(Part::Name(element.name), element);
        }
        for element in diff.deletes.into_iter().flat_map(DocRef::raw_elements) {
            self.path.push(Part::Name(element.name));
            let path = self.dotted();
            self.removed.push(path.as_bstr());
            self.disambiguate(&path);
            self.path.pop();
        }
        diff.inner.iter().try_for_each(|(name, inner)| self.read(Part::Name(name), *inner))
    }

    fn read_array(&mut self, mut diff: ArrayDiff<'a>) -> Result<()> {
        if let Some(length) = diff.length {
            let path = self.dotted();
            self.truncated.document(|array| {
                array.append("field", path.as_bstr());
                array.append("newSize", i32::try_from(length).unwrap_or(i32::MAX));
            });
            self.disambiguate(&path);
        }
        while let Some((index, change)) = diff.next_change()? {
            match change {
                ArrayChange::Set(element) => self.set(Part::Index(index), element),
                ArrayChange::Inner(inner) => self.read(Part::Index(index), inner)?,
            }
        }
        Ok(())
    }

    fn set(&mut self, part: Part<'a>, element: RawElement<'a>) {
        self.path.push(part);
        let path = self.dotted();
        self.updated.append_raw_as(&path, element);
        self.disambiguate(&path);
        self.path.pop();
    }

    fn dotted(&self) -> BString {
        let mut dotted = BString::default();
        for (place, part) in self.path.iter().enumerate() {
            if place > 0 {
                dotted.push(b'.');
            }
            match part {
                Part::Name(name) => dotted.extend_from_slice(name),
                Part::Index(index) => dotted.extend_from_slice(Digits::of(*index).as_bstr()),
            }
        }
        dotted
    }

    /// Gives the path part by part if it is ambiguous. A number at its start is not: the whole document is no array.
    fn disambiguate(&mut self, dotted: &BString) {
        let is_ambiguous = self.path.iter().enumerate().any(|(place, part)| match part {
            Part::Name(name) => name.contains(&b'.') || (place > 0 && is_index(name)),
            Part::Index(_) => false,
        });
        if !is_ambiguous {
            return;
        }
        let path = &self.path;
        self.disambiguated.array(dotted, |parts| {
            for part in path {
                match part {
                    Part::Name(name) => parts.push(*name),
                    Part::Index(index) => parts.push(i32::try_from(*index).unwrap_or(i32::MAX)),
                }
            }
        });
    }
}

/// True for a name that could be an index: digits without a zero in front.
fn is_index(name: &BStr) -> bool {
    let is_number = !name.is_empty() && name.iter().all(u8::is_ascii_digit);
    is_number && (name.len() == 1 || !name.starts_with(b"0"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::{Difference, compute};
    use pando_doc::doc;

    fn described(before: Doc, after: Doc) -> Doc {
        let Difference::Diff(diff) = compute(before.view(), after.view()) else { panic!("no diff") };
        describe(diff.view(), true).unwrap()
    }

    const FILL: &str = "a text that is long enough for a diff to be shorter than the whole document";

    #[test]
    fn u13_what_was_set_removed_and_truncated() {
        let before = doc! { "_id": 1, "f": FILL, "a": 1, "b": { "c": 1, "d": FILL }, "e": [FILL, 2, 3, FILL], "x": 1 };
        let after = doc! { "_id": 1, "f": FILL, "a": 2, "b": { "c": 5, "d": FILL }, "e": [FILL, 7], "y": 2 };
        let expected = doc! {
            "updatedFields": { "a": 2, "y": 2, "b.c": 5, "e.1": 7 }, "removedFields": ["x"],
            "truncatedArrays": [{ "field": "e", "newSize": 2 }], "disambiguatedPaths": {},
        };
        assert_eq!(described(before, after), expected);
    }

    #[test]
    fn u13_ambiguous_paths_are_told_part_by_part() {
        let before = doc! { "_id": 1, "f": FILL, "a": { "0": 1, "b.c": 1, "01": 1, "f": FILL }, "1": 1 };
        let after = doc! { "_id": 1, "f": FILL, "a": { "0": 2, "b.c": 2, "01": 2, "f": FILL }, "1": 2 };
        let found = described(before, after);
        let paths = found.get("disambiguatedPaths").unwrap().as_document().unwrap().to_doc();
        assert_eq!(paths, doc! { "a.0": ["a", "0"], "a.b.c": ["a", "b.c"] });
        let before = doc! { "_id": 1, "f": FILL, "a": [{ "0": 1, "f": FILL }, 1] };
        let after = doc! { "_id": 1, "f": FILL, "a": [{ "0": 2, "f": FILL }, 1] };
        let found = described(before, after);
        let paths = found.get("disambiguatedPaths").unwrap().as_document().unwrap().to_doc();
        assert_eq!(paths, doc! { "a.0.0": ["a", 0, "0"] });
    }
}
