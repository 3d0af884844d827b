//! Random documents and filters, from a seed.
//!
//! Few paths and few values, so that filters match and arrays, nulls, absences and types meet each other often.

use pando_doc::{Doc, DocBuilder, OwnedValue, Value, array, doc};

/// A small generator of chance; the same seed gives the same run.
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Chance {
        Chance(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((u128::from(self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)) * u128::from(bound)) >> 64) as u64
    }

    pub(crate) fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }

    fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize].clone()
    }
}

pub(crate) fn scalar(chance: &mut Chance) -> OwnedValue {
    match chance.below(16) {
        0..=6 => OwnedValue::Int32(chance.below(6) as i32),
        7 => OwnedValue::Double(chance.below(6) as f64 + if chance.one_in(2) { 0.5 } else { 0.0 }),
        8 => OwnedValue::Int64(chance.below(6) as i64),
        9 => OwnedValue::Null,
        10 | 11 => OwnedValue::from(chance.pick(&["", "a", "ab", "b"])),
        12 => OwnedValue::Bool(chance.one_in(2)),
        13 => OwnedValue::Document(doc! { "b": chance.below(3) as i32 }),
        14 => chance.pick(&[OwnedValue::Double(f64::NAN), OwnedValue::DateTime(5), OwnedValue::MaxKey]),
        _ => chance.pick(&[OwnedValue::MinKey, OwnedValue::Undefined, OwnedValue::Int32(-1)]),
    }
}

fn value(chance: &mut Chance, depth: u32) -> OwnedValue {
    if depth == 0 {
        return scalar(chance);
    }
    match chance.below(10) {
        0..=4 => scalar(chance),
        5 | 6 => OwnedValue::Document(fields(chance, &["b", "c"], depth - 1)),
        7 => OwnedValue::Array(array![]),
        _ => {
            let count = chance.below(4);
            OwnedValue::Array((0..count).map(|_| value(chance, depth - 1)).collect())
        }
    }
}

fn fields(chance: &mut Chance, names: &[&str], depth: u32) -> Doc {
    let mut builder = DocBuilder::new();
    for name in names {
        if !chance.one_in(4) {
            builder.append(name, value(chance, depth));
        }
    }
    builder.finish()
}

/// A document with this `_id`.
pub(crate) fn document(chance: &mut Chance, id: i32) -> Doc {
    let mut builder = DocBuilder::new();
    builder.append("_id", id);
    builder.append_all(fields(chance, &["a", "b", "c"], 2).view());
    builder.finish()
}

fn path(chance: &mut Chance) -> &'static str {
    chance.pick(&["a", "a", "b", "b", "c", "a.b", "a.b", "a.c", "b.c", "a.0"])
}

fn comparison(chance: &mut Chance) -> Doc {
    let name = chance.pick(&["$eq", "$lt", "$lte", "$gt", "$gte", "$ne"]);
    let constant = match chance.below(8) {
        0 => OwnedValue::Array((0..chance.below(3)).map(|_| scalar(chance)).collect()),
        _ => not_undefined(chance),
    };
    doc! { (name): constant }
}

/// Comparing with undefined is refused.
fn not_undefined(chance: &mut Chance) -> OwnedValue {
    loop {
        match scalar(chance) {
            OwnedValue::Undefined => {}
            value => return value,
        }
    }
}

fn condition(chance: &mut Chance) -> Doc {
    match chance.below(12) {
        0..=4 => comparison(chance),
        5 => {
            let mut both = DocBuilder::new();
            both.append_all(comparison(chance).view());
            both.append_all(comparison(chance).view());
            both.finish()
        }
        6 | 7 => {
            let name = chance.pick(&["$in", "$in", "$nin"]);
            let values: pando_doc::Array = (0..chance.below(4)).map(|_| not_undefined(chance)).collect();
            doc! { (name): values }
        }
        8 => doc! { "$exists": chance.one_in(2) },
        9 => doc! { "$type": chance.pick(&[1, 2, 3, 4, 8, 10, 16]) },
        10 => match chance.below(3) {
            0 => doc! { "$regex": chance.pick(&["^a", "b", "^"]) },
            1 => doc! { "$mod": [2, chance.below(2) as i32] },
            _ => doc! { "$size": chance.below(3) as i32 },
        },
        _ => match chance.below(3) {
            0 => doc! { "$not": comparison(chance) },
            1 => {
                let (first, second) = (comparison(chance), comparison(chance));
                let mut both = DocBuilder::new();
                both.append_all(first.view());
                both.append_all(second.view());
                doc! { "$elemMatch": both.finish() }
            }
            _ => doc! { "$elemMatch": { "b": comparison(chance), "c": comparison(chance) } },
        },
    }
}

/// A filter with so many levels of logic at most.
pub(crate) fn filter(chance: &mut Chance, depth: u32) -> Doc {
    if depth > 0 && chance.one_in(3) {
        let name = chance.pick(&["$or", "$or", "$and", "$nor"]);
        let count = 1 + chance.below(3);
        let parts: pando_doc::Array = (0..count).map(|_| filter(chance, depth - 1)).collect();
        let logical = doc! { (name): parts };
        if chance.one_in(2) {
            return logical;
        }
        let mut both = DocBuilder::new();
        both.append(path(chance), condition(chance));
        both.append_all(logical.view());
        return both.finish();
    }
    let mut builder = DocBuilder::new();
    for _ in 0..1 + chance.below(2) {
        let path = path(chance);
        if chance.one_in(3) {
            builder.append(path, not_undefined(chance));
        } else {
            builder.append(path, condition(chance));
        }
    }
    builder.finish()
}

/// A sort by one or two paths.
pub(crate) fn sort(chance: &mut Chance) -> Doc {
    let mut builder = DocBuilder::new();
    let mut names: Vec<&str> = Vec::new();
    for _ in 0..1 + chance.below(2) {
        let name = chance.pick(&["a", "b", "c", "a.b", "_id"]);
        if !names.iter().any(|known| known.starts_with(name) || name.starts_with(known)) {
            names.push(name);
            builder.append(name, if chance.one_in(2) { 1 } else { -1 });
        }
    }
    let sort = builder.finish();
    if sort.is_empty() {
        doc! { "a": Value::Int32(1) }
    } else {
        sort
    }
}
