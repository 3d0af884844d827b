//! The filter of a partial index on measurements, as a filter on buckets.

use crate::pipeline::Facts;
use pando_base::{Error, Result};
use pando_doc::{Doc, DocRef};
use pando_expr::matcher::Node;
use pando_expr::{Features, MatchExpression, ParseContext};
use pando_timeseries::TimeseriesOptions;

/// The filter that every bucket fulfils which has a measurement that fulfils this one, and whether it is on the meta value alone. A part
/// that says nothing of buckets is refused: the index would have all of them.
pub fn filter_on_buckets(filter: DocRef<'_>, options: &TimeseriesOptions) -> Result<(Doc, bool)> {
    let context = ParseContext::default().with_features(Features::NONE);
    let parsed = MatchExpression::parse(filter, &context)?.optimize();
    let facts = Facts { options, is_same_collation: true, has_one_schema: true, are_ids_in_order: false };
    let parts = match parsed.root() {
        Node::And(parts) => parts.clone(),
        other => vec![other.clone()],
    };
    let mut is_on_meta = true;
    let mut on_buckets = Vec::with_capacity(parts.len());
    for part in parts {
        is_on_meta &= facts.on_meta(&part).is_some();
        on_buckets.push(facts.on_bucket(&part).ok_or_else(|| {
            let shown = MatchExpression::from_node(part, None).to_document();
            let reason = "Error translating non-metadata time-series predicate to operate on buckets";
            Error::location(5_916_301, format!("{reason}: {shown}"))
        })?);
    }
    let rewritten = MatchExpression::from_node(Node::And(on_buckets), None).optimize();
    Ok((rewritten.to_document(), is_on_meta))
}
