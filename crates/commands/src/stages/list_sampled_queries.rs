//! `$listSampledQueries`: the queries that were sampled to find a shard key. No node of ours takes samples, so there are none.

use super::{Asked, Make};
use pando_base::{ErrorCode, Namespace, Result, ensure};
use pando_doc::Value;
use pando_operation::Operation;
use std::sync::Arc;

pub(super) fn parse(value: Value<'_>, namespace: &Namespace) -> Result<Make> {
    ensure!(
        namespace.is_collectionless_aggregate() && namespace.database() == "admin",
        ErrorCode::InvalidNamespace,
        "$listSampledQueries must be run against the 'admin' database with {{aggregate: 1}}"
    );
    super::options("$listSampledQueries", value, ErrorCode::location(6876001))?;
    Ok(Arc::new(|_: &Asked, _: &mut Operation| Ok(Vec::new())))
}
