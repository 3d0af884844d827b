//! What transactions work on: accounts with a balance and a count of visits.
//!
//! A transfer takes from one account what it gives to another, so the sum of all balances tells whether anything was lost. The one
//! with the smaller key always comes first: nobody waits for somebody who waits for him.

use crate::Error;
use crate::server::data::{FieldSink, Json};
use crate::server::dialects::postgres::INT8;
use crate::server::dialects::{Chore, mongo, mongo::Mongo, postgres};
use crate::server::link::Link;
use crate::server::options::System;
use crate::workload::Random;
use std::fmt::Write;

/// As the servers know them.
pub const NAME: &str = "accounts";
const OPENING_BALANCE: i64 = 1000;
const AMOUNT_LIMIT: u64 = 50;
const BATCH_ACCOUNTS: u64 = 1000;
const SALT: u64 = 0xacc0_0000;
const NOTE: &str =
    "a note that nobody reads, as long as notes are that somebody has written in a hurry at the end of a day";

/// PostgreSQL's statements: name, text and types of the parameters. What changes a number is the equivalent of `$inc`.
pub const STATEMENTS: &[(&str, &str, &[i32])] = &[
    ("begin", "BEGIN ISOLATION LEVEL REPEATABLE READ", &[]),
    ("commit", "COMMIT", &[]),
    ("rollback", "ROLLBACK", &[]),
    ("read", "SELECT id, doc FROM accounts WHERE id = $1", &[INT8]),
    (
        "change",
        "UPDATE accounts SET doc = jsonb_set(doc, '{balance}', to_jsonb((doc->'balance')::bigint + $2)) WHERE id = $1",
        &[INT8, INT8],
    ),
];

/// Money on its way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transfer {
    /// Both accounts, the one with the smaller key first.
    pub accounts: [u64; 2],
    /// What each of them gets.
    pub amounts: [i64; 2],
}

impl Transfer {
    /// Between two different accounts; there are at least two.
    pub fn choose(random: &mut Random, accounts: u64) -> Transfer {
        let one = random.below(accounts);
        let other = (one + 1 + random.below(accounts - 1)) % accounts;
        let amount = 1 + random.below(AMOUNT_LIMIT) as i64;
        Transfer { accounts: [one.min(other), one.max(other)], amounts: [amount, -amount] }
    }
}

fn write_fields(number: u64, sink: &mut impl FieldSink) {
    sink.whole("balance", OPENING_BALANCE);
    sink.whole("visits", 0);
    sink.text("owner", &format!("{:016x}", Random::stream(SALT, number).bits()));
    sink.text("note", NOTE);
}

/// Makes the accounts.
pub fn fill(link: &mut Link, system: System, accounts: u64) -> Result<(), Error> {
    let mut speaker = Mongo::new(0);
    if system == System::Postgres {
        let table = format!("CREATE TABLE {NAME} (id bigint PRIMARY KEY, doc jsonb NOT NULL) WITH (fillfactor = 85)");
        link.run(vec![Chore::new(postgres::statement(&table))])?;
    }
    for from in (0..accounts).step_by(BATCH_ACCOUNTS as usize) {
        let numbers = from..accounts.min(from + BATCH_ACCOUNTS);
        let request = match system {
            System::Pando => speaker.insert_batch(NAME, numbers, |number, sink| write_fields(number, sink)),
            System::Postgres => {
                let mut rows = String::new();
                for number in numbers {
                    let mut json = Vec::new();
                    Json::object(&mut json, |sink| write_fields(number, sink));
                    // Writing to a string does not fail.
                    _ = writeln!(rows, "{number}\t{}", String::from_utf8_lossy(&json));
                }
                postgres::copy_text(NAME, &rows)
            }
        };
        link.run(vec![Chore::new(request)])?;
    }
    let settled = link.dialect().settle();
    link.run(settled)
}

/// Whether all balances together are what they were.
pub fn check(link: &mut Link, system: System, accounts: u64) -> Result<(), Error> {
    let total = accounts as i64 * OPENING_BALANCE;
    let request = match system {
        System::Postgres => postgres::statement(&format!(
            "SELECT total FROM (SELECT sum((doc->'balance')::bigint) AS total FROM {NAME}) AS all_of_them WHERE total = {total}"
        )),
        System::Pando => Mongo::new(0).command(mongo::DATABASE, |body| {
            body.append("aggregate", NAME);
            body.array("pipeline", |stages| {
                stages.document(|stage| {
                    stage.document("$group", |group| {
                        group.append("_id", pando_doc::Value::Null);
                        group.document("total", |sum| sum.append("$sum", "$balance"));
                    });
                });
                stages.document(|stage| stage.document("$match", |matching| matching.append("total", total)));
            });
            body.document("cursor", |_| ());
        }),
    };
    match link.exchange(&request)?? {
        1 => Ok(()),
        _ => Err(format!("the balances are not {total} together: a transfer was lost or done by half").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_is_between_two_and_gives_what_it_takes() {
        let mut random = Random::stream(1, 1);
        for accounts in [2, 3, 1000] {
            for _ in 0..1000 {
                let Transfer { accounts: [first, second], amounts: [one, other] } =
                    Transfer::choose(&mut random, accounts);
                assert!(first < second && second < accounts, "{first} {second}");
                assert!(one + other == 0 && one != 0);
            }
        }
    }
}
