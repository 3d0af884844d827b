//! Regular expressions in PCRE syntax, by PCRE2 itself, with MongoDB's option letters.
//!
//! Patterns and subjects are UTF-8. A subject that is not does not match: that is what MongoDB does with it.

use bstr::{BStr, BString};
use pando_base::{Error, ErrorCode, Result};
use pcre2::bytes::{Regex as Compiled, RegexBuilder};
use std::fmt;

/// MongoDB's limit for the length of a pattern.
const PATTERN_SIZE_BYTES_MAX: usize = 16 * 1024;

/// Where the whole match and each group begin and end; none for a group that took no part.
pub type Groups = Vec<Option<(usize, usize)>>;

/// A compiled pattern with the text it came from.
#[derive(Clone)]
pub struct Regex {
    pattern: BString,
    options: BString,
    compiled: Compiled,
}

impl Regex {
    /// Compiles a pattern; `operator` is who wants it, for error messages.
    pub fn new(pattern: &BStr, options: &BStr, operator: &str) -> Result<Regex> {
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
        let compiled = builder(options, operator)?.build(text).map_err(|error| {
            let told = error.to_string();
            let why = told.rsplit(": ").next().unwrap_or(&told);
            Error::location(51091, format!("Regular expression is invalid: {why}"))
        })?;
        Ok(Regex { pattern: pattern.to_owned(), options: options.to_owned(), compiled })
    }

    /// The pattern as it was written.
    pub fn pattern(&self) -> &BStr {
        BStr::new(&self.pattern)
    }

    /// The option letters as they were written.
    pub fn options(&self) -> &BStr {
        BStr::new(&self.options)
    }

    /// True if the pattern occurs in the text.
    pub fn is_match(&self, text: &BStr) -> bool {
        self.compiled.is_match(text).unwrap_or(false)
    }

    /// True if the pattern occurs in the text; an error if that takes too much.
    pub fn try_is_match(&self, text: &BStr) -> Result<bool> {
        self.compiled.is_match(text).map_err(|error| failed(&error))
    }

    /// The match at or after this byte, and where its groups are.
    pub fn captures_at(&self, text: &BStr, start: usize) -> Result<Option<Groups>> {
        let mut places = self.compiled.capture_locations();
        let found = self.compiled.captures_read_at(&mut places, text, start);
        let found = found.map_err(|error| failed(&error))?;
        Ok(found.map(|_| (0..places.len()).map(|group| places.get(group)).collect()))
    }

    /// The text that every match begins with, if the pattern says so plainly: what an index can be bounded by.
    pub fn literal_prefix(&self) -> Option<Prefix> {
        prefix::of(&self.pattern, &self.options)
    }
}

/// What every match begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// The text.
    pub text: BString,
    /// True if the pattern says nothing more.
    pub is_whole: bool,
}

mod prefix {
    use super::Prefix;
    use bstr::BString;

    /// Characters that may stand for more than themselves.
    const SPECIAL: &[u8] = b"\\^$.[|()?*+{";

    pub(super) fn of(pattern: &[u8], options: &[u8]) -> Option<Prefix> {
        let is_multiline = options.contains(&b'm');
        if options.contains(&b'i') || options.contains(&b'x') {
            return None;
        }
        let rest = match pattern {
            [b'^', rest @ ..] if !is_multiline => rest,
            [b'\\', b'A', rest @ ..] => rest,
            _ => return None,
        };
        if has_alternative(pattern) {
            return None;
        }
        literal(rest)
    }

    /// True if a bar may divide the pattern: one that is not escaped, or behind more than one backslash.
    fn has_alternative(pattern: &[u8]) -> bool {
        let is_escaped = |place: usize| {
            let before = pattern.get(..place).unwrap_or_default();
            before.ends_with(b"\\") && !before.ends_with(b"\\\\")
        };
        pattern.iter().enumerate().any(|(place, byte)| *byte == b'|' && !is_escaped(place))
    }

    /// Collects characters up to the first that has a meaning of its own.
    fn literal(pattern: &[u8]) -> Option<Prefix> {
        let mut text: Vec<u8> = Vec::new();
        let mut rest = pattern;
        let mut last_start = 0;
        loop {
            match rest {
                [] => return Some(Prefix { text: BString::from(text), is_whole: true }),
                [b'*' | b'?' | b'{', ..] => {
                    // The character before may be absent.
                    text.truncate(last_start);
                    break;
                }
                [b'\\', b'Q', tail @ ..] => {
                    // Quoted up to \E.
                    let length = tail.windows(2).position(|pair| pair == b"\\E").unwrap_or(tail.len());
                    let (quoted, behind) = tail.split_at(length);
                    last_start = text.len() + quoted.iter().rposition(|byte| !is_continuation(*byte)).unwrap_or(0);
                    text.extend_from_slice(quoted);
                    rest = behind.get(2..).unwrap_or_default();
                }
                [b'\\', escaped, tail @ ..] if escaped.is_ascii_punctuation() => {
                    last_start = text.len();
                    text.push(*escaped);
                    rest = tail;
                }
                [special, ..] if SPECIAL.contains(special) => break,
                [byte, tail @ ..] => {
                    if !is_continuation(*byte) {
                        last_start = text.len();
                    }
                    text.push(*byte);
                    rest = tail;
                }
            }
        }
        (!text.is_empty()).then(|| Prefix { text: BString::from(text), is_whole: false })
    }

    fn is_continuation(byte: u8) -> bool {
        byte & 0xC0 == 0x80
    }
}

fn failed(error: &pcre2::Error) -> Error {
    Error::location(51156, format!("Error occurred while executing the regular expression: {error}"))
}

fn builder(options: &BStr, operator: &str) -> Result<RegexBuilder> {
    let mut builder = RegexBuilder::new();
    builder.utf(true).jit_if_available(true);
    for &letter in options.iter() {
        match letter {
            b'i' => builder.caseless(true),
            b'm' => builder.multi_line(true),
            b's' => builder.dotall(true),
            b'x' => builder.extended(true),
            b'u' => &mut builder,
            other => {
                let reason = format!("{operator} invalid flag in regex options: {}", char::from(other));
                return Err(Error::location(51108, reason));
            }
        };
    }
    Ok(builder)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn regex(pattern: &str, options: &str) -> Result<Regex> {
        Regex::new(BStr::new(pattern), BStr::new(options), "$regex")
    }

    #[test]
    fn options_and_errors() {
        assert!(regex("^AB", "i").unwrap().is_match(BStr::new("abc")));
        assert!(!regex("^b", "").unwrap().is_match(BStr::new("a\nb")));
        assert!(regex("^b", "m").unwrap().is_match(BStr::new("a\nb")));
        assert!(!regex("a.b", "").unwrap().is_match(BStr::new("a\nb")));
        assert!(regex("a.b", "s").unwrap().is_match(BStr::new("a\nb")));
        assert!(regex("a b # c", "x").unwrap().is_match(BStr::new("ab")));
        assert!(regex("^.$", "").unwrap().is_match(BStr::new("é")));
        assert_eq!(regex("(", "").unwrap_err().code().number(), 51091);
        assert_eq!(regex("a", "g").unwrap_err().code().number(), 51108);
        assert!(!regex("a", "").unwrap().is_match(BStr::new(b"a\xff")));
    }

    #[test]
    fn prefixes() {
        let prefix = |pattern: &str, options: &str| {
            regex(pattern, options).unwrap().literal_prefix().map(|prefix| (prefix.text.to_string(), prefix.is_whole))
        };
        assert_eq!(prefix("^abc", ""), Some(("abc".to_owned(), true)));
        assert_eq!(prefix("^ab*", ""), Some(("a".to_owned(), false)));
        assert_eq!(prefix("^a\\.b.c", ""), Some(("a.b".to_owned(), false)));
        assert_eq!(prefix("^é?", ""), None);
        assert_eq!(prefix("^a\\|", ""), Some(("a|".to_owned(), true)));
        assert_eq!((prefix("^\\\\|b", ""), prefix("^\\Q|\\E", "")), (None, None));
        assert_eq!(prefix("^\\Qa.\\Eb+", ""), Some(("a.b".to_owned(), false)));
        assert_eq!(prefix("^\\Qab\\E*", ""), Some(("a".to_owned(), false)));
        assert_eq!(
            (prefix("abc", ""), prefix("^abc", "i"), prefix("^a|b", ""), prefix("^a", "m")),
            (None, None, None, None)
        );
    }
}
