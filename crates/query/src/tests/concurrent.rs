//! Yields, conflicts and changes in between.

use super::generate::{Chance, document, filter};
use super::support::*;
use crate::FindPlan;
use crate::executor::{BatchOutcome, YieldCause, YieldPolicy};
use crate::request::{DeleteRequest, FindRequest, UpdateRequest};
use pando_doc::{Doc, OwnedValue, doc};
use pando_operation::Operation;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// Pulls a find in small pieces, with a change between any two; true if it went to its end.
fn pull_with_changes(fixture: &Fixture, filter: Doc, change: impl FnMut(usize)) -> pando_base::Result<Vec<Doc>> {
    pull_request_with_changes(fixture, &fixture.request(filter), change)
}

fn pull_request_with_changes(
    fixture: &Fixture,
    request: &FindRequest,
    mut change: impl FnMut(usize),
) -> pando_base::Result<Vec<Doc>> {
    let mut operation = fixture.operation();
    let FindPlan::Executor(mut executor) = fixture.engine.find(&mut operation, request)? else { panic!("a view") };
    let mut found: Vec<Doc> = Vec::new();
    for step in 0.. {
        let outcome = executor.next(&mut operation)?;
        match outcome {
            crate::executor::Next::Result(member) => found.extend(member.document),
            crate::executor::Next::Exhausted => break,
            crate::executor::Next::Yield(_) => {}
        }
        executor.save();
        operation.recovery_unit.abandon_snapshot()?;
        change(step);
        executor.restore(&mut operation, &*fixture.engine.collections)?;
    }
    Ok(found)
}

#[test]
fn u3_a_scan_goes_on_after_changes() {
    let fixture = Fixture::new(&[index(doc! { "a": 1 })]);
    fixture.insert(&(0..40).map(|n| doc! { "_id": n, "a": n }).collect::<Vec<_>>());
    let delete = |id: i32| {
        let request = DeleteRequest::new(fixture.namespace.clone(), doc! { "_id": id }, false);
        now(fixture.engine.delete(&mut fixture.operation(), &request)).unwrap();
    };
    // What was found and what is next are deleted while the scan waits.
    let found = pull_with_changes(&fixture, doc! { "a": { "$gte": 0 } }, |step| {
        delete(step as i32 * 2);
        delete(step as i32 * 2 + 1);
    });
    assert_eq!(ids(&found.unwrap()).first().map(String::as_str), Some("0"));
    fixture.check();
}

#[test]
fn u7_a_text_search_looks_again_at_what_changed_after_its_keys_were_read() {
    for by_score in [true, false] {
        let fixture = Fixture::new(&[index(doc! { "a": "text" })]);
        fixture.insert(&(0..1500).map(|n| doc! { "_id": n, "a": "walnut" }).collect::<Vec<_>>());
        let mut request = fixture.request(doc! { "$text": { "$search": "walnut" } });
        if by_score {
            request.sort = doc! { "score": { "$meta": "textScore" } };
        }
        let mut changed = false;
        let found = pull_request_with_changes(&fixture, &request, |_| {
            // The first yield comes while keys are read, if the scores are asked for.
            if !std::mem::replace(&mut changed, true) {
                let all = doc! { "_id": { "$gte": 700 } };
                let change = doc! { "$set": { "a": "hazel" } };
                let mut request = UpdateRequest::new(fixture.namespace.clone(), all, OwnedValue::Document(change));
                request.multi = true;
                now(fixture.engine.update(&mut fixture.operation(), &request)).unwrap();
            }
        });
        let found = found.unwrap();
        assert!(found.iter().all(|document| document.get("a").and_then(|a| a.as_str()) == Some("walnut")));
        assert_eq!(found.len(), 700, "by score: {by_score}");
        fixture.check();
    }
}

#[test]
fn u3_a_plan_whose_index_is_dropped_is_killed() {
    let fixture = Fixture::new(&[index(doc! { "a": 1 })]);
    fixture.insert(&(0..10).map(|n| doc! { "_id": n, "a": n }).collect::<Vec<_>>());
    let outcome = pull_with_changes(&fixture, doc! { "a": { "$gte": 0 } }, |step| {
        if step == 3 {
            fixture.drop_index("a_1");
        }
    });
    let error = outcome.unwrap_err();
    assert_eq!(error.code().number(), 175);
    assert_eq!(error.reason(), "query plan killed :: index 'a_1' dropped");
}

#[test]
fn x22_long_scans_yield() {
    let fixture = Fixture::new(&[]);
    fixture.insert(&(0..3000).map(|n| doc! { "_id": n }).collect::<Vec<_>>());
    let mut operation = fixture.operation();
    let request = fixture.request(doc! { "nothing": 1 });
    let Ok(FindPlan::Executor(mut executor)) = fixture.engine.find(&mut operation, &request) else { panic!() };
    let mut found: Vec<Doc> = Vec::new();
    let outcome = executor.next_batch(&mut operation, &mut found).unwrap();
    assert_eq!(outcome, BatchOutcome::Yield(YieldCause::Time));
    operation.context.kill(pando_base::ErrorCode::Interrupted);
    executor.save();
    executor.restore(&mut operation, &*fixture.engine.collections).unwrap();
    let error = executor.next_batch(&mut operation, &mut found).unwrap_err();
    assert_eq!(error.code().number(), 11601);
}

/// A write in progress.
struct Task<'t>(Option<Pin<Box<dyn Future<Output = ()> + 't>>>);

fn random_write<'f>(fixture: &'f Fixture, chance: &mut Chance, next_id: &mut i32) -> Task<'f> {
    let condition = filter(chance, 1);
    let many = chance.one_in(2);
    let kind = chance.below(8);
    let created = document(chance, *next_id);
    *next_id += 1;
    let amount = chance.below(5) as i32 + 1;
    Task(Some(Box::pin(async move {
        let mut operation: Operation = fixture.operation();
        match kind {
            0 => {
                let request = DeleteRequest::new(fixture.namespace.clone(), condition, many);
                fixture.engine.delete(&mut operation, &request).await.unwrap();
            }
            1..=3 => {
                let _ = fixture.try_insert(&[created]);
            }
            _ => {
                let change = match kind {
                    4 => doc! { "$set": { "a": amount } },
                    5 => doc! { "$push": { "x": amount } },
                    6 => doc! { "$unset": { "b": 1 } },
                    _ => doc! { "$set": { "b": [amount, amount + 1] } },
                };
                let mut request =
                    UpdateRequest::new(fixture.namespace.clone(), condition, OwnedValue::Document(change));
                request.multi = many;
                // Two arrays side by side are refused by compound indexes; pushing to no array as well.
                let _ = fixture.engine.update(&mut operation, &request).await;
            }
        }
    })))
}

#[test]
fn u4_indexes_equal_the_collection_after_concurrent_writes() {
    for seed in 0..6 {
        let mut chance = Chance::new(seed + 900);
        let indexes = [index(doc! { "a": 1, "b": 1 }), index(doc! { "a.b": -1 }), index(doc! { "x": 1 })];
        let mut fixture = Fixture::new(&indexes);
        // So that writes take turns.
        fixture.engine.yield_override = Some(YieldPolicy { iterations: 3, period_ns: u64::MAX });
        let mut next_id = 0;
        for _ in 0..60 {
            let _ = fixture.try_insert(&[document(&mut chance, next_id)]);
            next_id += 1;
        }
        let mut tasks: Vec<Task<'_>> = Vec::new();
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..600 {
            if tasks.len() < 4 {
                tasks.push(random_write(&fixture, &mut chance, &mut next_id));
            }
            let turn = chance.below(tasks.len() as u64) as usize;
            let is_done = match &mut tasks[turn].0 {
                Some(task) => matches!(task.as_mut().poll(&mut context), Poll::Ready(())),
                None => true,
            };
            if is_done {
                tasks.swap_remove(turn);
            }
        }
        for task in tasks {
            if let Some(task) = task.0 {
                now(task);
            }
        }
        fixture.check();
    }
}

#[test]
fn x9_an_update_that_meets_another_one_is_tried_again() {
    let fixture = Fixture::new(&[index(doc! { "a": 1 })]);
    fixture.insert(&[doc! { "_id": 1, "a": 1 }]);
    let collection = fixture.collection();
    let mut first = fixture.operation();
    let mut unit = first.unit_of_work();
    let (record_id, old) =
        fixture.engine.write_path.find_by_id(&mut unit, &collection, pando_doc::Value::Int32(1)).unwrap().unwrap();
    let new = doc! { "_id": 1, "a": 2 };
    let arguments = pando_collection::UpdateArguments::new(record_id, old.view(), new.view(), new.view());
    fixture.engine.write_path.update_document(&mut unit, &collection, &arguments).unwrap();

    let mut second = fixture.operation();
    let told = second.context.clone();
    let filter = doc! { "a": { "$gte": 1 } };
    let change = OwnedValue::Document(doc! { "$inc": { "a": 10 } });
    let request = UpdateRequest::new(fixture.namespace.clone(), filter, change);
    let mut waiting = std::pin::pin!(fixture.engine.update(&mut second, &request));
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..3 {
        assert!(waiting.as_mut().poll(&mut context).is_pending(), "it cannot go on while the first is not committed");
    }
    unit.commit().unwrap();
    let result = now(waiting).unwrap();
    assert_eq!((result.n, result.modified), (1, 1));
    assert!(told.statistics().write_conflicts.get() > 0);
    assert_eq!(fixture.find(&fixture.request(doc! {})).unwrap(), vec![doc! { "_id": 1, "a": 12 }]);
    fixture.check();
}
