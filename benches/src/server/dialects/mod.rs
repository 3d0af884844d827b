//! The two protocols, each behind the same small trait: bytes out, bytes in, no sockets.
//!
//! A [`Dialect`] belongs to one connection, which has one request under way at a time. Both are as thin as a protocol allows:
//! requests are written into the connection's buffer, replies are counted and otherwise left alone, so that the servers and
//! not the clients are compared.

pub mod mongo;
pub mod postgres;

use super::data::Collection;
use super::operation::Operation;
use crate::Error;

/// A complete reply.
#[derive(Debug, PartialEq)]
pub struct Answer {
    /// How many of the bytes it took.
    pub size_bytes: usize,
    /// How many documents were found or changed, or what the server said against it.
    pub outcome: Result<u64, String>,
}

/// A request that is not part of a measurement.
#[derive(Debug)]
pub struct Chore {
    /// The bytes.
    pub request: Vec<u8>,
    /// Whether the server may refuse it.
    pub may_fail: bool,
}

impl Chore {
    /// One that has to work.
    pub fn new(request: Vec<u8>) -> Chore {
        Chore { request, may_fail: false }
    }
}

/// One side of one connection.
pub trait Dialect: Send {
    /// What is sent, one after the other, when the connection is made.
    fn greeting(&mut self) -> Vec<Chore>;

    /// What has to work on a new server before its first insert into `inserts`.
    fn first_words(&mut self) -> Vec<Chore>;

    /// What is sent before the first operation, once all collections are there.
    fn preparation(&mut self) -> Vec<Chore> {
        Vec::new()
    }

    /// Appends the request for an operation.
    fn request(&mut self, operation: &Operation, out: &mut Vec<u8>);

    /// Looks at everything that arrived since the request; nothing while the reply is incomplete.
    fn reply(&mut self, arrived: &[u8]) -> Result<Option<Answer>, Error>;

    /// Makes a collection empty, with its indexes.
    fn reset(&mut self, collection: Collection) -> Vec<Chore>;

    /// After the load: a checkpoint, and whatever else a careful user lets run then.
    fn settle(&mut self) -> Vec<Chore>;
}
