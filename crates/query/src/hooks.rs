//! What indexes and the write path need of the query language: partial filters, validators.

use crate::ClusterTimeSource;
use crate::limits::{GENERATED_KEYS_DEFAULT, generated_keys_max};
use crate::timeseries::{STRICT_VALIDATOR_DISABLED, is_timeseries, options_of};
use bstr::{BString, ByteSlice};
use pando_base::{Component, Error, ErrorCode, Log, LogValue, ParameterSet, Result, Severity, Uuid, log};
use pando_catalog::{
    Catalog, Collection, CollectionOptions, Index, IndexDescriptor, MultikeyComponents, Observers, ValidationAction,
};
use pando_collation::{Collation, IcuCollator};
use pando_collection::DocumentValidator;
use pando_doc::{Doc, DocBuilder, DocRef, FieldPath, JsonFormat, doc, doc_to_json};
use pando_expr::matcher::explain_failure;
use pando_expr::{Features, MatchExpression, ParseContext};
use pando_index::{DocumentFilter, IndexHooks, IndexInterceptor, Interceptors, SharedCollator};
use pando_operation::Operation;
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::Arc;

/// Serves the indexes of a node.
pub struct QueryIndexHooks {
    catalog: Arc<Catalog>,
    observers: Arc<Observers>,
    interceptors: Arc<Interceptors>,
    generated_keys_max: usize,
}

impl QueryIndexHooks {
    /// Hooks that write multikey states down in this catalog.
    pub fn new(catalog: &Arc<Catalog>, observers: &Arc<Observers>) -> QueryIndexHooks {
        let interceptors = Arc::default();
        let (catalog, observers) = (Arc::clone(catalog), Arc::clone(observers));
        let generated_keys_max = GENERATED_KEYS_DEFAULT;
        QueryIndexHooks { catalog, observers, interceptors, generated_keys_max }
    }

    /// A document may have as many keys as the parameters say.
    #[must_use]
    pub fn within(self, parameters: &ParameterSet) -> QueryIndexHooks {
        QueryIndexHooks { generated_keys_max: generated_keys_max(parameters), ..self }
    }

    /// Keys of indexes that are being built go to these.
    #[must_use]
    pub fn intercepted_by(self, interceptors: &Arc<Interceptors>) -> QueryIndexHooks {
        QueryIndexHooks { interceptors: Arc::clone(interceptors), ..self }
    }
}

/// A filter of a partial index.
struct PartialFilter(MatchExpression);

impl DocumentFilter for PartialFilter {
    fn matches(&self, document: DocRef<'_>) -> bool {
        self.0.matches(document)
    }

    fn roots(&self) -> Option<Vec<BString>> {
        let root = |path: &FieldPath| path.part(0).to_owned();
        self.0.paths().map(|paths| paths.iter().map(root).collect())
    }
}

impl IndexHooks for QueryIndexHooks {
    fn filter(
        &self,
        _descriptor: &IndexDescriptor,
        expression: DocRef<'_>,
        collator: Option<&SharedCollator>,
    ) -> Result<Arc<dyn DocumentFilter>> {
        let context = ParseContext::default().with_features(Features::NONE).with_collator(collator.cloned());
        let parsed = MatchExpression::parse(expression, &context)?.optimize();
        Ok(Arc::new(PartialFilter(parsed)))
    }

    fn generated_keys_max(&self) -> usize {
        self.generated_keys_max
    }

    fn collator(&self, collation: DocRef<'_>) -> Result<SharedCollator> {
        collator(collation)
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

    fn interceptor(&self, index: &Index) -> Option<Arc<dyn IndexInterceptor>> {
        self.interceptors.of(index)
    }
}

/// Which document failed, and why.
fn failure_info(validator: DocRef<'_>, document: DocRef<'_>, context: &ParseContext) -> Result<Doc> {
    let mut info = DocBuilder::new();
    info.append_some("failingDocumentId", document.get("_id"));
    info.append("details", explain_failure(validator, document, context)?);
    Ok(info.finish())
}

/// Variables whose values a filter takes when it is read.
const TIMES: [&[u8]; 2] = [b"$$NOW", b"$$CLUSTER_TIME"];

/// As many validators are kept read.
const READ_VALIDATORS_MAX: usize = 10_000;

/// A validator that was read, and the options that it belongs to.
struct ReadValidator {
    options: Arc<CollectionOptions>,
    filter: MatchExpression,
    context: ParseContext,
}

/// Checks documents with the collection's validator. Each is read once, as long as the collection's options stay as they are
/// and the time does not matter to it.
pub struct MatchValidator {
    read: RwLock<HashMap<Uuid, Arc<ReadValidator>>>,
    parameters: Arc<ParameterSet>,
    cluster_clock: Option<ClusterTimeSource>,
    log: Log,
}

impl MatchValidator {
    /// Says in this log what it would have refused.
    pub fn new(parameters: Arc<ParameterSet>, log: Log) -> MatchValidator {
        MatchValidator { read: RwLock::default(), parameters, cluster_clock: None, log }
    }

    /// Lets validators know the time of the cluster.
    #[must_use]
    pub fn telling_cluster_time(mut self, clock: ClusterTimeSource) -> MatchValidator {
        self.cluster_clock = Some(clock);
        self
    }

    /// The collection's validator, with the collection's collation.
    fn filter(
        &self,
        operation: &Operation,
        collection: &Collection,
        validator: DocRef<'_>,
    ) -> Result<Arc<ReadValidator>> {
        if let Some(known) = self.read.read().get(&collection.uuid)
            && Arc::ptr_eq(&known.options, &collection.options)
        {
            return Ok(Arc::clone(known));
        }
        let now_ms = i64::try_from(operation.env.clock().wall_ms()).unwrap_or(i64::MAX);
        let collation = collection.options.collation.as_ref();
        let collator = collation.map(|collation| collator(collation.view())).transpose()?;
        let mut context = ParseContext::new(now_ms).with_collator(collator);
        context.ignores_unknown_keywords = self.parameters.get(&crate::limits::UNKNOWN_KEYWORDS_ARE_IGNORED);
        context.cluster_time = self.cluster_clock.as_ref().map(|clock| clock()).filter(|time| time.is_some());
        let filter = MatchExpression::parse(validator, &context)?;
        let is_timeless = !TIMES.iter().any(|name| validator.bytes().contains_str(name));
        let validator = Arc::new(ReadValidator { options: Arc::clone(&collection.options), filter, context });
        if !is_timeless {
            return Ok(validator);
        }
        let mut read = self.read.write();
        if read.len() >= READ_VALIDATORS_MAX {
            read.clear();
        }
        read.insert(collection.uuid, Arc::clone(&validator));
        Ok(validator)
    }
}

impl DocumentValidator for MatchValidator {
    fn validate(&self, operation: &Operation, collection: &Collection, document: DocRef<'_>) -> Result<()> {
        let Some(validator) = &collection.options.validator else { return Ok(()) };
        let known = self.filter(operation, collection, validator.view())?;
        // What cannot be evaluated is not fulfilled.
        if known.filter.try_matches(document).unwrap_or(false) {
            check_one_kind(collection, document)?;
            return match is_timeseries(collection) && !self.parameters.get(&STRICT_VALIDATOR_DISABLED) {
                true => check_claims(collection, document),
                false => Ok(()),
            };
        }
        let info = failure_info(validator.view(), document, &known.context)?;
        if collection.options.validation_action_or_default() == ValidationAction::Warn {
            log!(
                self.log,
                Severity::Warning,
                Component::Storage,
                20294,
                "Document would fail validation",
                "namespace" = &collection.namespace,
                "document" = LogValue::Json(doc_to_json(document, JsonFormat::Relaxed)),
                "errInfo" = LogValue::Json(doc_to_json(info.view(), JsonFormat::Relaxed))
            );
            return Ok(());
        }
        let error = Error::new(ErrorCode::DocumentValidationFailure, "Document failed validation");
        Err(error.with_details(doc! { "errInfo": info }.into_bytes().into()))
    }
}

/// A bucket that a client writes is what its id and its version say.
fn check_claims(collection: &Collection, document: DocRef<'_>) -> Result<()> {
    match pando_timeseries::check_claims(document, &options_of(collection)?) {
        None => Ok(()),
        Some(fault) => {
            Err(Error::new(ErrorCode::DocumentValidationFailure, format!("Document failed validation: {fault}")))
        }
    }
}

/// What is known of one kind stays so, or filters on a time series would leave out what they must not.
fn check_one_kind(collection: &Collection, document: DocRef<'_>) -> Result<()> {
    let is_one_kind = is_timeseries(collection) && collection.timeseries_mixed_schema == Some(false);
    if !is_one_kind || !pando_timeseries::has_mixed_schema(document) {
        return Ok(());
    }
    let id = document.get("_id").and_then(|id| id.as_object_id()).map(|id| id.to_string()).unwrap_or_default();
    let reason = format!("Cannot write time-series bucket containing mixed schema data, bucketId: {id}");
    Err(Error::new(ErrorCode::CannotInsertTimeseriesBucketsWithMixedSchema, reason))
}

fn collator(collation: DocRef<'_>) -> Result<SharedCollator> {
    let parsed = Collation::parse(collation)?;
    let collation = parsed.ok_or_else(|| Error::internal("the plain order of bytes has no collator"))?;
    Ok(Arc::new(IcuCollator::new(&collation)?))
}
