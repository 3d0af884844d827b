//! Collations as clients write them, and as they are kept: with every field, and the version of the data that sorts.

use crate::Data;
use pando_base::{Error, ErrorCode, Result, bail, ensure};
use pando_doc::{Doc, DocBuilder, DocRef, Value};

/// The version of the Unicode data whose order is kept in indexes.
const VERSION: &str = "57.1";

/// Checks a collation and completes it; none for the simple one, which compares bytes and is never kept.
pub(super) fn complete(data: &Data, collation: DocRef<'_>) -> Result<Option<Doc>> {
    let Some(completed) = expanded(collation)? else { return Ok(None) };
    // A collation that cannot be used is refused now, not by the first write.
    data.write_path().indexing().hooks().collator(completed.view())?;
    Ok(Some(completed))
}

fn expanded(collation: DocRef<'_>) -> Result<Option<Doc>> {
    for element in collation.elements() {
        ensure!(
            FIELDS.iter().any(|(name, _)| element.name == *name)
                || element.name == "locale"
                || element.name == "version",
            ErrorCode::IDLUnknownField,
            "BSON field 'collation.{}' is an unknown field.",
            element.name
        );
    }
    let locale = match collation.get("locale") {
        Some(Value::String(locale)) => locale,
        Some(other) => return Err(wrong_type("locale", other, "string")),
        None => bail!(ErrorCode::location(40414), "BSON field 'collation.locale' is missing but a required field"),
    };
    if locale == "simple" {
        ensure!(
            collation.elements().all(|element| element.name == "locale" || element.name == "version"),
            ErrorCode::BadValue,
            "If 'locale' is 'simple' no other fields should be present in: {collation}"
        );
        return Ok(None);
    }
    let mut builder = DocBuilder::new();
    builder.append("locale", Value::String(locale));
    for (name, default) in FIELDS {
        append_field(&mut builder, name, default, collation.get(name))?;
    }
    builder.append("version", VERSION);
    Ok(Some(builder.finish()))
}

/// A field's kind and default.
enum Field {
    Flag,
    Strength,
    /// One of these; the first is the default.
    Name(&'static [&'static str]),
}

/// The fields in the order in which they are kept.
const FIELDS: &[(&str, Field)] = &[
    ("caseLevel", Field::Flag),
    ("caseFirst", Field::Name(&["off", "upper", "lower"])),
    ("strength", Field::Strength),
    ("numericOrdering", Field::Flag),
    ("alternate", Field::Name(&["non-ignorable", "shifted"])),
    ("maxVariable", Field::Name(&["punct", "space"])),
    ("normalization", Field::Flag),
    ("backwards", Field::Flag),
];

fn append_field(builder: &mut DocBuilder, name: &str, field: &Field, given: Option<Value<'_>>) -> Result<()> {
    match field {
        Field::Flag => match given {
            None => builder.append(name, false),
            Some(Value::Bool(flag)) => builder.append(name, flag),
            Some(number) if number.is_number() => builder.append(name, number.is_true()),
            Some(other) => return Err(wrong_type(name, other, "bool")),
        },
        Field::Strength => {
            let strength = match given {
                None => 3,
                Some(given) => given.to_i64_exact().ok_or_else(|| wrong_type(name, given, "int"))?,
            };
            ensure!(
                (1..=5).contains(&strength),
                ErrorCode::location(51024),
                "BSON field 'strength' value must be >= 1 and <= 5, actual value '{strength}'"
            );
            builder.append(name, strength as i32);
        }
        Field::Name(allowed) => {
            let chosen = match given {
                None => allowed.first().copied().unwrap_or_default(),
                Some(given) => given.as_str().ok_or_else(|| wrong_type(name, given, "string"))?,
            };
            ensure!(
                allowed.contains(&chosen),
                ErrorCode::BadValue,
                "Enumeration value '{chosen}' for field 'collation.{name}' is not a valid value."
            );
            builder.append(name, chosen);
        }
    }
    Ok(())
}

fn wrong_type(name: &str, found: Value<'_>, expected: &str) -> Error {
    let found = found.value_type().name();
    Error::type_mismatch(format!(
        "BSON field 'collation.{name}' is the wrong type '{found}', expected type '{expected}'"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::doc;

    #[test]
    fn u9_a_collation_is_kept_with_all_its_fields() {
        let expected = doc! {
            "locale": "fr", "caseLevel": false, "caseFirst": "off", "strength": 2, "numericOrdering": false,
            "alternate": "non-ignorable", "maxVariable": "punct", "normalization": false, "backwards": true,
            "version": "57.1",
        };
        let given = doc! { "backwards": true, "locale": "fr", "strength": 2.0 };
        assert_eq!(expanded(given.view()).unwrap(), Some(expected));
        assert_eq!(expanded(doc! { "locale": "simple" }.view()).unwrap(), None);
    }

    #[test]
    fn u9_what_is_no_collation_is_refused() {
        for (given, code) in [
            (doc! {}, 40414),
            (doc! { "locale": 1 }, 14),
            (doc! { "locale": "fr", "strength": 6 }, 51024),
            (doc! { "locale": "fr", "caseFirst": "x" }, 2),
            (doc! { "locale": "fr", "colour": 1 }, 40415),
            (doc! { "locale": "simple", "strength": 1 }, 2),
        ] {
            assert_eq!(expanded(given.view()).unwrap_err().code().number(), code, "{given}");
        }
    }
}
