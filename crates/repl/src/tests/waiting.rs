//! Write and read concerns of a set of one.

use super::support::Node;
use crate::gate::ReplGate;
use crate::node::WriteConcernOutcome;
use crate::read_concern::ReadConcern;
use crate::write_concern::WriteConcern;
use pando_base::{ErrorCode, Namespace, Timestamp};
use pando_doc::{Doc, doc};
use pando_env::simulated::Simulation;
use pando_storage::{Direction, ReadSource};
use std::future::Future;

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn wait(node: &Node, concern: Doc) -> WriteConcernOutcome {
    let concern = WriteConcern::parse(concern.view()).unwrap();
    block_on(node.node.wait_for_write_concern(&node.operation().context, &concern, None))
}

fn count(node: &Node, concern: Doc) -> pando_base::Result<usize> {
    let mut operation = node.operation();
    let concern = ReadConcern::parse(concern.view())?;
    block_on(node.node.prepare_read(&mut operation, &concern, Some(&node.writer)))?;
    let collection = node.find("test.c").unwrap();
    let mut cursor = collection.records.cursor(Direction::Forward);
    let mut count = 0;
    while cursor.next(&mut operation.recovery_unit)?.is_some() {
        count += 1;
    }
    Ok(count)
}

#[test]
fn r2_a_majority_is_the_disk_of_the_only_member() {
    let simulation = Simulation::new(1);
    let (node, _) = Node::start(&simulation.env()).unwrap();
    node.insert("test.c", &[doc! { "_id": 1 }]).unwrap();
    let points = node.node.points();
    assert!(points.committed.0 < points.applied.0, "nobody has waited yet");
    assert_eq!(wait(&node, doc! { "w": 1 }), WriteConcernOutcome::Satisfied);
    assert!(node.node.points().committed.0 < points.applied.0, "w: 1 does not wait for the disk");
    assert_eq!(wait(&node, doc! { "w": "majority" }), WriteConcernOutcome::Satisfied);
    assert_eq!(node.node.points().committed, node.node.points().applied);
    assert_eq!(node.engine.timestamps().stable, points.applied.0.timestamp);
    assert_eq!(
        node.node.default_write_concern().to_doc().get("w").and_then(|w| w.as_str().map(str::to_owned)),
        Some("majority".to_owned())
    );
    // It is there after the power has gone.
    drop(node);
    let (node, _) = Node::start(&simulation.crash()).unwrap();
    assert_eq!(node.contents()["test.c"].len(), 1);
}

#[test]
fn r2_what_cannot_be_had_is_told_after_the_write() {
    let simulation = Simulation::new(1);
    let (node, _) = Node::start(&simulation.env()).unwrap();
    let code = |concern: Doc| match wait(&node, concern) {
        WriteConcernOutcome::Failed { error, timed_out: false } => error.code(),
        other => panic!("{other:?}"),
    };
    assert_eq!(code(doc! { "w": 2 }), ErrorCode::UnsatisfiableWriteConcern);
    assert_eq!(code(doc! { "w": "nowhere" }), ErrorCode::UnknownReplWriteConcern);
    let concern = WriteConcern::parse(doc! { "w": 2 }.view()).unwrap();
    let outcome = block_on(node.node.wait_for_write_concern(&node.operation().context, &concern, None));
    let document = outcome.error_document(&concern).unwrap();
    assert_eq!(document.get("codeName").and_then(|name| name.as_str()), Some("UnsatisfiableWriteConcern"));
    // A killed operation is told so.
    let operation = node.operation();
    operation.context.kill(ErrorCode::Interrupted);
    let concern = WriteConcern::parse(doc! { "j": true }.view()).unwrap();
    let outcome = block_on(node.node.wait_for_write_concern(&operation.context, &concern, None));
    assert!(matches!(outcome, WriteConcernOutcome::Failed { error, .. } if error.code() == ErrorCode::Interrupted));
}

#[test]
fn r2_a_wait_for_a_write_behind_a_hole_times_out() {
    let simulation = Simulation::new(1);
    let (node, _) = Node::start(&simulation.env()).unwrap();
    node.insert("test.c", &[doc! { "_id": 1 }]).unwrap();
    // Somebody has a place in the oplog and does not fill it.
    let mut other = node.operation();
    let mut unit = other.unit_of_work();
    node.writer.reserve(&mut unit, 1).unwrap();
    node.insert("test.c", &[doc! { "_id": 2 }]).unwrap();
    let concern = WriteConcern::parse(doc! { "w": "majority", "wtimeout": 50 }.view()).unwrap();
    let operation = node.operation();
    let outcome = block_on(node.node.wait_for_write_concern(&operation.context, &concern, None));
    let WriteConcernOutcome::Failed { error, timed_out: true } = &outcome else { panic!("{outcome:?}") };
    assert_eq!(error.code(), ErrorCode::WriteConcernFailed);
    let document = outcome.error_document(&concern).unwrap();
    assert_eq!(
        document.get("errInfo").unwrap().as_document().unwrap().get("wtimeout"),
        Some(pando_doc::Value::Bool(true))
    );
    assert!(node.node.points().committed.0 < node.node.points().applied.0);
    // The place is given up: the write has no hole before it any more.
    drop(unit);
    assert_eq!(wait(&node, doc! { "w": "majority", "wtimeout": 50 }), WriteConcernOutcome::Satisfied);
    assert_eq!(node.node.points().committed, node.node.points().applied);
}

#[test]
fn r2_what_nobody_waits_for_is_flushed_after_a_moment() {
    let simulation = Simulation::new(1);
    let (node, _) = Node::start(&simulation.env()).unwrap();
    node.insert("test.c", &[doc! { "_id": 1 }]).unwrap();
    assert!(node.node.points().committed.0 < node.node.points().applied.0);
    block_on(node.node.flush_unwaited()).unwrap();
    assert_eq!(node.node.points().committed, node.node.points().applied);
}

#[test]
fn r8_levels_read_what_they_should() {
    let simulation = Simulation::new(1);
    let (node, _) = Node::start(&simulation.env()).unwrap();
    node.insert("test.c", &[doc! { "_id": 1 }]).unwrap();
    node.node.flush_blocking().unwrap();
    let first = node.node.points().applied.0.timestamp;
    node.insert("test.c", &[doc! { "_id": 2 }]).unwrap();
    let second = node.node.points().applied.0.timestamp;
    assert_eq!(count(&node, doc! {}), Ok(2));
    assert_eq!(count(&node, doc! { "level": "available" }), Ok(2));
    assert_eq!(count(&node, doc! { "level": "linearizable" }), Ok(2));
    assert_eq!(count(&node, doc! { "level": "majority" }), Ok(1), "the second is not on disk yet");
    assert_eq!(count(&node, doc! { "level": "snapshot" }), Ok(1));
    assert_eq!(count(&node, doc! { "level": "snapshot", "atClusterTime": first }), Ok(1));
    // Who has seen the second sees it again.
    assert_eq!(count(&node, doc! { "level": "majority", "afterClusterTime": second }), Ok(2));
    assert_eq!(count(&node, doc! { "level": "snapshot", "atClusterTime": first }), Ok(1));
    assert_eq!(node.node.majority_snapshot(), second);
}

#[test]
fn r8_times_that_others_have_told_of() {
    let simulation = Simulation::new(1);
    let (node, _) = Node::start(&simulation.env()).unwrap();
    node.insert("test.c", &[doc! { "_id": 1 }]).unwrap();
    let applied = node.node.points().applied.0.timestamp;
    let ahead = Timestamp::new(applied.seconds() + 100, 1);
    let error = count(&node, doc! { "afterClusterTime": ahead }).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidOptions, "nobody has told of it");
    node.node.clock().advance(ahead);
    assert_eq!(count(&node, doc! { "afterClusterTime": ahead }), Ok(1));
    assert!(node.node.points().applied.0.timestamp > ahead, "a mark was written");
    assert_eq!(count(&node, doc! { "level": "majority", "afterClusterTime": ahead }), Ok(1));
}

#[test]
fn r8_a_linearizable_read_leaves_a_mark_that_a_majority_has() {
    let simulation = Simulation::new(1);
    let (node, _) = Node::start(&simulation.env()).unwrap();
    let before = node.entries().len();
    let mut operation = node.operation();
    block_on(node.node.finish_linearizable_read(&mut operation, &node.writer)).unwrap();
    assert_eq!(node.entries().len(), before + 1);
    assert_eq!(node.node.points().committed, node.node.points().applied);
}

#[test]
fn r2_the_gate_follows_the_state() {
    let simulation = Simulation::new(1);
    let (node, _) = Node::start(&simulation.env()).unwrap();
    let gate: &dyn ReplGate = &*node.node;
    let (mine, local) = (Namespace::parse("test.c").unwrap(), Namespace::parse("local.c").unwrap());
    assert!(gate.is_replicated() && gate.check_can_write(&mine).is_ok() && gate.check_can_read(false).is_ok());
    node.node.change_topology(|topology| topology.step_down(u64::MAX));
    assert_eq!(gate.check_can_write(&mine).unwrap_err().code(), ErrorCode::NotWritablePrimary);
    assert!(gate.check_can_write(&local).is_ok());
    assert_eq!(gate.check_can_read(false).unwrap_err().code(), ErrorCode::NotPrimaryNoSecondaryOk);
    assert!(gate.check_can_read(true).is_ok());
    node.node.change_topology(|topology| topology.maintenance(true)).unwrap();
    assert_eq!(gate.check_can_read(true).unwrap_err().code(), ErrorCode::NotPrimaryOrSecondary);
}

#[test]
fn r18_awaited_hellos_wake_when_something_changes() {
    let simulation = Simulation::new(1);
    let (node, _) = Node::start(&simulation.env()).unwrap();
    let counter = node.node.with_topology(|topology| topology.counter());
    block_on(async {
        let mut changed = std::pin::pin!(node.node.topology_changed(counter));
        let poll = std::future::poll_fn(|task| std::task::Poll::Ready(changed.as_mut().poll(task).is_ready()));
        assert!(!poll.await, "nothing has changed");
        node.node.change_topology(|topology| topology.step_down(0));
        changed.await;
    });
}

#[test]
fn r8_history_is_kept_for_its_window() {
    let simulation = Simulation::new(1);
    let (node, _) = Node::start(&simulation.env()).unwrap();
    node.insert("test.c", &[doc! { "_id": 1 }]).unwrap();
    node.node.flush_blocking().unwrap();
    let first = node.node.points().applied.0.timestamp;
    simulation.clock().advance(std::time::Duration::from_secs(200));
    node.insert("test.c", &[doc! { "_id": 2 }]).unwrap();
    node.node.flush_blocking().unwrap();
    let read = |at: Timestamp| {
        let mut operation = node.operation();
        operation.recovery_unit.set_read_source(ReadSource::Provided(at)).unwrap();
        operation.recovery_unit.preallocate_snapshot()
    };
    assert!(read(first).is_ok());
    simulation.clock().advance(std::time::Duration::from_secs(200));
    node.insert("test.c", &[doc! { "_id": 3 }]).unwrap();
    node.node.flush_blocking().unwrap();
    assert!(read(first).is_err(), "older than the window");
}

#[test]
fn r8_a_transaction_at_a_time_waits_until_nothing_before_it_is_in_flight() {
    use std::task::{Context, Poll, Waker};
    let simulation = Simulation::new(1);
    let (node, _) = Node::start(&simulation.env()).unwrap();
    node.insert("test.c", &[doc! { "_id": 1 }]).unwrap();
    let mut other = node.operation();
    let mut unit = other.unit_of_work();
    node.writer.reserve(&mut unit, 1).unwrap();
    node.insert("test.c", &[doc! { "_id": 2 }]).unwrap();
    let at = node.node.points().applied.0.timestamp;
    let concern = ReadConcern::parse(doc! { "level": "snapshot", "atClusterTime": at }.view()).unwrap();
    let mut operation = node.operation();
    let mut prepared = Box::pin(node.node.prepare_transaction_read(&mut operation, &concern, &node.writer));
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..3 {
        assert!(prepared.as_mut().poll(&mut context).is_pending(), "what is in flight may be before the time");
    }
    drop(unit);
    let ready = std::iter::repeat_with(|| prepared.as_mut().poll(&mut context)).take(100);
    assert!(ready.into_iter().any(|outcome| matches!(outcome, Poll::Ready(Ok(())))));
    drop(prepared);
    assert_eq!(operation.recovery_unit.read_timestamp(), Some(at));
}
