//! The golden tables: what each operator does, one small text file for each family.
//!
//! A block begins with a subject: `match`, `eval`, `fold` (an expression that is evaluated only after it was optimised), `project`, `add`, `update`, `upsert` and its text in extended JSON, perhaps with
//! `filters`, `where` or `shows` lines behind it. Then come cases, `input => expected`. Expected is a value in extended JSON, `yes`, `no`,
//! `missing`, `noop`, or `error` with a code and perhaps the beginning of its message. A case without input is about parsing.
//! Lines that begin with `#` are comments.

#![allow(clippy::unwrap_used, reason = "a failed look-up fails the test that made it")]

use pando_base::Error;
use pando_doc::{Doc, DocRef, JsonFormat, ObjectId, OwnedValue, Value, doc_from_json, value_from_json, value_to_json};
use pando_expr::{Expression, MatchExpression, ParseContext, Projection, ProjectionPolicies, Update, UpdateContext};

/// A subject with what belongs to it.
struct Block<'t> {
    kind: &'t str,
    text: &'t str,
    filters: Vec<Doc>,
    condition: Option<Doc>,
    cases: Vec<(usize, &'t str, &'t str)>,
    shows: Option<(usize, &'t str)>,
}

fn blocks(table: &str) -> Vec<Block<'_>> {
    let mut blocks: Vec<Block<'_>> = Vec::new();
    for (number, line) in table.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        if ["match", "eval", "fold", "project", "add", "update", "upsert"].contains(&word) {
            let block =
                Block { kind: word, text: rest, filters: Vec::new(), condition: None, cases: Vec::new(), shows: None };
            blocks.push(block);
            continue;
        }
        let block = blocks.last_mut().unwrap_or_else(|| panic!("line {}: a case without subject", number + 1));
        match word {
            "filters" => block.filters = array_of_docs(rest),
            "where" => block.condition = Some(json_doc(rest)),
            "shows" => block.shows = Some((number + 1, rest)),
            _ => {
                let (input, expected) = line.split_once("=>").unwrap_or_else(|| panic!("line {}: no =>", number + 1));
                block.cases.push((number + 1, input.trim(), expected.trim()));
            }
        }
    }
    blocks
}

fn json_doc(text: &str) -> Doc {
    doc_from_json(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn json_value(text: &str) -> OwnedValue {
    value_from_json(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn array_of_docs(text: &str) -> Vec<Doc> {
    match json_value(text) {
        OwnedValue::Array(array) => {
            array.values().map(|value| value.as_document().map(DocRef::to_doc).unwrap()).collect()
        }
        other => panic!("filters are an array, not {other}"),
    }
}

fn shown(value: Option<Value<'_>>) -> String {
    value.map_or("missing".to_owned(), |value| value_to_json(value, JsonFormat::Canonical))
}

/// What a case came to, as it would be written in the table.
fn outcome(block: &Block<'_>, input: &str) -> Result<String, Error> {
    let context = ParseContext::new(1_700_000_000_000);
    let doc = if input.is_empty() { Doc::new() } else { json_doc(input) };
    match block.kind {
        "match" => {
            let filter = MatchExpression::parse(json_doc(block.text).view(), &context)?;
            let plain = filter.try_matches(doc.view())?;
            let optimized = filter.clone().optimize();
            assert_eq!(optimized.try_matches(doc.view())?, plain, "optimising changed {} on {doc}", block.text);
            Ok(if plain { "yes" } else { "no" }.to_owned())
        }
        "eval" => {
            let expression = Expression::parse(json_value(block.text).view(), &context)?;
            let plain = expression.evaluate_document(doc.view()).map(|value| shown(value.view()));
            let optimized = expression.clone().optimize();
            let again = optimized.and_then(|folded| Ok(shown(folded.evaluate_document(doc.view())?.view())));
            assert_eq!(again, plain, "folding changed {} on {doc}", block.text);
            plain
        }
        "fold" => {
            let expression = Expression::parse(json_value(block.text).view(), &context)?.optimize()?;
            expression.evaluate_document(doc.view()).map(|value| shown(value.view()))
        }
        "project" => {
            let projection = Projection::parse(json_doc(block.text).view(), ProjectionPolicies::FIND, &context)?;
            let details = match &block.condition {
                Some(filter) => MatchExpression::parse(filter.view(), &context)?.matches_with_details(doc.view())?,
                None => None,
            };
            projection.apply(doc.view(), details.as_ref()).map(|doc| shown(Some(Value::Document(doc.view()))))
        }
        "add" => {
            let projection = Projection::parse_add_fields(json_doc(block.text).view(), &context)?;
            projection.apply(doc.view(), None).map(|doc| shown(Some(Value::Document(doc.view()))))
        }
        "update" => updated(block, doc.view(), &context),
        "upsert" => {
            let update = parse_update(block, &context)?;
            let filter = MatchExpression::parse(doc.view(), &context)?;
            let id = || ObjectId::from_bytes([7; 12]);
            let made = update.upsert_document(&filter, &update_context(), id)?;
            Ok(shown(Some(Value::Document(made.view()))))
        }
        other => panic!("unknown subject {other}"),
    }
}

fn update_context() -> UpdateContext<'static> {
    UpdateContext { now: 1_700_000_000_000, ..UpdateContext::default() }
}

fn parse_update(block: &Block<'_>, context: &ParseContext) -> Result<Update, Error> {
    let filters: Vec<DocRef<'_>> = block.filters.iter().map(Doc::view).collect();
    Update::parse(json_value(block.text).view(), &filters, context)
}

fn updated(block: &Block<'_>, doc: DocRef<'_>, context: &ParseContext) -> Result<String, Error> {
    let update = parse_update(block, context)?;
    let details = match &block.condition {
        Some(filter) => MatchExpression::parse(filter.view(), context)?.matches_with_details(doc)?,
        None => None,
    };
    let array_index = details.as_ref().and_then(|details| details.array_index());
    let outcome = update.apply(doc, &UpdateContext { array_index, ..update_context() })?;
    let is_same = outcome.doc.bytes() == doc.bytes();
    assert_eq!(outcome.is_noop, is_same && !update.is_replacement_without_id(), "{}", block.text);
    if outcome.is_noop { Ok("noop".to_owned()) } else { Ok(shown(Some(Value::Document(outcome.doc.view())))) }
}

fn agrees(found: &Result<String, Error>, expected: &str) -> bool {
    match (found, expected.strip_prefix("error ")) {
        (Ok(_), Some(_)) => false,
        (Ok(found), None) if ["yes", "no", "missing", "noop"].contains(&expected) => found == expected,
        (Ok(found), None) => *found == shown(Some(json_value(expected).view())),
        (Err(_), None) => false,
        (Err(error), Some(expected)) => {
            let (code, reason) = expected.split_once(' ').unwrap_or((expected, ""));
            error.code().number().to_string() == code && error.reason().starts_with(reason)
        }
    }
}

fn run(name: &str, table: &str) {
    let mut wrong = Vec::new();
    let mut count = 0;
    for block in blocks(table) {
        for (line, input, expected) in &block.cases {
            count += 1;
            let found = outcome(&block, input);
            if !agrees(&found, expected) {
                wrong.push(format!(
                    "{name}:{line}: {} {} on {input}\n  expected {expected}\n  found {found:?}",
                    block.kind, block.text
                ));
            }
        }
        if let Some((line, expected)) = block.shows {
            count += 1;
            let context = ParseContext::new(0);
            let found = match block.kind {
                "fold" => {
                    let expression = Expression::parse(json_value(block.text).view(), &context).unwrap();
                    expression.optimize().unwrap().to_value()
                }
                _ => {
                    let filter = MatchExpression::parse(json_doc(block.text).view(), &context).unwrap();
                    OwnedValue::Document(filter.optimize().to_document())
                }
            };
            let found = shown(Some(found.view()));
            if found != shown(Some(json_value(expected).view())) {
                wrong.push(format!("{name}:{line}: {} shows {found}", block.text));
            }
        }
    }
    assert!(count > 0, "{name} has no cases");
    assert!(wrong.is_empty(), "{} of {count} cases:\n{}", wrong.len(), wrong.join("\n"));
}

macro_rules! tables {
    ($($test:ident, $file:literal;)*) => {
        $(#[test]
        fn $test() {
            run($file, include_str!(concat!("golden/", $file, ".txt")));
        })*
    };
}

tables! {
    u4_comparison, "comparison";
    u4_logical, "logical";
    u4_element, "element";
    u4_array_filters, "array_filters";
    u4_evaluation, "evaluation";
    u4_geo, "geo";
    u4_json_schema, "json_schema";
    u4_projection, "projection";
    u5_update_fields, "update_fields";
    u5_update_arrays, "update_arrays";
    u5_update_positional, "update_positional";
    u5_update_forms, "update_forms";
    u6_arithmetic, "arithmetic";
    u6_folding, "folding";
    u6_paths_and_variables, "paths_and_variables";
    u6_conditional, "conditional";
    u6_arrays, "arrays";
    u6_objects_and_sets, "objects_and_sets";
    u6_strings, "strings";
    u6_convert, "convert";
    u6_dates, "dates";
    u6_date_from_parts, "date_from_parts";
    u6_date_arithmetic, "date_arithmetic";
    u6_date_texts, "date_texts";
}
