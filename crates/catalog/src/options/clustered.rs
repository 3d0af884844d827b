//! `clusteredIndex`: documents stored by the value of their cluster key, which must be `{_id: 1}` and unique.

use crate::index::{ID_INDEX_NAME, is_id_key_pattern};
use pando_base::{Error, ErrorCode, Result, ensure};
use pando_doc::{Doc, DocBuilder, DocRef, Value};

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
        ClusteredIndex { specification: canonical(ID_INDEX_NAME), legacy: true }
    }

    /// The usual one.
    pub fn unnamed() -> ClusteredIndex {
        ClusteredIndex { specification: canonical(ID_INDEX_NAME), legacy: false }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.specification.get("name").and_then(|name| name.as_str()).unwrap_or(ID_INDEX_NAME)
    }

    /// Reads the option; none if it is false.
    pub fn parse(value: Value<'_>) -> Result<Option<ClusteredIndex>> {
        match value {
            Value::Bool(clustered) => Ok(clustered.then(ClusteredIndex::legacy)),
            Value::Document(specification) => ClusteredIndex::parse_specification(specification).map(Some),
            other => {
                let found = other.value_type();
                let reason = format!(
                    "BSON field 'create.clusteredIndex' is the wrong type '{found}', expected types '[bool, object]'"
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
        let key = specification.get("key").ok_or_else(|| missing("key"))?;
        let unique = specification.get("unique").ok_or_else(|| missing("unique"))?;
        let is_current = specification.get("v").is_none_or(|version| version.to_i64_exact() == Some(2));
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
        let is_id = key.as_document().is_some_and(is_id_key_pattern);
        ensure!(
            is_id,
            ErrorCode::InvalidIndexSpecificationOption,
            "The clusteredIndex option is only supported for key: {{_id: 1}}"
        );
        let name = match specification.get("name") {
            None => ID_INDEX_NAME,
            Some(name) => {
                name.as_str().ok_or_else(|| Error::type_mismatch("'clusteredIndex.name' has to be a string"))?
            }
        };
        ensure!(!name.is_empty(), ErrorCode::CannotCreateIndex, "index name cannot be empty");
        Ok(ClusteredIndex { specification: canonical(name), legacy: false })
    }
}

/// The form that is stored.
fn canonical(name: &str) -> Doc {
    let mut builder = DocBuilder::new();
    builder.append("v", 2);
    builder.document("key", |key| key.append("_id", 1));
    builder.append("name", name);
    builder.append("unique", true);
    builder.finish()
}
