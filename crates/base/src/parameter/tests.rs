//! Definitions, sets, and MongoDB's complaints.

use super::*;
use crate::{Error, ErrorCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

static QUIET: Parameter<bool> = Parameter::new("quiet", false, "Say less.");
static LEVEL: Parameter<i32> = Parameter::new("logLevel", 0, "How much to say.").at_least(0).at_most(5);
static TIMEOUT: Parameter<i64> = Parameter::new("cursorTimeoutMillis", 600_000, "Idle cursors.").above(0);
static SHARE: Parameter<f64> = Parameter::new("share", 0.5, "A share.").at_least(0.0).below(1.0);
static HOST: Parameter<str> = Parameter::new("host", "here", "A name.").validator(not_empty);
static KEY: Parameter<str> = Parameter::new("key", "secret", "A secret.").redacted();
static PORT: Parameter<i32> = Parameter::new("port", 27017, "Fixed at start.").settable(Settable::AtStartup);
static LATER: Parameter<i32> = Parameter::new("later", 1, "Not at start.").settable(Settable::AtRuntime);
static TESTS: Parameter<i32> = Parameter::new("forTests", 1, "Not for people.").for_tests();
static TREE: Parameter<Document> =
    Parameter::<Document>::new("tree", &[5, 0, 0, 0, 0], "A document.").text_parser(parse_tree);
static ABSENT: Parameter<i64> = Parameter::new("absent", 7, "In no list.");

static PARAMETERS: &[&dyn AnyParameter] =
    &[&QUIET, &LEVEL, &TIMEOUT, &SHARE, &HOST, &KEY, &PORT, &LATER, &TESTS, &TREE];

fn not_empty(text: &str) -> crate::Result<()> {
    if text.is_empty() { Err(Error::bad_value("empty")) } else { Ok(()) }
}

fn parse_tree(text: &str) -> crate::Result<ParameterValue> {
    Ok(ParameterValue::Document(text.as_bytes().to_vec()))
}

fn set() -> ParameterSet {
    ParameterSet::new(&[PARAMETERS], false).unwrap()
}

#[test]
fn values_start_at_their_defaults_and_sets_are_apart() {
    let (one, other) = (set(), set());
    one.set_from_text("cursorTimeoutMillis", "0x10").unwrap();
    assert_eq!((one.get(&TIMEOUT), other.get(&TIMEOUT)), (16, 600_000));
    assert_eq!(one.get(&ABSENT), 7);
    assert_eq!(ParameterSet::empty().get(&TIMEOUT), 600_000);
    assert_eq!(&*one.get(&HOST), "here");
    assert_eq!(&*one.get(&TREE), [5, 0, 0, 0, 0]);
}

#[test]
fn text_sets_every_kind() {
    let set = set();
    for (name, text) in
        [("quiet", "1"), ("logLevel", "5"), ("share", "0.25"), ("host", "there"), ("tree", "abc"), ("port", "1")]
    {
        set.set_from_text(name, text).unwrap();
    }
    assert!(set.get(&QUIET));
    assert_eq!((set.get(&LEVEL), set.get(&SHARE), set.get(&PORT)), (5, 0.25, 1));
    assert_eq!((&*set.get(&HOST), &*set.get(&TREE)), ("there", &b"abc"[..]));
}

#[test]
fn bad_text_is_refused_and_changes_nothing() {
    let set = set();
    let bad = [
        ("quiet", "yes"),
        ("logLevel", "6"),
        ("logLevel", "-1"),
        ("logLevel", "99999999999"),
        ("logLevel", "1x"),
        ("logLevel", ""),
        ("cursorTimeoutMillis", "0"),
        ("cursorTimeoutMillis", "99999999999999999999"),
        ("share", "1"),
        ("share", "NaN"),
        ("share", "x"),
        ("host", ""),
        ("later", "2"),
        ("forTests", "2"),
        ("unknown", "2"),
    ];
    let before = format!("{set:?}");
    for (name, text) in bad {
        assert_eq!(set.set_from_text(name, text).unwrap_err().code(), ErrorCode::BadValue, "{name}={text}");
    }
    assert_eq!(format!("{set:?}"), before);
    assert_eq!(set.set_from_text("unknown", "2").unwrap_err().reason(), "Unknown --setParameter 'unknown'");
    let error = set.set_from_text("logLevel", "6").unwrap_err();
    let reason =
        "Bad value for parameter \"logLevel\": Invalid value for parameter logLevel: 6 is not less than or equal to 5";
    assert_eq!(error.reason(), reason);
}

#[test]
fn values_are_coerced_as_far_as_they_go() {
    let set = set();
    let was = set.set_from_value("logLevel", ParameterValue::Double(3.9)).unwrap();
    assert_eq!((was, set.get(&LEVEL)), (ParameterValue::Int(0), 3));
    set.set_from_value("logLevel", ParameterValue::Bool(true)).unwrap();
    set.set_from_value("quiet", ParameterValue::Long(2)).unwrap();
    set.set_from_value("share", ParameterValue::Int(0)).unwrap();
    assert_eq!((set.get(&LEVEL), set.get(&QUIET), set.get(&SHARE)), (1, true, 0.0));
    for (name, value) in [
        ("logLevel", ParameterValue::Double(f64::NAN)),
        ("logLevel", ParameterValue::Long(1 << 40)),
        ("cursorTimeoutMillis", ParameterValue::Double(9.3e18)),
        ("cursorTimeoutMillis", ParameterValue::String("5".to_owned())),
        ("share", ParameterValue::Double(f64::NAN)),
        ("share", ParameterValue::Bool(true)),
        ("host", ParameterValue::Int(5)),
        ("tree", ParameterValue::Int(5)),
    ] {
        assert_eq!(
            set.set_from_value(name, value.clone()).unwrap_err().code(),
            ErrorCode::BadValue,
            "{name} {value:?}"
        );
    }
    let error = set.set_from_value("logLevel", ParameterValue::Long(1 << 40)).unwrap_err();
    assert_eq!(error.reason(), "Failed validating logLevel: Out of bounds coercing to integral value");
}

#[test]
fn not_everything_may_be_set_at_run_time() {
    let set = set();
    let code = |name: &str| set.set_from_value(name, ParameterValue::Int(2)).unwrap_err().code();
    assert_eq!(code("port"), ErrorCode::IllegalOperation);
    assert_eq!(code("unknown"), ErrorCode::InvalidOptions);
    assert_eq!(code("forTests"), ErrorCode::InvalidOptions);
    assert!(set.set_from_value("later", ParameterValue::Int(2)).is_ok());
    set.set(&PORT, 5).unwrap();
    assert_eq!(set.get(&PORT), 5);
}

#[test]
fn lists_are_sorted_and_keep_secrets() {
    let names: Vec<&str> = set().list().map(|(definition, _)| definition.name()).collect();
    assert!(names.is_sorted() && names.len() == PARAMETERS.len() - 1 && !names.contains(&"forTests"));
    let with_tests = ParameterSet::new(&[PARAMETERS], true).unwrap();
    assert_eq!(with_tests.list().count(), PARAMETERS.len());
    assert_eq!(with_tests.show("forTests"), Some(ParameterValue::Int(1)));
    assert_eq!(set().show("forTests"), None);
    assert_eq!(set().show("key"), Some(ParameterValue::String("###".to_owned())));
    assert_eq!(&*set().get(&KEY), "secret");
}

#[test]
fn one_name_has_one_definition() {
    let error = ParameterSet::new(&[PARAMETERS, &[&QUIET]], false).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InternalError);
}

#[test]
fn subscribers_hear_of_changes() {
    let set = set();
    let heard = Arc::new(AtomicI64::new(0));
    let hearing = Arc::clone(&heard);
    set.subscribe(&TIMEOUT, move |value| {
        let ParameterValue::Long(value) = value else { panic!("{value:?}") };
        hearing.fetch_add(*value, Ordering::Relaxed);
    });
    set.set_from_value("cursorTimeoutMillis", ParameterValue::Int(5)).unwrap();
    set.set_from_value("cursorTimeoutMillis", ParameterValue::Int(-5)).unwrap_err();
    set.set_from_text("cursorTimeoutMillis", "7").unwrap();
    assert_eq!(heard.load(Ordering::Relaxed), 12);
}
