//! Times the write path and a checkpoint, for profiling: `cargo run --release -p pando-engine --example measure_engine DIRECTORY`.

#![allow(clippy::unwrap_used)]

use pando_engine::{DurableEngine, EngineOptions};
use pando_env::Env;
use pando_storage::{
    BeginOptions, CheckpointKind, Durability, Engine, TableOptions, TableRegistry, TableSize, TransactionSource,
};

const DOCUMENTS: u64 = 500_000;
const REWRITES: u64 = 100_000;

fn scramble(number: u64) -> u64 {
    let mixed = (number ^ (number >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}

fn document(number: u64) -> Vec<u8> {
    (0..500 / 20)
        .flat_map(|field| format!("field{field:02}:{:012x},", scramble(number * 31 + field)).into_bytes())
        .collect()
}

fn index_key(number: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&scramble(number).to_be_bytes());
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

fn main() {
    let directory = std::env::args().nth(1).unwrap_or_else(|| "measure-data".into());
    let env = Env::real();
    let options = EngineOptions { memory_bytes: 4 << 30, background: false, ..EngineOptions::default() };
    let engine = DurableEngine::open(&env, directory.as_ref(), options).unwrap();
    let now = || env.clock().monotonic_ns() as f64 / 1e9;
    let documents = engine.create_table("documents", &TableOptions::default()).unwrap();
    let index = engine.create_table("index", &TableOptions::default()).unwrap();

    let started = now();
    let mut loader = engine.bulk_load(&documents).unwrap();
    for number in 0..DOCUMENTS {
        loader.add(&number.to_be_bytes(), &document(number)).unwrap();
    }
    loader.finish(TableSize::new(DOCUMENTS as i64, 0)).unwrap();
    println!("bulk load {:.2} s", now() - started);

    let started = now();
    for number in 0..REWRITES {
        let mut transaction = engine.begin(BeginOptions::default()).unwrap();
        let target = scramble(number) % DOCUMENTS;
        transaction.put(&documents, &target.to_be_bytes(), &document(target + 1)).unwrap();
        transaction.delete(&index, &index_key(target)).unwrap();
        transaction.put(&index, &index_key(target + DOCUMENTS), &target.to_be_bytes()).unwrap();
        transaction.commit().unwrap();
    }
    println!("{REWRITES} transactions {:.2} s", now() - started);
    let started = now();
    engine.flush_log().unwrap();
    println!("flush {:.2} s", now() - started);
    let started = now();
    let outcome = engine.checkpoint(CheckpointKind::Full).unwrap();
    println!("checkpoint {:.2} s, {} keys, {} bytes", now() - started, outcome.keys, outcome.bytes);
    engine.shut_down().unwrap();
}
