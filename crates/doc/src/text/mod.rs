//! Documents as text: the shell's notation for error messages, extended JSON for logs, configuration and tests.
//!
//! Bytes that are not UTF-8 are shown as replacement characters; text is for people, documents travel as bytes.

mod double;
mod json_read;
mod json_write;
mod shell;

#[cfg(test)]
mod tests;

pub use double::short_double;
pub use json_read::{doc_from_json, value_from_json};
pub use json_write::{JsonFormat, doc_to_json, value_to_json};
