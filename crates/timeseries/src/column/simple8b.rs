//! Simple-8b: as many small integers as fit into a word of 64 bits.
//!
//! The lowest four bits choose how many slots a word has. Seven and eight have four more bits, which may choose slots that also tell how
//! many zeros follow the value: so large round numbers are small. Fifteen repeats the value before it 120 times or a multiple. A slot
//! of ones is a missing value.
//!
//! Every slot of a word is used: a reader knows the end only from the number of words.

use super::damaged;
use pando_base::Result;
use std::collections::VecDeque;
use std::ops::Range;

/// A run is a multiple of this.
const RUN_UNIT: u32 = 120;
/// At most so many units in one word.
const RUN_UNITS_MAX: u32 = 16;
const RUN_SELECTOR: u64 = 15;

/// A kind of slot.
struct Family {
    /// The lowest four bits; none if the selector itself stands there.
    nibble: Option<u8>,
    /// Bits that count trailing zeros.
    zero_bits: u32,
    /// Zeros for each count.
    zero_unit: u32,
    /// Selector, bits of a value, slots; fewer slots later.
    sizes: &'static [(u8, u32, u32)],
}

impl Family {
    const fn zero_count_max(&self) -> u32 {
        (1 << self.zero_bits) - 1
    }

    /// The value as a slot: what is kept of it, and the count of zeros. None if it takes more bits than a slot can have.
    fn slot(&self, value: u128) -> (u128, u32) {
        if self.zero_bits == 0 || value == 0 {
            return (value, 0);
        }
        let count = (value.trailing_zeros() / self.zero_unit).min(self.zero_count_max());
        (value >> (count * self.zero_unit), count)
    }

    /// How many bits the value needs. A slot of ones would be a missing value.
    fn bits(&self, value: u128) -> u32 {
        if value < 1 << 60 {
            return self.bits_of_small(value as u64);
        }
        let (kept, count) = self.slot(value);
        let may_be_ones = count == self.zero_count_max();
        let significant = if may_be_ones { kept.saturating_add(1) } else { kept };
        (128 - significant.leading_zeros()).max(1)
    }
}

impl Family {
    /// The same with shorter arithmetic: most values are small.
    fn bits_of_small(&self, value: u64) -> u32 {
        let mut significant = value + u64::from(self.zero_bits == 0);
        if self.zero_bits > 0 && value > 0 {
            let count = (value.trailing_zeros() / self.zero_unit).min(self.zero_count_max());
            significant = (value >> (count * self.zero_unit)) + u64::from(count == self.zero_count_max());
        }
        (64 - significant.leading_zeros()).max(1)
    }
}

/// The kinds, the plain one first.
const FAMILIES: [Family; 4] = [
    Family {
        nibble: None,
        zero_bits: 0,
        zero_unit: 1,
        sizes: &[
            (1, 1, 60),
            (2, 2, 30),
            (3, 3, 20),
            (4, 4, 15),
            (5, 5, 12),
            (6, 6, 10),
            (7, 7, 8),
            (8, 8, 7),
            (9, 10, 6),
            (10, 12, 5),
            (11, 15, 4),
            (12, 20, 3),
            (13, 30, 2),
            (14, 60, 1),
        ],
    },
    Family {
        nibble: Some(7),
        zero_bits: 4,
        zero_unit: 1,
        sizes: &[(1, 2, 9), (2, 3, 8), (3, 4, 7), (4, 5, 6), (5, 7, 5), (6, 10, 4), (7, 14, 3), (8, 24, 2), (9, 52, 1)],
    },
    Family {
        nibble: Some(8),
        zero_bits: 4,
        zero_unit: 4,
        sizes: &[(1, 4, 7), (2, 5, 6), (3, 7, 5), (4, 10, 4), (5, 14, 3), (6, 24, 2), (7, 52, 1)],
    },
    Family {
        nibble: Some(8),
        zero_bits: 5,
        zero_unit: 4,
        sizes: &[(8, 4, 6), (9, 6, 5), (10, 9, 4), (11, 13, 3), (12, 23, 2), (13, 51, 1)],
    },
];

/// More bits than any value needs.
const BITS_END: usize = 130;
/// For each family, how many slots a word has that takes values of so many bits.
static SLOTS: [[u8; BITS_END]; 4] = {
    let mut slots = [[0; BITS_END]; 4];
    let mut family = 0;
    while family < FAMILIES.len() {
        let sizes = FAMILIES[family].sizes;
        let mut bits = 0;
        while bits < BITS_END {
            let mut size = 0;
            while size < sizes.len() {
                let (_, room, count) = sizes[size];
                if room as usize >= bits && count > slots[family][bits] as u32 {
                    slots[family][bits] = count as u8;
                }
                size += 1;
            }
            bits += 1;
        }
        family += 1;
    }
    slots
};

/// How many bits a value needs in each family.
type Bits = [u8; 4];
/// Those of a missing value, which takes any slot.
const FEWEST: Bits = [1; 4];

fn bits_of(value: Option<u128>) -> Bits {
    let Some(value) = value else { return FEWEST };
    let mut bits = FEWEST;
    for (bits, family) in bits.iter_mut().zip(&FAMILIES) {
        *bits = family.bits(value) as u8;
    }
    bits
}

/// What both need.
fn most(left: Bits, right: Bits) -> Bits {
    let mut bits = left;
    for (bits, other) in bits.iter_mut().zip(right) {
        *bits = (*bits).max(other);
    }
    bits
}

/// True if some word has room for so many values with so many bits.
fn fits(bits: Bits, count: usize) -> bool {
    SLOTS
        .iter()
        .zip(bits)
        .any(|(slots, bits)| slots.get(usize::from(bits)).is_some_and(|slots| usize::from(*slots) >= count))
}

/// Bits in front of the slots.
fn header_bits(family: &Family, selector: u8) -> u32 {
    if family.nibble.is_some() || selector == 7 || selector == 8 { 8 } else { 4 }
}

/// A word and the place of its first value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) start: usize,
    pub(super) word: u64,
}

/// Puts integers into words.
#[derive(Clone, Debug)]
pub(super) struct Packer {
    words: Vec<Word>,
    /// Values that are in no word yet, and what they need.
    pending: VecDeque<(Option<u128>, Bits)>,
    /// What all of them need.
    bits_max: Bits,
    /// What a run repeats: the last value of the last word. None right after a flush, where no run may begin.
    repeated: Option<Option<u128>>,
    /// So many values repeat it.
    run: u32,
    /// The place of the first value that is in no word.
    start: usize,
}

impl Packer {
    /// Begins behind a literal: a run of zeros may come.
    pub(super) fn new(start: usize) -> Packer {
        let (words, pending) = (Vec::new(), VecDeque::new());
        Packer { words, pending, bits_max: FEWEST, repeated: Some(Some(0)), run: 0, start }
    }

    /// Adds a value or a missing one; false if it is too large, then nothing has changed.
    pub(super) fn append(&mut self, value: Option<u128>) -> bool {
        let bits = bits_of(value);
        if !fits(bits, 1) {
            return false;
        }
        if self.pending.is_empty() && self.repeated == Some(value) {
            self.run += 1;
            return true;
        }
        self.end_run();
        self.push(value, bits, true);
        true
    }

    /// Adds a value to those that are pending, or to a run if none are and it may begin one.
    fn push(&mut self, value: Option<u128>, own: Bits, may_repeat: bool) {
        let mut bits = most(self.bits_max, own);
        if !fits(bits, self.pending.len() + 1) {
            self.write_word();
            while !self.pending.is_empty() && !fits(self.bits_with(own), self.pending.len() + 1) {
                self.write_word();
            }
            if may_repeat && self.pending.is_empty() && self.repeated == Some(value) {
                self.bits_max = FEWEST;
                self.run = 1;
                return;
            }
            bits = self.bits_with(own);
        }
        self.bits_max = bits;
        self.pending.push_back((value, own));
    }

    fn bits_with(&self, own: Bits) -> Bits {
        self.pending.iter().fold(own, |bits, (_, other)| most(bits, *other))
    }

    /// Writes what the run is long enough for; what is left goes as single values.
    fn end_run(&mut self) {
        let run = std::mem::take(&mut self.run);
        let mut units = run / RUN_UNIT;
        while units > 0 {
            let taken = units.min(RUN_UNITS_MAX);
            self.words.push(Word { start: self.start, word: RUN_SELECTOR | (u64::from(taken - 1) << 4) });
            self.start += (taken * RUN_UNIT) as usize;
            units -= taken;
        }
        let Some(value) = self.repeated else { return };
        let bits = bits_of(value);
        for _ in 0..run % RUN_UNIT {
            self.push(value, bits, false);
        }
    }

    /// Writes the word that takes the most of the pending values.
    fn write_word(&mut self) {
        let mut best: Option<(&Family, (u8, u32, u32))> = None;
        // What the first so many need together.
        let mut needed = [FEWEST; 64];
        let mut so_far = FEWEST;
        for (needed, (_, bits)) in needed.iter_mut().zip(&self.pending) {
            so_far = most(so_far, *bits);
            *needed = so_far;
        }
        let needed = needed.get(..self.pending.len()).unwrap_or(&needed);
        for (place, family) in FAMILIES.iter().enumerate() {
            let takes = |room: u32, count: u32| {
                needed
                    .get(count as usize - 1)
                    .and_then(|bits| bits.get(place))
                    .is_some_and(|bits| u32::from(*bits) <= room)
            };
            let size = family.sizes.iter().find(|(_, room, count)| takes(*room, *count));
            if let Some(size) = size
                && best.is_none_or(|(_, (_, _, count))| size.2 > count)
            {
                best = Some((family, *size));
            }
        }
        // Every value that was taken fits into a slot of some word.
        let Some((family, (selector, room, count))) = best else {
            debug_assert!(self.pending.is_empty(), "a value that is too large was taken");
            self.pending.clear();
            return;
        };
        let mut word = match family.nibble {
            Some(nibble) => u64::from(nibble) | (u64::from(selector) << 4),
            None => u64::from(selector),
        };
        let slot_bits = room + family.zero_bits;
        let mut shift = header_bits(family, selector);
        let mut last = None;
        for _ in 0..count {
            last = self.pending.pop_front().and_then(|(value, _)| value);
            let ones = (1_u64 << slot_bits) - 1;
            let slot = last.map_or(ones, |value| {
                let (kept, zeros) = family.slot(value);
                ((kept as u64) << family.zero_bits) | u64::from(zeros)
            });
            word |= slot << shift;
            shift += slot_bits;
        }
        self.words.push(Word { start: self.start, word });
        self.start += count as usize;
        self.repeated = Some(last);
    }

    /// Writes everything. No run may begin behind it.
    pub(super) fn flush(&mut self) {
        self.end_run();
        while !self.pending.is_empty() {
            self.write_word();
        }
        self.bits_max = FEWEST;
        self.repeated = None;
    }

    /// So many words, taken out, if there are as many.
    pub(super) fn take_first(&mut self, count: usize) -> Option<Vec<Word>> {
        (self.words.len() >= count).then(|| self.words.drain(..count).collect())
    }

    /// How much memory it takes.
    pub(super) fn size_bytes(&self) -> usize {
        self.words.capacity() * size_of::<Word>() + self.pending.capacity() * size_of::<(Option<u128>, Bits)>()
    }

    /// The words so far, taken out.
    pub(super) fn take_words(&mut self) -> Vec<Word> {
        std::mem::take(&mut self.words)
    }
}

/// Reads integers from words.
#[derive(Clone, Debug)]
pub(super) struct Unpacker {
    /// Where in the column the words are that are not read yet.
    at: usize,
    end: usize,
    word: u64,
    slots_left: u32,
    slot_bits: u32,
    zero_bits: u32,
    zero_unit: u32,
    run_left: u32,
    last: Option<u128>,
}

impl Unpacker {
    /// Reads the words at this place of a column; a run at their beginning repeats the value before them.
    pub(super) fn new(words: Range<usize>, before: Option<u128>) -> Unpacker {
        let Range { start: at, end } = words;
        Unpacker {
            at,
            end,
            word: 0,
            slots_left: 0,
            slot_bits: 0,
            zero_bits: 0,
            zero_unit: 1,
            run_left: 0,
            last: before,
        }
    }

    /// The last value that was read.
    pub(super) fn last(&self) -> Option<u128> {
        self.last
    }

    /// The next value, missing or not; none at the end.
    #[inline]
    pub(super) fn next(&mut self, column: &[u8]) -> Result<Option<Option<u128>>> {
        loop {
            if self.run_left > 0 {
                self.run_left -= 1;
                return Ok(Some(self.last));
            }
            if self.slots_left > 0 {
                self.slots_left -= 1;
                let ones = (1_u64 << self.slot_bits) - 1;
                let slot = self.word & ones;
                self.word = self.word.checked_shr(self.slot_bits).unwrap_or(0);
                self.last = (slot != ones).then(|| {
                    let zeros = (slot & ((1 << self.zero_bits) - 1)) as u32 * self.zero_unit;
                    u128::from(slot >> self.zero_bits).checked_shl(zeros).unwrap_or(0)
                });
                return Ok(Some(self.last));
            }
            let words = column.get(self.at..self.end).unwrap_or_default();
            let Some(word) = words.first_chunk::<8>() else { return Ok(None) };
            self.at += 8;
            self.load(u64::from_le_bytes(*word))?;
        }
    }

    fn load(&mut self, word: u64) -> Result<()> {
        let (selector, extension) = ((word & 15) as u8, ((word >> 4) & 15) as u8);
        if u64::from(selector) == RUN_SELECTOR {
            self.run_left = (u32::from(extension) + 1) * RUN_UNIT;
            return Ok(());
        }
        let family = match (selector, extension) {
            (7, 1..) => FAMILIES.get(1),
            (8, 1..=7) => FAMILIES.get(2),
            (8, 8..) => FAMILIES.get(3),
            _ => FAMILIES.first(),
        };
        let wanted = if family.is_some_and(|family| family.nibble.is_some()) { extension } else { selector };
        let size = family.and_then(|family| family.sizes.iter().find(|(selector, ..)| *selector == wanted));
        let (Some(family), Some((_, room, count))) = (family, size) else { return Err(damaged(6_067_606)) };
        (self.slot_bits, self.zero_bits) = (room + family.zero_bits, family.zero_bits);
        (self.zero_unit, self.slots_left) = (family.zero_unit, *count);
        self.word = word >> header_bits(family, selector);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(values: &[Option<u128>]) -> usize {
        let mut packer = Packer::new(0);
        for value in values {
            assert!(packer.append(*value), "{value:?}");
        }
        packer.flush();
        let words = packer.take_words();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.word.to_le_bytes()).collect();
        let mut unpacker = Unpacker::new(0..bytes.len(), Some(0));
        for (place, value) in values.iter().enumerate() {
            assert_eq!(unpacker.next(&bytes).unwrap(), Some(*value), "place {place} of {}", values.len());
        }
        assert_eq!(unpacker.next(&bytes).unwrap(), None);
        words.len()
    }

    #[test]
    fn x29_simple8b_gives_back_what_it_took() {
        assert_eq!(round_trip(&[Some(0); 1200]), 1);
        assert_eq!(round_trip(&[None; 60]), 1);
        round_trip(&[Some(1), None, Some(3), Some(u128::from(u32::MAX)), Some(0), Some((1 << 59) + 1)]);
        round_trip(&[Some(0xFFFF << 100), Some(1 << 52), Some(7 << 60)]);
        let mut state = 7_u64;
        for length in [1, 2, 59, 60, 61, 130, 500, 2000] {
            for bits in [1, 3, 8, 20, 50] {
                let values: Vec<Option<u128>> = (0..length)
                    .map(|_| {
                        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                        let value = (state >> 14) & ((1 << bits) - 1);
                        let zeros = (state >> 8) % 12;
                        (!state.is_multiple_of(7)).then_some(u128::from(value) << zeros)
                    })
                    .collect();
                round_trip(&values);
            }
        }
    }

    #[test]
    fn x29_a_number_too_large_for_a_word_is_refused() {
        let mut packer = Packer::new(0);
        assert!(!packer.append(Some(u128::from(u64::MAX))));
        assert!(packer.append(Some(5)));
    }

    #[test]
    fn x29_words_with_unknown_selectors_are_damage() {
        for word in [0_u64, 7 | (12 << 4), 8 | (14 << 4)] {
            assert!(Unpacker::new(0..8, Some(0)).next(&word.to_le_bytes()).is_err(), "{word}");
        }
    }
}
