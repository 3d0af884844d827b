//! From figures to a table, marks against the targets, and JSON.
//!
//! A child process records a figure as one JSON line on its standard output; the parent gathers the lines of all children.

mod metrics;
mod table;
mod targets;

pub use metrics::{METRICS, Metric, RECOVERY_METRICS, SCALE_METRICS, WATCH_METRICS};
pub use table::{print_table, readable};
pub use targets::{ENGINE_TARGETS, RECOVERY_TARGETS, SCALE_TARGETS, WATCH_TARGETS, print_targets};

use crate::Error;
use crate::measure::middle;
use crate::peers::System;
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;

/// One measured value.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Which system, or `workload` for what belongs to none.
    pub system: String,
    /// What was measured.
    pub metric: String,
    /// How much.
    pub value: f64,
    /// Of what.
    pub unit: String,
}

impl Figure {
    fn to_json(&self) -> Value {
        json!({"system": self.system, "metric": self.metric, "value": self.value, "unit": self.unit})
    }

    /// Reads a line that a child wrote.
    pub fn from_line(line: &str) -> Option<Figure> {
        let value: Value = serde_json::from_str(line).ok()?;
        Some(Figure {
            system: value.get("system")?.as_str()?.to_owned(),
            metric: value.get("metric")?.as_str()?.to_owned(),
            value: value.get("value")?.as_f64()?,
            unit: value.get("unit")?.as_str()?.to_owned(),
        })
    }
}

/// Where a child process leaves its figures.
pub struct Recorder {
    system: System,
}

impl Recorder {
    /// For the figures of one system.
    pub fn new(system: System) -> Recorder {
        Recorder { system }
    }

    /// Hands a figure to the parent.
    pub fn record(&self, metric: &str, value: f64) {
        self.write(metric, value, metrics::unit(metric));
    }

    /// Hands over what the system counts itself.
    pub fn figures(&self, figures: Vec<(String, f64)>) {
        for (name, value) in figures {
            self.write(&format!("statistic.{name}"), value, "");
        }
    }

    fn write(&self, metric: &str, value: f64, unit: &str) {
        let figure =
            Figure { system: self.system.name().to_owned(), metric: metric.to_owned(), value, unit: unit.to_owned() };
        let mut out = std::io::stdout().lock();
        // If the parent is gone there is nobody left to tell.
        _ = writeln!(out, "{}", figure.to_json()).and_then(|()| out.flush());
    }
}

/// All figures of a run.
#[derive(Default)]
pub struct Figures(pub Vec<Figure>);

impl Figures {
    /// The value of a metric on a system.
    pub fn value(&self, system: System, metric: &str) -> Option<f64> {
        self.of(system.name(), metric)
    }

    /// The same for a system that is no peer of the engine.
    pub fn of(&self, system: &str, metric: &str) -> Option<f64> {
        let matches = |figure: &&Figure| figure.system == system && figure.metric == metric;
        self.0.iter().rev().find(matches).map(|figure| figure.value)
    }

    /// Adds one that the parent found out itself.
    pub fn add(&mut self, system: &str, metric: &str, value: f64, unit: &str) {
        let (system, metric, unit) = (system.to_owned(), metric.to_owned(), unit.to_owned());
        self.0.push(Figure { system, metric, value, unit });
    }

    /// Of those with the same name on the same system keeps the middle one only, in the place of the first.
    pub fn keep_middles(&mut self) {
        let all = std::mem::take(&mut self.0);
        for figure in &all {
            if self.of(&figure.system, &figure.metric).is_none() {
                let same = |other: &&Figure| other.system == figure.system && other.metric == figure.metric;
                let value = middle(all.iter().filter(same).map(|other| other.value).collect());
                self.add(&figure.system, &figure.metric, value, &figure.unit);
            }
        }
    }

    /// True if the system has any figure.
    pub fn has(&self, system: System) -> bool {
        self.0.iter().any(|figure| figure.system == system.name())
    }

    /// Writes the array that tools read.
    pub fn write_json(&self, path: &Path) -> Result<(), Error> {
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory)?;
        }
        let rows: Vec<String> = self.0.iter().map(|figure| format!("  {}", figure.to_json())).collect();
        std::fs::write(path, format!("[\n{}\n]\n", rows.join(",\n")))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_survives_its_line() {
        let figure = Figure { system: "lmdb".into(), metric: "scan".into(), value: 12.5, unit: "documents/s".into() };
        assert_eq!(Figure::from_line(&figure.to_json().to_string()), Some(figure));
        assert_eq!(Figure::from_line("chatter of a library"), None);
    }

    #[test]
    fn of_several_rounds_the_middle_figure_is_kept() {
        let mut figures = Figures::default();
        for value in [3.0, 9.0, 5.0] {
            figures.add("pando", "find", value, "us");
            figures.add("postgres", "find", 10.0 * value, "us");
        }
        figures.add("pando", "scan", 7.0, "us");
        figures.keep_middles();
        let kept: Vec<_> =
            figures.0.iter().map(|figure| (figure.system.as_str(), figure.metric.as_str(), figure.value)).collect();
        assert_eq!(kept, [("pando", "find", 5.0), ("postgres", "find", 50.0), ("pando", "scan", 7.0)]);
    }
}
