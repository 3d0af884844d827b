//! Patterns of an `$in` that say nothing but a text, looked for all at once.
//!
//! A hundred thousand patterns cannot be looked for one after the other in each of many documents.
//! Those that are plain text lie in tables by their lengths: a text is looked up once for each
//! length, or once for each of its places and each length.

use crate::Regex;
use bstr::{BStr, BString, ByteSlice};
use pando_base::operation;
use std::collections::{BTreeMap, HashSet};

/// With fewer patterns a table does not pay.
const COUNT_MIN: usize = 16;

/// Texts by their lengths.
type Texts = BTreeMap<usize, HashSet<BString>>;

/// Patterns that are plain text.
#[derive(Debug, Default, PartialEq)]
pub(super) struct PlainTexts {
    /// What a text begins with.
    beginnings: Texts,
    /// What occurs in a text.
    parts: Texts,
    part_count: usize,
}

impl PlainTexts {
    /// The plain texts among patterns, if there are many, and the places of the others.
    pub(super) fn among(regexes: &[Regex]) -> Option<(PlainTexts, Vec<usize>)> {
        if regexes.len() < COUNT_MIN {
            return None;
        }
        let (mut plain, mut others) = (PlainTexts::default(), Vec::new());
        for (place, regex) in regexes.iter().enumerate() {
            let (texts, text) = match regex.plain_text() {
                Some((text, true)) => (&mut plain.beginnings, text),
                Some((text, false)) => (&mut plain.parts, text),
                None => {
                    others.push(place);
                    continue;
                }
            };
            texts.entry(text.len()).or_default().insert(text.to_owned());
        }
        plain.part_count = plain.parts.values().map(HashSet::len).sum();
        (regexes.len() - others.len() >= COUNT_MIN).then_some((plain, others))
    }

    /// True if one of the texts stands where it has to in this one.
    pub(super) fn match_text(&self, text: &BStr) -> bool {
        let begins = |(length, texts): (&usize, &HashSet<BString>)| {
            operation::goes_on(1) && text.get(..*length).is_some_and(|head| texts.contains(head))
        };
        let is_found = self.beginnings.range(..=text.len()).any(begins) || self.has_part(text);
        is_found && std::str::from_utf8(text).is_ok()
    }

    fn has_part(&self, text: &BStr) -> bool {
        // A look at each place for each length costs some bytes of a search for each text.
        if self.parts.len() > self.part_count / 8 {
            let occurs = |part: &BString| {
                operation::goes_on(1 + (text.len() / 256) as u64) && text.find(part.as_slice()).is_some()
            };
            return self.parts.range(..=text.len()).flat_map(|(_, texts)| texts).any(occurs);
        }
        let at = |texts: &HashSet<BString>, window: &[u8]| operation::goes_on(2) && texts.contains(window.as_bstr());
        self.parts.range(..=text.len()).any(|(length, texts)| match length {
            0 => true,
            length => text.windows(*length).any(|window| at(texts, window)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn regexes(patterns: impl IntoIterator<Item = String>, options: &str) -> Vec<Regex> {
        let regex = |pattern: String| Regex::new(pattern.as_str().into(), options.into(), "$in").unwrap();
        patterns.into_iter().map(regex).collect()
    }

    #[test]
    fn what_is_plain_is_found_as_the_pattern_itself_finds_it() {
        let mut patterns = regexes((0..40).map(|number| format!("^k{number}")), "");
        patterns.extend(regexes((0..200).map(|number| format!("p{number}q")), ""));
        patterns.extend(regexes((0..20).map(|number| format!("x{number}$")), ""));
        patterns.extend(regexes((0..20).map(|number| format!("CaSe{number}")), "i"));
        patterns.extend(regexes((0..20).map(|number| format!("^line{number}")), "m"));
        patterns.extend(regexes(["\u{e9}t\u{e9}".into(), "a b".into()], "s"));
        let (plain, others) = PlainTexts::among(&patterns).unwrap();
        assert_eq!(others.len(), 60);
        let texts = ["k7", "k39 and more", " k7", "k", "", "p12q", "..p199q..", "p200q", "x3", "x3 ", "case5", "a b"];
        for text in texts.into_iter().map(BStr::new).chain([BStr::new("un \u{e9}t\u{e9}"), BStr::new(b"k7\xff")]) {
            let one_by_one = |regex: &Regex| regex.plain_text().is_some() && regex.is_match(text);
            assert_eq!(plain.match_text(text), patterns.iter().any(one_by_one), "{text}");
        }
        assert!(PlainTexts::among(&patterns[..10]).is_none());
    }

    #[test]
    fn many_lengths_are_looked_for_one_by_one() {
        let patterns = regexes((1..60).map(|length| format!("{}b", "a".repeat(length))), "");
        let (plain, _) = PlainTexts::among(&patterns).unwrap();
        assert!(plain.match_text(BStr::new("xxabxx")) && !plain.match_text(BStr::new("xxbaxx")));
    }
}
