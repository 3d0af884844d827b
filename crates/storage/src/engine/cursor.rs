//! Walking a table in key order.

use crate::{Result, Transaction};
use bytes::Bytes;
use pando_env::Random;

/// A pair that a cursor stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The value.
    pub value: &'a [u8],
}

/// A position in a table, seen through a transaction's snapshot and its own writes.
///
/// Each moving call returns the pair that the cursor then stands on, or none past either end. Past an end, `next` and
/// `previous` start again only after a seek. After an error the cursor has kept its place: a `PrepareConflict` is
/// answered by waiting and repeating the same call.
pub trait Cursor: Send {
    /// To the first key.
    fn first(&mut self) -> Result<Option<Entry<'_>>>;
    /// To the last key.
    fn last(&mut self) -> Result<Option<Entry<'_>>>;
    /// To the first key at or after `key`.
    fn seek(&mut self, key: &[u8]) -> Result<Option<Entry<'_>>>;
    /// To the last key at or before `key`.
    fn seek_back(&mut self, key: &[u8]) -> Result<Option<Entry<'_>>>;
    /// To this very key.
    fn seek_exact(&mut self, key: &[u8]) -> Result<Option<Entry<'_>>>;
    /// One forward. Before any seek: to the first key.
    fn next(&mut self) -> Result<Option<Entry<'_>>>;
    /// One backward. Before any seek: to the last key.
    fn previous(&mut self) -> Result<Option<Entry<'_>>>;
    /// To a key chosen about uniformly.
    fn random(&mut self, random: &dyn Random) -> Result<Option<Entry<'_>>>;
    /// The pair stood on, if any.
    fn entry(&self) -> Option<Entry<'_>>;
    /// The value stood on without a copy, if any.
    fn value_bytes(&self) -> Option<Bytes>;

    /// Past all keys that begin with the first `length` bytes of the key stood on: the step of a skip scan.
    fn skip_prefix(&mut self, length: usize) -> Result<Option<Entry<'_>>> {
        let Some(entry) = self.entry() else { return Ok(None) };
        let prefix = entry.key.get(..length).unwrap_or(entry.key).to_vec();
        match prefix_successor(&prefix) {
            Some(successor) => self.seek(&successor),
            None => {
                self.last()?;
                self.next()
            }
        }
    }

    /// From now on, what has to be read for this cursor does not stay in memory: for scans of whole tables, which would otherwise
    /// push out what others use. A hint.
    fn pass_by(&mut self) {}

    /// Lets go of the snapshot, keeping the place: what a yield does.
    fn detach(&mut self);
    /// Goes on under another transaction. The next move is relative to the key last stood on, which may be gone.
    fn attach(&mut self, transaction: &dyn Transaction) -> Result<()>;
}

/// The smallest key greater than every key with this prefix; none if there is no such key.
pub fn prefix_successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut successor = prefix[..=last].to_vec();
    successor[last] += 1;
    Some(successor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn successor_skips_trailing_ones() {
        assert_eq!(prefix_successor(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(prefix_successor(&[1, 255, 255]), Some(vec![2]));
        assert_eq!(prefix_successor(&[255, 255]), None);
        assert_eq!(prefix_successor(b""), None);
    }
}
