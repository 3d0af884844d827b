//! The metrics as a document: paths become nesting.

use crate::CommandTable;
use pando_base::{Metric, MetricTree, MetricValue, Result};
use pando_doc::{DocBuilder, Open};
use std::sync::Arc;

/// Appends every metric of the tree, nested by the parts of its path.
pub fn append_metrics(tree: &MetricTree, reply: &mut DocBuilder) {
    let mut open: Vec<(&str, Open)> = Vec::new();
    for (path, value) in tree.iter() {
        let mut parts: Vec<&str> = path.split('.').collect();
        let leaf = parts.pop().unwrap_or_default();
        let shared = open.iter().zip(&parts).take_while(|((name, _), part)| name == *part).count();
        while open.len() > shared {
            if let Some((_, nested)) = open.pop() {
                reply.end(nested);
            }
        }
        for part in parts.iter().skip(shared) {
            open.push((part, reply.begin_document(part)));
        }
        append(leaf, value, reply);
    }
    while let Some((_, nested)) = open.pop() {
        reply.end(nested);
    }
}

fn append(name: &str, value: MetricValue, reply: &mut DocBuilder) {
    match value {
        MetricValue::Long(number) => reply.append(name, number),
        MetricValue::Double(number) => reply.append(name, number),
        MetricValue::Bool(truth) => reply.append(name, truth),
        MetricValue::Text(text) => reply.append(name, text),
        MetricValue::Histogram(histogram) => reply.document(name, |document| {
            document.append("latency", histogram.sum_micros as i64);
            document.append("ops", histogram.count as i64);
        }),
    }
}

/// Adds `metrics.commands` to a tree: how often each command ran and failed.
pub fn register_commands(table: &CommandTable, tree: &mut MetricTree) -> Result<()> {
    for entry in table.entries() {
        let path = |leaf: &str| format!("metrics.commands.{}.{leaf}", entry.row.name);
        tree.add(&path("failed"), Arc::clone(&entry.counters.failed) as Arc<dyn Metric>)?;
        tree.add(&path("total"), Arc::clone(&entry.counters.total) as Arc<dyn Metric>)?;
    }
    tree.add("metrics.commands.<UNKNOWN>", Arc::clone(&table.unknown) as Arc<dyn Metric>)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_base::Counter;
    use pando_doc::doc;

    #[test]
    fn paths_become_nesting() {
        let mut tree = MetricTree::new();
        for path in ["a.b.c", "a.b.d", "a.x", "m", "z.y.x"] {
            tree.add(path, Arc::new(Counter::new())).unwrap();
        }
        let mut reply = DocBuilder::new();
        append_metrics(&tree, &mut reply);
        let expected =
            doc! { "a": { "b": { "c": 0_i64, "d": 0_i64 }, "x": 0_i64 }, "m": 0_i64, "z": { "y": { "x": 0_i64 } } };
        assert_eq!(reply.finish(), expected);
    }
}
