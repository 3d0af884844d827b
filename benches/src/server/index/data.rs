//! What is indexed: things of about 250 bytes.
//!
//! A thing has a number that is a permutation of the things' numbers, a code of sixteen letters, an amount, a state, and a note. Indexes are
//! made on the number, on the code, and on state and amount together.

use crate::server::data::FieldSink;
use crate::workload::Random;

/// As the servers know it.
pub const NAME: &str = "things";
/// No divisor of any number of things that is asked for.
const PERMUTING_PRIME: u64 = 1_000_003;
const AMOUNT_LIMIT: u64 = 1_000_000;
const STATES: [&str; 5] = ["new", "paid", "packed", "sent", "returned"];
const SALT: u64 = 0x1de0_0000;
const NOTE: &str =
    "a note that nobody reads, as long as notes are that somebody has written in a hurry at the end of a day";

/// The fields of a thing besides its key. Those of later versions differ in number and amount.
pub fn write_fields(number: u64, things: u64, version: u64, sink: &mut impl FieldSink) {
    let mut random = Random::stream(SALT + version, number);
    let permuted = u128::from(number + version) * u128::from(PERMUTING_PRIME) % u128::from(things.max(1));
    sink.whole("number", permuted as i64);
    sink.text("code", &format!("{:016x}", random.bits()));
    sink.whole("amount", random.below(AMOUNT_LIMIT) as i64);
    sink.text("state", STATES[random.below(STATES.len() as u64) as usize]);
    sink.text("note", NOTE);
}

/// The indexes: a name, the key as Pando has it, and the expressions of PostgreSQL.
pub const INDEXES: [(&str, &[&str], &str); 3] = [
    ("by_number", &["number"], "((doc->'number')::bigint)"),
    ("by_code", &["code"], "(doc->>'code')"),
    ("by_state", &["state", "amount"], "(doc->>'state'), ((doc->'amount')::bigint)"),
];
