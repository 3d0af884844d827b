//! `$_internalApplyOplogUpdate` in updates by pipeline: the change is one as the oplog has it, which this crate does not know. Who
//! parses gives the functions that do.

use pando_base::{Error, Result};
use pando_doc::{Doc, DocRef, Element, Value};

/// What is done about changes as the oplog has them.
#[derive(Clone, Copy, Debug)]
pub struct OplogUpdates {
    /// An error unless it is one.
    pub check: fn(DocRef<'_>) -> Result<()>,
    /// The document after the change.
    pub apply: fn(DocRef<'_>, DocRef<'_>) -> Result<Doc>,
}

/// The change that the stage is about.
pub fn parse_oplog_update(element: Element<'_>) -> Result<DocRef<'_>> {
    let Value::Document(specification) = element.value else {
        let reason = format!(
            "Argument to {} stage must be an object, but found type: {}",
            element.name,
            element.value.value_type()
        );
        return Err(Error::location(6315901, reason));
    };
    let mut update = None;
    for field in specification.elements() {
        if field.name != "oplogUpdate" {
            let reason = format!("BSON field '{}.{}' is an unknown field.", element.name, field.name);
            return Err(Error::location(40415, reason));
        }
        let Value::Document(given) = field.value else {
            let reason = format!(
                "BSON field '{}.oplogUpdate' is the wrong type '{}', expected type 'object'",
                element.name,
                field.value.value_type()
            );
            return Err(Error::type_mismatch(reason));
        };
        update = Some(given);
    }
    let missing = || {
        let reason = format!("BSON field '{}.oplogUpdate' is missing but a required field", element.name);
        Error::location(40414, reason)
    };
    update.ok_or_else(missing)
}
