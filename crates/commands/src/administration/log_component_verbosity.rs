//! `logComponentVerbosity`: how much each part of the server says, as a document nested like the parts are.
//!
//! `{verbosity: 1, replication: {verbosity: 2, election: {verbosity: -1}}}`; -1 means as much as the part above. What a
//! document does not name stays as it is.

use pando_base::{Component, Error, Log, ParameterValue, Result, bail};
use pando_doc::{Doc, DocBuilder, DocRef, Element, doc_from_json};

/// The name of the level in each part's document.
const LEVEL: &str = "verbosity";
/// As much as the part above.
const INHERITED: i32 = -1;

/// What all parts are set to.
pub fn shown_verbosity(log: &Log) -> Doc {
    let mut out = DocBuilder::new();
    append(log, Component::Default, &mut out);
    out.finish()
}

fn append(log: &Log, component: Component, out: &mut DocBuilder) {
    out.append(LEVEL, log.verbosity(component).map_or(INHERITED, i32::from));
    for child in children(component) {
        out.document(child.setting(), |below| append(log, child, below));
    }
}

fn children(component: Component) -> impl Iterator<Item = Component> {
    let all = Component::ALL.iter().copied();
    all.filter(move |child| child.parent() == component && *child != Component::Default)
}

/// What a document says: parts and their levels, none for as much as the part above.
fn read(document: DocRef<'_>, component: Component, found: &mut Vec<(Component, Option<u8>)>) -> Result<()> {
    for element in document.elements() {
        if *element.name == *LEVEL {
            found.push((component, level_of(element, component)?));
            continue;
        }
        let Some(child) = children(component).find(|child| *child.setting().as_bytes() == **element.name) else {
            return Err(Error::bad_value(format!("Invalid component name {}", element.name)));
        };
        match element.value.as_document() {
            Some(below) => read(below, child, found)?,
            // A level in the place of a part's document.
            None if element.value.is_number() => found.push((child, level_of(element, component)?)),
            None => {
                let found = element.value.value_type().name();
                let reason = format!("Invalid type {found} for component settings of {}", element.name);
                return Err(Error::bad_value(reason));
            }
        }
    }
    Ok(())
}

/// A level: an integer from -1 on, of any type of number.
fn level_of(element: Element<'_>, outer: Component) -> Result<Option<u8>> {
    let number = element.value.as_number().map(|number| number.truncated_i64());
    let is_finite = element.value.to_double().is_some_and(f64::is_finite);
    let level = number.filter(|_| is_finite).and_then(|number| i32::try_from(number).ok());
    let place = outer.setting();
    let Some(level) = level else {
        bail!(
            pando_base::ErrorCode::BadValue,
            "Expected {place}.{} to be safely cast to integer, but could not: {}",
            element.name,
            element.value
        );
    };
    if level < INHERITED {
        bail!(
            pando_base::ErrorCode::BadValue,
            "Expected {place}.{} to be greater than or equal to -1, but found {level}",
            element.name
        );
    }
    Ok((level >= 0).then(|| u8::try_from(level).unwrap_or(u8::MAX)))
}

/// Checks a document.
pub(crate) fn check_verbosity(bytes: &[u8]) -> Result<()> {
    read(checked(bytes)?.view(), Component::Default, &mut Vec::new())
}

fn checked(bytes: &[u8]) -> Result<Doc> {
    if bytes.is_empty() { Ok(Doc::new()) } else { Doc::parse(bytes.to_vec()) }
}

/// Reads a document from the command line.
pub(crate) fn verbosity_from_text(text: &str) -> Result<ParameterValue> {
    Ok(ParameterValue::Document(doc_from_json(text)?.bytes().to_vec()))
}

/// Has the log heed a document that was checked.
pub fn apply_verbosity(log: &Log, bytes: &[u8]) {
    let mut found = Vec::new();
    if let Ok(document) = checked(bytes)
        && read(document.view(), Component::Default, &mut found).is_ok()
    {
        found.into_iter().for_each(|(component, level)| log.set_verbosity(component, level));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::doc;

    #[test]
    fn u15_parts_of_the_log_are_set_one_by_one() {
        let log = Log::silent();
        let wish =
            doc! { "verbosity": 1, "replication": { "verbosity": 2, "election": { "verbosity": 3 } }, "query": 0 };
        check_verbosity(wish.bytes()).unwrap();
        apply_verbosity(&log, wish.bytes());
        assert_eq!(log.verbosity(Component::Default), Some(1));
        assert_eq!(log.verbosity(Component::ReplicationElection), Some(3));
        assert_eq!((log.verbosity(Component::Query), log.verbosity(Component::Storage)), (Some(0), None));
        apply_verbosity(&log, doc! { "replication": { "verbosity": -1 } }.bytes());
        let shown = shown_verbosity(&log);
        assert_eq!(shown.get("verbosity").unwrap().to_double(), Some(1.0));
        let replication = shown.get("replication").unwrap().as_document().unwrap();
        assert_eq!(replication.get("verbosity").unwrap().to_double(), Some(-1.0));
        let election = replication.get("election").unwrap().as_document().unwrap();
        assert_eq!(election.get("verbosity").unwrap().to_double(), Some(3.0));
    }

    #[test]
    fn u15_parts_that_there_are_not_are_refused() {
        for wrong in [
            doc! { "nonsense": { "verbosity": 1 } },
            doc! { "query": "x" },
            doc! { "verbosity": "x" },
            doc! { "query": { "verbosity": (1_i64 << 31) } },
            doc! { "query": { "verbosity": (f64::NAN) } },
            doc! { "query": -2 },
        ] {
            assert_eq!(check_verbosity(wrong.bytes()).unwrap_err().code(), pando_base::ErrorCode::BadValue);
        }
    }
}
