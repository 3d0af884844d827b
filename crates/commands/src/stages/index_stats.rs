//! `$indexStats`: how often each index of a collection was used.

use super::{Asked, Make, options};
use pando_base::{ErrorCode, Namespace, Result, ensure};
use pando_catalog::Index;
use pando_doc::{Doc, DocBuilder, Value};
use pando_operation::Operation;
use std::sync::Arc;

pub(super) fn parse(value: Value<'_>, namespace: &Namespace) -> Result<Make> {
    let code = ErrorCode::location(28803);
    let options = options("$indexStats", value, code)?;
    ensure!(options.is_empty(), code, "The $indexStats stage specification must be an empty object");
    let namespace = namespace.clone();
    Ok(Arc::new(move |asked: &Asked, operation: &mut Operation| {
        let collection = asked.data()?.collections().open(operation, &namespace)?;
        // Counting began with the server.
        let since_ms = i64::try_from(asked.node.options.started_wall_ms).unwrap_or(i64::MAX);
        let indexes = collection.iter().flat_map(|collection| &collection.indexes);
        Ok(indexes.map(|index| document(index, &asked.node.options.host, since_ms)).collect())
    }))
}

fn document(index: &Index, host: &str, since_ms: i64) -> Doc {
    let mut document = DocBuilder::new();
    document.append("name", index.name());
    document.append("key", &index.descriptor.key_pattern);
    document.append("host", host);
    document.document("accesses", |accesses| {
        accesses.append("ops", i64::try_from(index.usage.get()).unwrap_or(i64::MAX));
        accesses.append("since", Value::DateTime(since_ms));
    });
    if !index.ready {
        document.append("building", true);
    }
    document.append("spec", &index.descriptor.specification);
    document.finish()
}
