//! Random writes by several operations at a time, some of which conflict, fail or roll back. After each commit every index
//! says what the documents say, and the documents are what a plain map says.

use super::support::*;
use pando_base::{Error, ErrorCode, Result};
use pando_doc::{ArrayBuilder, Doc, DocBuilder, Value, doc};
use pando_env::simulated::Simulation;
use pando_env::{Env, Random};
use pando_operation::{Operation, UnitOfWork};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

const SEEDS: u64 = 25;
const STEPS: usize = 60;
const ID_COUNT: u64 = 12;

fn indexes() -> [Doc; 6] {
    [
        unique(doc! { "u": 1_i32 }, "unique"),
        specification(doc! { "a": 1_i32, "n.x": -1_i32 }, "compound"),
        specification(doc! { "n.x": 1_i32 }, "nested"),
        specification(doc! { "h": "hashed" }, "hashed"),
        doc! { "v": 2_i32, "key": { "a": -1_i32 }, "name": "sparse", "sparse": true },
        doc! { "v": 2_i32, "key": { "n": 1_i32 }, "name": "partial", "partialFilterExpression": { "on": true } },
    ]
}

/// Small values, so that they meet.
fn scalar(random: &dyn Random, out: &mut DocBuilder, name: &str) {
    match random.below(8) {
        0 => out.append(name, Value::Null),
        1 => out.append(name, random.below(4) as f64),
        2 => out.append(name, "text"),
        3 => out.append(name, true),
        _ => out.append(name, random.below(4) as i32),
    }
}

fn field(random: &dyn Random, out: &mut DocBuilder, name: &str) {
    match random.below(6) {
        0 => {}
        1 => {
            let mut array = ArrayBuilder::new();
            (0..random.below(4)).for_each(|_| array.push(random.below(4) as i32));
            out.append(name, array.finish().view());
        }
        2 => out.document(name, |nested| scalar(random, nested, "x")),
        3 => {
            let mut array = ArrayBuilder::new();
            (0..random.below(3)).for_each(|_| array.document(|nested| field_or_nothing(random, nested)));
            out.append(name, array.finish().view());
        }
        _ => scalar(random, out, name),
    }
}

fn field_or_nothing(random: &dyn Random, nested: &mut DocBuilder) {
    if random.below(3) > 0 {
        scalar(random, nested, "x");
    }
}

fn document(random: &dyn Random, id: u64) -> Doc {
    let mut out = DocBuilder::new();
    out.append("_id", id as i32);
    if random.below(3) == 0 {
        out.append("u", random.below(40) as i32);
    } else {
        out.append("u", 1000 + id as i32);
    }
    field(random, &mut out, "a");
    field(random, &mut out, "n");
    if random.below(2) == 0 {
        scalar(random, &mut out, "h");
    }
    out.append("on", random.below(2) == 0);
    out.finish()
}

type Model = BTreeMap<u64, Doc>;

/// One random write; what it changes, if it succeeds, is entered into the model.
fn write(fixture: &Fixture, operation: &mut Operation, random: &dyn Random, model: &mut Model) -> Result<()> {
    let id = random.below(ID_COUNT);
    let new = document(random, id);
    match random.below(8) {
        0 => {
            if fixture.delete(operation, Value::Int32(id as i32))? {
                assert!(model.remove(&id).is_some());
            } else {
                assert!(!model.contains_key(&id));
            }
        }
        1..=4 => {
            if fixture.update(operation, &new)? {
                assert!(model.insert(id, new).is_some());
            } else {
                assert!(!model.contains_key(&id));
            }
        }
        _ => {
            fixture.insert(operation, &new)?;
            assert!(model.insert(id, new).is_none(), "a duplicate _id was let in");
        }
    }
    Ok(())
}

fn is_expected(error: &Error) -> bool {
    matches!(
        error.code(),
        ErrorCode::DuplicateKey
            | ErrorCode::WriteConflict
            | ErrorCode::CannotIndexParallelArrays
            | ErrorCode::FailPointEnabled
    )
}

/// Some writes in one unit of work. True if all of them succeeded.
fn writes(fixture: &Fixture, unit: &mut UnitOfWork<'_>, random: &dyn Random, model: &mut Model) -> Option<ErrorCode> {
    for _ in 0..=random.below(3) {
        if let Err(error) = write(fixture, unit, random, model) {
            assert!(is_expected(&error), "{error}");
            return Some(error.code());
        }
    }
    None
}

fn check(fixture: &Fixture, model: &Model) {
    fixture.check();
    let mut found = fixture.documents();
    let mut expected: Vec<String> = model.values().map(Doc::to_string).collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}

/// How often what happened.
#[derive(Debug, Default)]
struct Tally {
    commits: u32,
    rollbacks: u32,
    conflicts: u32,
    duplicates: u32,
}

impl Tally {
    fn failed(&mut self, code: ErrorCode) {
        match code {
            ErrorCode::WriteConflict => self.conflicts += 1,
            ErrorCode::DuplicateKey => self.duplicates += 1,
            _ => {}
        }
    }
}

fn play(fixture: &Fixture, random: &dyn Random, tally: &mut Tally) {
    let mut model = Model::new();
    for _ in 0..STEPS {
        let mut first = fixture.operation();
        let mut second = fixture.operation();
        let mut first_unit = first.unit_of_work();
        let mut first_model = model.clone();
        fixture.observer.refuses.store(random.below(10) == 0, Ordering::Relaxed);
        let first_error = writes(fixture, &mut first_unit, random, &mut first_model);
        fixture.observer.refuses.store(false, Ordering::Relaxed);
        // Another operation writes while the first has not ended; it sees the state before.
        let mut second_model = model.clone();
        let mut second_unit = second.unit_of_work();
        let second_error = writes(fixture, &mut second_unit, random, &mut second_model);
        [first_error, second_error].into_iter().flatten().for_each(|code| tally.failed(code));
        let second_commits = second_error.is_none() && random.below(3) > 0;
        let first_commits = first_error.is_none() && random.below(4) > 0;
        let before = model.clone();
        if first_commits {
            first_unit.commit().unwrap();
            model = merged(&model, &before, &first_model);
        } else {
            drop(first_unit);
        }
        if second_commits {
            second_unit.commit().unwrap();
            model = merged(&model, &before, &second_model);
        } else {
            drop(second_unit);
        }
        tally.commits += u32::from(first_commits) + u32::from(second_commits);
        tally.rollbacks += u32::from(!first_commits) + u32::from(!second_commits);
        check(fixture, &model);
    }
}

/// The model with what one operation has changed since before.
fn merged(model: &Model, before: &Model, after: &Model) -> Model {
    let mut merged = model.clone();
    for id in 0..ID_COUNT {
        match (before.get(&id), after.get(&id)) {
            (old, new) if old == new => {}
            (_, Some(new)) => drop(merged.insert(id, new.clone())),
            (_, None) => drop(merged.remove(&id)),
        }
    }
    merged
}

fn seeded(seed: u64) -> Env {
    Simulation::new(seed).env()
}

#[test]
fn x11_indexes_equal_the_collection_after_random_writes() {
    on_each_engine(&Mode::StandAlone, |make| {
        let mut tally = Tally::default();
        for seed in 0..SEEDS {
            let fixture = Fixture::with_indexes(make, &indexes());
            play(&fixture, seeded(seed).random(), &mut tally);
        }
        let Tally { commits, rollbacks, conflicts, duplicates } = tally;
        assert!([commits, rollbacks, conflicts, duplicates].iter().all(|count| *count > 50), "{tally:?}");
    });
}
