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
        let latencies = &invocation.node.counters.latencies;
        let all = [
            ("reads", &latencies.reads),
            ("writes", &latencies.writes),
            ("commands", &latencies.commands),
            ("transactions", &latencies.transactions),
        ];
        for (name, histogram) in all {
            let found = histogram.snapshot();
            section.document(name, |document| {
                if with_buckets {
                    document.array("histogram", |array| {
                        for (micros, count) in &found.buckets {
                            array.document(|bucket| {
                                bucket.append("micros", *micros as i64);
                                bucket.append("count", *count as i64);
                            });
                        }
                    });
                }
                document.append("latency", found.sum_micros as i64);
                document.append("ops", found.count as i64);
            });
        }
    }
}
