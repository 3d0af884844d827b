//! Random writers between the steps of a build; at the end every index says what the documents say.

use super::support::World;
use pando_doc::{Doc, OwnedValue, Value, doc};
use pando_env::Random;
use pando_env::simulated::Simulation;

const SEEDS: u64 = 60;
const IDS: u64 = 40;

fn specification(key: Doc, name: &str, unique: bool) -> Doc {
    match unique {
        true => doc! { "v": 2_i32, "key": key.view(), "name": name, "unique": true },
        false => doc! { "v": 2_i32, "key": key.view(), "name": name },
    }
}

/// Small values, of several types that compare as equal, alone and in arrays.
fn value(random: &dyn Random) -> OwnedValue {
    let number = (random.next_u64() % 5) as i32;
    match random.next_u64() % 5 {
        0 => Value::Int32(number).to_owned(),
        1 => Value::Double(f64::from(number)).to_owned(),
        2 => Value::Null.to_owned(),
        3 => OwnedValue::from(pando_doc::array![number, (number + 1)]),
        _ => OwnedValue::from(doc! { "x": [number, number] }),
    }
}

fn document(random: &dyn Random, id: i32) -> Doc {
    // Only one of the two may be an array, or they could not be indexed together.
    let other = (random.next_u64() % 4) as i32;
    doc! { "_id": id, "a": (value(random)), "b": other, "u": (random.next_u64() as i64) }
}

fn write(world: &World, random: &dyn Random) {
    let id = (random.next_u64() % IDS) as i32;
    match random.next_u64() % 4 {
        0 => world.delete(id).unwrap(),
        1 => {
            // An id that is taken is refused.
            let _ = world.insert(&document(random, id));
        }
        _ => world.update(&document(random, id)).unwrap(),
    }
}

#[test]
fn i1_a_build_beside_writers_equals_a_scan() {
    for seed in 0..SEEDS {
        let simulation = Simulation::new(seed);
        let env = simulation.env();
        let random = env.random();
        let world = World::new();
        for id in 0..20 {
            world.insert(&document(random, id)).unwrap();
        }
        let specifications = [
            specification(doc! { "a": 1_i32 }, "a_1", false),
            specification(doc! { "a": -1_i32, "b": 1_i32 }, "a_-1_b_1", false),
            specification(doc! { "a.x": 1_i32 }, "a.x_1", false),
            specification(doc! { "u": 1_i32 }, "u_1", true),
            specification(doc! { "b": "hashed" }, "b_hashed", false),
        ];
        let mut build = world.begin(&specifications);
        let may_restart = seed % 2 == 1;
        // Writers that never paused would keep the build from ever catching up.
        let mut writes_left = 60 + random.next_u64() % 60;
        loop {
            for _ in 0..(random.next_u64() % 3).min(writes_left) {
                writes_left -= 1;
                write(&world, random);
            }
            if may_restart && random.next_u64().is_multiple_of(6) {
                build.put_down_and_take_up();
            }
            if build.step().unwrap() && random.next_u64().is_multiple_of(3) {
                break;
            }
        }
        write(&world, random);
        build.commit().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(world.faults(), Vec::<String>::new(), "seed {seed}");
        assert_eq!(world.collection().ready_indexes().count(), 6, "seed {seed}");
        // And they are kept up afterwards.
        (0..20).for_each(|_| write(&world, random));
        assert_eq!(world.faults(), Vec::<String>::new(), "seed {seed}");
    }
}

#[test]
fn i2_a_unique_build_fails_exactly_if_duplicates_stay() {
    let (mut failed, mut succeeded) = (0, 0);
    for seed in 0..SEEDS * 2 {
        let simulation = Simulation::new(seed);
        let env = simulation.env();
        let random = env.random();
        let world = World::new();
        let draw = |id: i32| doc! { "_id": id, "k": ((random.next_u64() % 14) as i32) };
        for id in 0..6 {
            world.insert(&draw(id)).unwrap();
        }
        let mut build = world.begin(&[specification(doc! { "k": 1_i32 }, "k_1", true)]);
        loop {
            let id = (random.next_u64() % 6) as i32;
            match random.next_u64() % 3 {
                0 => world.delete(id).unwrap(),
                1 => world.update(&draw(id)).unwrap(),
                _ => {
                    let _ = world.insert(&draw(id));
                }
            }
            if random.next_u64().is_multiple_of(5) {
                build.put_down_and_take_up();
            }
            if build.step().unwrap() && random.next_u64().is_multiple_of(2) {
                break;
            }
        }
        let outcome = build.commit();
        match keys_are_unique(&world) {
            true => {
                outcome.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
                assert_eq!(world.faults(), Vec::<String>::new(), "seed {seed}");
                succeeded += 1;
            }
            false => {
                let error = outcome.expect_err("duplicates have stayed");
                assert_eq!(error.code(), pando_base::ErrorCode::DuplicateKey, "seed {seed}");
                failed += 1;
            }
        }
    }
    assert!(failed > 5 && succeeded > 5, "{failed} failed, {succeeded} succeeded");
}

fn keys_are_unique(world: &World) -> bool {
    let (mut operation, collection) = (world.operation(), world.collection());
    let mut cursor = collection.records.cursor(pando_storage::Direction::Forward);
    let mut keys = Vec::new();
    while let Some(record) = cursor.next(&mut operation.recovery_unit).unwrap() {
        keys.push(pando_doc::DocRef::trusted(record.value).get("k").unwrap().to_i64_or_zero());
    }
    keys.sort_unstable();
    keys.windows(2).all(|pair| pair[0] != pair[1])
}
