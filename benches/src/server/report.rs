//! The table, a row for each workload and number of connections, and the marks against the targets.

use super::workloads::Workload;
use crate::report::{Figures, readable};

const PEER: &str = "postgres";
const LABEL_WIDTH: usize = 24;
const VALUE_WIDTH: usize = 7;
const PEER_WIDTH: usize = 8;
const RATIO_WIDTH: usize = 6;

/// A group of columns.
struct Column {
    measure: &'static str,
    title: &'static str,
    scale: f64,
    decimals: usize,
    has_ratio: bool,
}

impl Column {
    fn width(&self) -> usize {
        VALUE_WIDTH + 1 + PEER_WIDTH + if self.has_ratio { 1 + RATIO_WIDTH } else { 0 }
    }
}

const COLUMNS: &[Column] = &[
    Column { measure: "throughput", title: "operations/s", scale: 1.0, decimals: 0, has_ratio: true },
    Column { measure: "p50", title: "p50, us", scale: 1.0, decimals: 0, has_ratio: false },
    Column { measure: "p99", title: "p99, us", scale: 1.0, decimals: 0, has_ratio: true },
    Column { measure: "cpu", title: "server CPU, us/op", scale: 1.0, decimals: 1, has_ratio: true },
    Column { measure: "written", title: "written, B/op", scale: 1.0, decimals: 0, has_ratio: false },
    Column { measure: "memory", title: "memory, MB", scale: 1e-6, decimals: 0, has_ratio: false },
];

/// Metrics that belong to no workload.
const SINGLES: &[(&str, &str, &str)] = &[
    ("start", "start until the first insert", "s"),
    ("rest_memory", "memory at rest", "bytes"),
    ("load_throughput", "load, durable batches", "documents/s"),
    ("load_cpu", "  server CPU a document", "us"),
    ("load_written", "  written, of sent", "ratio"),
    ("loaded_memory", "  memory after it", "bytes"),
    ("stop", "stop", "s"),
];

/// Prints what was measured. `ours` is the system in the first column.
pub fn print_table(figures: &Figures, ours: &str, workloads: &[Workload], connections: &[usize]) {
    println!();
    println!("{}", cells("", |column| format!("{:^1$}", column.title, column.width())));
    let header = cells("connections", |column| triple(ours, PEER, "ratio", column));
    println!("{header}\n{}", "-".repeat(header.len()));
    for workload in workloads {
        for count in connections {
            let label = format!("{:20}{count:>4}", workload.label());
            let name = format!("{}_{count}", workload.name());
            println!("{}", cells(&label, |column| cell(figures, ours, &name, column)));
        }
    }
    println!();
    for (metric, label, unit) in SINGLES {
        let (first, second) = (figures.of(ours, metric), figures.of(PEER, metric));
        if first.or(second).is_some() {
            let show = |value: Option<f64>| value.map_or("-".to_owned(), |value| readable(value, unit));
            println!("{label:32} {:>12} {:>12} {:>7}", show(first), show(second), ratio(first, second));
        }
    }
    println!("  (ratio: ours / {PEER}'s. An operation of insertMany is a document, its latency is a batch's.");
    println!("   written: bytes passed to write calls; memory: what processes share is counted once)");
}

fn cells(label: &str, cell: impl Fn(&Column) -> String) -> String {
    let row = COLUMNS.iter().fold(format!("{label:LABEL_WIDTH$}"), |row, column| format!("{row} |{}", cell(column)));
    row.trim_end().to_owned()
}

fn triple(ours: &str, peer: &str, ratio: &str, column: &Column) -> String {
    let ratio = if column.has_ratio { format!(" {ratio:>RATIO_WIDTH$}") } else { String::new() };
    format!("{ours:>VALUE_WIDTH$} {peer:>PEER_WIDTH$}{ratio}")
}

fn cell(figures: &Figures, ours: &str, name: &str, column: &Column) -> String {
    let metric = format!("{name}_{}", column.measure);
    let (first, second) = (figures.of(ours, &metric), figures.of(PEER, &metric));
    let show = |value: Option<f64>| {
        value.map_or("-".to_owned(), |value| format!("{:.*}", column.decimals, value * column.scale))
    };
    triple(&show(first), &show(second), &ratio(first, second), column)
}

fn ratio(first: Option<f64>, second: Option<f64>) -> String {
    let ratio = first.zip(second).filter(|(_, second)| *second > 0.0).map(|(first, second)| first / second);
    ratio.map_or(String::new(), |ratio| format!("{ratio:.2}x"))
}

/// What a figure of ours is held against.
enum Bound {
    MoreThanPeer(f64),
    NotOverPeer(f64),
    NotOver(f64),
}

/// One line of the list.
struct Target {
    metric: &'static str,
    bound: Bound,
    unit: &'static str,
    words: &'static str,
}

const fn throughput(metric: &'static str, factor: f64, words: &'static str) -> Target {
    Target { metric, bound: Bound::MoreThanPeer(factor), unit: "operations/s", words }
}

const fn of_peer(metric: &'static str, factor: f64, words: &'static str) -> Target {
    Target { metric, bound: Bound::NotOverPeer(factor), unit: "us", words }
}

const fn at_most(metric: &'static str, limit: f64, unit: &'static str, words: &'static str) -> Target {
    Target { metric, bound: Bound::NotOver(limit), unit, words }
}

const TARGETS: &[Target] = &[
    throughput("find_16_throughput", 1.5, "find by _id, 16 connections >= 1.5x PostgreSQL"),
    of_peer("find_16_cpu", 0.5, "  its server CPU <= 0.5x PostgreSQL"),
    of_peer("find_16_p99", 1.0, "  its p99 <= PostgreSQL"),
    throughput("ycsb_a_16_throughput", 1.5, "YCSB A, 16 connections >= 1.5x PostgreSQL"),
    of_peer("ycsb_a_16_cpu", 0.5, "  its server CPU <= 0.5x PostgreSQL"),
    of_peer("ycsb_a_16_p99", 1.0, "  its p99 <= PostgreSQL"),
    throughput("ycsb_b_16_throughput", 1.5, "YCSB B, 16 connections >= 1.5x PostgreSQL"),
    of_peer("ycsb_b_16_cpu", 0.5, "  its server CPU <= 0.5x PostgreSQL"),
    of_peer("ycsb_b_16_p99", 1.0, "  its p99 <= PostgreSQL"),
    throughput("ycsb_c_16_throughput", 1.5, "YCSB C, 16 connections >= 1.5x PostgreSQL"),
    of_peer("ycsb_c_16_cpu", 0.5, "  its server CPU <= 0.5x PostgreSQL"),
    of_peer("ycsb_c_16_p99", 1.0, "  its p99 <= PostgreSQL"),
    throughput("insert_many_1_throughput", 3.0, "bulk insert, 1 connection >= 3x PostgreSQL"),
    throughput("insert_many_16_throughput", 3.0, "bulk insert, 16 connections >= 3x PostgreSQL"),
    of_peer("insert_many_16_p99", 1.0, "  its p99 <= PostgreSQL"),
    of_peer("update_16_p99", 1.0, "update by _id, 16 connections: p99 <= PostgreSQL"),
    of_peer("insert_16_p99", 1.0, "insert, 16 connections: p99 <= PostgreSQL"),
    at_most("find_16_cpu", 15.0, "us", "find by _id <= 15 us of server CPU"),
    at_most("insert_16_cpu", 25.0, "us", "insert <= 25 us of server CPU"),
    at_most("load_written", 2.2, "ratio", "load: written <= 2.2 of sent, checkpoint included"),
    at_most("rest_memory", 50e6, "bytes", "memory at rest <= 50 MB"),
    at_most("start", 0.3, "s", "start until the first insert <= 0.3 s"),
];

/// Prints a mark for each target.
pub fn print_targets(figures: &Figures, ours: &str) {
    println!("\ntargets (for information)");
    for target in TARGETS {
        println!("  {}", line(figures, ours, target));
    }
}

fn line(figures: &Figures, ours: &str, target: &Target) -> String {
    let peer = figures.of(PEER, target.metric);
    let (limit, more_is_better) = match target.bound {
        Bound::MoreThanPeer(factor) => (peer.map(|peer| factor * peer), true),
        Bound::NotOverPeer(factor) => (peer.map(|peer| factor * peer), false),
        Bound::NotOver(limit) => (Some(limit), false),
    };
    let Some((value, limit)) = figures.of(ours, target.metric).zip(limit) else {
        return format!("  -   {}", target.words);
    };
    let reached = if more_is_better { value >= limit } else { value <= limit };
    let mark = if reached { "pass" } else { "MISS" };
    format!("{mark}  {}: {} (limit {})", target.words, readable(value, target.unit), readable(limit, target.unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(metric: &str) -> &'static Target {
        TARGETS.iter().find(|target| target.metric == metric).unwrap()
    }

    #[test]
    fn a_missing_peer_gives_no_mark() {
        let mut figures = Figures::default();
        figures.add("pando", "find_16_throughput", 150.0, "operations/s");
        figures.add("pando", "find_16_p99", 20.0, "us");
        assert!(line(&figures, "pando", target("find_16_throughput")).starts_with("  -"));
        figures.add(PEER, "find_16_throughput", 100.0, "operations/s");
        figures.add(PEER, "find_16_p99", 10.0, "us");
        assert!(line(&figures, "pando", target("find_16_throughput")).starts_with("pass"));
        assert!(line(&figures, "pando", target("find_16_p99")).starts_with("MISS"));
        assert!(line(&figures, "target", target("find_16_p99")).starts_with("  -"));
    }

    #[test]
    fn targets_are_about_rows_of_the_table() {
        for target in TARGETS {
            let of_workload = Workload::ALL.into_iter().any(|workload| {
                COLUMNS.iter().any(|column| {
                    [1, 16]
                        .map(|count| format!("{}_{count}_{}", workload.name(), column.measure))
                        .contains(&target.metric.to_owned())
                })
            });
            assert!(of_workload || SINGLES.iter().any(|single| single.0 == target.metric), "{}", target.metric);
        }
    }
}
