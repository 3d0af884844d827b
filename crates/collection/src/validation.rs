//! Whether a document may be stored: its size, its depth, and what the collection's validator says.

use crate::write_path::WritePath;
use pando_base::{Result, ensure};
use pando_catalog::{Collection, ValidationLevel};
use pando_doc::{DocRef, USER_SIZE_BYTES_MAX, check_user_depth, too_large};
use pando_operation::Operation;

/// Decides whether a document is as its collection wants it. Lies above: it knows the query language and the log.
pub trait DocumentValidator: Send + Sync {
    /// `DocumentValidationFailure` if the document is not as the collection's validator says, and its action is "error". With
    /// the action "warn" the log is told, and all is well. Called only for collections with a validator that is on.
    fn validate(&self, operation: &Operation, collection: &Collection, document: DocRef<'_>) -> Result<()>;
}

/// Where there are no validators.
pub struct AcceptAll;

impl DocumentValidator for AcceptAll {
    fn validate(&self, _operation: &Operation, _collection: &Collection, _document: DocRef<'_>) -> Result<()> {
        Ok(())
    }
}

impl WritePath {
    /// A new document meets the validator.
    pub(crate) fn validate_insert(
        &self,
        operation: &Operation,
        collection: &Collection,
        document: DocRef<'_>,
    ) -> Result<()> {
        match level(collection) {
            ValidationLevel::Off => Ok(()),
            _ => self.validator.validate(operation, collection, document),
        }
    }

    /// The new version of a document meets the validator. At the level "moderate" a document that was bad may stay bad.
    pub(crate) fn validate_update(
        &self,
        operation: &Operation,
        collection: &Collection,
        old: DocRef<'_>,
        new: DocRef<'_>,
    ) -> Result<()> {
        let level = level(collection);
        if level == ValidationLevel::Off {
            return Ok(());
        }
        let Err(error) = self.validator.validate(operation, collection, new) else { return Ok(()) };
        if level == ValidationLevel::Moderate && self.validator.validate(operation, collection, old).is_err() {
            return Ok(());
        }
        Err(error)
    }
}

/// When the collection's validator is to be asked.
fn level(collection: &Collection) -> ValidationLevel {
    match collection.options.validator {
        None => ValidationLevel::Off,
        Some(_) => collection.options.validation_level_or_default(),
    }
}

/// A document that a client wants to store is not too large.
pub(crate) fn check_size(document: DocRef<'_>) -> Result<()> {
    if document.size_bytes() > USER_SIZE_BYTES_MAX {
        return Err(too_large(document.size_bytes(), USER_SIZE_BYTES_MAX));
    }
    Ok(())
}

/// The result of an update is neither too large nor nested too deeply.
pub(crate) fn check_updated(document: DocRef<'_>) -> Result<()> {
    ensure!(
        document.size_bytes() <= USER_SIZE_BYTES_MAX,
        pando_base::ErrorCode::BSONObjectTooLarge,
        "Resulting document after update is larger than {USER_SIZE_BYTES_MAX}"
    );
    check_user_depth(document)
}
