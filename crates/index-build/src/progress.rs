//! How far a phase of a build has come: currentOp shows it at any time, a bar at a terminal follows it, the log tells of it now
//! and then.

use pando_base::{Component, Log, OperationContext, Progress, Severity, log};

/// The log tells of a phase this often.
const TOLD_EVERY_NS: u64 = 3_000_000_000;

/// The bar moves this often.
const DRAWN_EVERY_NS: u64 = 100_000_000;

/// The progress of one phase.
pub(crate) struct Meter {
    what: &'static str,
    /// How much there is to do, as far as that is known.
    total: u64,
    told_ns: u64,
    drawn_ns: u64,
}

impl Meter {
    /// Of a phase that begins now.
    pub(crate) fn new(what: &'static str, total: u64, context: &OperationContext) -> Meter {
        let now_ns = context.now_ns();
        Meter { what, total, told_ns: now_ns, drawn_ns: now_ns }
    }

    /// There is more to do than was known.
    pub(crate) fn set_total(&mut self, total: u64) {
        self.total = total;
    }

    /// So much is done. True if the log was told.
    pub(crate) fn show(&mut self, done: u64, context: &OperationContext, log: &Log) -> bool {
        // What came while the phase went on counts, too.
        let total = self.total.max(done);
        context.describe(|description| description.progress = Some((self.what.to_owned(), done, total)));
        let progress = Progress { what: self.what, done, total };
        let now_ns = context.now_ns();
        if now_ns.saturating_sub(self.drawn_ns) >= DRAWN_EVERY_NS {
            self.drawn_ns = now_ns;
            log.show_progress(u64::from(context.id()), Some(progress));
        }
        if now_ns.saturating_sub(self.told_ns) < TOLD_EVERY_NS {
            return false;
        }
        self.told_ns = now_ns;
        log!(
            log,
            Severity::Info,
            Component::Index,
            51773,
            "progress meter",
            "name" = self.what,
            "done" = done,
            "total" = total,
            "percent" = progress.percent()
        );
        true
    }

    /// The phase is over, or the build has ended in it.
    pub(crate) fn end(context: &OperationContext, log: &Log) {
        context.describe(|description| description.progress = None);
        log.show_progress(u64::from(context.id()), None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_base::{Client, OperationRegistry};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn i9_progress_is_shown_always_and_logged_now_and_then() {
        let now_ns = Arc::new(AtomicU64::new(0));
        let clock = Arc::clone(&now_ns);
        let operations = OperationRegistry::new(Arc::new(move || clock.load(Ordering::Relaxed)));
        let context = operations.start(&Arc::new(Client::internal("test")));
        let mut meter = Meter::new("a phase", 200, &context);
        let mut told = Vec::new();
        for second in 0..10 {
            now_ns.store(second * 1_000_000_000, Ordering::Relaxed);
            if meter.show(second * 10, &context, &Log::silent()) {
                told.push(second);
            }
        }
        assert_eq!(told, [3, 6, 9]);
        let shown = |context: &OperationContext| context.description().progress;
        assert_eq!(shown(&context), Some(("a phase".to_owned(), 90, 200)));
        // More was done than there was at the start.
        meter.show(300, &context, &Log::silent());
        assert_eq!(shown(&context), Some(("a phase".to_owned(), 300, 300)));
        Meter::end(&context, &Log::silent());
        assert_eq!(shown(&context), None);
    }
}
