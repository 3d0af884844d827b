//! Metrics by dotted path.

use super::counter::{Counter, Gauge, ShardedCounter};
use super::histogram::{HistogramSnapshot, LatencyHistogram};
use crate::{ErrorCode, Result, ensure};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// What a metric says.
#[derive(Clone, Debug, PartialEq)]
pub enum MetricValue {
    /// A whole number.
    Long(i64),
    /// A fraction.
    Double(f64),
    /// Yes or no.
    Bool(bool),
    /// A word.
    Text(String),
    /// Latencies.
    Histogram(HistogramSnapshot),
}

/// Something with a value that can be read at any time.
pub trait Metric: Send + Sync {
    /// The value now.
    fn value(&self) -> MetricValue;
}

impl Metric for Counter {
    fn value(&self) -> MetricValue {
        MetricValue::Long(self.get() as i64)
    }
}

impl Metric for ShardedCounter {
    fn value(&self) -> MetricValue {
        MetricValue::Long(self.get() as i64)
    }
}

impl Metric for Gauge {
    fn value(&self) -> MetricValue {
        MetricValue::Long(self.get())
    }
}

impl Metric for LatencyHistogram {
    fn value(&self) -> MetricValue {
        MetricValue::Histogram(self.snapshot())
    }
}

/// A value that is worked out when it is asked for.
impl<F: Fn() -> MetricValue + Send + Sync> Metric for F {
    fn value(&self) -> MetricValue {
        self()
    }
}

/// All metrics of a server. What lies under one prefix is adjacent, so that a reader can build documents as it goes.
#[derive(Default)]
pub struct MetricTree(BTreeMap<String, Arc<dyn Metric>>);

impl MetricTree {
    /// A tree without metrics.
    pub fn new() -> MetricTree {
        MetricTree::default()
    }

    /// Adds a metric. Its path must be free, and neither above nor below another's.
    pub fn add(&mut self, path: &str, metric: Arc<dyn Metric>) -> Result<()> {
        let is_well_formed = path.split('.').all(|part| !part.is_empty());
        ensure!(is_well_formed, ErrorCode::InternalError, "'{path}' is no path of a metric");
        let below = format!("{path}.");
        let next = self.0.range(below.clone()..).next();
        let has_below = next.is_some_and(|(next, _)| next.starts_with(&below));
        let has_above = path.match_indices('.').any(|(dot, _)| self.0.contains_key(&path[..dot]));
        let is_free = !has_below && !has_above && !self.0.contains_key(path);
        ensure!(is_free, ErrorCode::InternalError, "the metric '{path}' collides with another");
        self.0.insert(path.to_owned(), metric);
        Ok(())
    }

    /// Every path with its value now, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, MetricValue)> {
        self.0.iter().map(|(path, metric)| (path.as_str(), metric.value()))
    }

    /// The same under one prefix; paths are still whole.
    pub fn under(&self, prefix: &str) -> impl Iterator<Item = (&str, MetricValue)> {
        let below = format!("{prefix}.");
        let from = self.0.range(below.clone()..);
        from.take_while(move |(path, _)| path.starts_with(&below)).map(|(path, metric)| (path.as_str(), metric.value()))
    }
}

impl fmt::Debug for MetricTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_in_order_with_their_values() {
        let (inserted, open) = (Arc::new(Counter::new()), Arc::new(Gauge::new()));
        let mut tree = MetricTree::new();
        tree.add("metrics.document.inserted", inserted.clone()).unwrap();
        tree.add("metrics.cursor.open", open.clone()).unwrap();
        tree.add("metrics-x", Arc::new(|| MetricValue::Double(0.5))).unwrap();
        inserted.add(3);
        open.set(-1);
        let read: Vec<_> = tree.iter().collect();
        let expected = [
            ("metrics-x", MetricValue::Double(0.5)),
            ("metrics.cursor.open", MetricValue::Long(-1)),
            ("metrics.document.inserted", MetricValue::Long(3)),
        ];
        assert_eq!(read, expected);
        assert_eq!(tree.under("metrics").count(), 2);
        assert_eq!(tree.under("metrics.cursor").next(), Some(("metrics.cursor.open", MetricValue::Long(-1))));
    }

    #[test]
    fn paths_do_not_collide() {
        let mut tree = MetricTree::new();
        tree.add("a.b", Arc::new(Counter::new())).unwrap();
        tree.add("a.b-c.d", Arc::new(Counter::new())).unwrap();
        for path in ["a.b", "a", "a.b.c", "a.b-c", "", "a..b", "x."] {
            assert!(tree.add(path, Arc::new(Counter::new())).is_err(), "{path}");
        }
    }
}
