//! What several commands ask about collections by name.

use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_catalog::Collection;
use pando_doc::Value;

pub(super) use crate::crud::check_uuid;

/// How many indexes a collection has, those being built included.
pub(super) fn index_count(collection: &Collection) -> i32 {
    i32::try_from(collection.indexes.len()).unwrap_or(i32::MAX)
}

/// A whole namespace in an argument.
pub(super) fn full_name(value: Value<'_>, field: &str) -> Result<Namespace> {
    let Some(text) = value.as_str() else {
        let found = value.value_type().name();
        let reason = format!("BSON field '{field}' is the wrong type '{found}', expected type 'string'");
        return Err(Error::type_mismatch(reason));
    };
    let invalid = |_| Error::new(ErrorCode::InvalidNamespace, format!("Invalid namespace specified '{text}'"));
    let namespace = Namespace::parse(text).map_err(invalid)?;
    namespace.validate()?;
    Ok(namespace)
}
