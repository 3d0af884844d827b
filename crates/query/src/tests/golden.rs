//! The golden tables of stages: one small text file for each.
//!
//! `docs` gives the documents of the collection `c`, `with` those of another one, both as arrays in extended JSON; they hold until the next
//! `docs`. `run` is a pipeline. Behind it stand the results, one `=>` line for each document in order, or `=> error` with a code
//! and perhaps the beginning of its message, or `=> nothing`. Lines that begin with `#` are comments.

use super::aggregate::run;
use super::support::Fixture;
use pando_doc::{Doc, DocRef, JsonFormat, OwnedValue, doc_from_json, doc_to_json, value_from_json};

fn documents(text: &str) -> Vec<Doc> {
    match value_from_json(text).unwrap_or_else(|error| panic!("{text}: {error}")) {
        OwnedValue::Array(array) => {
            array.values().map(|value| value.as_document().map(DocRef::to_doc).unwrap()).collect()
        }
        other => panic!("an array is needed, not {other}"),
    }
}

fn shown(document: &Doc) -> String {
    doc_to_json(document.view(), JsonFormat::Canonical)
}

/// One pipeline and what is expected of it.
struct Case<'t> {
    line: usize,
    pipeline: &'t str,
    expected: Vec<&'t str>,
}

fn check(fixture: &Fixture, case: &Case<'_>) -> Result<(), String> {
    let found = run(fixture, documents(case.pipeline));
    if let [only] = case.expected[..]
        && let Some(expected) = only.strip_prefix("error ")
    {
        let (code, reason) = expected.split_once(' ').unwrap_or((expected, ""));
        return match found {
            Err(error) if error.code().number().to_string() == code && error.reason().starts_with(reason) => Ok(()),
            other => Err(format!("expected {expected}, found {other:?}")),
        };
    }
    let found = found.map_err(|error| error.to_string())?;
    let found: Vec<String> = found.iter().map(shown).collect();
    let wanted = case.expected.iter().filter(|line| **line != "nothing");
    let wanted: Vec<String> = wanted.map(|line| shown(&doc_from_json(line).expect(line))).collect();
    if found == wanted {
        return Ok(());
    }
    Err(format!("expected\n    {}\n  found\n    {}", wanted.join("\n    "), found.join("\n    ")))
}

fn check_table(name: &str, table: &str) {
    let mut fixture = Fixture::new(&[]);
    let mut cases: Vec<Case<'_>> = Vec::new();
    let mut wrong = Vec::new();
    let mut count = 0;
    let mut finish = |fixture: &Fixture, cases: &mut Vec<Case<'_>>| {
        for case in cases.drain(..) {
            count += 1;
            if let Err(why) = check(fixture, &case) {
                wrong.push(format!("{name}:{}: {}\n  {why}", case.line, case.pipeline));
            }
        }
    };
    for (number, line) in table.lines().enumerate() {
        let line = line.trim();
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "" | "#" => {}
            "docs" => {
                finish(&fixture, &mut cases);
                fixture = Fixture::new(&[]);
                fixture.insert(&documents(rest));
            }
            "with" => {
                let (other, rest) = rest.split_once(' ').expect("a name and documents");
                fixture.create_with(other, &documents(rest));
            }
            "run" => cases.push(Case { line: number + 1, pipeline: rest, expected: Vec::new() }),
            "=>" => cases.last_mut().expect("a pipeline before what is expected").expected.push(rest),
            _ => panic!("{name}:{}: {line}", number + 1),
        }
    }
    finish(&fixture, &mut cases);
    assert!(count > 0, "{name} has no cases");
    assert!(wrong.is_empty(), "{} of {count} cases:\n{}", wrong.len(), wrong.join("\n"));
}

macro_rules! tables {
    ($($test:ident, $file:literal;)*) => {
        $(#[test]
        fn $test() {
            check_table($file, include_str!(concat!("golden/", $file, ".txt")));
        })*
    };
}

tables! {
    u6_bucket, "bucket";
    u6_bucket_auto, "bucket_auto";
    u6_densify, "densify";
    u6_documents, "documents";
    u6_fill, "fill";
    u6_graph_lookup, "graph_lookup";
    u6_group, "group";
    u6_lookup, "lookup";
    u6_no_effect, "no_effect";
    u6_optimize, "optimize";
    u6_set_window_fields, "set_window_fields";
}
