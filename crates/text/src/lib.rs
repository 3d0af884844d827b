//! Text search, without collections: which words a text has, how much they weigh, and whether a document fulfils a search.
//!
//! - [`Language`]: how words are folded, stemmed and which of them say nothing.
//! - [`words`]: a text cut into words.
//! - [`TextSpec`]: what a text index has of a document: its fields and weights; [`TextSpec::terms`] gives the terms with their scores.
//! - [`TextQuery`]: the search of a `$text`, its terms, phrases and what must not be there.
//!
//! Invariants: the terms of a document and those of a search go through the same steps, in the same order: lower case, stop words, stem,
//! diacritics. What an index holds depends on the crates for stems and stop words: another version of either means other terms.
//!
//! This crate must not know indexes, plans or commands.

mod fold;
mod language;
mod query;
mod spec;
mod tokens;

pub use language::Language;
pub use query::TextQuery;
pub use spec::{TextSpec, term_key};
pub use tokens::{Sensitivity, words};
