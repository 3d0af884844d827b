//! What several commands ask about collections by name.

use crate::Invocation;
use pando_base::{Error, ErrorCode, Namespace, Result, ensure};
use pando_catalog::Collection;
use pando_doc::Value;
use pando_expr::{Features, ParseContext};

pub(super) use crate::crud::check_uuid;

/// How many indexes a collection has, those being built included.
pub(super) fn index_count(collection: &Collection) -> i32 {
    i32::try_from(collection.indexes.len()).unwrap_or(i32::MAX)
}

/// A whole namespace in an argument.
pub(super) fn full_name(value: Value<'_>, field: &str) -> Result<Namespace> {
    // What is null is not given, and then the name is none.
    ensure!(!value.is_nullish(), ErrorCode::InvalidNamespace, "Invalid namespace specified ''");
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

/// How filters of lists are read: nothing in them may need a collection or JavaScript.
pub(super) fn filter_context(invocation: &Invocation) -> ParseContext {
    let features = Features { expr: true, json_schema: true, ..Features::NONE };
    ParseContext::new(invocation.node.now_ms()).with_features(features).without_clocks()
}
