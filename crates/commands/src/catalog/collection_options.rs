//! The options of `create`, from the request to what the catalog keeps, and what a client may ask for.

use super::collation;
use super::fail_points::MALFORMED_VALIDATORS;
use crate::Invocation;
use crate::arguments::is_generic;
use crate::parameters::ARBITRARY_CLUSTER_KEY;
use pando_base::{Error, ErrorCode, Namespace, Result, ensure};
use pando_catalog::{ClusteredIndex, CollectionOptions, ValidationAction, ValidationLevel};
use pando_doc::{DocBuilder, DocRef, Value, ValueType};
use pando_expr::{Features, MatchExpression, ParseContext};

/// Reads the options from a `create` request.
pub(super) fn options_of(body: DocRef<'_>) -> Result<CollectionOptions> {
    let mut fields = DocBuilder::with_capacity(body.size_bytes());
    for element in body.raw_elements().skip(1).filter(|element| !is_generic(element.name)) {
        // What is null is not given.
        if !matches!(element.value_type, ValueType::Null | ValueType::Undefined) {
            fields.append_raw(element);
        }
    }
    let mut options = CollectionOptions::parse_command(fields.finish().view())?;
    if let Some(given) = &options.collation {
        options.collation = collation::complete(given.view())?;
    }
    if let Some(given) = &options.id_index {
        options.id_index = Some(collation::with_complete(given.view())?);
    }
    options.validator = options.validator.filter(|validator| !validator.is_empty());
    Ok(options)
}

/// Documents lie by their `_id`, or by another field where the server was started for that and nothing is replicated.
fn check_cluster_key(invocation: &Invocation, namespace: &Namespace, clustered: &ClusteredIndex) -> Result<()> {
    if clustered.is_by_id() {
        return Ok(());
    }
    ensure!(
        invocation.node.parameters.get(&ARBITRARY_CLUSTER_KEY),
        ErrorCode::InvalidIndexSpecificationOption,
        "The clusteredIndex option is only supported for key: {{_id: 1}}"
    );
    ensure!(
        !namespace.is_replicated(),
        ErrorCode::location(5979701),
        "The clusteredIndex option of a replicated collection is only supported for key: {{_id: 1}}"
    );
    clustered.check_key()
}

/// Refuses what a client may not ask for.
pub(super) fn check_for_client(
    invocation: &Invocation,
    namespace: &Namespace,
    options: &CollectionOptions,
) -> Result<()> {
    ensure!(!options.temp, ErrorCode::InvalidOptions, "the 'temp' field is an invalid option");
    ensure!(
        options.encrypted_fields.is_none(),
        ErrorCode::NotImplemented,
        "collections with encrypted fields are not built yet"
    );
    if let Some(clustered) = &options.clustered_index {
        ensure!(
            clustered.legacy == namespace.is_timeseries_buckets(),
            ErrorCode::location(5_979_703),
            "The 'clusteredIndex' legacy format {{clusteredIndex: <bool>}} is only supported for specific internal \
             collections and vice versa"
        );
        check_cluster_key(invocation, namespace, clustered)?;
    }
    if let Some(seconds) = options.expire_after_seconds {
        check_expiry_of_documents(seconds, invocation.node.now_ms())?;
    }
    let id_index = options.id_index.as_ref();
    ensure!(
        id_index.is_none() || options.auto_index_id.is_none(),
        ErrorCode::InvalidOptions,
        "'idIndex' is not allowed with 'autoIndexId': {}",
        id_index.map(ToString::to_string).unwrap_or_default()
    );
    ensure!(
        options.auto_index_id != Some(false) || !namespace.is_replicated(),
        ErrorCode::location(50001),
        "autoIndexId:false is not allowed for collection {namespace} because it can be replicated"
    );
    let is_capped_clustered = options.capped && options.is_clustered();
    ensure!(
        !is_capped_clustered || invocation.node.options.test_commands_enabled,
        ErrorCode::location(6127800),
        "Clustered capped collection only available with 'enableTestCommands' server parameter"
    );
    match &options.validator {
        Some(validator) => check_validator(invocation, namespace, validator.view(), is_strict(options)),
        None => Ok(()),
    }
}

/// Documents that lie by their time do not expire before there was any: the seconds are those of an ObjectId.
pub(super) fn check_expiry_of_documents(seconds: i64, now_ms: i64) -> Result<()> {
    ensure!(
        seconds <= now_ms / 1000,
        ErrorCode::InvalidOptions,
        "TTL index 'expireAfterSeconds' option must be within an acceptable range, try a lower number"
    );
    Ok(())
}

/// Whether no document can be there that the validator refuses.
fn is_strict(options: &CollectionOptions) -> bool {
    options.validation_level_or_default() == ValidationLevel::Strict
        && options.validation_action_or_default() == ValidationAction::Error
}

/// Refuses a validator where there may be none, and one that cannot be used. Fields that must be encrypted are for strict
/// validators only.
pub(super) fn check_validator(
    invocation: &Invocation,
    namespace: &Namespace,
    validator: DocRef<'_>,
    is_strict: bool,
) -> Result<()> {
    if validator.is_empty() || MALFORMED_VALIDATORS.should_fail() {
        return Ok(());
    }
    ensure!(
        !namespace.is_system() || namespace.is_timeseries_buckets(),
        ErrorCode::InvalidOptions,
        "Document validators not allowed on system collection {namespace}"
    );
    ensure!(
        !(namespace.is_admin() || namespace.is_local() || namespace.is_config()),
        ErrorCode::InvalidOptions,
        "Document validators are not allowed on collection {namespace} in the {} internal database",
        namespace.database()
    );
    crate::settings::check_kept_expression(&invocation.node.parameters, Value::Document(validator))?;
    let features = Features { expr: true, json_schema: true, encryption: is_strict, ..Features::NONE };
    let mut context = ParseContext::new(invocation.node.now_ms()).with_features(features);
    context.ignores_unknown_keywords =
        invocation.node.parameters.get(&pando_query::limits::UNKNOWN_KEYWORDS_ARE_IGNORED);
    context.cluster_time = invocation.node.replication.cluster_time();
    let with_context = |error: Error| error.context("Parsing of collection validator failed");
    MatchExpression::parse(validator, &context).map(|_| ()).map_err(with_context)
}
