//! Cursors: pins, kills, time-outs, and what getMore may not do.

use super::*;
use crate::FindPlan;
use crate::executor::{BatchLimits, BatchSink, drive};
use crate::request::FindRequest;
use crate::tests::support::{Fixture, now};
use pando_base::Namespace;
use pando_doc::{Doc, DocBuilder, doc};
use std::time::Duration;

fn opened(fixture: &Fixture, manager: &CursorManager, session: Option<Doc>) -> PinnedCursor {
    let mut operation = fixture.operation();
    let request = FindRequest::new(fixture.namespace.clone());
    let Ok(FindPlan::Executor(executor)) = fixture.engine.find(&mut operation, &request) else { panic!("no plan") };
    let options = CursorOptions { session, ..CursorOptions::new(fixture.namespace.clone()) };
    manager.register(&operation.context, options, executor)
}

fn batch(fixture: &Fixture, cursor: &mut PinnedCursor, count: i64) -> (u32, bool) {
    let mut operation = fixture.operation();
    cursor.source.save();
    cursor.source.restore(&mut operation, &*fixture.engine.collections).unwrap();
    let mut builder = DocBuilder::new();
    let mut sink = BatchSink::begin(&mut builder, "nextBatch", BatchLimits::further(Some(count)));
    let source = &mut *cursor.source;
    let is_over = now(drive(source, &mut operation, &*fixture.engine.collections, &mut sink)).unwrap();
    (sink.end(), is_over)
}

fn filled() -> Fixture {
    let fixture = Fixture::new(&[]);
    fixture.insert(&(0..25).map(|n| doc! { "_id": n }).collect::<Vec<_>>());
    fixture
}

#[test]
fn u3_a_cursor_gives_batches_until_it_is_over() {
    let fixture = filled();
    let manager = CursorManager::new(&fixture.services.env);
    let mut cursor = opened(&fixture, &manager, None);
    assert_eq!(batch(&fixture, &mut cursor, 10), (10, false));
    let id = cursor.keep();
    let context = fixture.operation().context;
    let mut cursor = manager.pin(id, &context, &fixture.namespace, None, None).unwrap();
    let code = |outcome: pando_base::Result<PinnedCursor>| outcome.map(|_| ()).unwrap_err().code().number();
    let in_use = pando_base::ErrorCode::CursorInUse.number();
    assert_eq!(code(manager.pin(id, &context, &fixture.namespace, None, None)), in_use);
    assert_eq!(batch(&fixture, &mut cursor, 10), (10, false));
    assert_eq!(batch(&fixture, &mut cursor, 10), (5, true));
    cursor.close();
    assert_eq!(code(manager.pin(id, &context, &fixture.namespace, None, None)), 43);
    assert_eq!(manager.open(), OpenCursors::default());
}

#[test]
fn u3_a_cursor_belongs_to_its_namespace_and_session() {
    let fixture = filled();
    let manager = CursorManager::new(&fixture.services.env);
    let session = doc! { "id": "one" };
    let id = opened(&fixture, &manager, Some(session.clone())).keep();
    let context = fixture.operation().context;
    let other = Namespace::of("test", "other").unwrap();
    let code = |namespace: &Namespace, session: Option<&Doc>, transaction: Option<i64>| {
        manager.pin(id, &context, namespace, session, transaction).map(|_| ()).unwrap_err().code().number()
    };
    assert_eq!(code(&other, Some(&session), None), 13);
    assert_eq!(code(&fixture.namespace, None, None), 50737);
    assert_eq!(code(&fixture.namespace, Some(&doc! { "id": "two" }), None), 50738);
    assert_eq!(code(&fixture.namespace, Some(&session), Some(1)), 50739);
    assert_eq!(manager.time_out(0), 0, "it lives as long as its session");
    assert_eq!(manager.kill_session(&session), 1);
    assert_eq!(code(&fixture.namespace, Some(&session), None), 43);
}

#[test]
fn u3_cursors_time_out_and_are_killed() {
    let fixture = filled();
    let manager = CursorManager::new(&fixture.services.env);
    let idle = opened(&fixture, &manager, None).keep();
    let pinned = opened(&fixture, &manager, None);
    fixture.services.env.clock().pause(Duration::from_secs(601));
    assert_eq!(manager.time_out(600_000), 1);
    assert!(!manager.kill(idle));
    let id = pinned.id();
    assert!(manager.kill(id), "it is told to end");
    pinned.keep();
    assert_eq!(manager.open().total, 0);
    assert_eq!(manager.statistics().timed_out.get(), 1);
}

#[test]
fn u3_a_cursor_ends_when_its_collection_is_dropped() {
    let fixture = filled();
    let manager = CursorManager::new(&fixture.services.env);
    let mut cursor = opened(&fixture, &manager, None);
    assert_eq!(batch(&fixture, &mut cursor, 10), (10, false));
    cursor.source.save();
    let mut operation = fixture.operation();
    fixture.drop_collection();
    let error = cursor.source.restore(&mut operation, &*fixture.engine.collections).unwrap_err();
    assert_eq!(error.code().number(), 175);
    assert!(error.reason().starts_with("collection dropped. UUID "), "{error}");
}
