//! From the document of serverStatus to lines of `name{label="value"} number`.
//!
//! A number's name is its path, in snake case and with `pando_` in front. Where a level of the path is a name that depends on the
//! node (commands, kinds of locks), it becomes a label, so that queries can add over it.

use pando_doc::{DocRef, Value};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Paths below which the next name is a label, with the label's name.
const LABELS: &[(&str, &str)] = &[
    ("asserts", "kind"),
    ("locks", "resource"),
    ("metrics_commands", "command"),
    ("metrics_aggStageCounters", "stage"),
    ("metrics_operatorCounters_expressions", "operator"),
    ("metrics_operatorCounters_match", "operator"),
    ("opLatencies", "kind"),
    ("opcounters", "kind"),
    ("opcountersRepl", "kind"),
];

/// Parts of serverStatus that say what another part says.
const LEFT_OUT: &[&str] = &["wiredTiger", "$clusterTime", "operationTime", "ok", "localTime"];

type Samples = BTreeMap<String, Vec<(String, f64)>>;

/// The whole page.
pub(super) fn page(status: DocRef<'_>) -> String {
    let mut samples = Samples::new();
    for section in status.elements().filter(|section| !LEFT_OUT.iter().any(|name| section.name == *name)) {
        collect(&section.name.to_string(), "", section.value, &mut samples);
    }
    let mut page = String::new();
    for (name, values) in &samples {
        // Writing to a string cannot fail.
        let _ = writeln!(page, "# TYPE {name} untyped");
        for (labels, value) in values {
            let _ = writeln!(page, "{name}{labels} {value}");
        }
    }
    page
}

fn collect(path: &str, labels: &str, value: Value<'_>, samples: &mut Samples) {
    let number = match value {
        Value::Document(document) => {
            let label = LABELS.iter().find(|(above, _)| *above == path).filter(|_| labels.is_empty());
            for element in document.elements() {
                let name = element.name.to_string();
                match label {
                    Some((_, label)) => {
                        collect(path, &format!("{{{label}=\"{}\"}}", escaped(&name)), element.value, samples);
                    }
                    None => collect(&format!("{path}_{name}"), labels, element.value, samples),
                }
            }
            return;
        }
        Value::Bool(truth) => f64::from(u8::from(truth)),
        value if value.is_number() => value.to_double().unwrap_or(f64::NAN),
        _ => return,
    };
    samples.entry(metric_name(path)).or_default().push((labels.to_owned(), number));
}

/// "opLatencies_reads_ops" is `pando_op_latencies_reads_ops`.
fn metric_name(path: &str) -> String {
    let mut name = String::from("pando_");
    let mut was_lower = false;
    for letter in path.chars() {
        if letter.is_ascii_uppercase() && was_lower {
            name.push('_');
        }
        was_lower = letter.is_ascii_lowercase() || letter.is_ascii_digit();
        let is_fit = letter.is_ascii_alphanumeric();
        name.push(if is_fit { letter.to_ascii_lowercase() } else { '_' });
    }
    name
}

fn escaped(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::doc;

    #[test]
    fn u11_numbers_become_lines_with_labels() {
        let status = doc! {
            "host": "x",
            "opcounters": { "insert": 5_i64, "query": 7 },
            "metrics": { "commands": { "find": { "failed": 1_i64, "total": 9_i64 }, "a\"b": { "total": 2_i64 } } },
            "opLatencies": { "reads": { "latency": 1.5, "queryableEncryptionLatencyMicros": 2 } },
            "security": { "isOn": true },
            "wiredTiger": { "x": 1 }
        };
        let page = page(status.view());
        let expected = "# TYPE pando_metrics_commands_failed untyped\n\
                        pando_metrics_commands_failed{command=\"find\"} 1\n\
                        # TYPE pando_metrics_commands_total untyped\n\
                        pando_metrics_commands_total{command=\"find\"} 9\n\
                        pando_metrics_commands_total{command=\"a\\\"b\"} 2\n\
                        # TYPE pando_op_latencies_latency untyped\n\
                        pando_op_latencies_latency{kind=\"reads\"} 1.5\n\
                        # TYPE pando_op_latencies_queryable_encryption_latency_micros untyped\n\
                        pando_op_latencies_queryable_encryption_latency_micros{kind=\"reads\"} 2\n\
                        # TYPE pando_opcounters untyped\n\
                        pando_opcounters{kind=\"insert\"} 5\n\
                        pando_opcounters{kind=\"query\"} 7\n\
                        # TYPE pando_security_is_on untyped\n\
                        pando_security_is_on 1\n";
        assert_eq!(page, expected);
    }
}
