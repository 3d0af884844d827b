//! What cannot be indexed when the scan meets it, and what becomes of it.

use super::support::World;
use crate::Phase;
use pando_base::ErrorCode;
use pando_doc::{Doc, doc};

fn both() -> Doc {
    doc! { "v": 2_i32, "key": { "a": 1_i32, "b": 1_i32 }, "name": "ab" }
}

fn with_parallel_arrays() -> World {
    let world = World::new();
    for id in 0..10_i32 {
        world.insert(&doc! { "_id": id, "a": id, "b": [1_i32, 2_i32] }).unwrap();
    }
    world.update(&doc! { "_id": 4_i32, "a": [1_i32, 2_i32], "b": [3_i32, 4_i32] }).unwrap();
    world
}

#[test]
fn i2_parallel_arrays_that_stay_end_the_build() {
    let world = with_parallel_arrays();
    let error = world.begin(&[both()]).commit().unwrap_err();
    assert_eq!(error.code(), ErrorCode::CannotIndexParallelArrays, "{error}");
}

#[test]
fn i2_parallel_arrays_that_go_are_no_obstacle() {
    for mend in [
        |world: &World| world.update(&doc! { "_id": 4_i32, "a": 1_i32, "b": [3_i32, 4_i32] }).unwrap(),
        |world: &World| world.delete(4).unwrap(),
    ] {
        let world = with_parallel_arrays();
        let mut build = world.begin(&[both()]);
        while build.phase() != Phase::DrainWrites {
            build.step().unwrap();
        }
        build.put_down_and_take_up();
        mend(&world);
        build.commit().unwrap();
        assert_eq!(world.faults(), Vec::<String>::new());
    }
}

#[test]
fn i2_writers_are_refused_what_the_index_could_not_have() {
    let world = World::new();
    world.insert(&doc! { "_id": 1_i32, "a": 1_i32 }).unwrap();
    let build = world.begin(&[both()]);
    let error = world.insert(&doc! { "_id": 2_i32, "a": [1_i32, 2_i32], "b": [1_i32, 2_i32] }).unwrap_err();
    assert_eq!(error.code(), ErrorCode::CannotIndexParallelArrays);
    build.commit().unwrap();
    assert_eq!(world.faults(), Vec::<String>::new());
}

#[test]
fn i1_writes_go_to_the_side_table_and_not_into_the_index() {
    let world = World::new();
    world.insert(&doc! { "_id": 1_i32, "a": 1_i32 }).unwrap();
    let build = world.begin(&[doc! { "v": 2_i32, "key": { "a": 1_i32 }, "name": "a_1" }]);
    world.insert(&doc! { "_id": 2_i32, "a": [7_i32, 8_i32] }).unwrap();
    let collection = world.collection();
    let index = collection.index("a_1").unwrap();
    assert!(index.data.is_empty(&mut world.operation().recovery_unit).unwrap());
    assert!(!index.multikey.is_multikey());
    build.commit().unwrap();
    assert!(index.multikey.is_multikey(), "what writers have taught of arrays is known");
    assert_eq!(world.faults(), Vec::<String>::new());
}
