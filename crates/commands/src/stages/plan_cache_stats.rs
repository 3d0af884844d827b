//! `$planCacheStats`: the plans of a collection's queries that have won, and how.

use super::{Asked, Make};
use pando_base::{ErrorCode, Namespace, Result, bail, ensure};
use pando_doc::{Doc, DocBuilder, Value};
use pando_operation::Operation;
use pando_query::{CachedPlan, plan_cache_key, query_hash, shape_of};
use std::sync::Arc;

pub(super) fn parse(value: Value<'_>, namespace: &Namespace) -> Result<Make> {
    let found = value.value_type().name();
    let Value::Document(options) = value else {
        bail!(ErrorCode::FailedToParse, "$planCacheStats value must be an object. Found: {found}");
    };
    ensure!(
        options.is_empty(),
        ErrorCode::FailedToParse,
        "$planCacheStats parameters object must be empty. Found: {found}"
    );
    let namespace = namespace.clone();
    Ok(Arc::new(move |asked: &Asked, operation: &mut Operation| {
        let data = asked.data()?;
        let Some(collection) = data.collections().open(operation, &namespace)? else {
            bail!(ErrorCode::location(50933), "collection '{namespace}' does not exist")
        };
        let indexes = pando_query::indexes_of(&collection);
        let mut entries = data.query.plan_cache.entries(&collection);
        entries.sort_by_key(|(_, entry)| entry.story.created_ms);
        let host = &asked.node.options.host;
        Ok(entries.iter().map(|(key, entry)| document(key, indexes, entry, host)).collect())
    }))
}

fn document(key: &str, indexes: u64, entry: &CachedPlan, host: &str) -> Doc {
    let story = &entry.story;
    let mut document = DocBuilder::new();
    document.append("version", "1");
    document.append("queryHash", query_hash(shape_of(key)).as_str());
    document.append("planCacheKey", plan_cache_key(key, indexes).as_str());
    document.append("isActive", entry.is_active);
    document.append("works", i64::try_from(entry.works).unwrap_or(i64::MAX));
    document.append("timeOfCreation", Value::DateTime(story.created_ms));
    if story.is_told {
        document.append("createdFromQuery", &story.created_from);
        document.append("cachedPlan", &story.plan);
        document.array("creationExecStats", |trials| story.trials.iter().for_each(|trial| trials.push(trial)));
        document.array("candidatePlanScores", |scores| story.scores.iter().for_each(|score| scores.push(*score)));
    }
    document.append("indexFilterSet", story.has_index_filter);
    let size_bytes = key.len() + entry.signature.len() + size_of::<CachedPlan>() + story_size_bytes(story);
    document.append("estimatedSizeBytes", i64::try_from(size_bytes).unwrap_or(i64::MAX));
    document.append("host", host);
    document.finish()
}

fn story_size_bytes(story: &pando_query::PlanStory) -> usize {
    let trials: usize = story.trials.iter().map(Doc::size_bytes).sum();
    trials + story.plan.size_bytes() + story.created_from.size_bytes() + story.scores.len() * size_of::<f64>()
}
