//! The table for people: a row for each metric, a column for each system, and how ours compares with each peer.

use super::{Figures, Metric};
use crate::peers::System;

const LABEL_WIDTH: usize = 50;
const VALUE_WIDTH: usize = 11;
const RATIO_WIDTH: usize = 7;

/// Prints every row that has a figure. The number after a peer's figure is ours divided by it.
pub fn print_table(figures: &Figures, metrics: &[Metric]) {
    let systems: Vec<System> = System::ALL.into_iter().filter(|system| figures.has(*system)).collect();
    let mut header = format!("{:LABEL_WIDTH$}", "");
    for system in &systems {
        header += &format!(" {:>VALUE_WIDTH$}", system.name());
        if *system != System::Pando {
            header += &format!(" {:>RATIO_WIDTH$}", "ours/it");
        }
    }
    println!("\n{header}\n{}", "-".repeat(header.len()));
    for metric in metrics {
        if let Some(row) = row(figures, metric, &systems) {
            println!("{}", row.trim_end());
        }
    }
}

fn row(figures: &Figures, metric: &Metric, systems: &[System]) -> Option<String> {
    let ours = figures.value(System::Pando, metric.name);
    let mut any = false;
    let mut row = format!("{:LABEL_WIDTH$}", metric.label);
    for system in systems {
        let value = figures.value(*system, metric.name);
        any |= value.is_some();
        let text = value.map_or("-".to_owned(), |value| readable(value, metric.unit));
        row += &format!(" {text:>VALUE_WIDTH$}");
        if *system != System::Pando {
            let ratio = ours.zip(value).filter(|(_, value)| *value > 0.0).map(|(ours, value)| ours / value);
            let text = ratio.map_or(String::new(), |ratio| format!("{ratio:.2}x"));
            row += &format!(" {text:>RATIO_WIDTH$}");
        }
    }
    any.then_some(row)
}

/// A value with its unit, three figures or so.
pub fn readable(value: f64, unit: &str) -> String {
    match unit {
        "bytes" => format!("{:.1} MB", value / 1e6),
        "B" => format!("{value:.0} B"),
        "bytes/s" => format!("{:.0} MB/s", value / 1e6),
        "s" if value < 0.1 => format!("{:.1} ms", value * 1e3),
        "s" => format!("{value:.2} s"),
        "ms" => format!("{value:.1} ms"),
        "us" => format!("{value:.1} us"),
        "ns" => format!("{value:.0} ns"),
        "ratio" => format!("{value:.3}"),
        "calls" | "commits" => format!("{value:.1}"),
        "connections" => format!("{value:.0}"),
        _ if value >= 1e6 => format!("{:.2} M/s", value / 1e6),
        _ if value >= 1e4 => format!("{:.0} k/s", value / 1e3),
        _ => format!("{value:.0} /s"),
    }
}
