//! What a text index has of a document.

use crate::Language;
use crate::tokens::{Sensitivity, words};
use bstr::{BStr, BString, ByteSlice};
use md5::Digest;
use pando_base::{Error, ErrorCode, Result};
use pando_doc::{DocRef, Value};
use std::collections::BTreeMap;

/// Fields without a weight of their own have this.
const DEFAULT_WEIGHT: f64 = 1.0;

/// Longer terms are kept as their beginning and a sum of the whole.
const TERM_SIZE_BYTES_MAX: usize = 224;

/// How deep documents and arrays are looked into.
const DEPTH_MAX: usize = 250;

/// The fields of a text index, their weights and languages.
#[derive(Clone, Debug)]
pub struct TextSpec {
    weights: BTreeMap<BString, f64>,
    /// Every field that is text.
    is_wildcard: bool,
    default_language: Language,
    language_override: BString,
}

/// One text of a document.
struct Found<'d> {
    text: &'d BStr,
    language: Language,
    weight: f64,
}

impl TextSpec {
    /// Reads the specification of an index in its full form.
    pub fn parse(specification: DocRef<'_>) -> Result<TextSpec> {
        let mut weights = BTreeMap::new();
        if let Some(Value::Document(given)) = specification.get("weights") {
            for field in given.elements() {
                weights.insert(field.name.to_owned(), field.value.to_double().unwrap_or(DEFAULT_WEIGHT));
            }
        }
        let default_language = match specification.get("default_language") {
            Some(Value::String(name)) => {
                Language::parse(&name.to_str_lossy()).map_err(|error| error.with_code(ErrorCode::CannotCreateIndex))?
            }
            None => Language::English,
            Some(_) => return Err(Error::location(17263, "default_language needs a string type")),
        };
        let language_override = match specification.get("language_override") {
            Some(Value::String(name)) => name.to_owned(),
            _ => BString::from("language"),
        };
        let is_wildcard = weights.contains_key(BStr::new("$**"));
        Ok(TextSpec { weights, is_wildcard, default_language, language_override })
    }

    /// The language of searches that name none.
    pub fn default_language(&self) -> Language {
        self.default_language
    }

    /// The terms of a document, each with its score.
    pub fn terms(&self, document: DocRef<'_>) -> Result<BTreeMap<String, f64>> {
        let mut scores: BTreeMap<String, f64> = BTreeMap::new();
        self.visit(document, &mut |found| {
            add_scores(&found, &mut scores);
            true
        })?;
        Ok(scores)
    }

    /// Looks at the texts of a document until one is what is sought; true if there is one.
    pub(crate) fn some_text(
        &self,
        document: DocRef<'_>,
        is_sought: &mut dyn FnMut(&str, Language) -> bool,
    ) -> Result<bool> {
        let mut is_found = false;
        self.visit(document, &mut |found| {
            is_found = is_sought(&found.text.to_str_lossy(), found.language);
            !is_found
        })?;
        Ok(is_found)
    }

    /// Calls the visitor for every text, until it has seen enough.
    fn visit<'d>(&self, document: DocRef<'d>, visitor: &mut dyn FnMut(Found<'d>) -> bool) -> Result<()> {
        Walk { spec: self, visitor }.fields(document, self.default_language, BStr::new(""), false, 0).map(|_| ())
    }

    fn language_of(&self, document: DocRef<'_>, inherited: Language) -> Result<Language> {
        match document.get(&self.language_override) {
            None => Ok(inherited),
            Some(Value::String(name)) => Language::parse(&name.to_str_lossy())
                .map_err(|_| Error::location(17262, format!("language override unsupported: {name}"))),
            Some(_) => {
                let reason = "found language override field in document with non-string type";
                Err(Error::location(17261, reason))
            }
        }
    }
}

struct Walk<'s, 'v, 'd> {
    spec: &'s TextSpec,
    visitor: &'v mut dyn FnMut(Found<'d>) -> bool,
}

impl<'d> Walk<'_, '_, 'd> {
    /// False once the visitor has seen enough.
    fn fields(
        &mut self,
        document: DocRef<'d>,
        inherited: Language,
        parent: &BStr,
        is_array: bool,
        depth: usize,
    ) -> Result<bool> {
        if depth > DEPTH_MAX {
            return Ok(true);
        }
        let language = if is_array { inherited } else { self.spec.language_of(document, inherited)? };
        for field in document.elements() {
            if self.spec.is_wildcard && !is_array && self.spec.language_override == field.name {
                continue;
            }
            if field.name.contains(&b'.') || field.name.starts_with(b"$") {
                continue;
            }
            let path = match (parent.is_empty(), is_array) {
                (true, _) => field.name.to_owned(),
                (false, true) => parent.to_owned(),
                (false, false) => BString::from([parent.as_bytes(), field.name.as_bytes()].join(&b"."[..])),
            };
            if !self.value(field.value, language, BStr::new(&path), is_array, depth)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn value(
        &mut self,
        value: Value<'d>,
        language: Language,
        path: &BStr,
        is_in_array: bool,
        depth: usize,
    ) -> Result<bool> {
        let spec = self.spec;
        let weight = spec.weights.get(path).copied();
        let is_wanted = weight.is_some() || spec.is_wildcard;
        match value {
            Value::String(text) if is_wanted => {
                Ok((self.visitor)(Found { text, language, weight: weight.unwrap_or(DEFAULT_WEIGHT) }))
            }
            Value::Document(nested) if spec.is_wildcard || spec.has_below(path) => {
                self.fields(nested, language, path, false, depth + 1)
            }
            Value::Array(array) if spec.is_wildcard || (!is_in_array && (is_wanted || spec.has_below(path))) => {
                self.fields(array.as_doc(), language, path, true, depth + 1)
            }
            _ => Ok(true),
        }
    }
}

impl TextSpec {
    /// True if some weighted field lies below this path.
    fn has_below(&self, path: &BStr) -> bool {
        let prefix = BString::from([path.as_bytes(), b"."].concat());
        let next = self.weights.range(prefix.clone()..).next();
        next.is_some_and(|(field, _)| field.starts_with(&prefix))
    }
}

/// Adds the terms of one text. A word counts less the more often it came before, and more the larger its part of the text is.
fn add_scores(found: &Found<'_>, scores: &mut BTreeMap<String, f64>) {
    struct Tally {
        count: f64,
        frequency: f64,
        step: f64,
    }
    let text = found.text.to_str_lossy();
    let all = words(&text, found.language, Sensitivity::default(), false);
    let mut tallies: BTreeMap<&str, Tally> = BTreeMap::new();
    for word in &all {
        let tally = tallies.entry(word).or_insert(Tally { count: 0.0, frequency: 0.0, step: 0.5 });
        tally.step *= 2.0;
        tally.count += 1.0;
        tally.frequency += 1.0 / tally.step;
    }
    for (word, tally) in tallies {
        let part = 0.5 * tally.count / all.len() as f64 + 0.5;
        let is_whole = text.len() == word.len() && text.eq_ignore_ascii_case(word);
        let adjustment = if is_whole { 1.1 } else { 1.0 };
        *scores.entry(word.to_owned()).or_default() += found.weight * tally.frequency * part * adjustment;
    }
}

/// A term as it stands in keys.
pub fn term_key(term: &str) -> BString {
    let bytes = term.as_bytes();
    let Some(beginning) = bytes.get(..TERM_SIZE_BYTES_MAX).filter(|_| bytes.len() > TERM_SIZE_BYTES_MAX) else {
        return BString::from(term);
    };
    let mut key = BString::from(beginning);
    md5::Md5::digest(bytes).iter().for_each(|byte| key.extend_from_slice(format!("{byte:02x}").as_bytes()));
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::{Doc, doc};

    fn terms(specification: Doc, document: Doc) -> Vec<(String, f64)> {
        TextSpec::parse(specification.view()).unwrap().terms(document.view()).unwrap().into_iter().collect()
    }

    #[test]
    fn u7_terms_have_scores_by_weight_frequency_and_part() {
        let scores = terms(
            doc! { "weights": { "a": 10, "b": 1 } },
            doc! { "a": "coffee", "b": "coffee shop coffee", "c": "tea" },
        );
        let expected =
            [("coffe".to_owned(), 10.0 + 1.5 * (0.5 * 2.0 / 3.0 + 0.5)), ("shop".to_owned(), 0.5 / 3.0 + 0.5)];
        assert_eq!(scores, expected);
        assert_eq!(terms(doc! { "weights": { "a": 1 } }, doc! { "a": "Tea" }), [("tea".to_owned(), 1.1)]);
    }

    #[test]
    fn u7_texts_are_found_in_documents_and_arrays_with_their_languages() {
        let names = |specification: Doc, document: Doc| {
            terms(specification, document).into_iter().map(|(term, _)| term).collect::<Vec<_>>()
        };
        let nested = doc! { "a": [{ "b": "one" }, { "b": ["two", ["three"]] }], "b": "four", "language": "none" };
        assert_eq!(names(doc! { "weights": { "a.b": 1 } }, nested.clone()), ["one", "two"]);
        assert_eq!(names(doc! { "weights": { "$**": 1 } }, nested), ["four", "one", "three", "two"]);
        let languages = doc! { "a": "running", "d": { "a": "running", "lang": "none" } };
        let specification = doc! { "weights": { "a": 1, "d.a": 1 }, "language_override": "lang" };
        assert_eq!(names(specification.clone(), languages), ["run", "running"]);
        let wrong = TextSpec::parse(specification.view()).unwrap().terms(doc! { "a": "x", "lang": 5 }.view());
        assert_eq!(wrong.unwrap_err().code().number(), 17261);
    }

    #[test]
    fn u7_long_terms_are_shortened() {
        assert_eq!(term_key("short"), "short");
        let (one, two) = (term_key(&"x".repeat(300)), term_key(&"x".repeat(301)));
        assert_eq!((one.len(), one == two), (256, false));
    }
}
