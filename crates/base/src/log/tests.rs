//! Lines in both forms, verbosity, rings.

use super::*;
use crate::{Error, ErrorCode, Namespace, Timestamp, Uuid, log};
use parking_lot::Mutex;
use std::sync::Arc;

const TIME_MS: u64 = 1_589_999_920_604;

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<(String, String)>>>);

impl LogSink for Lines {
    fn write(&self, line: &LogLine, json: &str) {
        self.0.lock().push((json.to_owned(), line.to_text()));
    }
}

fn logged() -> (Log, Lines) {
    let lines = Lines::default();
    (Log::new(Arc::new(|| TIME_MS), Box::new(lines.clone())), lines)
}

fn attributes(value: impl Into<LogValue>) -> String {
    let (log, lines) = logged();
    log!(log, Severity::Info, Component::Test, 1, "x", "v" = value);
    let json = lines.0.lock().pop().unwrap().0;
    serde_json::from_str::<serde_json::Value>(&json).unwrap();
    json.split_once("\"attr\":{\"v\":").unwrap().1.strip_suffix("}}").unwrap().to_owned()
}

#[test]
fn a_line_is_mongodbs_json() {
    let (log, lines) = logged();
    let log = log.with_context("listener");
    log!(
        log,
        Severity::Info,
        Component::Network,
        22943,
        "Connection accepted",
        "remote" = "[::1]:5",
        "connectionId" = 7
    );
    log!(log, Severity::Debug(1), Component::Network, 1, "not wanted");
    let lines = lines.0.lock();
    let [(json, text)] = &lines[..] else { panic!("{lines:?}") };
    let expected = concat!(
        r#"{"t":{"$date":"2020-05-20T18:38:40.604+00:00"},"s":"I",  "c":"NETWORK",  "id":22943,   "ctx":"listener","#,
        r#""msg":"Connection accepted","attr":{"remote":"[::1]:5","connectionId":7}}"#
    );
    assert_eq!(json, expected);
    let expected =
        r#"2020-05-20 18:38:40.604 I  NETWORK  [listener] Connection accepted: remote="[::1]:5", connectionId=7"#;
    assert_eq!(text, expected);
}

#[test]
fn values_are_json() {
    assert_eq!(attributes("a\"b\\c\n\u{1}\u{7f}é"), r#""a\"b\\c\n\u0001\u007fé""#);
    assert_eq!(attributes(u64::MAX), "18446744073709551615");
    assert_eq!(attributes(-3_i64), "-3");
    assert_eq!(attributes(1.0), "1.0");
    assert_eq!(attributes(f64::NEG_INFINITY), r#"{"$numberDouble":"-Infinity"}"#);
    assert_eq!(attributes(None::<bool>), "null");
    assert_eq!(attributes(LogValue::Json(r#"{"a":1}"#.to_owned())), r#"{"a":1}"#);
    assert_eq!(attributes(vec![LogValue::Bool(true), LogValue::Null]), "[true,null]");
    assert_eq!(attributes(&Namespace::parse("a.b").unwrap()), r#""a.b""#);
    assert_eq!(attributes(Timestamp::new(5, 6)), r#"{"$timestamp":{"t":5,"i":6}}"#);
    let uuid = r#"{"uuid":{"$uuid":"00000000-0000-0000-0000-000000000000"}}"#;
    assert_eq!(attributes(Uuid::default()), uuid);
    let error = r#"{"code":2,"codeName":"BadValue","errmsg":"no"}"#;
    assert_eq!(attributes(&Error::new(ErrorCode::BadValue, "no")), error);
}

#[test]
fn long_attributes_are_cut_between_characters() {
    let (log, lines) = logged();
    log.set_attribute_bytes_max(4);
    log!(
        log,
        Severity::Info,
        Component::Test,
        1,
        "x",
        "a" = "1234",
        "b" = "123é",
        "c" = LogValue::Json("[1,2]".to_owned())
    );
    let json = lines.0.lock()[0].0.clone();
    let tail = concat!(
        r#""attr":{"a":"1234","b":"123","c":"[1,2"},"#,
        r#""truncated":{"b":{"type":"string","size":5},"c":{"type":"string","size":5}}}"#
    );
    assert!(json.ends_with(tail), "{json}");
}

#[test]
fn verbosity_is_inherited() {
    let (log, _) = logged();
    let (debug, election) = (Severity::Debug(2), Component::ReplicationElection);
    assert!(!log.is_enabled(election, debug) && log.is_enabled(election, Severity::Info));
    log.set_verbosity(Component::Replication, Some(2));
    assert!(log.is_enabled(election, debug) && !log.is_enabled(Component::Network, debug));
    assert!(!log.is_enabled(election, Severity::Debug(3)));
    log.set_verbosity(election, Some(0));
    assert!(!log.is_enabled(election, debug));
    log.set_verbosity(election, None);
    assert!(log.is_enabled(election, debug));
    assert_eq!((log.verbosity(election), log.verbosity(Component::Replication)), (None, Some(2)));
    log.set_verbosity(Component::Default, Some(9));
    assert!(log.is_enabled(Component::Network, Severity::Debug(5)));
    log.set_verbosity(Component::Default, None);
    assert_eq!(log.verbosity(Component::Default), Some(0));
}

#[test]
fn what_is_not_wanted_is_not_evaluated() {
    let (log, lines) = logged();
    let mut evaluated = 0;
    for severity in [Severity::Debug(1), Severity::Warning] {
        log!(
            log,
            severity,
            Component::Test,
            1,
            "x",
            "v" = {
                evaluated += 1;
                evaluated
            }
        );
    }
    assert_eq!((evaluated, lines.0.lock().len()), (1, 1));
}

#[test]
fn components_form_a_tree() {
    for (index, component) in Component::ALL.iter().enumerate() {
        assert_eq!(component.index(), index);
        assert!(component.parent().index() < index || *component == Component::Default, "{component:?}");
        assert!(component.name().len() <= 8);
        assert_eq!(Component::from_path(&component.path()), Some(*component));
    }
    assert_eq!(Component::WiredTigerBackup.path(), "storage.wt.wtBackup");
    assert_eq!(Component::from_path("wtBackup"), None);
}

#[test]
fn start_up_warnings_are_kept_apart() {
    let (log, _) = logged();
    log!(log, Severity::Info, Component::Control, 1, "first");
    log.startup_warning(Component::Control, 22120, "Access control is not enabled for the database", Vec::new());
    let (recent, warnings) = (log.recent_lines(), log.startup_warnings());
    assert_eq!((recent.len(), warnings.len(), log.lines_written()), (2, 1, 2));
    assert_eq!(recent[1], warnings[0]);
    assert!(warnings[0].ends_with(r#","tags":["startupWarnings"]}"#), "{}", warnings[0]);
    log.clear_recent_lines();
    assert_eq!((log.recent_lines().len(), log.startup_warnings().len()), (0, 1));
}
