//! Short forms of keys in order, to be searched before the keys themselves.
//!
//! Neighbouring keys often begin alike: object ids of one client, strings with a common beginning. What all of them begin
//! with is kept once, and the eight bytes behind it of every key as a number that orders like the key, as far as it goes. A
//! search then stays within a few cache lines, and looks at whole keys only among equal heads.
//!
//! Invariant: every key begins with the common beginning. It may be shorter than it could be, never longer.

use pando_engine_runs::prefetch_at;
use std::ops::Range;

/// More of a common beginning is not looked at.
const BEGINNING_BYTES_MAX: usize = 24;
/// Heads in two cache lines: processors fetch a line's neighbour with it.
const HEADS_OF_LINE_PAIR: usize = 2 * 64 / size_of::<u64>();
/// Equal heads up to this many are counted one by one.
const EQUAL_FEW: usize = 4;

/// The heads of keys in order.
#[derive(Default, Clone)]
pub struct Heads {
    beginning: [u8; BEGINNING_BYTES_MAX],
    common: usize,
    heads: Vec<u64>,
}

/// The first eight bytes as a number that orders like the bytes.
fn head(bytes: &[u8]) -> u64 {
    match bytes.first_chunk::<8>() {
        Some(chunk) => u64::from_be_bytes(*chunk),
        // Without a call for a few bytes.
        None => {
            let number = bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
            number.checked_shl(64 - 8 * bytes.len() as u32).unwrap_or(0)
        }
    }
}

/// What these keys, which are in order, begin with: the first and the last have in common what all have.
fn common_beginning<'k>(mut keys: impl DoubleEndedIterator<Item = &'k [u8]>) -> &'k [u8] {
    let (Some(first), Some(last)) = (keys.next(), keys.next_back()) else { return &[] };
    let alike = first.iter().zip(last).take(BEGINNING_BYTES_MAX).take_while(|(one, other)| one == other).count();
    &first[..alike]
}

impl Heads {
    /// Of these keys, which are in order.
    pub fn of<'k>(keys: impl DoubleEndedIterator<Item = &'k [u8]> + Clone) -> Heads {
        let mut made = Heads::default();
        let common = common_beginning(keys.clone());
        made.beginning[..common.len()].copy_from_slice(common);
        made.common = common.len();
        made.heads.extend(keys.map(|key| head(key.get(made.common..).unwrap_or_default())));
        made
    }

    /// Sees to it that the common beginning is as long as it could be. These are the keys whose heads they are; all of them are looked at only
    /// if it could be longer.
    pub fn fit<'k>(&mut self, keys: impl DoubleEndedIterator<Item = &'k [u8]> + Clone) {
        if common_beginning(keys.clone()).len() > self.common {
            *self = Heads::of(keys);
        }
    }

    /// Gives away the heads from a place on.
    pub fn split_off(&mut self, place: usize) -> Heads {
        Heads { beginning: self.beginning, common: self.common, heads: self.heads.split_off(place) }
    }

    /// What follows the common beginning; none if the key begins otherwise.
    fn behind<'k>(&self, key: &'k [u8]) -> Option<&'k [u8]> {
        key.strip_prefix(&self.beginning[..self.common])
    }

    /// The places of the keys whose heads are this key's: those before are less, those behind are greater. A key that begins
    /// otherwise than all has no such places; the error says where it belongs, before or behind all.
    pub fn candidates(&self, key: &[u8]) -> Result<Range<usize>, usize> {
        let Some(rest) = self.behind(key) else {
            let is_before = key < &self.beginning[..self.common];
            return Err(if is_before { 0 } else { self.heads.len() });
        };
        // A search by halves would wait for one line after the other.
        self.heads.chunks(HEADS_OF_LINE_PAIR).for_each(|pair| prefetch_at(pair.as_ptr()));
        let wanted = head(rest);
        let start = self.heads.partition_point(|head| *head < wanted);
        let equal = self.heads[start..].iter().take(EQUAL_FEW).take_while(|head| **head == wanted).count();
        if equal < EQUAL_FEW {
            return Ok(start..start + equal);
        }
        Ok(start..start + self.heads[start..].partition_point(|head| *head == wanted))
    }

    /// Puts a key's head at a place. False if the key begins otherwise than all: then everything is to be made anew.
    #[must_use]
    pub fn insert(&mut self, place: usize, key: &[u8]) -> bool {
        match self.behind(key) {
            Some(rest) => {
                let head = head(rest);
                self.heads.insert(place, head);
                true
            }
            None => false,
        }
    }

    /// Takes one out.
    pub fn remove(&mut self, place: usize) {
        self.heads.remove(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(keys: &[Vec<u8>], heads: &Heads, key: &[u8]) -> Result<usize, usize> {
        let range = heads.candidates(key)?;
        let start = range.start;
        match keys[range].binary_search_by(|other| other.as_slice().cmp(key)) {
            Ok(place) => Ok(start + place),
            Err(place) => Err(start + place),
        }
    }

    #[test]
    fn searches_agree_with_the_keys_themselves() {
        let texts: [&[u8]; 9] =
            [b"", b"c", b"common", b"common beginning", b"common beginning of all ", b"d", b"\0", b"\xff", b"common\0"];
        for beginning in texts {
            let mut keys: Vec<Vec<u8>> = Vec::new();
            for end in texts.into_iter().chain([b"\0\0".as_slice(), b"12345678", b"123456789", b"1234567890"]) {
                keys.push([beginning, end].concat());
            }
            keys.sort();
            let heads = Heads::of(keys.iter().map(Vec::as_slice));
            for one in texts {
                for other in texts {
                    let key = [one, other].concat();
                    assert_eq!(place(&keys, &heads, &key), keys.binary_search(&key), "{key:?} among {keys:?}");
                }
            }
        }
    }

    #[test]
    fn parts_find_what_the_whole_did_and_know_what_they_have_in_common() {
        let keys: Vec<Vec<u8>> = (0..40_u8).map(|number| vec![b'a', b'b', number / 20, number % 20]).collect();
        let mut lower = Heads::of(keys.iter().map(Vec::as_slice));
        let mut upper = lower.split_off(20);
        for fits in [false, true] {
            for (heads, part) in [(&mut lower, &keys[..20]), (&mut upper, &keys[20..])] {
                if fits {
                    heads.fit(part.iter().map(Vec::as_slice));
                }
                assert_eq!(heads.common, if fits { 3 } else { 2 });
                for key in &keys {
                    assert_eq!(place(part, heads, key), part.binary_search(key));
                }
            }
        }
    }

    #[test]
    fn a_key_that_begins_otherwise_is_not_taken() {
        let mut heads = Heads::of([b"abc".as_slice(), b"abd"].into_iter());
        assert!(heads.insert(2, b"abe") && !heads.insert(0, b"aac"));
        heads.remove(0);
        assert_eq!(
            (heads.candidates(b"abd"), heads.candidates(b"a"), heads.candidates(b"b")),
            (Ok(0..1), Err(0), Err(2))
        );
    }
}
