//! What indexes and the write path need of the query language: partial filters, validators.

use pando_base::{Error, ErrorCode, Result};
use pando_catalog::{Catalog, Collection, Index, IndexDescriptor, MultikeyComponents, Observers, ValidationAction};
use pando_collection::DocumentValidator;
use pando_doc::{Doc, DocBuilder, DocRef, doc};
use pando_expr::matcher::explain_failure;
use pando_expr::{Features, MatchExpression, ParseContext};
use pando_index::{DocumentFilter, IndexHooks, SharedCollator};
use pando_operation::Operation;
use std::sync::Arc;

/// Serves the indexes of a node.
pub struct QueryIndexHooks {
    catalog: Arc<Catalog>,
    observers: Arc<Observers>,
}

impl QueryIndexHooks {
    /// Hooks that write multikey states down in this catalog.
    pub fn new(catalog: &Arc<Catalog>, observers: &Arc<Observers>) -> QueryIndexHooks {
        QueryIndexHooks { catalog: Arc::clone(catalog), observers: Arc::clone(observers) }
    }
}

/// A filter of a partial index.
struct PartialFilter(MatchExpression);

impl DocumentFilter for PartialFilter {
    fn matches(&self, document: DocRef<'_>) -> bool {
        self.0.matches(document)
    }
}

impl IndexHooks for QueryIndexHooks {
    fn filter(
        &self,
        _descriptor: &IndexDescriptor,
        expression: DocRef<'_>,
        _collator: Option<&SharedCollator>,
    ) -> Result<Arc<dyn DocumentFilter>> {
        let context = ParseContext::default().with_features(Features::NONE);
        let parsed = MatchExpression::parse(expression, &context)?.optimize();
        Ok(Arc::new(PartialFilter(parsed)))
    }

    fn collator(&self, collation: DocRef<'_>) -> Result<SharedCollator> {
        let reason = format!("the collation {collation} is not built yet");
        Err(Error::new(ErrorCode::NotImplemented, reason))
    }

    fn set_multikey(
        &self,
        operation: &mut Operation,
        collection: &Collection,
        index: &Index,
        paths: &[MultikeyComponents],
    ) -> Result<()> {
        self.catalog.set_multikey(operation, &*self.observers, collection, index, paths)
    }
}

/// Which document failed, and why.
fn failure_info(validator: DocRef<'_>, document: DocRef<'_>, context: &ParseContext) -> Result<Doc> {
    let mut info = DocBuilder::new();
    info.append_some("failingDocumentId", document.get("_id"));
    info.append("details", explain_failure(validator, document, context)?);
    Ok(info.finish())
}

/// Checks documents with the collection's validator.
pub struct MatchValidator;

impl DocumentValidator for MatchValidator {
    fn validate(&self, operation: &Operation, collection: &Collection, document: DocRef<'_>) -> Result<()> {
        let Some(validator) = &collection.options.validator else { return Ok(()) };
        let now_ms = i64::try_from(operation.env.clock().wall_ms()).unwrap_or(i64::MAX);
        let context = ParseContext::new(now_ms);
        let filter = MatchExpression::parse(validator.view(), &context)?;
        let is_fatal = collection.options.validation_action_or_default() == ValidationAction::Error;
        // What cannot be evaluated is not fulfilled.
        if !is_fatal || filter.try_matches(document).unwrap_or(false) {
            return Ok(());
        }
        let info = failure_info(validator.view(), document, &context)?;
        let error = Error::new(ErrorCode::DocumentValidationFailure, "Document failed validation");
        Err(error.with_details(doc! { "errInfo": info }.into_bytes().into()))
    }
}
