//! Figures by name.

use std::collections::BTreeMap;

/// A figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Statistic {
    /// Grows only.
    Counter(u64),
    /// Goes up and down.
    Gauge(i64),
}

/// All figures of an engine, by dotted name with the unit last (`log.synced_bytes`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statistics(pub BTreeMap<String, Statistic>);

impl Statistics {
    /// Adds a counter.
    pub fn counter(&mut self, name: &str, value: u64) {
        self.0.insert(name.to_owned(), Statistic::Counter(value));
    }

    /// Adds a gauge.
    pub fn gauge(&mut self, name: &str, value: i64) {
        self.0.insert(name.to_owned(), Statistic::Gauge(value));
    }

    /// The figure's value, zero if there is none.
    pub fn value(&self, name: &str) -> i64 {
        match self.0.get(name) {
            Some(Statistic::Counter(value)) => *value as i64,
            Some(Statistic::Gauge(value)) => *value,
            None => 0,
        }
    }
}
