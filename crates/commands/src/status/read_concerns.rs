//! `readConcernCounters`: with which read concerns reads come, in transactions and outside.

use super::StatusSection;
use crate::Invocation;
use pando_base::{Counter, ShardedCounter};
use pando_doc::{DocBuilder, DocRef, Value};

/// Reads by their concern.
#[derive(Debug, Default)]
pub struct ReadConcernCounters {
    outside: Levels,
    inside: Levels,
}

#[derive(Debug, Default)]
struct Levels {
    /// Those that give none, where the deployment has no default of its own: nearly all.
    implicit: ShardedCounter,
    default_local: Counter,
    default_available: Counter,
    default_majority: Counter,
    local: Counter,
    available: Counter,
    majority: Counter,
    linearizable: Counter,
    snapshot_with_time: Counter,
    snapshot_without_time: Counter,
}

impl ReadConcernCounters {
    /// Counts a read.
    pub fn count(&self, concern: Option<DocRef<'_>>, is_in_transaction: bool) {
        let levels = if is_in_transaction { &self.inside } else { &self.outside };
        let Some((concern, level)) = concern.and_then(|concern| Some((concern, text(concern, "level")?))) else {
            levels.implicit.increment();
            return;
        };
        let is_default = text(concern, "provenance") == Some("customDefault");
        let counter = match (level, is_default) {
            ("local", true) => &levels.default_local,
            ("available", true) => &levels.default_available,
            ("majority", true) => &levels.default_majority,
            ("local", false) => &levels.local,
            ("available", false) => &levels.available,
            ("majority", false) => &levels.majority,
            ("snapshot", _) if concern.contains("atClusterTime") => &levels.snapshot_with_time,
            ("snapshot", _) => &levels.snapshot_without_time,
            ("linearizable", _) => &levels.linearizable,
            _ => return,
        };
        counter.increment();
    }
}

fn text<'a>(concern: DocRef<'a>, name: &str) -> Option<&'a str> {
    concern.get(name)?.as_str()
}

/// The section.
pub(super) struct ReadConcerns;

impl StatusSection for ReadConcerns {
    fn name(&self) -> &'static str {
        "readConcernCounters"
    }

    fn fill(&self, invocation: &Invocation, _: Option<Value<'_>>, section: &mut DocBuilder) {
        let counters = &invocation.node.counters.read_concerns;
        section.document("nonTransactionOps", |out| append(&counters.outside, false, out));
        section.document("transactionOps", |out| append(&counters.inside, true, out));
    }
}

fn append(levels: &Levels, is_in_transaction: bool, out: &mut DocBuilder) {
    let long = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let by_default = [
        ("local", &levels.default_local),
        ("available", &levels.default_available),
        ("majority", &levels.default_majority),
    ];
    let none = levels.implicit.get() + by_default.iter().map(|(_, counter)| counter.get()).sum::<u64>();
    out.append("none", long(none));
    out.document("noneInfo", |info| {
        info.document("CWRC", |out| {
            by_default.iter().for_each(|(name, counter)| out.append(*name, long(counter.get())))
        });
        info.document("implicitDefault", |out| {
            out.append("local", long(levels.implicit.get()));
            out.append("available", 0_i64);
        });
    });
    out.append("local", long(levels.local.get()));
    if !is_in_transaction {
        out.append("available", long(levels.available.get()));
    }
    out.append("majority", long(levels.majority.get()));
    out.document("snapshot", |out| {
        out.append("withClusterTime", long(levels.snapshot_with_time.get()));
        out.append("withoutClusterTime", long(levels.snapshot_without_time.get()));
    });
    if !is_in_transaction {
        out.append("linearizable", long(levels.linearizable.get()));
    }
}
