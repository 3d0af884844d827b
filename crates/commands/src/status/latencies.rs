//! `opLatencies`: how long reads, writes and other commands took. `{opLatencies: {histograms: true}}` asks for the buckets.

use super::StatusSection;
use crate::Invocation;
use pando_doc::{DocBuilder, Value};

pub(super) struct Latencies;

impl StatusSection for Latencies {
    fn name(&self) -> &'static str {
        "opLatencies"
    }

    fn fill(&self, invocation: &Invocation, wish: Option<Value<'_>>, section: &mut DocBuilder) {
        let options = wish.and_then(|wish| wish.as_document());
        let with_buckets = options.and_then(|options| options.get("histograms")).is_some_and(|value| value.is_true());
        invocation.node.counters.latencies.append_to(with_buckets, section);
    }
}
