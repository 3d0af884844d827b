//! Transactions as a driver of MongoDB speaks: a session for each connection, `startTransaction` with the first statement, the commit
//! as a command of its own, and everything again where an error has the label that says so.

use super::accounts::{NAME, Transfer};
use crate::Error;
use crate::server::dialects::Dialect;
use crate::server::dialects::mongo::{DATABASE, Mongo, write_concern};
use crate::server::talk::{Next, Taken, Talk};
use crate::workload::Random;
use pando_doc::{DocBuilder, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const UUID: u8 = 4;
const TRANSIENT: &str = "TransientTransactionError";

/// What one turn is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// An update without a transaction.
    Plain,
    /// The same update in a transaction.
    Single,
    /// Two accounts are read, then changed, in a transaction.
    Transfer,
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Visit,
    Read(usize),
    Change(usize),
    Commit,
}

impl Kind {
    fn steps(self) -> &'static [Step] {
        match self {
            Kind::Plain => &[Step::Visit],
            Kind::Single => &[Step::Visit, Step::Commit],
            Kind::Transfer => &[Step::Read(0), Step::Read(1), Step::Change(0), Step::Change(1), Step::Commit],
        }
    }
}

/// One connection.
pub struct Transactions {
    kind: Kind,
    speaker: Mongo,
    random: Random,
    accounts: u64,
    session: [u8; 16],
    transaction: i64,
    transfer: Transfer,
    at: usize,
    retries: Arc<AtomicU64>,
}

impl Transactions {
    /// Told the number of its session, which nobody else has, and where to count what was tried again.
    pub fn new(kind: Kind, session: u64, accounts: u64, retries: &Arc<AtomicU64>) -> Transactions {
        let mut random = Random::stream(kind as u64, session);
        let transfer = Transfer::choose(&mut random, accounts);
        let mut id = [0; 16];
        id[..8].copy_from_slice(&random.bits().to_be_bytes());
        id[8..].copy_from_slice(&session.to_be_bytes());
        Transactions {
            kind,
            speaker: Mongo::new(0),
            random,
            accounts,
            session: id,
            transaction: 0,
            transfer,
            at: 0,
            retries: Arc::clone(retries),
        }
    }

    /// The first request of a transaction with a number of its own.
    fn first(&mut self, out: &mut Vec<u8>) {
        self.transaction += 1;
        self.at = 0;
        self.request(out);
    }

    fn request(&mut self, out: &mut Vec<u8>) {
        let Some(&step) = self.kind.steps().get(self.at) else { return };
        let (kind, transfer, session, transaction) = (self.kind, self.transfer, self.session, self.transaction);
        let is_first = self.at == 0;
        self.speaker.message(out, |body| {
            match step {
                Step::Visit => update(body, transfer.accounts[0], "visits", 1),
                Step::Read(which) => find(body, transfer.accounts[which]),
                Step::Change(which) => update(body, transfer.accounts[which], "balance", transfer.amounts[which]),
                Step::Commit => body.append("commitTransaction", 1),
            }
            if kind != Kind::Plain {
                body.document("lsid", |id| id.append("id", Value::Binary { subtype: UUID, bytes: &session }));
                body.append("txnNumber", transaction);
                body.append("autocommit", false);
                if is_first {
                    body.append("startTransaction", true);
                    body.document("readConcern", |concern| concern.append("level", "snapshot"));
                }
            }
            if matches!(step, Step::Commit) || kind == Kind::Plain {
                write_concern(body);
            }
            body.append("$db", if step == Step::Commit { "admin" } else { DATABASE });
        });
    }

    /// What follows the reply to the current step.
    fn next(&mut self, outcome: Result<u64, String>, is_transient: bool, out: &mut Vec<u8>) -> Next {
        match outcome {
            Err(_) if is_transient => {
                self.retries.fetch_add(1, Ordering::Relaxed);
                self.first(out);
                Next::More
            }
            Err(error) => Next::Over(Err(error)),
            Ok(_) if self.kind.steps().get(self.at) == Some(&Step::Commit) => Next::Over(Ok(())),
            Ok(1) if self.at + 1 == self.kind.steps().len() => Next::Over(Ok(())),
            Ok(1) => {
                self.at += 1;
                self.request(out);
                Next::More
            }
            Ok(documents) => Next::Over(Err(format!("{documents} accounts where 1 was expected"))),
        }
    }
}

impl Talk for Transactions {
    fn begin(&mut self, out: &mut Vec<u8>) {
        self.transfer = Transfer::choose(&mut self.random, self.accounts);
        self.first(out);
    }

    fn take(&mut self, arrived: &[u8], out: &mut Vec<u8>) -> Result<Option<Taken>, Error> {
        let Some(answer) = self.speaker.reply(arrived)? else { return Ok(None) };
        let is_transient = answer.outcome.is_err() && has_label(arrived);
        let next = self.next(answer.outcome, is_transient, out);
        Ok(Some(Taken { size_bytes: answer.size_bytes, next }))
    }
}

fn has_label(reply: &[u8]) -> bool {
    let labels = Mongo::body(reply).and_then(|body| body.get("errorLabels"));
    matches!(labels, Some(Value::Array(labels)) if labels.values().any(|label| label.as_str() == Some(TRANSIENT)))
}

fn find(body: &mut DocBuilder, account: u64) {
    body.append("find", NAME);
    body.document("filter", |filter| filter.append("_id", account as i64));
    body.append("limit", 1);
    body.append("singleBatch", true);
}

fn update(body: &mut DocBuilder, account: u64, field: &str, by: i64) {
    body.append("update", NAME);
    body.array("updates", |updates| {
        updates.document(|update| {
            update.document("q", |query| query.append("_id", account as i64));
            update.document("u", |change| change.document("$inc", |fields| fields.append(field, by)));
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(kind: Kind) -> (Transactions, Arc<AtomicU64>) {
        let retries = Arc::new(AtomicU64::new(0));
        let mut transactions = Transactions::new(kind, 7, 10, &retries);
        transactions.begin(&mut Vec::new());
        (transactions, retries)
    }

    fn next(transactions: &mut Transactions, outcome: Result<u64, String>, is_transient: bool) -> (Next, String) {
        let mut out = Vec::new();
        let next = transactions.next(outcome, is_transient, &mut out);
        let asked = Mongo::body(&out).filter(|_| !out.is_empty()).and_then(|body| body.first());
        (next, asked.map_or(String::new(), |element| element.name.to_string()))
    }

    #[test]
    fn a_transfer_is_four_statements_and_a_commit() {
        let (mut transfer, _) = started(Kind::Transfer);
        for asked in ["find", "update", "update", "commitTransaction"] {
            assert_eq!(next(&mut transfer, Ok(1), false), (Next::More, asked.to_owned()));
        }
        assert_eq!(next(&mut transfer, Ok(0), false), (Next::Over(Ok(())), String::new()));
    }

    #[test]
    fn what_is_transient_begins_again_under_a_new_number() {
        let (mut single, retries) = started(Kind::Single);
        let before = single.transaction;
        let conflict = Err("WriteConflict".to_owned());
        assert_eq!(next(&mut single, conflict.clone(), true), (Next::More, "update".to_owned()));
        assert_eq!((single.transaction, retries.load(Ordering::Relaxed)), (before + 1, 1));
        assert_eq!(next(&mut single, conflict.clone(), false).0, Next::Over(conflict.map(|_: u64| ())));
    }

    #[test]
    fn an_account_that_is_missing_is_an_error() {
        let (mut plain, _) = started(Kind::Plain);
        assert!(matches!(next(&mut plain, Ok(0), false).0, Next::Over(Err(_))));
        let (mut plain, _) = started(Kind::Plain);
        assert_eq!(next(&mut plain, Ok(1), false).0, Next::Over(Ok(())));
    }
}
