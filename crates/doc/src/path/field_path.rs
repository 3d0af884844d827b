//! A path of field names with dots between them.

use crate::validate::DEPTH_MAX;
use bstr::{BStr, BString, ByteSlice};
use pando_base::{Error, ErrorCode, Result};
use std::fmt;

/// Names with a dollar in front that paths may have all the same.
const ALLOWED_WITH_DOLLAR: &[&str] =
    &["$id", "$ref", "$db", "$sortKey", "$recordId", "$searchSortValues", "$searchScore"];

/// A dotted path of at least one part and at most 200.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldPath {
    text: BString,
    /// Where each part ends.
    ends: Vec<u32>,
}

impl FieldPath {
    /// A path as expressions and stages take it: no empty parts, no dollar in front of names.
    pub fn parse(text: impl AsRef<[u8]>) -> Result<FieldPath> {
        let text = text.as_ref();
        if text.is_empty() {
            return Err(Error::location(40352, "FieldPath cannot be constructed with empty string"));
        }
        if text.ends_with(b".") {
            return Err(Error::location(40353, "FieldPath must not end with a '.'."));
        }
        let path = FieldPath::lenient(text)?;
        path.parts().try_for_each(check_name)?;
        Ok(path)
    }

    /// A path as queries and updates take it: any parts, also empty ones.
    pub fn lenient(text: impl AsRef<[u8]>) -> Result<FieldPath> {
        let text = BString::from(text.as_ref());
        let mut ends: Vec<u32> = text.find_iter(".").map(|end| end as u32).collect();
        ends.push(text.len() as u32);
        if ends.len() > DEPTH_MAX {
            return Err(Error::new(ErrorCode::Overflow, "FieldPath is too long"));
        }
        Ok(FieldPath { text, ends })
    }

    /// The path as it was written.
    pub fn text(&self) -> &BStr {
        self.text.as_bstr()
    }

    /// How many parts there are.
    pub fn part_count(&self) -> usize {
        self.ends.len()
    }

    /// The part at this place; empty beyond the last.
    #[inline]
    pub fn part(&self, index: usize) -> &BStr {
        let start =
            if index == 0 { 0 } else { self.ends.get(index - 1).map_or(self.text.len(), |&end| end as usize + 1) };
        let end = self.ends.get(index).map_or(self.text.len(), |&end| end as usize);
        BStr::new(self.text.get(start..end).unwrap_or_default())
    }

    /// The parts in order.
    pub fn parts(&self) -> impl DoubleEndedIterator<Item = &BStr> + ExactSizeIterator {
        (0..self.ends.len()).map(|index| self.part(index))
    }

    /// True if the other path is this one or leads further.
    pub fn is_prefix_of(&self, other: &FieldPath) -> bool {
        self.part_count() <= other.part_count() && self.parts().zip(other.parts()).all(|(left, right)| left == right)
    }

    /// This path and then the other.
    pub fn join(&self, tail: &FieldPath) -> Result<FieldPath> {
        if self.part_count() + tail.part_count() > DEPTH_MAX {
            return Err(Error::new(ErrorCode::Overflow, "FieldPath concat would be too long"));
        }
        FieldPath::lenient(bstr::join(".", [self.text(), tail.text()]))
    }
}

/// What is said to whoever wants such a name nevertheless.
const HINT: &str = "Consider using $getField or $setField.";

/// Refuses what cannot be the name of one field.
pub fn check_field_name(name: &BStr) -> Result<()> {
    check_name(name)?;
    if name.contains(&b'.') {
        return Err(Error::location(16412, format!("FieldPath field names may not contain '.'. {HINT}")));
    }
    Ok(())
}

fn check_name(name: &BStr) -> Result<()> {
    if name.is_empty() {
        return Err(Error::location(15998, "FieldPath field names may not be empty strings."));
    }
    if name.starts_with(b"$") && !ALLOWED_WITH_DOLLAR.iter().any(|allowed| name == *allowed) {
        return Err(Error::location(16410, format!("FieldPath field names may not start with '$'. {HINT}")));
    }
    if name.contains(&0) {
        return Err(Error::location(16411, "FieldPath field names may not contain '\0'."));
    }
    Ok(())
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.text, f)
    }
}

impl fmt::Debug for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}
