//! How a node becomes what it is.

use super::support::{Node, engine, self_initiated};
use crate::member_state::MemberState;
use crate::topology::Mode;
use pando_base::ErrorCode;
use pando_doc::{Doc, DocBuilder, Value, doc};
use pando_env::simulated::Simulation;

fn hello(node: &Node) -> Doc {
    let mut builder = DocBuilder::new();
    node.node.append_hello(&mut builder, None, false);
    builder.finish()
}

fn messages(node: &Node) -> Vec<(String, i64)> {
    let entries = node.entries();
    let noop = entries.iter().filter(|entry| entry.get("op").and_then(|op| op.as_str()) == Some("n"));
    noop.map(|entry| {
        let object = entry.get("o").unwrap().as_document().unwrap();
        let Some(Value::Int64(term)) = entry.get("t") else { panic!("an entry has a term") };
        (object.get("msg").and_then(|message| message.as_str()).unwrap_or("").to_owned(), term)
    })
    .collect()
}

#[test]
fn b2_a_new_node_is_primary_of_its_own_set_at_once() {
    let simulation = Simulation::new(1);
    let (node, _) = Node::start(&simulation.env()).unwrap();
    assert!(node.node.is_writable_primary());
    let hello = hello(&node);
    assert_eq!(hello.get("setName").and_then(|name| name.as_str()), Some("rs0"));
    assert_eq!(hello.get("me").and_then(|name| name.as_str()), Some("127.0.0.1:27017"));
    assert_eq!(messages(&node), [("initiating set".to_owned(), -1), ("new primary".to_owned(), 1)]);
    let config = node.node.config_document().unwrap();
    assert_eq!((config.get("version"), config.get("term")), (Some(Value::Int32(1)), Some(Value::Int32(1))));
    assert!(node.find("config.transactions").is_some() && node.find("config.image_collection").is_some());
    let mut status = DocBuilder::new();
    node.node.append_status(&mut status).unwrap();
    // The majority has everything: it is on disk.
    let points = node.node.points();
    assert_eq!(points.committed, points.applied);
    assert!(node.engine.timestamps().checkpoint.is_some(), "history has begun");
}

#[test]
fn b2_the_set_follows_the_nodes_address() {
    let simulation = Simulation::new(1);
    let (node, _) = Node::start(&simulation.env()).unwrap();
    node.insert("test.c", &[doc! { "_id": 1 }]).unwrap();
    node.engine.shut_down().unwrap();
    drop(node);
    let env = simulation.kill();
    let node = Node::new(&env, engine(&env, pando_engine::Mode::ReplicaSet).unwrap(), self_initiated(), 4000).unwrap();
    node.parts.start().unwrap();
    assert_eq!(hello(&node).get("me").and_then(|name| name.as_str()), Some("127.0.0.1:4000"));
    assert_eq!(node.node.with_topology(|topology| topology.term()), 2, "a new term at each start");
    assert_eq!(node.contents()["test.c"].len(), 1);
    assert_eq!(messages(&node).last(), Some(&("new primary".to_owned(), 2)));
}

#[test]
fn r18_a_member_waits_for_its_initiation() {
    let simulation = Simulation::new(1);
    let env = simulation.env();
    let mode = Mode::Member { set_name: "prod".into() };
    let node = Node::new(&env, engine(&env, pando_engine::Mode::ReplicaSet).unwrap(), mode.clone(), 27017).unwrap();
    node.parts.start().unwrap();
    assert_eq!(node.node.with_topology(|topology| topology.state()), MemberState::Startup);
    assert!(!node.node.is_writable_primary());
    let code = |config: Doc| node.parts.initiate(config.view()).unwrap_err().code();
    let member = |host: &str| doc! { "_id": 0, "host": host };
    let elsewhere = doc! { "_id": "prod", "version": 1, "members": [member("other:1")] };
    assert_eq!(code(elsewhere), ErrorCode::InvalidReplicaSetConfig);
    let misnamed = doc! { "_id": "test", "version": 1, "members": [member("localhost:27017")] };
    assert_eq!(code(misnamed), ErrorCode::InvalidReplicaSetConfig);
    assert_eq!(code(doc! { "_id": "prod", "version": 1 }), ErrorCode::InvalidReplicaSetConfig);
    let good = doc! { "_id": "prod", "version": 1, "members": [member("box.example:27017")] };
    node.parts.initiate(good.view()).unwrap();
    assert!(node.node.is_writable_primary());
    assert_eq!(node.parts.initiate(good.view()).unwrap_err().code(), ErrorCode::AlreadyInitialized);
    drop(node);
    // It is the same set after a restart.
    let env = simulation.kill();
    let node = Node::new(&env, engine(&env, pando_engine::Mode::ReplicaSet).unwrap(), mode, 27017).unwrap();
    node.parts.start().unwrap();
    assert_eq!(hello(&node).get("setName").and_then(|name| name.as_str()), Some("prod"));
    assert!(node.node.is_writable_primary());
}

#[test]
fn r18_reconfiguration_of_the_only_member() {
    let simulation = Simulation::new(1);
    let (node, _) = Node::start(&simulation.env()).unwrap();
    let mut config = node.node.with_topology(|topology| (**topology.config().unwrap()).clone());
    assert_eq!(
        node.parts.reconfig(config.to_doc().view(), false).unwrap_err().code(),
        ErrorCode::NewReplicaSetConfigurationIncompatible,
        "the version must grow"
    );
    config.version = 2;
    config.members[0].tags = doc! { "dc": "east" };
    node.parts.reconfig(config.to_doc().view(), false).unwrap();
    assert_eq!(node.node.config_document().unwrap().get("version"), Some(Value::Int32(2)));
    node.parts.reconfig(config.to_doc().view(), true).unwrap();
    let forced = node.node.config_document().unwrap();
    assert!(matches!(forced.get("version"), Some(Value::Int32(10_000..))), "{forced}");
    assert_eq!(forced.get("term"), None);
    // The tags last.
    drop(node);
    let (node, _) = Node::start(&simulation.kill()).unwrap();
    let tags = node.node.with_topology(|topology| topology.config().unwrap().members[0].tags.clone());
    assert_eq!(tags, doc! { "dc": "east" });
}

#[test]
fn r18_stepping_down_and_coming_back() {
    let simulation = Simulation::new(1);
    let (node, _) = Node::start(&simulation.env()).unwrap();
    let until = node.node.now_ms() + 5000;
    node.node.change_topology(|topology| topology.step_down(until));
    assert_eq!(node.parts.reconfig(doc! {}.view(), false).unwrap_err().code(), ErrorCode::NotWritablePrimary);
    node.parts.tick().unwrap();
    assert!(!node.node.is_writable_primary(), "not before its time");
    simulation.clock().advance(std::time::Duration::from_secs(6));
    node.parts.tick().unwrap();
    assert!(node.node.is_writable_primary());
    assert_eq!(node.node.with_topology(|topology| topology.term()), 2);
}

#[test]
fn b2_stand_alone_there_is_no_oplog() {
    let simulation = Simulation::new(1);
    let env = simulation.env();
    let node = Node::new(&env, engine(&env, pando_engine::Mode::StandAlone).unwrap(), Mode::StandAlone, 1).unwrap();
    node.parts.start().unwrap();
    assert!(node.engine.oplog().is_none());
    let hello = hello(&node);
    assert_eq!(hello.get("isWritablePrimary"), Some(Value::Bool(true)));
    assert_eq!(hello.get("setName"), None);
    assert_eq!(node.parts.initiate(doc! {}.view()).unwrap_err().code(), ErrorCode::NoReplicationEnabled);
    assert!(node.node.append_status(&mut DocBuilder::new()).is_err());
}

#[test]
fn r18_step_down_waits_and_goes_only_by_force() {
    let simulation = Simulation::new(1);
    let (node, _) = Node::start(&simulation.env()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let step_down = |command: Doc| {
        let request = crate::topology::StepDownRequest::parse(command.view()).unwrap();
        let waited = runtime.block_on(node.node.await_step_down(&node.operation().context, request));
        waited.and_then(|may_go| node.node.step_down(may_go))
    };
    let polite = doc! { "replSetStepDown": 10, "secondaryCatchUpPeriodSecs": 0 };
    assert_eq!(step_down(polite).unwrap_err().code(), ErrorCode::ExceededTimeLimit);
    assert!(node.node.is_writable_primary());
    step_down(doc! { "replSetStepDown": 10, "force": true }).unwrap();
    assert!(!node.node.is_writable_primary());
    assert_eq!(node.node.with_topology(|topology| topology.passive_until_ms()), node.node.now_ms() + 10_000);
}

#[test]
fn b2_from_a_set_to_stand_alone_and_back_nothing_is_lost() {
    let simulation = Simulation::new(1);
    let (node, _) = Node::start(&simulation.env()).unwrap();
    node.insert("test.c", &[doc! { "_id": 1 }]).unwrap();
    node.node.flush_blocking().unwrap();
    drop(node);
    // After a crash the last write is in the oplog only.
    let env = simulation.crash();
    let store = engine(&env, pando_engine::Mode::ReplicaSet).unwrap();
    let node = Node::new(&env, store.clone(), self_initiated(), 27017).unwrap();
    assert!(node.parts.leave_replication().unwrap().applied > 0);
    drop(node);
    store.shut_down().unwrap();
    drop(store);
    let env = simulation.kill();
    let alone = Node::new(&env, engine(&env, pando_engine::Mode::StandAlone).unwrap(), Mode::StandAlone, 1).unwrap();
    alone.parts.start().unwrap();
    assert_eq!(alone.contents()["test.c"].len(), 1);
    // What is written now has no entry.
    let collection = alone.find("test.c").unwrap();
    let document = doc! { "_id": 2 };
    let statement = [pando_collection::InsertStatement::new(document.view())];
    let mut operation = alone.operation();
    alone.unobserved.insert_documents(&mut operation, &collection, &statement, Default::default()).unwrap();
    drop(operation);
    alone.engine.flush_log().unwrap();
    drop((alone, collection));
    let (node, _) = Node::start(&simulation.crash()).unwrap();
    assert!(node.node.is_writable_primary());
    assert_eq!(node.contents()["test.c"].len(), 2);
    node.insert("test.c", &[doc! { "_id": 3 }]).unwrap();
    node.node.flush_blocking().unwrap();
    node.check_indexes();
    drop(node);
    let (node, _) = Node::start(&simulation.crash()).unwrap();
    assert_eq!(node.contents()["test.c"].len(), 3);
    node.check_indexes();
}

#[test]
fn b2_a_crash_anywhere_in_the_first_start_does_not_matter() {
    for operations in 0..60 {
        let simulation = Simulation::new(operations);
        simulation.disk().crash_after(operations);
        drop(Node::start(&simulation.env()));
        simulation.crash();
        let (node, _) = Node::start(&simulation.env()).unwrap_or_else(|error| panic!("after {operations}: {error:?}"));
        assert!(node.node.is_writable_primary());
        node.insert("test.c", &[doc! { "_id": 1 }]).unwrap();
        node.node.flush_blocking().unwrap();
        drop(node);
        let (node, _) = Node::start(&simulation.crash()).unwrap();
        assert_eq!(node.contents()["test.c"].len(), 1);
        node.check_indexes();
    }
}
