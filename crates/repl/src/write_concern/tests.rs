//! Write concerns by tables.

use super::*;
use crate::config::{HostAndPort, ReplicaSetConfig};
use pando_doc::{ObjectId, Value, doc};

fn of_one() -> ReplicaSetConfig {
    ReplicaSetConfig::of_one("rs0", HostAndPort::new("a", 1), ObjectId::from_bytes([1; 12]))
}

#[test]
fn r2_parsing() {
    let mode = |name: &str| Acknowledgement::Mode(name.into());
    let cases = [
        (doc! { "w": 1 }, Acknowledgement::Members(1), Sync::Unset, 0),
        (doc! { "w": 0, "j": false }, Acknowledgement::Members(0), Sync::None, 0),
        (doc! { "w": 2.0, "wtimeout": 5_i64 }, Acknowledgement::Members(2), Sync::Unset, 5),
        (doc! { "w": "majority", "j": true }, Acknowledgement::Majority, Sync::Journal, 0),
        (doc! { "w": "both", "fsync": true }, mode("both"), Sync::Fsync, 0),
        (doc! { "j": 1 }, Acknowledgement::Members(1), Sync::Journal, 0),
        (doc! { "w": { "dc": 2 } }, Acknowledgement::Tags(doc! { "dc": 2 }), Sync::Unset, 0),
    ];
    for (document, acknowledgement, sync, timeout_ms) in cases {
        let parsed = WriteConcern::parse(document.view()).unwrap();
        assert_eq!(
            (parsed.acknowledgement.clone(), parsed.sync, parsed.timeout_ms),
            (acknowledgement, sync, timeout_ms)
        );
        assert_eq!(WriteConcern::parse(parsed.to_doc().view()).unwrap().acknowledgement, parsed.acknowledgement);
        assert_eq!(parsed.is_explicit, document.get("w").is_some());
    }
}

#[test]
fn r2_refusals() {
    let cases = [
        (doc! {}, 9),
        (doc! { "w": -1 }, 9),
        (doc! { "w": 51 }, 9),
        (doc! { "w": true }, 9),
        (doc! { "w": {} }, 9),
        (doc! { "w": { "dc": "x" } }, 9),
        (doc! { "j": true, "fsync": true }, 9),
        (doc! { "j": "yes" }, 14),
        (doc! { "wtimeout": (1_i64 << 31) }, 9),
        (doc! { "provenance": 1 }, 14),
        (doc! { "provenance": "nobody" }, 2),
        (doc! { "x": 1 }, 40415),
    ];
    for (document, code) in cases {
        assert_eq!(WriteConcern::parse(document.view()).unwrap_err().code().number(), code, "{document:?}");
    }
    // What is no number means no limit.
    assert_eq!(WriteConcern::parse(doc! { "wtimeout": "soon" }.view()).unwrap().timeout_ms, 0);
    assert_eq!(WriteConcern::of_command(doc! { "insert": "c" }.view()), Ok(None));
    assert_eq!(WriteConcern::of_command(doc! { "writeConcern": {} }.view()), Ok(None));
    assert_eq!(WriteConcern::of_command(doc! { "writeConcern": 1 }.view()).unwrap_err().code().number(), 14);
}

#[test]
fn r2_what_a_set_of_one_can_give() {
    let mut config = of_one();
    config.settings.modes = doc! { "near": { "dc": 1 }, "far": { "dc": 2 } };
    config.members[0].tags = doc! { "dc": "east" };
    let cases = [
        (doc! { "w": 1 }, None),
        (doc! { "w": "majority" }, None),
        (doc! { "w": 2 }, Some(100)),
        (doc! { "w": "near" }, None),
        (doc! { "w": "far" }, Some(100)),
        (doc! { "w": "unknown" }, Some(79)),
        (doc! { "w": { "dc": 1 } }, None),
        (doc! { "w": { "rack": 1 } }, Some(100)),
    ];
    for (document, code) in cases {
        let concern = WriteConcern::parse(document.view()).unwrap();
        let found = check_satisfiable(&concern, Some(&config)).err().map(|error| error.code().number());
        assert_eq!(found, code, "{document:?}");
    }
    let alone = [
        (doc! { "w": 1 }, None),
        (doc! { "w": "majority" }, None),
        (doc! { "w": 2 }, Some(2)),
        (doc! { "w": "x" }, Some(2)),
    ];
    for (document, code) in alone {
        let concern = WriteConcern::parse(document.view()).unwrap();
        assert_eq!(check_satisfiable(&concern, None).err().map(|error| error.code().number()), code);
    }
}

#[test]
fn r2_a_majority_means_the_journal_unless_told_otherwise() {
    let journal =
        |document: pando_doc::Doc, default| WriteConcern::parse(document.view()).unwrap().needs_journal(default);
    assert!(journal(doc! { "w": "majority" }, true));
    assert!(!journal(doc! { "w": "majority" }, false));
    assert!(!journal(doc! { "w": "majority", "j": false }, true));
    assert!(!journal(doc! { "w": 1 }, true));
    assert!(journal(doc! { "w": 1, "j": true }, false));
}

#[test]
fn r2_the_error_in_a_reply() {
    let concern = WriteConcern { timeout_ms: 5, ..WriteConcern::majority(Provenance::ClientSupplied) };
    let error = Error::new(pando_base::ErrorCode::WriteConcernFailed, "waiting for replication timed out");
    let document = write_concern_error(&error, &concern, true);
    assert_eq!(document.get("code"), Some(Value::Int32(64)));
    assert_eq!(document.get("codeName").and_then(|value| value.as_str()), Some("WriteConcernFailed"));
    let info = document.get("errInfo").unwrap().as_document().unwrap();
    assert_eq!(info.get("wtimeout"), Some(Value::Bool(true)));
    let shown = info.get("writeConcern").unwrap().as_document().unwrap();
    assert_eq!(shown, doc! { "w": "majority", "wtimeout": 5, "provenance": "clientSupplied" }.view());
}
