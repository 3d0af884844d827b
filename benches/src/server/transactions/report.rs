//! The table of `./bench txn`, with limits and whether they are met.

use crate::report::{Figures, readable};

/// A row: what people read, the metric, its unit.
const ROWS: &[(&str, &str, &str)] = &[
    ("updates of one document", "plain", "operations/s"),
    ("  in a transaction (2 round trips)", "single", "transactions/s"),
    ("  p99", "single_p99", "us"),
    ("transactions of 4 statements", "transfer", "transactions/s"),
    ("  p50", "transfer_p50", "us"),
    ("  p99", "transfer_p99", "us"),
    ("  processor time of the server", "transfer_cpu", "us"),
    ("  tried again, of all", "transfer_retried", "ratio"),
    ("inserts beside a change stream", "delivery_writes", "operations/s"),
    ("  from sent to delivered, p50", "delivery_p50", "us"),
    ("  p99", "delivery_p99", "us"),
    ("inserts without a lagging reader", "lag_without", "operations/s"),
    ("  with one", "lag_with", "operations/s"),
    ("  events that it was behind at the end", "lag_events", "events"),
];

/// One limit.
struct Mark {
    words: &'static str,
    value: Option<f64>,
    limit: f64,
    /// Whether more is better.
    is_least: bool,
    unit: &'static str,
}

/// Prints both.
pub fn print(figures: &Figures, rate: u64) {
    println!("\n{:44} {:>12} {:>12}", "", "pando", "postgres");
    for (label, metric, unit) in ROWS {
        let show = |system: &str| figures.of(system, metric).map_or("-".to_owned(), |value| shown(value, unit));
        println!("{label:44} {:>12} {:>12}", show("pando"), show("postgres"));
    }
    println!("\ntargets (for information)");
    for mark in marks(figures, rate) {
        println!("  {}", line(&mark));
    }
}

fn shown(value: f64, unit: &str) -> String {
    if unit == "events" { format!("{value:.0}") } else { readable(value, unit) }
}

fn marks(figures: &Figures, rate: u64) -> Vec<Mark> {
    let ours = |metric: &str| figures.of("pando", metric);
    let share = |part: Option<f64>, whole: Option<f64>| Some(part? / whole.filter(|whole| *whole > 0.0)?);
    let transfers = share(ours("transfer"), figures.of("postgres", "transfer"));
    // A delivery at fewer writes says nothing about the limit.
    let is_full = ours("delivery_writes").is_some_and(|writes| writes >= 0.95 * rate as f64);
    vec![
        Mark {
            words: "transactions of one document, of plain writes",
            value: share(ours("single"), ours("plain")),
            limit: 0.4,
            is_least: true,
            unit: "ratio",
        },
        Mark {
            words: "transactions of 4 statements, of PostgreSQL's",
            value: transfers,
            limit: 1.5,
            is_least: true,
            unit: "ratio",
        },
        Mark {
            words: "delivery p99 while the load keeps its rate",
            value: ours("delivery_p99").filter(|_| is_full),
            limit: 10_000.0,
            is_least: false,
            unit: "us",
        },
        Mark {
            words: "what a lagging reader takes from the writers",
            value: ours("lag_cost"),
            limit: 0.1,
            is_least: false,
            unit: "ratio",
        },
    ]
}

fn line(mark: &Mark) -> String {
    let Some(value) = mark.value else { return format!("  -   {}", mark.words) };
    let is_met = if mark.is_least { value >= mark.limit } else { value < mark.limit };
    let (word, side) = (if is_met { "pass" } else { "MISS" }, if mark.is_least { ">=" } else { "<" });
    let (value, limit) = (readable(value, mark.unit), readable(mark.limit, mark.unit));
    format!("{word}  {}: {value} ({side} {limit})", mark.words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_that_was_not_reached_gives_no_mark() {
        let mut figures = Figures::default();
        figures.add("pando", "delivery_p99", 2000.0, "us");
        figures.add("pando", "delivery_writes", 9_900.0, "operations/s");
        let delivery = |rate| line(&marks(&figures, rate)[2]);
        assert!(delivery(10_000).starts_with("pass"));
        assert!(delivery(20_000).contains(" - "));
    }

    #[test]
    fn limits_have_a_side() {
        let mut figures = Figures::default();
        for (metric, value) in [("plain", 100.0), ("single", 39.0), ("lag_cost", 0.2)] {
            figures.add("pando", metric, value, "");
        }
        let marks = marks(&figures, 1);
        assert!(line(&marks[0]).starts_with("MISS") && line(&marks[3]).starts_with("MISS"));
        assert!(line(&marks[1]).contains(" - "), "PostgreSQL is missing");
    }
}
