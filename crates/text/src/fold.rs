//! Case and diacritics.

use crate::Language;
use icu_normalizer::DecomposingNormalizer;

/// The text in lower case, as the language has it.
pub(crate) fn lower(text: &str, language: Language) -> String {
    if language != Language::Turkish {
        return text.to_lowercase();
    }
    // The letter i has a dot, or has none, in both cases.
    text.chars()
        .flat_map(|letter| match letter {
            'I' => vec!['ı'],
            'İ' => vec!['i'],
            other => other.to_lowercase().collect(),
        })
        .collect()
}

/// The text without marks on its letters.
pub(crate) fn without_diacritics(text: &str) -> String {
    if text.is_ascii() {
        return text.to_owned();
    }
    let decomposed = DecomposingNormalizer::new_nfd();
    decomposed.normalize(text).chars().filter(|letter| !is_mark(*letter)).collect()
}

fn is_mark(letter: char) -> bool {
    matches!(letter, '\u{300}'..='\u{36F}' | '\u{1AB0}'..='\u{1AFF}' | '\u{1DC0}'..='\u{1DFF}' | '\u{20D0}'..='\u{20FF}' | '\u{FE20}'..='\u{FE2F}')
}
