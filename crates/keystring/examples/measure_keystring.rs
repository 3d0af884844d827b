//! Measures how long keys take to write and to read.
//!
//! Run with `cargo run --release -p pando-keystring --example measure_keystring`. Figures are nanoseconds a key.

use pando_doc::{Decimal128, DecimalParts, ObjectId, Value, doc};
use pando_env::Env;
use pando_keystring::{Discriminator, KeyOrdering, PooledBuilder, StackBuilder, Version, key_size, to_doc};
use std::hint::black_box;

const ROUND_COUNT: u64 = 2_000_000;
const ASCENDING: KeyOrdering = KeyOrdering::ASCENDING;

fn measure(env: &Env, name: &str, mut work: impl FnMut(u64)) {
    (0..ROUND_COUNT / 10).for_each(&mut work);
    let start = env.clock().monotonic_ns();
    (0..ROUND_COUNT).for_each(&mut work);
    let elapsed_ns = env.clock().monotonic_ns() - start;
    println!("{name:<44} {:>8.1} ns", elapsed_ns as f64 / ROUND_COUNT as f64);
}

fn measure_writing(env: &Env, name: &str, value: impl Fn(u64) -> Value<'static>) {
    let mut builder = StackBuilder::new(Version::V1, ASCENDING);
    measure(env, &format!("write {name}"), |round| {
        builder.reset(ASCENDING);
        let _ = builder.append(black_box(value(round)));
        builder.finish(Discriminator::Inclusive);
        black_box(builder.bytes());
    });
}

fn measure_reading(env: &Env, name: &str, value: Value<'_>) {
    let mut builder = StackBuilder::new(Version::V1, ASCENDING);
    let _ = builder.append(value);
    builder.finish(Discriminator::Inclusive);
    let type_bits = builder.encoded_type_bits();
    measure(env, &format!("read {name}"), |_| {
        let _ = black_box(to_doc(black_box(builder.bytes()), ASCENDING, &type_bits, Version::V1));
    });
    measure(env, &format!("skip {name}"), |_| {
        let _ = black_box(key_size(black_box(builder.bytes()), ASCENDING, Version::V1));
    });
}

fn decimal(coefficient: u128, exponent: i32) -> Value<'static> {
    let parts = DecimalParts::Finite { negative: false, coefficient, exponent };
    Value::Decimal(Decimal128::from_parts(parts).unwrap_or(Decimal128::ONE))
}

fn main() {
    let env = Env::real();
    let id = Value::ObjectId(ObjectId::from_bytes([7; 12]));
    let (price, long) = (decimal(1999, -2), decimal(1_234_567_890_123_456_789_012_345_678_901_234, -33));
    let text = Value::String("a name of usual length".into());
    measure_writing(&env, "object id", |_| id);
    measure_writing(&env, "int32", |round| Value::Int32(round as i32));
    measure_writing(&env, "int64", |round| Value::Int64(round as i64 * 1_000_000_007));
    measure_writing(&env, "double", |round| Value::Double(round as f64 / 7.0));
    measure_writing(&env, "decimal 19.99", |_| price);
    measure_writing(&env, "decimal of 34 digits", |_| long);
    measure_writing(&env, "string of 22 bytes", |_| text);

    measure(&env, "write int32 with a builder of its own", |round| {
        let mut builder = StackBuilder::new(Version::V1, ASCENDING);
        let _ = builder.append(Value::Int32(black_box(round as i32)));
        builder.finish(Discriminator::Inclusive);
        black_box(builder.bytes());
    });
    let compound = doc! { "": "a name of usual length", "": 17_i32, "": 3.25 };
    let descending = KeyOrdering::from_bits(0b010);
    let mut pooled = PooledBuilder::new(Version::V1, descending, 64 * 1024);
    measure(&env, "write three components into a pool", |_| {
        let _ = pooled.reset_to_key(compound.view(), descending, Discriminator::Inclusive);
        black_box(pooled.take_key_string());
    });

    measure_reading(&env, "object id", id);
    measure_reading(&env, "int32", Value::Int32(77));
    measure_reading(&env, "double", Value::Double(1.1));
    measure_reading(&env, "decimal 19.99", price);
    measure_reading(&env, "decimal of 34 digits", long);
    measure_reading(&env, "string of 22 bytes", text);
}
