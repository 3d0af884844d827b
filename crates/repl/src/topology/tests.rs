//! The state machine by tables.

use super::*;
use crate::config::{HostAndPort, Member};
use pando_doc::{Doc, DocBuilder, Value, doc};

fn config() -> ReplicaSetConfig {
    ReplicaSetConfig::of_one("rs0", HostAndPort::new("127.0.0.1", 27017), ObjectId::from_bytes([1; 12]))
}

fn new(mode: Mode) -> Topology {
    Topology::new(mode, ObjectId::from_bytes([5; 12]))
}

fn self_initiated() -> Mode {
    Mode::SelfInitiated { set_name: "rs0".into() }
}

/// Where a node stands after its first second.
fn primary() -> Topology {
    let mut topology = new(self_initiated());
    topology.install_config(Arc::new(config()), 0);
    topology.recovered();
    assert!(topology.can_elect_itself(0));
    topology.elect_itself(1000, "electionTimeout", OpTime::NULL, OpTime::NULL);
    topology.term_started(Timestamp::new(1, 2), 1001);
    topology
}

fn hello(topology: &Topology, reached: Option<&HostAndPort>) -> Doc {
    let write = (OpTime::new(Timestamp::new(1, 2), 1), 1000);
    let context =
        HelloContext { is_legacy: false, reached, last_write: write, majority_write: write, is_shutting_down: false };
    let mut builder = DocBuilder::new();
    append_hello(topology, &context, &mut builder);
    builder.finish()
}

fn names(document: &Doc) -> Vec<String> {
    document.elements().map(|element| element.name.to_string()).collect()
}

#[test]
fn b2_a_set_of_one_becomes_primary_by_itself() {
    let topology = primary();
    assert_eq!((topology.state(), topology.term(), topology.accepts_writes()), (MemberState::Primary, 1, true));
    let hello = hello(&topology, None);
    let expected = [
        "topologyVersion",
        "hosts",
        "setName",
        "setVersion",
        "isWritablePrimary",
        "secondary",
        "primary",
        "me",
        "electionId",
        "lastWrite",
    ];
    assert_eq!(names(&hello), expected);
    assert_eq!(hello.get("isWritablePrimary"), Some(Value::Bool(true)));
    assert_eq!(hello.get("me").and_then(|value| value.as_str()), Some("127.0.0.1:27017"));
    let id = hello.get("electionId").unwrap().as_object_id().unwrap();
    assert_eq!(id.to_string(), "7fffffff0000000000000001");
}

#[test]
fn b2_hello_names_the_address_that_the_client_reached() {
    let reached = HostAndPort::new("box.example", 9);
    let document = hello(&primary(), Some(&reached));
    assert_eq!(document.get("me").and_then(|value| value.as_str()), Some("box.example:9"));
    assert_eq!(document.get("primary").and_then(|value| value.as_str()), Some("box.example:9"));
    let hosts = document.get("hosts").unwrap().as_array().unwrap();
    assert_eq!(hosts.get(0).and_then(|value| value.as_str()), Some("box.example:9"));
    // A set that people made has the addresses they gave.
    let mut named = new(Mode::Member { set_name: "rs0".into() });
    named.install_config(Arc::new(config()), 0);
    let document = hello(&named, Some(&reached));
    assert_eq!(document.get("me").and_then(|value| value.as_str()), Some("127.0.0.1:27017"));
}

#[test]
fn r18_before_a_configuration_and_without_replication() {
    let waiting = hello(&new(Mode::Member { set_name: "rs0".into() }), None);
    assert_eq!(waiting.get("isreplicaset"), Some(Value::Bool(true)));
    assert_eq!(waiting.get("isWritablePrimary"), Some(Value::Bool(false)));
    let alone = hello(&new(Mode::StandAlone), None);
    assert_eq!(names(&alone), ["topologyVersion", "isWritablePrimary"]);
    let code = |topology: &Topology| topology.require_config().unwrap_err().code();
    assert_eq!(code(&new(Mode::StandAlone)), ErrorCode::NoReplicationEnabled);
    assert_eq!(code(&new(self_initiated())), ErrorCode::NotYetInitialized);
    assert!(new(Mode::StandAlone).accepts_writes() && !new(self_initiated()).accepts_writes());
}

#[test]
fn r18_every_change_that_clients_see_is_counted() {
    let mut topology = new(self_initiated());
    let mut counters = vec![topology.counter()];
    topology.install_config(Arc::new(config()), 0);
    counters.push(topology.counter());
    topology.recovered();
    counters.push(topology.counter());
    topology.elect_itself(0, "electionTimeout", OpTime::NULL, OpTime::NULL);
    counters.push(topology.counter());
    assert!(!topology.accepts_writes(), "not before the term's first entry");
    topology.term_started(Timestamp::new(1, 1), 0);
    counters.push(topology.counter());
    topology.step_down(0);
    counters.push(topology.counter());
    assert!(counters.windows(2).all(|pair| pair[0] < pair[1]), "{counters:?}");
}

#[test]
fn r18_only_a_set_of_one_elects_itself() {
    let with = |change: fn(&mut ReplicaSetConfig)| {
        let mut config = config();
        change(&mut config);
        let mut topology = new(self_initiated());
        topology.install_config(Arc::new(config), 0);
        topology.recovered();
        topology.can_elect_itself(0)
    };
    assert!(with(|_| ()));
    assert!(!with(|config| config.members[0].priority = 0.0));
    assert!(!with(|config| config.members.push(Member::new(1, HostAndPort::new("b", 1)))));
    // The other has no vote.
    assert!(with(|config| {
        let silent = Member { votes: false, priority: 0.0, ..Member::new(1, HostAndPort::new("b", 1)) };
        config.members.push(silent);
    }));
}

#[test]
fn r18_step_down_of_the_only_member() {
    let parse = |command: Doc| StepDownRequest::parse(command.view());
    let request = parse(doc! { "replSetStepDown": 20 }).unwrap();
    assert_eq!(request, StepDownRequest { seconds: 20, catch_up_seconds: 10, is_forced: false });
    assert_eq!(parse(doc! { "replSetStepDown": 0 }).unwrap().seconds, 60);
    for bad in [
        doc! { "replSetStepDown": -1 },
        doc! { "replSetStepDown": 5 },
        doc! { "replSetStepDown": 5, "secondaryCatchUpPeriodSecs": -1 },
        doc! { "replSetStepDown": 5, "secondaryCatchUpPeriodSecs": 6 },
    ] {
        assert_eq!(parse(bad).unwrap_err().code(), ErrorCode::BadValue);
    }
    let mut topology = primary();
    assert_eq!(topology.can_step_down(&request, false, 0), Ok(None));
    assert_eq!(topology.can_step_down(&request, true, 0).unwrap_err().code(), ErrorCode::ExceededTimeLimit);
    let forced = StepDownRequest { is_forced: true, ..request };
    assert_eq!(topology.can_step_down(&forced, true, 0), Ok(Some(())));
    topology.step_down(5000);
    assert_eq!((topology.state(), topology.accepts_writes()), (MemberState::Secondary, false));
    assert!(!topology.can_elect_itself(4999) && topology.can_elect_itself(5000));
    assert_eq!(topology.can_step_down(&forced, true, 0).unwrap_err().code(), ErrorCode::NotWritablePrimary);
    assert_eq!(topology.elect_itself(9, "singleNodePromptElection", OpTime::NULL, OpTime::NULL), 2);
}

#[test]
fn r18_freeze_and_maintenance() {
    let mut topology = primary();
    assert_eq!(topology.freeze(10, 0).unwrap_err().code(), ErrorCode::NotSecondary);
    assert_eq!(topology.maintenance(true).unwrap_err().code(), ErrorCode::NotSecondary);
    topology.step_down(0);
    assert_eq!(topology.freeze(1, 100).unwrap().map(|(field, _)| field), Some("warning"));
    assert!(!topology.can_elect_itself(1099) && topology.can_elect_itself(1100));
    assert_eq!(topology.freeze(0, 100), Ok(Some(("info", "unfreezing"))));
    assert!(topology.can_elect_itself(100));
    topology.maintenance(true).unwrap();
    assert_eq!(topology.state(), MemberState::Recovering);
    topology.maintenance(false).unwrap();
    assert_eq!(topology.maintenance(false).unwrap_err().code(), ErrorCode::OperationFailed);
}

#[test]
fn r18_status_of_a_primary() {
    let mut topology = primary();
    topology.majority_has(Timestamp::new(1, 2), 1005);
    let at = |increment| (OpTime::new(Timestamp::new(1, increment), 2), 1000 + i64::from(increment));
    let context = StatusContext {
        now_ms: 2000,
        uptime_seconds: 3,
        applied: at(4),
        durable: at(3),
        committed: at(3),
        majority_snapshot: at(2).0,
        last_stable_recovery: Timestamp::new(1, 1),
    };
    let mut builder = DocBuilder::new();
    status(&topology, &context, &mut builder).unwrap();
    let document = builder.finish();
    let expected = [
        "set",
        "date",
        "myState",
        "term",
        "syncSourceHost",
        "syncSourceId",
        "heartbeatIntervalMillis",
        "majorityVoteCount",
        "writeMajorityCount",
        "votingMembersCount",
        "writableVotingMembersCount",
        "optimes",
        "lastStableRecoveryTimestamp",
        "electionCandidateMetrics",
        "members",
    ];
    assert_eq!(names(&document), expected);
    assert_eq!(document.get("myState"), Some(Value::Int32(1)));
    let member = document.get("members").unwrap().as_array().unwrap().get(0).unwrap().as_document().unwrap();
    assert_eq!(member.get("stateStr").and_then(|value| value.as_str()), Some("PRIMARY"));
    assert_eq!(member.get("self"), Some(Value::Bool(true)));
    let metrics = document.get("electionCandidateMetrics").unwrap().as_document().unwrap();
    assert_eq!(metrics.get("wMajorityWriteAvailabilityDate"), Some(Value::DateTime(1005)));
    assert!(status(&new(Mode::StandAlone), &context, &mut DocBuilder::new()).is_err());
}
