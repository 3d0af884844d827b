//! What is stored: documents of a kilobyte and ten fields, each a function of its number, the same bytes on every system.
//!
//! `usertable` is YCSB's: a text key, hashed so that neighbours in time are no neighbours in order, and ten fields of a hundred
//! random letters. `orders` is what the queries beyond the key are asked of: a whole number that is a permutation of the
//! documents' numbers, a category, an amount, a list of three tags, and text. `inserts` takes the timed inserts.
//!
//! A dialect gets the fields through [`FieldSink`], so that no system's format is made from another's. The alphabet has no
//! letter that JSON would have to escape.

use crate::workload::Random;
use std::ops::Range;

/// Length of a value in `usertable`.
const USER_FIELD_BYTES: usize = 100;
/// The names of the ten fields.
const USER_FIELDS: [&str; 10] =
    ["field0", "field1", "field2", "field3", "field4", "field5", "field6", "field7", "field8", "field9"];
/// The fields of `orders` that are text only.
const ORDER_TEXTS: [&str; 6] = ["customer", "street", "city", "comment", "reference", "history"];
const ORDER_TEXT_BYTES: usize = 150;
const CATEGORIES: u64 = 20;
/// Amounts lie below this.
const AMOUNT_LIMIT: u64 = 10_000;
/// No divisor of any number of orders that is asked for.
const PERMUTING_PRIME: u64 = 1_000_003;
/// An order has this many tags, and this many times as many orders as there are tags share one.
const TAGS_PER_ORDER: u64 = 3;
const SALT: u64 = 0x5e47_0000;

static ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 .";

/// A collection, or a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collection {
    /// YCSB's.
    Users,
    /// With indexes.
    Orders,
    /// Made afresh for each phase that inserts; the documents are those of `Users`.
    Inserts,
}

impl Collection {
    /// As the servers know it.
    pub fn name(self) -> &'static str {
        match self {
            Collection::Users => "usertable",
            Collection::Orders => "orders",
            Collection::Inserts => "inserts",
        }
    }
}

/// Where a document's fields go.
pub trait FieldSink {
    /// Text.
    fn text(&mut self, name: &str, value: &str);
    /// A whole number.
    fn whole(&mut self, name: &str, value: i64);
    /// A list of texts.
    fn list(&mut self, name: &str, values: &[String]);
}

/// The key of a document of `Users` or `Inserts`.
pub fn user_key(number: u64) -> String {
    format!("user{:020}", fnv_hash(number))
}

/// YCSB's hash of a number: FNV-1a over its bytes.
pub fn fnv_hash(number: u64) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    number.to_le_bytes().into_iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// The fields of a document besides its key.
pub fn write_fields(collection: Collection, number: u64, orders: u64, sink: &mut impl FieldSink) {
    let mut random = Random::stream(SALT, number);
    let mut text = String::with_capacity(ORDER_TEXT_BYTES);
    if collection != Collection::Orders {
        for name in USER_FIELDS {
            sink.text(name, letters(&mut random, USER_FIELD_BYTES, &mut text));
        }
        return;
    }
    sink.whole("number", order_number(number, orders) as i64);
    sink.text("category", &category(random.below(CATEGORIES)));
    sink.whole("amount", random.below(AMOUNT_LIMIT) as i64);
    sink.list("tags", &order_tags(number, orders).map(tag_name));
    for name in ORDER_TEXTS {
        sink.text(name, letters(&mut random, ORDER_TEXT_BYTES, &mut text));
    }
}

/// One field of `Users` as an update makes it.
pub fn write_update(field: usize, version: u64, sink: &mut impl FieldSink) {
    let mut text = String::with_capacity(USER_FIELD_BYTES);
    let mut random = Random::stream(SALT + 1, version);
    let name = USER_FIELDS.get(field % USER_FIELDS.len()).copied().unwrap_or_default();
    sink.text(name, letters(&mut random, USER_FIELD_BYTES, &mut text));
}

/// How many fields an update chooses among.
pub const fn user_field_count() -> u64 {
    USER_FIELDS.len() as u64
}

/// How many orders go with so many users: half, and a number that all tags share evenly.
pub fn orders_of(users: u64) -> u64 {
    (users / 2 / 300).max(1) * 300
}

/// The amounts that a scanning aggregation starts from: the upper half, so that the share of matches varies a little.
pub fn amounts() -> Range<u64> {
    AMOUNT_LIMIT / 2..AMOUNT_LIMIT / 2 + AMOUNT_LIMIT / 10
}

/// How many tags there are.
pub fn tag_count(orders: u64) -> u64 {
    (orders / TAGS_PER_ORDER).max(1)
}

/// How many orders have a tag.
pub fn orders_per_tag() -> u64 {
    TAGS_PER_ORDER * TAGS_PER_ORDER
}

/// As it is stored.
pub fn tag_name(tag: u64) -> String {
    format!("tag{tag}")
}

/// The indexed number of an order.
fn order_number(number: u64, orders: u64) -> u64 {
    ((u128::from(number) * u128::from(PERMUTING_PRIME)) % u128::from(orders.max(1))) as u64
}

fn order_tags(number: u64, orders: u64) -> [u64; TAGS_PER_ORDER as usize] {
    let tags = tag_count(orders);
    [0, 1, 2].map(|offset| (number + offset * (tags / TAGS_PER_ORDER)) % tags)
}

fn category(index: u64) -> String {
    format!("category{index:02}")
}

/// Random letters, ten from each random number.
fn letters<'a>(random: &mut Random, length: usize, text: &'a mut String) -> &'a str {
    text.clear();
    while text.len() < length {
        let mut bits = random.bits();
        for _ in 0..(length - text.len()).min(10) {
            text.push(char::from(ALPHABET[(bits & 63) as usize]));
            bits >>= 6;
        }
    }
    text
}

/// Writes JSON.
pub struct Json<'a> {
    out: &'a mut Vec<u8>,
    is_first: bool,
}

impl Json<'_> {
    /// Appends an object with what `fill` puts into it.
    pub fn object(out: &mut Vec<u8>, fill: impl FnOnce(&mut Json<'_>)) {
        out.push(b'{');
        fill(&mut Json { out, is_first: true });
        out.push(b'}');
    }

    fn name(&mut self, name: &str) {
        if !std::mem::replace(&mut self.is_first, false) {
            self.out.push(b',');
        }
        self.quoted(name);
        self.out.push(b':');
    }

    fn quoted(&mut self, text: &str) {
        debug_assert!(!text.contains(['"', '\\']), "nothing here is escaped");
        self.out.push(b'"');
        self.out.extend_from_slice(text.as_bytes());
        self.out.push(b'"');
    }
}

impl FieldSink for Json<'_> {
    fn text(&mut self, name: &str, value: &str) {
        self.name(name);
        self.quoted(value);
    }

    fn whole(&mut self, name: &str, value: i64) {
        self.name(name);
        self.out.extend_from_slice(value.to_string().as_bytes());
    }

    fn list(&mut self, name: &str, values: &[String]) {
        self.name(name);
        self.out.push(b'[');
        for (index, value) in values.iter().enumerate() {
            if index > 0 {
                self.out.push(b',');
            }
            self.quoted(value);
        }
        self.out.push(b']');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn documents_are_a_kilobyte_of_valid_json() {
        for (collection, fields) in [(Collection::Users, 10), (Collection::Orders, 10)] {
            let mut out = Vec::new();
            Json::object(&mut out, |sink| write_fields(collection, 7, 300, sink));
            assert!((1000..1300).contains(&out.len()), "{}", out.len());
            let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
            assert_eq!(value.as_object().unwrap().len(), fields);
        }
    }

    #[test]
    fn every_number_and_tag_is_there_as_often_as_said() {
        let orders = orders_of(2000);
        let numbers: BTreeSet<u64> = (0..orders).map(|number| order_number(number, orders)).collect();
        assert_eq!(numbers.len() as u64, orders);
        assert_eq!(numbers.last(), Some(&(orders - 1)));
        let mut tags: BTreeMap<u64, u64> = BTreeMap::new();
        (0..orders).flat_map(|number| order_tags(number, orders)).for_each(|tag| *tags.entry(tag).or_default() += 1);
        assert_eq!(tags.len() as u64, tag_count(orders));
        assert!(tags.values().all(|count| *count == orders_per_tag()));
    }

    #[test]
    fn keys_are_unique_and_of_one_length() {
        let keys: BTreeSet<String> = (0..10_000).map(user_key).collect();
        assert_eq!(keys.len(), 10_000);
        assert!(keys.iter().all(|key| key.len() == 24));
    }
}
