//! Transactions as a careful client of PostgreSQL speaks: BEGIN travels with the first statement, so that both systems take as many round
//! trips; what could not be serialised is rolled back and tried again.

use super::accounts::{STATEMENTS, Transfer};
use crate::Error;
use crate::server::dialects::postgres::{Parameter, Postgres, bind, execute, prepare};
use crate::server::dialects::{Chore, Dialect};
use crate::server::talk::{Next, Taken, Talk};
use crate::workload::Random;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const SALT: u64 = 0x9057_0000;
/// serialization_failure and deadlock_detected.
const TRANSIENT: [&str; 2] = ["(40001)", "(40P01)"];

/// What is under way.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Read(usize),
    Change(usize),
    Commit,
    Rollback,
}

/// One connection that transfers.
pub struct Transfers {
    speaker: Postgres,
    random: Random,
    accounts: u64,
    transfer: Transfer,
    step: Step,
    retries: Arc<AtomicU64>,
}

/// What a connection says before its first transfer.
pub fn preparation() -> Vec<Chore> {
    prepare(STATEMENTS.iter())
}

impl Transfers {
    /// Told which connection it is, and where to count what was tried again.
    pub fn new(connection: u64, accounts: u64, retries: &Arc<AtomicU64>) -> Transfers {
        let mut random = Random::stream(SALT, connection);
        let transfer = Transfer::choose(&mut random, accounts);
        let retries = Arc::clone(retries);
        Transfers { speaker: Postgres::new(0), random, accounts, transfer, step: Step::Commit, retries }
    }

    fn request(&mut self, step: Step, out: &mut Vec<u8>) {
        self.step = step;
        let Transfer { accounts, amounts } = self.transfer;
        match step {
            Step::Read(which) => {
                if which == 0 {
                    bind(out, "begin", &[]);
                }
                execute(out, "read", &[Parameter::Whole(accounts[which])]);
            }
            Step::Change(which) => {
                // The bits of a negative number are those that the protocol wants.
                let amount = Parameter::Whole(amounts[which] as u64);
                execute(out, "change", &[Parameter::Whole(accounts[which]), amount]);
            }
            Step::Commit => execute(out, "commit", &[]),
            Step::Rollback => execute(out, "rollback", &[]),
        }
    }

    fn next(&mut self, outcome: Result<u64, String>, out: &mut Vec<u8>) -> Next {
        let following = match (self.step, outcome) {
            (Step::Rollback, Ok(_)) => Step::Read(0),
            (Step::Commit, Ok(_)) => return Next::Over(Ok(())),
            (Step::Read(0), Ok(1)) => Step::Read(1),
            (Step::Read(_), Ok(1)) => Step::Change(0),
            (Step::Change(0), Ok(1)) => Step::Change(1),
            (Step::Change(_), Ok(1)) => Step::Commit,
            (_, Ok(rows)) => return Next::Over(Err(format!("{rows} accounts where 1 was expected"))),
            (_, Err(error)) if TRANSIENT.iter().any(|code| error.contains(code)) => {
                self.retries.fetch_add(1, Ordering::Relaxed);
                Step::Rollback
            }
            (_, Err(error)) => return Next::Over(Err(error)),
        };
        self.request(following, out);
        Next::More
    }
}

impl Talk for Transfers {
    fn begin(&mut self, out: &mut Vec<u8>) {
        self.transfer = Transfer::choose(&mut self.random, self.accounts);
        self.request(Step::Read(0), out);
    }

    fn take(&mut self, arrived: &[u8], out: &mut Vec<u8>) -> Result<Option<Taken>, Error> {
        let Some(answer) = self.speaker.reply(arrived)? else { return Ok(None) };
        let next = self.next(answer.outcome, out);
        Ok(Some(Taken { size_bytes: answer.size_bytes, next }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conflict_is_rolled_back_and_begins_again() {
        let retries = Arc::new(AtomicU64::new(0));
        let mut transfers = Transfers::new(0, 10, &retries);
        let mut out = Vec::new();
        transfers.begin(&mut out);
        for step in [Step::Read(1), Step::Change(0)] {
            assert_eq!((transfers.next(Ok(1), &mut out), transfers.step), (Next::More, step));
        }
        let conflict = Err("could not serialize access due to concurrent update (40001)".to_owned());
        assert_eq!((transfers.next(conflict, &mut out), transfers.step), (Next::More, Step::Rollback));
        for step in [Step::Read(0), Step::Read(1), Step::Change(0), Step::Change(1), Step::Commit] {
            assert_eq!((transfers.next(Ok(1), &mut out), transfers.step), (Next::More, step));
        }
        assert_eq!(transfers.next(Ok(0), &mut out), Next::Over(Ok(())));
        assert_eq!(retries.load(Ordering::Relaxed), 1);
    }
}
