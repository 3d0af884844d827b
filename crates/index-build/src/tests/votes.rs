//! Commit quorums, without a set.

use crate::{CommitQuorum, Member, Membership};
use pando_base::ErrorCode;
use pando_doc::{Value, doc};
use std::collections::{BTreeMap, BTreeSet};

fn member(host: &str, is_voter: bool, builds_indexes: bool) -> Member {
    Member { host: host.into(), is_voter, builds_indexes, tags: BTreeMap::new() }
}

fn set() -> Membership {
    let members = vec![
        member("a:1", true, true),
        member("b:1", true, true),
        member("c:1", true, true),
        member("arbiter:1", true, false),
        member("d:1", false, true),
    ];
    Membership { members, modes: BTreeMap::new() }
}

/// Two members in one place, one in another, one without data in a third.
fn tagged_set() -> Membership {
    let mut set = set();
    let places = [("a:1", "east"), ("b:1", "east"), ("d:1", "west"), ("arbiter:1", "north")];
    for (host, place) in places {
        let member = set.members.iter_mut().find(|member| member.host == host).unwrap();
        member.tags = [("place".into(), place.into()), ("disk".into(), "fast".into())].into();
    }
    let mode = |constraints: &[(&str, u64)]| -> BTreeMap<String, u64> {
        constraints.iter().map(|(tag, count)| ((*tag).to_owned(), *count)).collect()
    };
    set.modes = [
        ("two places".into(), mode(&[("place", 2)])),
        ("one and fast".into(), mode(&[("place", 1), ("disk", 1)])),
        ("three places".into(), mode(&[("place", 3)])),
        ("unknown tag".into(), mode(&[("colour", 1)])),
    ]
    .into();
    set
}

fn votes(hosts: &[&str]) -> BTreeSet<String> {
    hosts.iter().map(|host| (*host).to_owned()).collect()
}

#[test]
fn i4_quorums_are_read_and_shown() {
    let document = doc! { "n": 2_i32, "d": 1.0, "m": "majority", "v": "votingMembers", "t": "east" };
    let read = |name: &str| CommitQuorum::parse(document.get(name).unwrap()).unwrap();
    assert_eq!(read("n"), CommitQuorum::Nodes(2));
    assert_eq!(read("d"), CommitQuorum::Nodes(1));
    assert_eq!(read("m").value().as_str(), Some("majority"));
    assert_eq!(read("v"), CommitQuorum::default());
    assert_eq!(read("t").value().as_str(), Some("east"));
    for wrong in [Value::Int32(-1), Value::Int32(51), Value::Null, doc! { "x": "" }.get("x").unwrap()] {
        assert_eq!(CommitQuorum::parse(wrong).unwrap_err().code(), ErrorCode::FailedToParse);
    }
    assert!(!CommitQuorum::Nodes(0).is_enabled() && CommitQuorum::Nodes(1).is_enabled());
}

#[test]
fn i4_quorums_count_the_members_that_they_mean() {
    let set = set();
    let is_there = |quorum: &CommitQuorum, hosts: &[&str]| quorum.is_satisfied(&set, &votes(hosts));
    let all = CommitQuorum::VotingMembers;
    assert!(!is_there(&all, &["a:1", "b:1", "d:1"]) && is_there(&all, &["a:1", "b:1", "c:1"]));
    // Four vote, so three are a majority; the one without data cannot be among them.
    assert!(!is_there(&CommitQuorum::Majority, &["a:1", "b:1", "d:1"]));
    assert!(is_there(&CommitQuorum::Majority, &["a:1", "b:1", "c:1"]));
    assert!(!is_there(&CommitQuorum::Nodes(2), &["d:1"]) && is_there(&CommitQuorum::Nodes(2), &["d:1", "a:1"]));
}

#[test]
fn i4_quorums_that_the_set_cannot_fulfil_are_refused() {
    let set = set();
    CommitQuorum::Nodes(4).check_satisfiable(&set).unwrap();
    let error = CommitQuorum::Nodes(5).check_satisfiable(&set).unwrap_err();
    assert_eq!(error.code(), ErrorCode::UnsatisfiableCommitQuorum);
    let error = CommitQuorum::Mode("east".into()).check_satisfiable(&set).unwrap_err();
    assert_eq!(error.code(), ErrorCode::UnknownReplWriteConcern);
}

#[test]
fn i4_quorums_by_tags_count_different_values() {
    let set = tagged_set();
    let is_there = |mode: &str, hosts: &[&str]| CommitQuorum::Mode(mode.into()).is_satisfied(&set, &votes(hosts));
    assert!(!is_there("two places", &["a:1", "b:1", "c:1"]), "both are in the east, and one is nowhere");
    assert!(is_there("two places", &["b:1", "d:1"]));
    assert!(!is_there("two places", &["a:1", "arbiter:1"]), "who has no data builds nothing");
    assert!(!is_there("one and fast", &["c:1"]) && is_there("one and fast", &["a:1"]));
    assert!(!is_there("no such mode", &["a:1", "b:1", "c:1", "d:1"]));
}

#[test]
fn i4_quorums_by_tags_that_the_set_cannot_fulfil_are_refused() {
    let set = tagged_set();
    let code = |mode: &str| CommitQuorum::Mode(mode.into()).check_satisfiable(&set).err().map(|error| error.code());
    assert_eq!((code("two places"), code("one and fast")), (None, None));
    for impossible in ["three places", "unknown tag"] {
        assert_eq!(code(impossible), Some(ErrorCode::UnsatisfiableCommitQuorum), "{impossible}");
    }
    assert_eq!(code("no such mode"), Some(ErrorCode::UnknownReplWriteConcern));
}
