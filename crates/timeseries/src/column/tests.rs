//! Columns of random values come back as they were; damaged ones never do harm.

use super::*;
use pando_doc::{Doc, DocBuilder, RawElement, Value, doc};

/// A small generator, so that a seed gives the same values everywhere.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 11
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

fn encoded(element: RawElement<'_>) -> Encoded<'_> {
    Encoded { value_type: element.value_type, bytes: element.value_bytes }
}

/// One document with the values under "v"; an empty one for a missing value.
fn check(rows: &[Doc]) -> usize {
    let values: Vec<Option<Encoded<'_>>> = rows.iter().map(|row| row.view().get_raw("v").map(encoded)).collect();
    let column = encode(&values).unwrap();
    let read = ColumnReader::read_all(&column, usize::MAX).unwrap();
    assert_eq!(read.len(), values.len());
    for (place, (read, value)) in read.iter().zip(&values).enumerate() {
        let read = read.as_ref().map(|(value_type, bytes)| Encoded { value_type: *value_type, bytes });
        assert_eq!(read, *value, "place {place} of {rows:?}");
    }
    column.len()
}

fn scalar(chance: &mut Chance, kind: u64, builder: &mut DocBuilder, name: &str, last: &mut i64) {
    *last = last.wrapping_add(chance.below(9) as i64 - 4);
    let bits = chance.next() as i64;
    let id = pando_doc::ObjectId::from_parts(1_600_000_000 + (*last as u32 & 0xFF), [1, 2, 3, 4, 5], bits as u32);
    match kind {
        0 => builder.append(name, *last as f64 / 10.0),
        1 => builder.append(name, f64::from_bits(bits as u64)),
        2 => builder.append(name, *last as i32),
        3 => builder.append(name, *last),
        4 => builder.append(name, bits.wrapping_mul(1 << 20)),
        5 => builder.append(name, Value::DateTime(1_700_000_000_000 + *last * 1000)),
        6 => builder.append(name, id),
        7 => builder.append(name, bits % 2 == 0),
        8 => builder.append(name, Value::Null),
        9 => builder.append(name, format!("s{last}").as_str()),
        10 => builder.append(name, format!("a text of more than sixteen bytes {}", bits % 3).as_str()),
        11 => builder.append(name, Value::Binary { subtype: 0, bytes: &last.to_le_bytes() }),
        12 => builder.append(name, Value::Timestamp(pando_base::Timestamp(*last as u64))),
        13 => builder.append(name, Value::Regex { pattern: "^a".into(), options: "i".into() }),
        14 => builder.append(name, Value::Decimal(pando_doc::Decimal128::from_halves(0x3040 << 48, *last as u64))),
        15 => builder.append(name, Value::Undefined),
        16 => builder.append(name, ""),
        17 => builder.append(name, (*last as f64) * 1e-4),
        18 => builder.append(name, Value::Code("f()".into())),
        19 => builder.append(name, doc! {}),
        _ => builder.append(name, Value::Symbol("s".into())),
    }
}

fn value(chance: &mut Chance, kind: u64, builder: &mut DocBuilder, name: &str, last: &mut i64, depth: u32) {
    match kind {
        21 if depth < 4 => builder.document(name, |nested| {
            for (place, field) in ["a", "b", "c"].iter().enumerate() {
                if chance.below(5) > 0 {
                    value(chance, (kind + place as u64 * 7 + u64::from(depth)) % 23, nested, field, last, depth + 1);
                }
            }
        }),
        22 if depth < 4 => {
            let mut array = DocBuilder::new();
            for place in 0..chance.below(4) {
                value(chance, place % 3, &mut array, &place.to_string(), last, depth + 1);
            }
            let array = array.finish();
            builder.append(name, Value::Array(pando_doc::ArrayRef::from_doc(array.view())));
        }
        _ => scalar(chance, kind.min(20), builder, name, last),
    }
}

pub(super) fn random_rows(seed: u64) -> Vec<Doc> {
    let mut chance = Chance(seed);
    let mut last = chance.below(1000) as i64;
    let mut kind = chance.below(23);
    let count = 1 + chance.below(400);
    (0..count)
        .map(|_| {
            if chance.below(40) == 0 {
                kind = chance.below(23);
            }
            let mut row = DocBuilder::new();
            if chance.below(12) > 0 {
                value(&mut chance, kind, &mut row, "v", &mut last, 0);
            }
            row.finish()
        })
        .collect()
}

#[test]
fn x29_columns_of_all_types_come_back() {
    for seed in 0..600 {
        check(&random_rows(seed));
    }
}

#[test]
fn x29_columns_of_steady_values_are_small() {
    let same: Vec<Doc> = (0..1000).map(|_| doc! { "v": 20.5 }).collect();
    assert!(check(&same) < 40, "{}", check(&same));
    let dates: Vec<Doc> = (0..1000).map(|place| doc! { "v": Value::DateTime(1_000_000 + place * 1000) }).collect();
    assert!(check(&dates) < 80, "{}", check(&dates));
    let drifting: Vec<Doc> = (0..1000_i32).map(|place| doc! { "v": f64::from(200 + place % 7) / 10.0 }).collect();
    assert!(check(&drifting) < 900, "{}", check(&drifting));
    let documents: Vec<Doc> = (0..1000).map(|place| doc! { "v": { "x": (place), "y": { "z": "on" } } }).collect();
    assert!(check(&documents) < 200, "{}", check(&documents));
}

#[test]
fn x29_keys_of_the_ends_are_not_stored_in_columns() {
    for row in [doc! { "v": Value::MinKey }, doc! { "v": { "a": [Value::MaxKey] } }] {
        assert_eq!(encode(&[row.view().get_raw("v").map(encoded)]), None);
    }
    let column = doc! { "v": Value::Binary { subtype: COLUMN_SUBTYPE, bytes: &[0] } };
    assert_eq!(encode(&[column.view().get_raw("v").map(encoded)]), None);
}

#[test]
fn x29_damaged_columns_end() {
    let mut chance = Chance(11);
    for seed in 0..300 {
        let rows = random_rows(seed);
        let values: Vec<Option<Encoded<'_>>> = rows.iter().map(|row| row.view().get_raw("v").map(encoded)).collect();
        let mut column = encode(&values).unwrap();
        for _ in 0..8 {
            let place = chance.below(column.len() as u64) as usize;
            column[place] ^= 1 << chance.below(8);
            for value in ColumnReader::read_all(&column, 5000).unwrap_or_default().into_iter().flatten() {
                let mut doc = vec![0; 4];
                doc.push(value.0 as u8);
                doc.push(0);
                doc.extend(value.1);
                doc.push(0);
                let size = doc.len() as i32;
                doc[..4].copy_from_slice(&size.to_le_bytes());
                Doc::parse(doc).unwrap();
            }
        }
        column.truncate(chance.below(column.len() as u64) as usize);
        let _ = ColumnReader::read_all(&column, 5000);
    }
}
