//! What the writing commands ask for, one statement each.

use super::Hint;
use pando_base::{Error, Namespace, Result};
use pando_doc::{Doc, DocRef, OwnedValue};
use pando_oplog::StatementIds;

/// One statement of `update`.
#[derive(Clone, Debug)]
pub struct UpdateRequest {
    /// Where.
    pub namespace: Namespace,
    /// Which documents.
    pub filter: Doc,
    /// What becomes of them: operators, a replacement, or a pipeline as an array.
    pub update: OwnedValue,
    /// Constants of a pipeline (`c`).
    pub constants: Doc,
    /// All that match.
    pub multi: bool,
    /// If none matches, one is made.
    pub upsert: bool,
    /// The one that is made is the constant `new`.
    pub upsert_supplied: bool,
    /// Conditions on elements for `$[name]`.
    pub array_filters: Vec<Doc>,
    /// Which index.
    pub hint: Hint,
    /// How strings are compared.
    pub collation: Doc,
    /// Variables for expressions.
    pub variables: Doc,
    /// Which one, if the first is wanted (`findAndModify`).
    pub sort: Doc,
    /// The validator is left out.
    pub bypass_document_validation: bool,
    /// A replacement's empty timestamps stay empty, instead of becoming the present one.
    pub bypass_empty_timestamp_replacement: bool,
    /// The statements of a retryable write.
    pub statement_ids: StatementIds,
}

impl UpdateRequest {
    /// An update of the first document that matches.
    pub fn new(namespace: Namespace, filter: Doc, update: impl Into<OwnedValue>) -> UpdateRequest {
        UpdateRequest {
            namespace,
            filter,
            update: update.into(),
            constants: Doc::new(),
            multi: false,
            upsert: false,
            upsert_supplied: false,
            array_filters: Vec::new(),
            hint: Hint::None,
            collation: Doc::new(),
            variables: Doc::new(),
            sort: Doc::new(),
            bypass_document_validation: false,
            bypass_empty_timestamp_replacement: false,
            statement_ids: StatementIds::None,
        }
    }

    /// True if the update is a document without operators.
    pub fn is_replacement(&self) -> bool {
        let OwnedValue::Document(doc) = &self.update else { return false };
        doc.view().raw_elements().next().is_none_or(|first| !first.name.starts_with(b"$"))
    }

    /// The document that is given for an upsert.
    pub fn supplied(&self) -> Option<DocRef<'_>> {
        self.constants.get("new").and_then(|new| new.as_document()).filter(|_| self.upsert_supplied)
    }

    /// Checks what can be checked without the collection.
    pub fn validate(&self) -> Result<()> {
        if self.upsert_supplied && !self.upsert {
            let reason = "cannot specify 'upsertSupplied: true' for a non-upsert operation";
            return Err(Error::failed_to_parse(reason));
        }
        if self.upsert_supplied && self.supplied().is_none() {
            let reason = "the parameter 'upsertSupplied' is set to 'true', but no document was supplied";
            return Err(Error::failed_to_parse(reason));
        }
        if self.multi && self.is_replacement() {
            return Err(Error::failed_to_parse("multi update is not supported for replacement-style update"));
        }
        let is_pipeline = matches!(self.update, OwnedValue::Array(_));
        if is_pipeline && !self.array_filters.is_empty() {
            return Err(Error::failed_to_parse("arrayFilters may not be specified for pipeline-style updates"));
        }
        if !is_pipeline && !self.constants.is_empty() {
            let reason = "Constant values may only be specified for pipeline updates";
            return Err(Error::location(51198, reason));
        }
        Ok(())
    }
}

/// One statement of `delete`.
#[derive(Clone, Debug)]
pub struct DeleteRequest {
    /// Where.
    pub namespace: Namespace,
    /// Which documents.
    pub filter: Doc,
    /// All that match.
    pub multi: bool,
    /// Which index.
    pub hint: Hint,
    /// How strings are compared.
    pub collation: Doc,
    /// Variables for expressions.
    pub variables: Doc,
    /// Which one, if the first is wanted (`findAndModify`).
    pub sort: Doc,
    /// The statements of a retryable write.
    pub statement_ids: StatementIds,
}

impl DeleteRequest {
    /// A delete of what matches.
    pub fn new(namespace: Namespace, filter: Doc, multi: bool) -> DeleteRequest {
        DeleteRequest {
            namespace,
            filter,
            multi,
            hint: Hint::None,
            collation: Doc::new(),
            variables: Doc::new(),
            sort: Doc::new(),
            statement_ids: StatementIds::None,
        }
    }
}

/// What `findAndModify` does with the document.
#[derive(Clone, Debug)]
pub enum FindAndModifyChange {
    /// Deletes it.
    Remove,
    /// Updates it.
    Update {
        /// How.
        update: OwnedValue,
        /// If none matches, one is made.
        upsert: bool,
        /// The new version is returned.
        returns_new: bool,
        /// Conditions on elements.
        array_filters: Vec<Doc>,
    },
}

/// `findAndModify`.
#[derive(Clone, Debug)]
pub struct FindAndModifyRequest {
    /// Where.
    pub namespace: Namespace,
    /// Which document.
    pub filter: Doc,
    /// Which of several.
    pub sort: Doc,
    /// Which fields are returned.
    pub fields: Doc,
    /// What is done.
    pub change: FindAndModifyChange,
    /// Which index.
    pub hint: Hint,
    /// How strings are compared.
    pub collation: Doc,
    /// Variables for expressions.
    pub variables: Doc,
    /// The validator is left out.
    pub bypass_document_validation: bool,
    /// A replacement's empty timestamps stay empty.
    pub bypass_empty_timestamp_replacement: bool,
    /// The statements of a retryable write.
    pub statement_ids: StatementIds,
}
