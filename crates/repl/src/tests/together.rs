//! Many at once, on real threads over the oracle: places in the oplog are given out once and in order, and what a majority
//! has moves on without tripping over holes.

use super::support::{Node, model_engine, self_initiated};
use pando_base::Timestamp;
use pando_doc::doc;
use pando_engine_model::ModelDisk;
use pando_env::Env;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const WRITERS: i32 = 4;
const WRITES: i32 = 60;

#[test]
fn r1_writers_and_flushes_at_once_leave_one_entry_each() {
    let env = Env::real();
    let node = Arc::new(Node::new(&env, model_engine(&ModelDisk::new()), self_initiated(), 27017).unwrap());
    node.parts.start().unwrap();
    node.insert("test.c", &[doc! { "_id": -1 }]).unwrap();
    let before = node.entries().len();
    let left = Arc::new(AtomicUsize::new(WRITERS as usize));
    let mut threads = Vec::new();
    for writer in 0..WRITERS {
        let (node, left) = (node.clone(), left.clone());
        let body = move || {
            for write in 0..WRITES {
                let id = writer * 1000 + write * 2;
                node.insert("test.c", &[doc! { "_id": id }, doc! { "_id": id + 1 }]).unwrap();
            }
            left.fetch_sub(1, Ordering::AcqRel);
        };
        threads.push(env.tasks().spawn_thread("writer", Box::new(body)).unwrap());
    }
    let flusher = node.clone();
    let flush = move || {
        while left.load(Ordering::Acquire) > 0 {
            flusher.node.flush_blocking().unwrap();
            let points = flusher.node.points();
            assert!(points.committed.0 <= points.applied.0);
        }
    };
    threads.push(env.tasks().spawn_thread("flusher", Box::new(flush)).unwrap());
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    node.node.flush_blocking().unwrap();
    let entries = node.entries();
    let times: Vec<Timestamp> = entries.iter().map(|entry| entry.get("ts").unwrap().as_timestamp().unwrap()).collect();
    assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "in order, each once");
    assert_eq!(entries.len() - before, (WRITERS * WRITES * 2) as usize);
    assert_eq!(node.node.points().committed.0.timestamp, *times.last().unwrap());
    node.check_indexes();
}

#[test]
fn r17_the_oracle_recovers_too() {
    let disk = ModelDisk::new();
    let simulation = pando_env::simulated::Simulation::new(1);
    let env = simulation.env();
    let node = Node::new(&env, model_engine(&disk), self_initiated(), 27017).unwrap();
    node.parts.start().unwrap();
    node.insert("test.c", &[doc! { "_id": 1 }, doc! { "_id": 2, "a": [1, 2] }]).unwrap();
    node.create_index("test.d", &doc! { "v": 2, "key": { "a": 1 }, "name": "a_1" }).unwrap();
    node.insert("test.d", &[doc! { "_id": 1, "a": [1, 2] }]).unwrap();
    node.rename("test.c", "test.e").unwrap();
    let expected = node.contents();
    node.node.flush_blocking().unwrap();
    drop(node);
    disk.crash();
    let node = Node::new(&env, model_engine(&disk), self_initiated(), 27017).unwrap();
    let outcome = node.parts.start().unwrap();
    assert!(outcome.applied > 0);
    assert_eq!(node.contents(), expected);
    node.check_indexes();
}
