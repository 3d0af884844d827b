//! The range tombstones of a section, as disjoint fragments.
//!
//! Overlapping ranges are cut at each other's ends when they are written, so that the stamps over a key are found by one search.

use crate::wire::{Reader, put_bytes, put_varint};
use crate::{RangeTombstone, ReadPoint, Stamp};
use bytes::Bytes;
use pando_base::Timestamp;

/// A range and the stamps of all tombstones over it, newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fragment {
    pub(crate) start: Bytes,
    pub(crate) end: Option<Bytes>,
    pub(crate) stamps: Vec<Stamp>,
}

/// Disjoint fragments, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tombstones {
    fragments: Vec<Fragment>,
}

impl Tombstones {
    /// Cuts tombstones into fragments. The order given is the order of age among equal sequences: newest first.
    pub(crate) fn new(tombstones: &[RangeTombstone]) -> Tombstones {
        let mut cuts: Vec<&Bytes> =
            tombstones.iter().flat_map(|one| [Some(&one.start), one.end.as_ref()]).flatten().collect();
        cuts.sort();
        cuts.dedup();
        let mut fragments = Vec::new();
        for (position, start) in cuts.iter().enumerate() {
            let mut stamps: Vec<Stamp> =
                tombstones.iter().filter(|one| one.covers(start)).map(|one| one.stamp).collect();
            if stamps.is_empty() {
                continue;
            }
            stamps.sort_by_key(|stamp| std::cmp::Reverse(stamp.sequence));
            stamps.dedup();
            let end = cuts.get(position + 1).map(|end| (*end).clone());
            fragments.push(Fragment { start: (*start).clone(), end, stamps });
        }
        Tombstones { fragments }
    }

    /// All of them, one for each stamp of each fragment, newest first within a fragment.
    pub(crate) fn iter(&self) -> impl Iterator<Item = RangeTombstone> {
        self.fragments.iter().flat_map(|fragment| {
            let (start, end) = (&fragment.start, &fragment.end);
            fragment.stamps.iter().map(|stamp| RangeTombstone { start: start.clone(), end: end.clone(), stamp: *stamp })
        })
    }

    /// True if there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.fragments.is_empty()
    }

    /// The fragments.
    pub(crate) fn fragments(&self) -> &[Fragment] {
        &self.fragments
    }

    /// The fragment that a key lies in.
    pub(crate) fn fragment(&self, key: &[u8]) -> Option<&Fragment> {
        let next = self.fragments.partition_point(|fragment| fragment.start.as_ref() <= key);
        let fragment = self.fragments.get(next.checked_sub(1)?)?;
        fragment.end.as_ref().is_none_or(|end| key < end.as_ref()).then_some(fragment)
    }

    /// The stamps over a key, newest first.
    pub(crate) fn over(&self, key: &[u8]) -> &[Stamp] {
        self.fragment(key).map_or(&[], |fragment| &fragment.stamps)
    }

    /// The newest live tombstone over the key that the reader sees.
    pub(crate) fn visible(&self, key: &[u8], point: &ReadPoint, fence: Timestamp) -> Option<Stamp> {
        self.over(key).iter().find(|stamp| stamp.is_alive(fence) && point.sees(stamp)).copied()
    }

    /// What lies in `[start, end)`.
    pub(crate) fn clipped(&self, start: Option<&Bytes>, end: Option<&Bytes>) -> Tombstones {
        let mut fragments = Vec::new();
        for fragment in &self.fragments {
            let low = start.map_or(&fragment.start, |start| start.max(&fragment.start));
            let high = match (&fragment.end, end) {
                (Some(mine), Some(limit)) => Some(mine.min(limit)),
                (mine, limit) => mine.as_ref().or(limit),
            };
            if high.is_none_or(|high| low < high) {
                let stamps = fragment.stamps.clone();
                fragments.push(Fragment { start: low.clone(), end: high.cloned(), stamps });
            }
        }
        Tombstones { fragments }
    }

    /// Keeps the stamps that `choose` returns for each fragment, and joins neighbours that then are alike.
    pub(crate) fn chosen(&self, choose: impl Fn(&[Stamp]) -> Vec<Stamp>) -> Tombstones {
        let mut fragments: Vec<Fragment> = Vec::new();
        for fragment in &self.fragments {
            let stamps = choose(&fragment.stamps);
            match fragments.last_mut() {
                _ if stamps.is_empty() => {}
                Some(last) if last.stamps == stamps && last.end.as_ref() == Some(&fragment.start) => {
                    last.end = fragment.end.clone();
                }
                _ => fragments.push(Fragment { start: fragment.start.clone(), end: fragment.end.clone(), stamps }),
            }
        }
        Tombstones { fragments }
    }

    /// How many tombstones the fragments stand for.
    pub(crate) fn count(&self) -> u64 {
        self.fragments.iter().map(|fragment| fragment.stamps.len() as u64).sum()
    }

    /// The stored form.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut buffer = Vec::new();
        put_varint(&mut buffer, self.fragments.len() as u64);
        for fragment in &self.fragments {
            put_bytes(&mut buffer, &fragment.start);
            buffer.push(u8::from(fragment.end.is_some()));
            if let Some(end) = &fragment.end {
                put_bytes(&mut buffer, end);
            }
            put_varint(&mut buffer, fragment.stamps.len() as u64);
            for stamp in &fragment.stamps {
                [stamp.sequence, stamp.commit.0, stamp.durable.0]
                    .iter()
                    .for_each(|number| put_varint(&mut buffer, *number));
            }
        }
        buffer
    }

    /// From the stored form.
    pub(crate) fn decode(payload: &[u8]) -> Option<Tombstones> {
        let mut reader = Reader::new(payload);
        let mut fragments: Vec<Fragment> = Vec::new();
        for _ in 0..reader.length()? {
            let start = reader.owned_bytes()?;
            let end = match reader.u8()? {
                0 => None,
                1 => Some(reader.owned_bytes()?),
                _ => return None,
            };
            let mut stamps = Vec::new();
            for _ in 0..reader.length()? {
                let (sequence, commit, durable) = (reader.varint()?, reader.varint()?, reader.varint()?);
                stamps.push(Stamp { sequence, commit: Timestamp(commit), durable: Timestamp(durable) });
            }
            let ordered = match fragments.last() {
                Some(previous) => previous.end.as_ref().is_some_and(|previous_end| *previous_end <= start),
                None => true,
            };
            if !ordered || stamps.is_empty() || end.as_ref().is_some_and(|end| *end <= start) {
                return None;
            }
            fragments.push(Fragment { start, end, stamps });
        }
        reader.is_empty().then_some(Tombstones { fragments })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tombstone(start: &'static str, end: Option<&'static str>, sequence: u64) -> RangeTombstone {
        let bytes = |text: &'static str| Bytes::from_static(text.as_bytes());
        RangeTombstone { start: bytes(start), end: end.map(bytes), stamp: Stamp::new(sequence, Timestamp::NONE) }
    }

    #[test]
    fn overlapping_ranges_become_fragments() {
        let all = [tombstone("b", Some("f"), 3), tombstone("d", None, 7), tombstone("a", Some("c"), 5)];
        let tombstones = Tombstones::new(&all);
        let sequences = |key: &str| tombstones.over(key.as_bytes()).iter().map(|s| s.sequence).collect::<Vec<_>>();
        assert_eq!(sequences("a"), [5]);
        assert_eq!(sequences("b"), [5, 3]);
        assert_eq!(sequences("c"), [3]);
        assert_eq!(sequences("e"), [7, 3]);
        assert_eq!(sequences("zzz"), [7]);
        assert_eq!(sequences(""), [0; 0]);
        assert_eq!(Tombstones::decode(&tombstones.encode()), Some(tombstones.clone()));
        let clipped = tombstones.clipped(Some(&Bytes::from_static(b"bb")), Some(&Bytes::from_static(b"dd")));
        assert!(clipped.over(b"b").is_empty() && clipped.over(b"dd").is_empty());
        assert_eq!((clipped.over(b"bb").len(), clipped.over(b"d").len()), (2, 2));
        let encoded = tombstones.encode();
        (0..encoded.len()).for_each(|cut| assert!(Tombstones::decode(&encoded[..cut]).is_none()));
    }
}
