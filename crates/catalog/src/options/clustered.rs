//! `clusteredIndex`: documents stored by the value of their cluster key, which is one field and unique. It is `_id`; collections that
//! are not replicated may have another one where the server was started for tests of that.

use crate::index::{ID_INDEX_NAME, is_id_key_pattern};
use pando_base::{Error, ErrorCode, Result, ensure};
use pando_doc::{Doc, DocBuilder, DocRef, Element, Value, doc};

/// How a collection is clustered.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusteredIndex {
    /// `{v, key, name, unique}`.
    pub specification: Doc,
    /// Written as `clusteredIndex: true`: buckets of time series and pre-images.
    pub legacy: bool,
}

impl ClusteredIndex {
    /// What `true` stands for.
    pub fn legacy() -> ClusteredIndex {
        ClusteredIndex { specification: canonical(doc! { "_id": 1_i32 }.view(), ID_INDEX_NAME), legacy: true }
    }

    /// The usual one.
    pub fn unnamed() -> ClusteredIndex {
        ClusteredIndex { specification: canonical(doc! { "_id": 1_i32 }.view(), ID_INDEX_NAME), legacy: false }
    }

    fn key(&self) -> DocRef<'_> {
        self.specification.get("key").and_then(|key| key.as_document()).unwrap_or(DocRef::EMPTY)
    }

    /// The field whose value says where a document lies.
    pub fn field(&self) -> &str {
        self.key().first().and_then(|first| std::str::from_utf8(first.name).ok()).unwrap_or("_id")
    }

    /// True if documents lie by their `_id`.
    pub fn is_by_id(&self) -> bool {
        is_id_key_pattern(self.key())
    }

    /// True if this is the key.
    pub fn has_key(&self, key: DocRef<'_>) -> bool {
        let mut elements = key.elements();
        let is_it = |first: Element<'_>| first.name == self.field() && first.value.to_double() == Some(1.0);
        elements.next().is_some_and(is_it) && elements.next().is_none()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.specification.get("name").and_then(|name| name.as_str()).unwrap_or(ID_INDEX_NAME)
    }

    /// Reads the option; none if it is false.
    pub fn parse(value: Value<'_>) -> Result<Option<ClusteredIndex>> {
        match value {
            Value::Bool(clustered) => Ok(clustered.then(ClusteredIndex::legacy)),
            number if number.is_number() => Ok(number.is_true().then(ClusteredIndex::legacy)),
            Value::Document(specification) => ClusteredIndex::parse_specification(specification).map(Some),
            other => {
                let found = other.value_type();
                let reason = format!(
                    "BSON field 'create.clusteredIndex' is the wrong type '{found}', expected types '[bool, long, int, decimal, double, object]'"
                );
                Err(Error::type_mismatch(reason))
            }
        }
    }

    fn parse_specification(specification: DocRef<'_>) -> Result<ClusteredIndex> {
        for element in specification.elements() {
            let name = element.name;
            let known = ["v", "key", "name", "unique"].iter().any(|field| name == *field);
            ensure!(known, ErrorCode::IDLUnknownField, "BSON field 'clusteredIndex.{name}' is an unknown field.");
        }
        let missing = |field: &str| {
            let reason = format!("BSON field 'clusteredIndex.{field}' is missing but a required field");
            Error::location(40414, reason)
        };
        let given = |field: &str| specification.get(field).filter(|value| !value.is_nullish());
        let key = given("key").ok_or_else(|| missing("key"))?;
        let unique = given("unique").ok_or_else(|| missing("unique"))?;
        let is_flag = matches!(unique, Value::Bool(_)) || unique.is_number();
        ensure!(
            is_flag,
            ErrorCode::TypeMismatch,
            "{}",
            wrong_type("unique", unique, "bool, long, int, decimal, double")
        );
        let version = given("v");
        let is_number = version.is_none_or(|version| version.is_number());
        let found = version.unwrap_or(Value::Null);
        ensure!(is_number, ErrorCode::TypeMismatch, "{}", wrong_type("v", found, "long, int, decimal, double"));
        // A fraction is cut off.
        let is_current = version.is_none_or(|version| version.to_i64_or_zero() == 2);
        ensure!(
            is_current,
            ErrorCode::location(5979704),
            "Cannot create clustered index with specified index version; only v: 2 is supported"
        );
        ensure!(
            unique.is_true(),
            ErrorCode::location(5979700),
            "The clusteredIndex option requires unique: true to be specified"
        );
        let key = key.as_document().ok_or_else(|| Error::type_mismatch("'clusteredIndex.key' has to be a document"))?;
        let field = key.first().map(|first| first.name.to_string()).unwrap_or_default();
        let usual = if is_id_key_pattern(key) { ID_INDEX_NAME.to_owned() } else { format!("{field}_1") };
        // It may even be empty.
        let name = match given("name") {
            None => &usual,
            Some(name) => {
                name.as_str().ok_or_else(|| Error::type_mismatch("'clusteredIndex.name' has to be a string"))?
            }
        };
        Ok(ClusteredIndex { specification: canonical(key, name), legacy: false })
    }

    /// Refuses a key that documents cannot be stored by: it is one field, not one inside of others, in rising order.
    pub fn check_key(&self) -> Result<()> {
        let key = self.key();
        let mut elements = key.elements();
        let (first, second) = (elements.next(), elements.next());
        let (Some(first), None) = (first, second) else {
            return Err(Error::location(6053700, format!("The cluster key has to be a single field: {key}")));
        };
        ensure!(
            !first.name.is_empty() && !self.field().contains('.'),
            ErrorCode::location(6053701),
            "The cluster key cannot be a field inside of others: {key}"
        );
        ensure!(
            first.value.to_double() == Some(1.0),
            ErrorCode::location(6053702),
            "The cluster key has to have the value 1: {key}"
        );
        Ok(())
    }
}

fn wrong_type(field: &str, value: Value<'_>, expected: &str) -> String {
    let found = value.value_type();
    format!("BSON field 'clusteredIndex.{field}' is the wrong type '{found}', expected types '[{expected}]'")
}

/// The form that is stored.
fn canonical(key: DocRef<'_>, name: &str) -> Doc {
    let mut builder = DocBuilder::new();
    builder.append("v", 2);
    builder.append(
        "key",
        if is_id_key_pattern(key) {
            doc! { "_id": 1_i32 }
        } else {
            key.to_doc()
        },
    );
    builder.append("name", name);
    builder.append("unique", true);
    builder.finish()
}
