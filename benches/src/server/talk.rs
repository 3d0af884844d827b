//! What one connection of the load says: turn after turn, each of one or more requests, without sockets.

use super::dialects::Dialect;
use super::operation::Operation;
use super::workloads::{Chooser, Turn};
use crate::Error;

/// What comes after a reply.
#[derive(Debug, PartialEq)]
pub enum Next {
    /// A further request of the same turn, which was written.
    More,
    /// The turn is over, well or not.
    Over(Result<(), String>),
}

/// A reply that was complete.
#[derive(Debug, PartialEq)]
pub struct Taken {
    /// How many of the bytes it took.
    pub size_bytes: usize,
    /// How the turn goes on.
    pub next: Next,
}

/// One client's side of one connection, which has one request under way at a time.
pub trait Talk: Send {
    /// Appends the first request of the next turn.
    fn begin(&mut self, out: &mut Vec<u8>);

    /// Looks at everything that arrived since the last request; nothing while the reply is incomplete. Appends what follows.
    fn take(&mut self, arrived: &[u8], out: &mut Vec<u8>) -> Result<Option<Taken>, Error>;
}

/// The turns of a workload, in a dialect.
pub struct Workloads {
    dialect: Box<dyn Dialect>,
    chooser: Chooser,
    turn: Turn,
    current: Operation,
}

impl Workloads {
    /// Of one connection.
    pub fn new(dialect: Box<dyn Dialect>, chooser: Chooser) -> Workloads {
        let nothing = Operation::Find { number: 0 };
        Workloads { dialect, chooser, turn: Turn { first: nothing, second: None }, current: nothing }
    }
}

impl Talk for Workloads {
    fn begin(&mut self, out: &mut Vec<u8>) {
        self.turn = self.chooser.next();
        self.current = self.turn.first;
        self.dialect.request(&self.current, out);
    }

    fn take(&mut self, arrived: &[u8], out: &mut Vec<u8>) -> Result<Option<Taken>, Error> {
        let Some(answer) = self.dialect.reply(arrived)? else { return Ok(None) };
        let checked = answer.outcome.and_then(|documents| self.current.check(documents));
        let next = match (checked, self.turn.second.take()) {
            (Ok(()), Some(second)) => {
                self.current = second;
                self.dialect.request(&second, out);
                Next::More
            }
            (checked, _) => {
                self.chooser.answered();
                Next::Over(checked)
            }
        };
        Ok(Some(Taken { size_bytes: answer.size_bytes, next }))
    }
}
