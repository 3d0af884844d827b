//! Regular expressions in PCRE syntax, by PCRE2 itself, with MongoDB's option letters.
//!
//! Patterns and subjects are UTF-8. A subject that is not does not match: that is what MongoDB does
//! with it.
//!
//! PCRE2 cannot be stopped while it searches. So it is never asked for much at once: `compiled`
//! makes variants of a pattern that give up after few steps at one place of the text, or that look
//! at one place only, and `search` goes from the first to the second where the first give up.
//! Between two calls the operation is looked at.

mod compiled;
mod prefix;
mod search;

#[cfg(test)]
mod tests;

pub use prefix::Prefix;
pub use search::{Groups, Search, Subject};

use bstr::{BStr, BString};
use compiled::Variants;
use pando_base::{Error, ErrorCode, Result, operation};
use std::fmt;
use std::sync::Arc;

/// MongoDB's limit for the length of a pattern.
const PATTERN_SIZE_BYTES_MAX: usize = 16 * 1024;
/// Compiling is so many steps, and as many for so many bytes of the pattern.
const COMPILE_STEPS: u64 = 100;
const COMPILE_BYTES: usize = 64;

/// A compiled pattern with the text it came from. A clone shares what was compiled.
#[derive(Clone)]
pub struct Regex {
    pattern: BString,
    options: BString,
    variants: Arc<Variants>,
}

impl Regex {
    /// Compiles a pattern; `operator` is who wants it, for error messages.
    pub fn new(pattern: &BStr, options: &BStr, operator: &str) -> Result<Regex> {
        operation::tick(COMPILE_STEPS * (1 + pattern.len() / COMPILE_BYTES) as u64)?;
        let refused = |code, reason: String| Err(Error::new(code, reason));
        if pattern.contains(&0) {
            return refused(ErrorCode::BadValue, "Regular expression cannot contain an embedded null byte".to_owned());
        }
        if pattern.len() > PATTERN_SIZE_BYTES_MAX {
            let reason = "Regular expression is invalid: regular expression is too large";
            return refused(ErrorCode::location(51091), reason.to_owned());
        }
        let Ok(text) = std::str::from_utf8(pattern) else {
            return refused(ErrorCode::location(51091), "Regular expression is invalid: UTF-8 error".to_owned());
        };
        let variants = Variants::new(text, options, operator)?;
        Ok(Regex { pattern: pattern.to_owned(), options: options.to_owned(), variants: Arc::new(variants) })
    }

    /// The pattern as it was written.
    pub fn pattern(&self) -> &BStr {
        BStr::new(&self.pattern)
    }

    /// The option letters as they were written.
    pub fn options(&self) -> &BStr {
        BStr::new(&self.options)
    }

    /// True if the pattern occurs in the text; what takes PCRE2 too much does not count.
    pub fn is_match(&self, text: &BStr) -> bool {
        self.try_is_match(text).unwrap_or(false)
    }

    /// True if the pattern occurs in the text; an error if that takes too much.
    pub fn try_is_match(&self, text: &BStr) -> Result<bool> {
        Search::new(self, Subject::new(text)?).is_match()
    }

    /// The text that the pattern is, if it is nothing else, and whether it stands for beginnings only.
    pub(crate) fn plain_text(&self) -> Option<(&BStr, bool)> {
        let (text, is_beginning) = prefix::plain(&self.pattern, &self.options)?;
        Some((BStr::new(text), is_beginning))
    }

    /// The text that every match begins with, if the pattern says so plainly: what an index can be
    /// bounded by.
    pub fn literal_prefix(&self) -> Option<Prefix> {
        prefix::of(&self.pattern, &self.options)
    }
}

/// The code of a search that PCRE2 gave up.
const FAILED: ErrorCode = ErrorCode::location(51156);

fn failed(error: &dyn fmt::Display) -> Error {
    Error::new(FAILED, format!("Error occurred while executing the regular expression: {error}"))
}

impl PartialEq for Regex {
    fn eq(&self, other: &Regex) -> bool {
        self.pattern == other.pattern && self.options == other.options
    }
}

impl fmt::Debug for Regex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}/{}", self.pattern, self.options)
    }
}
