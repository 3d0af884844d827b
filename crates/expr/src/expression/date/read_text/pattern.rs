//! Patterns of bytes, and how far each reaches: of all the ways to fit, the longest counts.
//!
//! A pattern is written like a regular expression: `[classes]`, `(one|other)`, `?`, `*`, `+`,
//! `{name}` for a pattern that was named before, `<text>` for letters in either case, `\` before a
//! byte that stands for itself, `\0` for the zero byte. Every pattern is a constant of this
//! program.

use pando_base::operation;
use std::collections::HashMap;

/// A set of bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Bytes([u64; 4]);

impl Bytes {
    fn add(&mut self, byte: u8) {
        if let Some(word) = self.0.get_mut(usize::from(byte >> 6)) {
            *word |= 1 << (byte & 63);
        }
    }

    pub(super) fn has(&self, byte: u8) -> bool {
        self.0.get(usize::from(byte >> 6)).is_some_and(|word| word >> (byte & 63) & 1 == 1)
    }

    fn with(mut self, other: Bytes) -> Bytes {
        self.0.iter_mut().zip(other.0).for_each(|(word, more)| *word |= more);
        self
    }

    fn one(byte: u8) -> Bytes {
        let mut bytes = Bytes::default();
        bytes.add(byte);
        bytes
    }
}

/// A pattern.
#[derive(Clone)]
pub(super) enum Pattern {
    One(Bytes),
    All(Vec<Pattern>),
    Either(Vec<Pattern>),
    Repeat { of: Box<Pattern>, needs_one: bool, may_repeat: bool },
}

impl Pattern {
    /// Reads a pattern.
    pub(super) fn parse(text: &str, named: &HashMap<&'static str, Pattern>) -> Pattern {
        let mut parser = Parser { text: text.as_bytes(), place: 0, named };
        let pattern = parser.either();
        debug_assert_eq!(parser.place, text.len(), "the pattern ends early: {text}");
        pattern
    }

    /// Where the pattern may end if it begins at one of these places, in order.
    pub(super) fn ends(&self, text: &[u8], starts: &[usize]) -> Vec<usize> {
        operation::count(1 + starts.len() as u64);
        match self {
            Pattern::One(bytes) => {
                let fits = |start: &&usize| text.get(**start).is_some_and(|byte| bytes.has(*byte));
                starts.iter().filter(fits).map(|start| start + 1).collect()
            }
            Pattern::All(parts) => {
                let mut places = starts.to_vec();
                for part in parts {
                    if places.is_empty() {
                        break;
                    }
                    places = part.ends(text, &places);
                }
                places
            }
            Pattern::Either(parts) => {
                let mut ends: Vec<usize> = parts.iter().flat_map(|part| part.ends(text, starts)).collect();
                ends.sort_unstable();
                ends.dedup();
                ends
            }
            Pattern::Repeat { of, needs_one, may_repeat } => {
                let mut found = if *needs_one { Vec::new() } else { starts.to_vec() };
                let mut last = starts.to_vec();
                loop {
                    last = of.ends(text, &last);
                    last.retain(|place| found.binary_search(place).is_err());
                    if last.is_empty() {
                        break;
                    }
                    found.extend(&last);
                    found.sort_unstable();
                    if !may_repeat {
                        break;
                    }
                }
                found
            }
        }
    }

    /// The bytes that it may begin with, and whether it may be empty.
    pub(super) fn first(&self) -> (Bytes, bool) {
        match self {
            Pattern::One(bytes) => (*bytes, false),
            Pattern::All(parts) => {
                let mut all = Bytes::default();
                for part in parts {
                    let (bytes, may_be_empty) = part.first();
                    all = all.with(bytes);
                    if !may_be_empty {
                        return (all, false);
                    }
                }
                (all, true)
            }
            Pattern::Either(parts) => parts.iter().fold((Bytes::default(), false), |(all, is_empty), part| {
                let (bytes, may_be_empty) = part.first();
                (all.with(bytes), is_empty || may_be_empty)
            }),
            Pattern::Repeat { of, needs_one, .. } => {
                let (bytes, may_be_empty) = of.first();
                (bytes, may_be_empty || !needs_one)
            }
        }
    }
}

struct Parser<'p> {
    text: &'p [u8],
    place: usize,
    named: &'p HashMap<&'static str, Pattern>,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.place).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek();
        self.place += 1;
        byte
    }

    fn either(&mut self) -> Pattern {
        let mut parts = vec![self.all()];
        while self.peek() == Some(b'|') {
            self.place += 1;
            parts.push(self.all());
        }
        match parts.len() {
            1 => parts.pop().unwrap_or(Pattern::Either(Vec::new())),
            _ => Pattern::Either(parts),
        }
    }

    fn all(&mut self) -> Pattern {
        let mut parts = Vec::new();
        while self.peek().is_some_and(|byte| byte != b'|' && byte != b')') {
            let part = self.one();
            let (needs_one, may_repeat) = match self.peek() {
                Some(b'?') => (false, false),
                Some(b'*') => (false, true),
                Some(b'+') => (true, true),
                _ => {
                    parts.push(part);
                    continue;
                }
            };
            self.place += 1;
            parts.push(Pattern::Repeat { of: Box::new(part), needs_one, may_repeat });
        }
        Pattern::All(parts)
    }

    fn until(&mut self, end: u8) -> &[u8] {
        let start = self.place;
        while self.next().is_some_and(|byte| byte != end) {}
        self.text.get(start..self.place.saturating_sub(1)).unwrap_or_default()
    }

    fn one(&mut self) -> Pattern {
        match self.next().unwrap_or_default() {
            b'(' => {
                let inner = self.either();
                self.place += 1;
                inner
            }
            b'[' => Pattern::One(self.class()),
            b'{' => {
                let name = self.until(b'}').to_vec();
                let known = std::str::from_utf8(&name).ok().and_then(|name| self.named.get(name));
                debug_assert!(known.is_some(), "no pattern is named {}", String::from_utf8_lossy(&name));
                known.cloned().unwrap_or(Pattern::Either(Vec::new()))
            }
            b'<' => {
                let either = |byte: &u8| {
                    let lower = Bytes::one(byte.to_ascii_lowercase());
                    Pattern::One(lower.with(Bytes::one(byte.to_ascii_uppercase())))
                };
                Pattern::All(self.until(b'>').iter().map(either).collect())
            }
            b'\\' => Pattern::One(Bytes::one(self.escaped())),
            byte => Pattern::One(Bytes::one(byte)),
        }
    }

    fn escaped(&mut self) -> u8 {
        match self.next().unwrap_or_default() {
            b'0' => 0,
            byte => byte,
        }
    }

    fn class(&mut self) -> Bytes {
        let mut bytes = Bytes::default();
        while let Some(byte) = self.next().filter(|byte| *byte != b']') {
            let first = if byte == b'\\' { self.escaped() } else { byte };
            let is_range = self.peek() == Some(b'-') && self.text.get(self.place + 1).is_some_and(|end| *end != b']');
            let last = if is_range {
                self.place += 1;
                self.next().unwrap_or(first)
            } else {
                first
            };
            (first..=last).for_each(|byte| bytes.add(byte));
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u6_the_longest_way_to_fit_counts() {
        let mut named = HashMap::new();
        named.insert("hour", Pattern::parse("[01]?[0-9]|2[0-4]", &named));
        let longest = |pattern: &str, text: &str| {
            let pattern = Pattern::parse(pattern, &named);
            pattern.ends(text.as_bytes(), &[0]).last().copied()
        };
        assert_eq!(longest("{hour}", "23"), Some(2));
        assert_eq!(longest("{hour}", "29"), Some(1));
        assert_eq!(longest("({hour}:)+x?", "1:23:x"), Some(6));
        assert_eq!(longest("<ago>", "AgO"), Some(3));
        assert_eq!(longest("[.\\0-]+a", ".-\0a"), Some(4));
        assert_eq!(longest("a*b", "aac"), None);
        assert!(Pattern::parse("x*[yz]", &named).first().0.has(b'y'));
    }
}
