//! Collations: what clients may ask for, what is kept in the catalog, and how strings are compared then.
//!
//! A [`Collation`] is a specification with every field decided; two are the same if their documents are equal. An
//! [`IcuCollator`] is one at work. The plain order of bytes ("simple") is no collation here: it is the absence of one.
//!
//! Invariants: a collator orders strings exactly as the bytes of their sort keys, for any bytes; strings that are not UTF-8
//! compare as if the replacement character stood for what is wrong in them. Sort keys are stored in indexes: another version of
//! the Unicode data gives other keys, so that the version of the crate that makes them is pinned.
//!
//! What differs from ICU 57.1, whose version number specifications carry: text is always compared in its decomposed form, as if
//! `normalization` were set; the order of characters is that of today's Unicode; the variants `search`, `searchjl`, `phonetic`,
//! `big5han` and `gb2312han` have the order of their locale, and `haw`, `lkt`, `ln`, `se`, `smn` that of the root.

mod collator;
mod data;
mod locale;
mod specification;

#[cfg(test)]
mod tests;

pub use collator::IcuCollator;
pub use specification::{Alternate, CaseFirst, Collation, MaxVariable};
