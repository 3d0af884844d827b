//! A text cut into words.

use crate::Language;
use crate::fold::{lower, without_diacritics};
use pando_base::operation::count;

/// So many steps are counted for each word: it is folded, looked up and stemmed.
const STEPS_PER_WORD: u64 = 32;

/// What differences of letters count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sensitivity {
    /// Upper and lower case are not the same.
    pub to_case: bool,
    /// Letters with and without marks are not the same.
    pub to_diacritics: bool,
}

/// The words of a text, as an index has them: folded and stemmed, with or without those that say nothing.
pub fn words(text: &str, language: Language, sensitivity: Sensitivity, keeps_stop_words: bool) -> Vec<String> {
    let is_delimiter = |letter: char| is_delimiter(letter, language);
    let mut found = Vec::new();
    for raw in text.split(is_delimiter).filter(|word| !word.is_empty()) {
        count(STEPS_PER_WORD);
        let small = lower(raw, language);
        if !keeps_stop_words && language.is_stop_word(&small) {
            continue;
        }
        let stem = match sensitivity.to_case {
            true => language.stem(raw).into_owned(),
            false => language.stem(&small).into_owned(),
        };
        found.push(match sensitivity.to_diacritics {
            true => stem,
            false => without_diacritics(&stem),
        });
    }
    found
}

/// The text with the differences taken away that do not count: what phrases are looked for in.
pub(crate) fn comparable(text: &str, language: Language, sensitivity: Sensitivity) -> String {
    let folded = if sensitivity.to_case { text.to_owned() } else { lower(text, language) };
    if sensitivity.to_diacritics { folded } else { without_diacritics(&folded) }
}

/// True for what stands between words: blanks, punctuation, signs. In English an apostrophe belongs to its word.
pub(crate) fn is_delimiter(letter: char, language: Language) -> bool {
    if letter.is_ascii() {
        return match letter {
            '\'' => language != Language::English,
            '_' => false,
            other => !other.is_ascii_alphanumeric(),
        };
    }
    letter.is_whitespace() || is_sign(letter)
}

/// Characters of Unicode that have the properties of syntax, of dashes, of quotation marks or of the ends of sentences.
fn is_sign(letter: char) -> bool {
    matches!(letter,
        '\u{80}'..='\u{9F}' | '\u{A1}'..='\u{A7}' | '\u{A9}' | '\u{AB}' | '\u{AC}' | '\u{AE}' | '\u{B0}' | '\u{B1}' | '\u{B6}' | '\u{BB}'
        | '\u{BF}' | '\u{D7}' | '\u{F7}' | '\u{37E}' | '\u{387}' | '\u{589}' | '\u{58A}' | '\u{5BE}' | '\u{5C3}' | '\u{60C}' | '\u{61B}'
        | '\u{61F}' | '\u{6D4}' | '\u{964}' | '\u{965}' | '\u{E5A}' | '\u{E5B}' | '\u{1806}' | '\u{2010}'..='\u{2027}'
        | '\u{2030}'..='\u{203E}' | '\u{2041}'..='\u{2053}' | '\u{2055}'..='\u{205E}' | '\u{2190}'..='\u{245F}' | '\u{2500}'..='\u{2775}'
        | '\u{2794}'..='\u{2BFF}' | '\u{2E00}'..='\u{2E7F}' | '\u{3001}'..='\u{3003}' | '\u{3008}'..='\u{3020}' | '\u{3030}'
        | '\u{FD3E}' | '\u{FD3F}' | '\u{FE45}' | '\u{FE46}' | '\u{FF01}' | '\u{FF0C}'..='\u{FF0E}' | '\u{FF1A}' | '\u{FF1B}' | '\u{FF1F}'
        | '\u{FF61}' | '\u{FF64}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str, language: Language) -> Vec<String> {
        words(text, language, Sensitivity::default(), false)
    }

    #[test]
    fn u7_texts_are_cut_folded_and_stemmed() {
        assert_eq!(cut("Do you see Mark's dog running?", Language::English), ["see", "mark", "dog", "run"]);
        assert_eq!(cut("foo-bar, snake_case 1.5", Language::None), ["foo", "bar", "snake_case", "1", "5"]);
        assert_eq!(cut("¿Dónde está «El Café»?", Language::None), ["donde", "esta", "el", "cafe"]);
        let exact = Sensitivity { to_case: true, to_diacritics: true };
        assert_eq!(words("Café CAFÉ", Language::None, exact, false), ["Café", "CAFÉ"]);
        assert_eq!(cut("", Language::English), Vec::<String>::new());
    }
}
