//! `$text`: a search in the collection's text index.
//!
//! What it means depends on the index, which is not known here: the planner finds it, and the stage that reads it decides. In the walk over a
//! document the clause is true, since whoever walks got the document from that stage.

use pando_base::{Error, ErrorCode, Result};
use pando_doc::{Doc, DocRef, Value, doc};
use pando_text::{Language, Sensitivity, TextQuery};

/// A search as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextClause {
    search: String,
    language: Option<Language>,
    sensitivity: Sensitivity,
}

impl TextClause {
    pub(super) fn parse(value: Value<'_>) -> Result<TextClause> {
        let Value::Document(fields) = value else { return Err(Error::bad_value("$text expects an object")) };
        let mut known = 1;
        let search = match fields.get("$search") {
            Some(Value::String(search)) => search.to_string(),
            Some(other) => return Err(mismatch("$search", "string", other)),
            None => {
                return Err(Error::new(ErrorCode::NoSuchKey, "Missing expected field \"$search\""));
            }
        };
        let language = match fields.get("$language") {
            None => None,
            Some(Value::String(name)) => {
                known += 1;
                match name.to_string().as_str() {
                    "" => None,
                    name => Some(Language::parse(name).map_err(|error| error.with_code(ErrorCode::BadValue))?),
                }
            }
            Some(other) => return Err(mismatch("$language", "string", other)),
        };
        let mut switch = |name: &str| match fields.get(name) {
            None => Ok(false),
            Some(Value::Bool(on)) => {
                known += 1;
                Ok(on)
            }
            Some(other) => Err(mismatch(name, "boolean", other)),
        };
        let sensitivity =
            Sensitivity { to_case: switch("$caseSensitive")?, to_diacritics: switch("$diacriticSensitive")? };
        if fields.field_count() != known {
            return Err(Error::bad_value("extra fields in $text"));
        }
        Ok(TextClause { search, language, sensitivity })
    }

    /// The search, in the language that it has or else this one.
    pub fn query(&self, default: Language) -> TextQuery {
        TextQuery::parse(&self.search, self.language.unwrap_or(default), self.sensitivity)
    }

    /// As `explain` shows it.
    pub(super) fn to_doc(&self) -> Doc {
        doc! {
            "$search": self.search.as_str(),
            "$language": (self.language.map_or("", Language::name)),
            "$caseSensitive": self.sensitivity.to_case,
            "$diacriticSensitive": self.sensitivity.to_diacritics
        }
    }

    /// True of any document: see the module.
    pub(super) const fn matches(&self, _document: DocRef<'_>) -> bool {
        true
    }
}

fn mismatch(name: &str, expected: &str, found: Value<'_>) -> Error {
    let reason = format!("\"{name}\" had the wrong type. Expected {expected}, found {}", found.value_type());
    Error::type_mismatch(reason)
}
