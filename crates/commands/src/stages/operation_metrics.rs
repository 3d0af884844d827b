//! `$operationMetrics`: what operations took of storage and processor, one document a database.

use super::{Asked, Make};
use crate::watch::are_summed;
use pando_base::{Error, ErrorCode, Namespace, ParameterSet, Result, ensure};
use pando_doc::Value;
use pando_operation::Operation;
use std::sync::Arc;

pub(super) fn parse(value: Value<'_>, namespace: &Namespace, parameters: &ParameterSet) -> Result<Make> {
    ensure!(
        are_summed(parameters),
        ErrorCode::CommandNotSupported,
        "The aggregateOperationResourceConsumptionMetrics server parameter is not set"
    );
    ensure!(
        namespace.is_collectionless_aggregate() && namespace.database() == "admin",
        ErrorCode::InvalidNamespace,
        "$operationMetrics must be run against the 'admin' database with {{aggregate: 1}}"
    );
    let no_object = || Error::bad_value("The $operationMetrics stage specification must be an object");
    let options = value.as_document().ok_or_else(no_object)?;
    let clear = match options.get("clearMetrics") {
        Some(clear) => clear.is_true(),
        None => {
            ensure!(
                options.is_empty(),
                ErrorCode::BadValue,
                "The $operationMetrics stage specification must be empty or contain valid options"
            );
            false
        }
    };
    Ok(Arc::new(move |asked: &Asked, _: &mut Operation| {
        Ok(asked.node.counters.resources.documents(asked.node.now_ms(), clear))
    }))
}
