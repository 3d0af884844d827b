//! Configurations by tables.

use super::*;
use pando_doc::doc;

fn id() -> ObjectId {
    ObjectId::from_bytes([7; 12])
}

/// After the first election.
fn of_one() -> ReplicaSetConfig {
    let initial = ReplicaSetConfig::of_one("rs0", HostAndPort::new("localhost", 27017), id());
    ReplicaSetConfig { term: 1, ..initial }
}

fn parse(config: Doc) -> Result<ReplicaSetConfig> {
    ReplicaSetConfig::parse(config.view()).and_then(|config| config.validate().map(|()| config))
}

#[test]
fn r18_addresses() {
    let cases = [("a", "a:27017"), (" a:1 ", "a:1"), ("[::1]:5", "[::1]:5"), ("[::1]", "[::1]:27017")];
    for (text, shown) in cases {
        assert_eq!(HostAndPort::parse(text).unwrap().to_string(), shown);
    }
    for text in ["", ":1", "::1", "a:b:1", "a:0", "a:70000", "a:x", "[::1", "[::1]x"] {
        assert_eq!(HostAndPort::parse(text).unwrap_err().code(), ErrorCode::FailedToParse, "{text}");
    }
    assert!(HostAndPort::new("127.0.0.1", 1).is_localhost() && !HostAndPort::new("12.7.0.1", 1).is_localhost());
}

#[test]
fn r18_a_set_of_one_reads_back_in_mongodbs_order() {
    let config = of_one();
    assert_eq!(parse(config.to_doc()), Ok(config.clone()));
    let names = |doc: DocRef<'_>| doc.elements().map(|element| element.name.to_string()).collect::<Vec<_>>();
    let document = config.to_doc();
    let expected =
        ["_id", "version", "term", "members", "protocolVersion", "writeConcernMajorityJournalDefault", "settings"];
    assert_eq!(names(document.view()), expected);
    let member = document.get("members").unwrap().as_array().unwrap().get(0).unwrap().as_document().unwrap();
    let expected =
        ["_id", "host", "arbiterOnly", "buildIndexes", "hidden", "priority", "tags", "secondaryDelaySecs", "votes"];
    assert_eq!(names(member), expected);
    assert_eq!(member.get("priority"), Some(Value::Double(1.0)));
    assert_eq!(member.get("secondaryDelaySecs"), Some(Value::Int64(0)));
    assert_eq!(document.get("protocolVersion"), Some(Value::Int64(1)));
}

#[test]
fn r18_fields_are_checked() {
    let member = doc! { "_id": 0, "host": "a" };
    let cases = [
        (doc! { "version": 1, "members": [&member] }, 40414),
        (doc! { "_id": "rs0", "members": [&member] }, 40414),
        (doc! { "_id": "rs0", "version": 0, "members": [&member] }, 51024),
        (doc! { "_id": "rs0", "version": 1.5, "members": [&member] }, 14),
        (doc! { "_id": "rs0", "version": 1, "members": [&member], "extra": 1 }, 40415),
        (doc! { "_id": "rs0", "version": 1, "members": [&member], "protocolVersion": 0 }, 51024),
        (doc! { "_id": "rs0", "version": 1, "members": "none" }, 14),
        (doc! { "_id": "rs0", "version": 1, "members": [3] }, 14),
        (doc! { "_id": "rs0", "version": 1, "members": [] }, 2),
        (doc! { "_id": "rs0", "version": 1, "members": [&member, &member] }, 2),
        (doc! { "_id": "rs0", "version": 1, "members": [&member, { "_id": 1, "host": "a:27017" }] }, 2),
        (doc! { "_id": "rs0", "version": 1, "members": [&member, { "_id": 1, "host": "localhost" }] }, 2),
        (doc! { "_id": "rs0", "version": 1, "members": [&member], "settings": { "heartbeatTimeoutSecs": 0 } }, 51024),
        (
            doc! { "_id": "rs0", "version": 1, "members": [&member], "settings": { "getLastErrorDefaults": { "w": 2 } } },
            5624101,
        ),
        (doc! { "_id": "rs0", "version": 1, "members": [&member], "repaired": true }, 270),
    ];
    for (config, code) in cases {
        let text = format!("{config:?}");
        assert_eq!(parse(config).unwrap_err().code().number(), code, "{text}");
    }
}

#[test]
fn r18_members_are_checked() {
    let cases = [
        (doc! { "host": "a" }, 40414),
        (doc! { "_id": 0, "host": "" }, 9),
        (doc! { "_id": 256, "host": "a" }, 51024),
        (doc! { "_id": 0, "host": "a", "votes": 2 }, 51024),
        (doc! { "_id": 0, "host": "a", "votes": 0 }, 2),
        (doc! { "_id": 0, "host": "a", "hidden": true }, 2),
        (doc! { "_id": 0, "host": "a", "buildIndexes": false }, 2),
        (doc! { "_id": 0, "host": "a", "secondaryDelaySecs": 5 }, 2),
        (doc! { "_id": 0, "host": "a", "priority": 1001 }, 2),
        (doc! { "_id": 0, "host": "a", "priority": -1 }, 2),
        (doc! { "_id": 0, "host": "a", "tags": { "dc": 1 } }, 14),
        (doc! { "_id": 0, "host": "a", "arbiterOnly": true, "votes": 0, "priority": 0 }, 2),
        (doc! { "_id": 0, "host": "a", "arbiterOnly": true, "tags": { "dc": "x" } }, 2),
        (doc! { "_id": 0, "host": "a", "more": 1 }, 40415),
    ];
    for (member, code) in cases {
        assert_eq!(Member::parse(member.view()).unwrap_err().code().number(), code, "{member:?}");
    }
    let arbiter = Member::parse(doc! { "_id": 0, "host": "a", "arbiterOnly": true }.view()).unwrap();
    assert!(!arbiter.is_electable() && arbiter.is_voter());
}

#[test]
fn r18_initiation() {
    let here = |host: &HostAndPort| host.host == "localhost";
    assert_eq!(check_initiate(&of_one(), here), Ok(0));
    let code = |change: fn(&mut ReplicaSetConfig)| {
        let mut config = of_one();
        change(&mut config);
        check_initiate(&config, here).unwrap_err().code()
    };
    assert_eq!(code(|config| config.version = 2), ErrorCode::NewReplicaSetConfigurationIncompatible);
    assert_eq!(code(|config| config.members[0].is_newly_added = true), ErrorCode::InvalidReplicaSetConfig);
    assert_eq!(check_initiate(&of_one(), |_| false).unwrap_err().code(), ErrorCode::NodeNotFound);
    let with_id = of_one().to_doc();
    let error = ReplicaSetConfig::parse_for_initiate(with_id.view(), id()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidReplicaSetConfig);
    let plain = doc! { "_id": "rs0", "version": 1, "members": [{ "_id": 0, "host": "localhost:27017" }] };
    let initial = ReplicaSetConfig { term: INITIAL_TERM, ..of_one() };
    assert_eq!(ReplicaSetConfig::parse_for_initiate(plain.view(), id()), Ok(initial));
}

#[test]
fn r18_reconfiguration_safe_and_forced() {
    let here = |host: &HostAndPort| host.host == "localhost";
    let next = |change: fn(&mut ReplicaSetConfig)| {
        let mut config = ReplicaSetConfig { version: 2, ..of_one() };
        change(&mut config);
        config
    };
    let error =
        |config: &ReplicaSetConfig, forced| check_reconfig(&of_one(), config, forced, here).map_err(|e| e.code());
    let incompatible = Err(ErrorCode::NewReplicaSetConfigurationIncompatible);
    assert_eq!(error(&next(|_| ()), false), Ok(0));
    assert_eq!(error(&of_one(), false), incompatible, "the version must grow");
    assert_eq!(error(&next(|config| config.term = 0), false), incompatible, "an older term");
    assert_eq!(error(&next(|config| config.term = NO_TERM), true), Ok(0), "without a term versions decide");
    assert_eq!(error(&next(|config| config.name = "rs1".into()), false), incompatible);
    assert_eq!(error(&next(|config| config.settings.replica_set_id = None), true), incompatible);
    assert_eq!(error(&next(|config| config.members[0].id = 4), false), incompatible, "a host keeps its _id");
    let two_more = next(|config| {
        for id in 1..3 {
            config.members.push(Member::new(id, HostAndPort::new("localhost", 3000 + id as u16)));
        }
    });
    let only_one = |host: &HostAndPort| host.port == 27017;
    let safe = check_reconfig(&of_one(), &two_more, false, only_one).map_err(|error| error.code());
    assert_eq!(safe, Err(ErrorCode::InvalidReplicaSetConfig), "one voter at a time");
    assert_eq!(check_reconfig(&of_one(), &two_more, true, only_one), Ok(0));
    let passive = next(|config| {
        config.members[0].priority = 0.0;
        config.members.push(Member::new(1, HostAndPort::new("127.0.0.1", 3000)));
    });
    assert_eq!(error(&passive, false), Err(ErrorCode::NodeNotElectable));
    assert_eq!(error(&passive, true), Ok(0));
}

#[test]
fn r18_majorities() {
    let member = |id: i64, change: fn(&mut Member)| {
        let mut member = Member::new(id, HostAndPort::new(format!("h{id}"), 1));
        change(&mut member);
        member
    };
    let plain = |id| member(id, |_| ());
    let arbiter = |id| member(id, |member| (member.is_arbiter, member.priority) = (true, 0.0));
    let silent = |id| member(id, |member| (member.votes, member.priority) = (false, 0.0));
    // Members, votes to win, members for a majority write, implicit majority.
    let cases = [
        (vec![plain(0)], 1, 1, true),
        (vec![plain(0), plain(1)], 2, 2, true),
        (vec![plain(0), plain(1), plain(2)], 2, 2, true),
        (vec![plain(0), plain(1), arbiter(2)], 2, 2, false),
        (vec![plain(0), arbiter(1)], 2, 1, false),
        (vec![plain(0), plain(1), plain(2), silent(3)], 2, 2, true),
        (vec![plain(0), plain(1), plain(2), plain(3), arbiter(4)], 3, 3, true),
    ];
    for (members, votes, writes, implicit) in cases {
        let config = ReplicaSetConfig { members, ..of_one() };
        let found =
            (config.majority_vote_count(), config.write_majority_count(), config.implicit_default_is_majority());
        assert_eq!(found, (votes, writes, implicit), "{config:?}");
    }
}
