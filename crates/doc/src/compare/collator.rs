//! What a collation has to offer. Its implementation lies above this crate.

use crate::Doc;
use bstr::BStr;
use std::cmp::Ordering;
use std::sync::Arc;

/// An order of strings other than that of their bytes.
pub trait StringComparator: Sync {
    /// The order of two strings; total.
    fn compare(&self, left: &BStr, right: &BStr) -> Ordering;

    /// Bytes that are the same for strings that compare equal; used for hashing.
    fn equality_key(&self, text: &BStr) -> Vec<u8>;
}

/// A collation: an order of strings whose keys can be stored in an index.
pub trait Collator: StringComparator {
    /// Bytes whose order is that of the strings.
    fn sort_key(&self, text: &BStr) -> Vec<u8>;

    /// What it was made of, with every field; the same for collations that compare alike.
    fn specification(&self) -> &Doc;
}

/// A collation that indexes and expressions keep.
pub type SharedCollator = Arc<dyn Collator + Send + Sync>;
