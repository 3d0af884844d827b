//! The languages that text indexes know.

use pando_base::{Error, Result};
use rust_stemmers::{Algorithm, Stemmer};
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::OnceLock;

macro_rules! languages {
    ($($variant:ident, $name:literal, $code:literal, $stemmer:expr;)*) => {
        /// A language. [`Language::None`] has words as they are.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "the names are the documentation")]
        pub enum Language {
            $($variant),*
        }

        /// Every language: itself, its name, its code, its stems.
        const ALL: &[(Language, &str, &str, Option<Algorithm>)] = &[$((Language::$variant, $name, $code, $stemmer)),*];
    };
}

languages! {
    None, "none", "none", None;
    Danish, "danish", "da", Some(Algorithm::Danish);
    Dutch, "dutch", "nl", Some(Algorithm::Dutch);
    English, "english", "en", Some(Algorithm::English);
    Finnish, "finnish", "fi", Some(Algorithm::Finnish);
    French, "french", "fr", Some(Algorithm::French);
    German, "german", "de", Some(Algorithm::German);
    Hungarian, "hungarian", "hu", Some(Algorithm::Hungarian);
    Italian, "italian", "it", Some(Algorithm::Italian);
    Norwegian, "norwegian", "nb", Some(Algorithm::Norwegian);
    Portuguese, "portuguese", "pt", Some(Algorithm::Portuguese);
    Romanian, "romanian", "ro", Some(Algorithm::Romanian);
    Russian, "russian", "ru", Some(Algorithm::Russian);
    Spanish, "spanish", "es", Some(Algorithm::Spanish);
    Swedish, "swedish", "sv", Some(Algorithm::Swedish);
    Turkish, "turkish", "tr", Some(Algorithm::Turkish);
}

/// The stop words of each language, once they were asked for.
static STOP_WORDS: [OnceLock<HashSet<&'static str>>; ALL.len()] = [const { OnceLock::new() }; ALL.len()];

impl Language {
    /// The language of this name or code, in any case.
    pub fn parse(name: &str) -> Result<Language> {
        let lower = name.to_lowercase();
        let found = ALL.iter().find(|(_, known, code, _)| *known == lower || *code == lower);
        found.map(|(language, ..)| *language).ok_or_else(|| {
            let reason = format!("unsupported language: \"{name}\" for text index version 3");
            Error::bad_value(reason)
        })
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.row().map_or("none", |row| row.1)
    }

    fn row(self) -> Option<&'static (Language, &'static str, &'static str, Option<Algorithm>)> {
        ALL.iter().find(|(language, ..)| *language == self)
    }

    /// True for a word, in lower case, that says nothing about what a text is about.
    pub fn is_stop_word(self, word: &str) -> bool {
        let (Some(words), Some((_, _, code, Some(_)))) = (STOP_WORDS.get(self as usize), self.row()) else {
            return false;
        };
        let code = if *code == "nb" { "no" } else { code };
        words.get_or_init(|| stop_words_of(self, code)).contains(word)
    }

    /// The stem of a word in lower case.
    pub(crate) fn stem<'w>(self, word: &'w str) -> Cow<'w, str> {
        match self.row() {
            Some((_, _, _, Some(algorithm))) => Cow::Owned(Stemmer::create(*algorithm).stem(word).into_owned()),
            _ => Cow::Borrowed(word),
        }
    }
}

/// What the list of English words has of contractions that were cut apart: letters and stumps, which are words or names by themselves.
const STUMPS: &[&str] = &[
    "d", "ll", "m", "o", "re", "s", "t", "ve", "y", "ain", "aren", "couldn", "didn", "doesn", "don", "hadn", "hasn",
    "haven", "isn", "ma", "mightn", "mustn", "needn", "shan", "shouldn", "wasn", "weren", "won", "wouldn", "can",
    "will", "just", "now",
];

/// What it lacks beside MongoDB's.
const MORE: &[&str] = &["cannot", "could", "ought", "would"];

fn stop_words_of(language: Language, code: &str) -> HashSet<&'static str> {
    let list = stop_words::lookup(code).unwrap_or_default().iter().copied();
    match language {
        Language::English => list.filter(|word| !STUMPS.contains(word)).chain(MORE.iter().copied()).collect(),
        _ => list.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u7_languages_have_names_stems_and_stop_words() {
        assert_eq!(Language::parse("EN").unwrap(), Language::English);
        assert_eq!(Language::parse("spanish").unwrap(), Language::Spanish);
        assert_eq!(Language::parse("klingon").unwrap_err().code().number(), 2);
        assert_eq!(Language::English.stem("running"), "run");
        assert_eq!(Language::None.stem("running"), "running");
        for (language, ..) in ALL.iter().skip(1) {
            let words = ["the", "og", "de", "ja", "et", "und", "a", "di", "e", "și", "и", "y", "och", "ve", "és"];
            assert!(words.iter().any(|word| language.is_stop_word(word)), "{language:?} has no stop words");
        }
        assert!(!Language::None.is_stop_word("the"));
        assert!(!Language::English.is_stop_word("database") && !Language::English.is_stop_word("d"));
        assert!(Language::English.is_stop_word("don't") && Language::English.is_stop_word("would"));
    }
}
