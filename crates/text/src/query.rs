//! The search of a `$text`.
//!
//! Words in quotation marks are a phrase, which has to be there letter by letter; their words are sought as well. A minus right before a word or
//! phrase means that it must not be there.

use crate::tokens::{Sensitivity, comparable, words};
use crate::{Language, TextSpec};
use pando_base::Result;
use pando_doc::DocRef;
use std::collections::BTreeSet;

/// A search that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextQuery {
    language: Language,
    sensitivity: Sensitivity,
    index_terms: BTreeSet<String>,
    wanted: BTreeSet<String>,
    unwanted: BTreeSet<String>,
    phrases: Vec<String>,
    unwanted_phrases: Vec<String>,
}

impl TextQuery {
    /// Reads what is sought.
    pub fn parse(search: &str, language: Language, sensitivity: Sensitivity) -> TextQuery {
        let parts = Parts::read(search);
        let read = |text: &str, sensitivity| words(text, language, sensitivity, false).into_iter().collect();
        TextQuery {
            language,
            sensitivity,
            index_terms: read(&parts.wanted, Sensitivity::default()),
            wanted: read(&parts.wanted, sensitivity),
            unwanted: read(&parts.unwanted, sensitivity),
            phrases: parts.phrases,
            unwanted_phrases: parts.unwanted_phrases,
        }
    }

    /// The terms to look up in the index, one of which a document must have.
    pub fn index_terms(&self) -> impl ExactSizeIterator<Item = &str> {
        self.index_terms.iter().map(String::as_str)
    }

    /// True if the index alone tells which documents fulfil the search.
    pub fn is_decided_by_index(&self) -> bool {
        self.unwanted.is_empty()
            && self.phrases.is_empty()
            && self.unwanted_phrases.is_empty()
            && self.sensitivity == Sensitivity::default()
    }

    /// The words that are sought.
    pub fn terms(&self) -> impl Iterator<Item = &str> {
        self.wanted.iter().map(String::as_str)
    }

    /// The words that must not be there.
    pub fn negated_terms(&self) -> impl Iterator<Item = &str> {
        self.unwanted.iter().map(String::as_str)
    }

    /// The phrases that are sought.
    pub fn phrases(&self) -> &[String] {
        &self.phrases
    }

    /// The phrases that must not be there.
    pub fn negated_phrases(&self) -> &[String] {
        &self.unwanted_phrases
    }

    /// What differences count.
    pub fn sensitivity(&self) -> Sensitivity {
        self.sensitivity
    }

    /// The language of its words.
    pub fn language(&self) -> Language {
        self.language
    }

    /// True if the document fulfils the search.
    pub fn matches(&self, spec: &TextSpec, document: DocRef<'_>) -> Result<bool> {
        Ok(self.has_word(spec, document, &self.wanted)?
            && !self.has_word(spec, document, &self.unwanted)?
            && self.phrases.iter().try_fold(true, |so_far, phrase| {
                Ok::<bool, pando_base::Error>(so_far && self.has_phrase(spec, document, phrase)?)
            })?
            && !self.unwanted_phrases.iter().try_fold(false, |so_far, phrase| {
                Ok::<bool, pando_base::Error>(so_far || self.has_phrase(spec, document, phrase)?)
            })?)
    }

    fn has_word(&self, spec: &TextSpec, document: DocRef<'_>, sought: &BTreeSet<String>) -> Result<bool> {
        if sought.is_empty() {
            return Ok(false);
        }
        spec.some_text(document, &mut |text, language| {
            words(text, language, self.sensitivity, true).iter().any(|word| sought.contains(word))
        })
    }

    /// A phrase may begin and end inside of words.
    fn has_phrase(&self, spec: &TextSpec, document: DocRef<'_>, phrase: &str) -> Result<bool> {
        spec.some_text(document, &mut |text, language| {
            comparable(text, language, self.sensitivity).contains(&comparable(phrase, language, self.sensitivity))
        })
    }
}

/// The text of a search, sorted by what its parts mean.
#[derive(Default)]
struct Parts {
    wanted: String,
    unwanted: String,
    phrases: Vec<String>,
    unwanted_phrases: Vec<String>,
}

impl Parts {
    fn read(search: &str) -> Parts {
        let mut parts = Parts::default();
        let (mut is_negated, mut phrase_start, mut after_blank) = (false, None, true);
        let mut rest = search.char_indices().peekable();
        while let Some((place, letter)) = rest.next() {
            match letter {
                ' ' | '\n' | '\r' | '\u{B}' | '\u{C}' => {
                    after_blank = true;
                    continue;
                }
                '-' => {
                    if phrase_start.is_none() && after_blank {
                        is_negated = true;
                    }
                    after_blank = false;
                }
                '"' => {
                    match phrase_start.take() {
                        Some(start) => {
                            let phrase = search.get(start..place).unwrap_or_default().to_owned();
                            if is_negated { &mut parts.unwanted_phrases } else { &mut parts.phrases }.push(phrase);
                        }
                        None => {
                            // A minus holds up to the next blank.
                            is_negated &= !after_blank;
                            phrase_start = Some(place + 1);
                        }
                    }
                    after_blank = false;
                }
                _ => {
                    let mut end = place + letter.len_utf8();
                    while let Some((next, more)) = rest.peek().copied() {
                        if matches!(more, ' ' | '\n' | '\r' | '\u{B}' | '\u{C}' | '-' | '"') {
                            break;
                        }
                        end = next + more.len_utf8();
                        rest.next();
                    }
                    if !(phrase_start.is_some() && is_negated) {
                        is_negated &= !after_blank;
                        let words = if is_negated { &mut parts.unwanted } else { &mut parts.wanted };
                        words.push_str(search.get(place..end).unwrap_or_default());
                        words.push(' ');
                    }
                    after_blank = false;
                }
            }
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::doc;

    fn query(search: &str) -> TextQuery {
        TextQuery::parse(search, Language::English, Sensitivity::default())
    }

    fn list<'a>(words: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
        words.collect()
    }

    #[test]
    fn u7_searches_have_words_phrases_and_negations() {
        let parsed = query("coffee -shops \"dark roast\" -\"latte art\" - tea the-best");
        assert_eq!(list(parsed.terms()), ["best", "coffe", "dark", "roast", "tea"]);
        assert_eq!(list(parsed.negated_terms()), ["shop"]);
        assert_eq!(
            (parsed.phrases(), parsed.negated_phrases()),
            (&["dark roast".to_owned()][..], &["latte art".to_owned()][..])
        );
    }

    #[test]
    fn u7_documents_match_searches() {
        let spec = TextSpec::parse(doc! { "weights": { "a": 1, "b": 1 } }.view()).unwrap();
        let document = doc! { "a": "The Café of dark roast", "b": "Coffee shops" };
        let matches = |search: &str| query(search).matches(&spec, document.view()).unwrap();
        assert!(matches("coffee") && matches("cafe tea") && matches("\"Dark ROAST\"") && matches("coffee -tea"));
        assert!(!matches("tea") && !matches("\"roast dark\" coffee") && !matches("coffee -shop"));
        assert!(!matches("coffee -\"dark roast\"") && !matches("-coffee") && !matches("the"));
        let exact = Sensitivity { to_case: true, to_diacritics: true };
        let sensitive = |search: &str| TextQuery::parse(search, Language::None, exact).matches(&spec, document.view());
        assert!(sensitive("Café").unwrap() && !sensitive("café").unwrap() && !sensitive("Cafe").unwrap());
    }
}
