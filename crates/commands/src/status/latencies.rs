//! `opLatencies`: how long reads, writes and other commands took. `{opLatencies: {histograms: true}}` asks for the buckets.

use super::StatusSection;
use crate::Invocation;
use pando_doc::{DocBuilder, Value};
use std::sync::Arc;

pub(super) struct Latencies;

impl StatusSection for Latencies {
    fn name(&self) -> &'static str {
        "opLatencies"
    }

    fn fill(&self, invocation: &Invocation, wish: Option<Value<'_>>, section: &mut DocBuilder) {
        let options = wish.and_then(|wish| wish.as_document());
        let with_buckets = options.and_then(|options| options.get("histograms")).is_some_and(|value| value.is_true());
        let ended = invocation.node.data.as_ref().map(|data| Arc::clone(data.sessions.transactions()));
        let transactions = ended.as_ref().map(|counters| &counters.latencies);
        invocation.node.counters.latencies.append_to(transactions, with_buckets, section);
    }
}
