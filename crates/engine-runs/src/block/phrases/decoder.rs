//! Turns codes back into values, two side by side.
//!
//! A look-up of [`CODE_BITS_MAX`] bits gives a text, its length and how many bits it took: a phrase, or as many single bytes as
//! those bits hold. The copy is always as long as the longest phrase and the next one overwrites what was too much, also
//! beyond the end of a value: whoever decodes several puts them down in order.
//!
//! Invariant: nothing read from a file can make it read or write outside the given slices. Wrong bits give a wrong
//! value, which the frame's checksum has excluded.

use super::code;
use super::{BYTE_SYMBOLS, CODE_BITS_MAX, Model, PHRASE_BYTES_MAX};
use std::collections::BTreeMap;

const TABLE_ENTRIES: usize = 1 << CODE_BITS_MAX;
/// Texts for all phrases, all bytes and the pairs and triples that fit into a look-up.
const TEXTS_MAX: usize = 4096;
/// Bytes in one look-up.
const FUSED_BYTES_MAX: usize = 4;
/// Look-ups between two loads of bits: 56 bits are enough for them.
const STEPS: usize = 4;

/// Decodes what an [`Encoder`](super::Encoder) of the same model wrote.
pub(crate) struct Decoder {
    /// From the lowest bit: 4 bits of code length, 6 of text length, then the text's number.
    table: Box<[u32; TABLE_ENTRIES]>,
    texts: Box<[[u8; PHRASE_BYTES_MAX]; TEXTS_MAX]>,
}

/// One value to decode: where its code begins, and where in the output it belongs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Task {
    pub(crate) input: usize,
    pub(crate) output: usize,
    pub(crate) length: usize,
}

/// A value on its way.
struct Lane {
    bits: u64,
    count: u32,
    input: usize,
    output: usize,
    end: usize,
}

impl Lane {
    fn new(task: &Task) -> Lane {
        Lane { bits: 0, count: 0, input: task.input, output: task.output, end: task.output + task.length }
    }

    #[inline]
    fn is_done(&self) -> bool {
        self.output >= self.end
    }

    /// Loads bits until there are at least 56.
    #[inline]
    fn refill(&mut self, input: &[u8]) {
        let word = match input.get(self.input..).and_then(|rest| rest.first_chunk::<8>()) {
            Some(word) => *word,
            None => last_bytes(input, self.input),
        };
        self.bits |= u64::from_le_bytes(word) << self.count;
        self.input += ((63 - self.count) >> 3) as usize;
        self.count |= 56;
    }

    #[inline]
    fn take(&mut self, count: u32) {
        self.bits >>= count;
        self.count -= count;
    }

    /// One look-up.
    #[inline]
    fn step(&mut self, decoder: &Decoder, output: &mut [u8]) {
        let entry = decoder.table[self.bits as usize % TABLE_ENTRIES];
        self.take(entry & 15);
        let text = &decoder.texts[(entry >> 10) as usize % TEXTS_MAX];
        if let Some(place) = output.get_mut(self.output..self.output + PHRASE_BYTES_MAX) {
            place.copy_from_slice(text);
        }
        self.output += (entry >> 4) as usize & 63;
    }

    #[inline]
    fn advance(&mut self, decoder: &Decoder, input: &[u8], output: &mut [u8]) {
        self.refill(input);
        for _ in 0..STEPS {
            self.step(decoder, output);
        }
    }
}

#[cold]
fn last_bytes(input: &[u8], from: usize) -> [u8; 8] {
    let mut word = [0; 8];
    if let Some(rest) = input.get(from..) {
        word[..rest.len()].copy_from_slice(rest);
    }
    word
}

impl Decoder {
    pub(crate) fn new(model: &Model) -> Decoder {
        let single = single_symbols(&model.lengths);
        let mut texts: Vec<[u8; PHRASE_BYTES_MAX]> = (0..=255u8).map(|byte| text(&[byte])).collect();
        texts.extend(model.phrases.iter().map(|phrase| text(phrase)));
        debug_assert_eq!(texts.len(), model.lengths.len());
        let mut fused_texts = BTreeMap::new();
        let mut table = Box::new([0; TABLE_ENTRIES]);
        for (pattern, entry) in table.iter_mut().enumerate() {
            let (symbol, mut bits) = single[pattern];
            let (mut number, mut length) = match usize::from(symbol) {
                symbol if symbol < BYTE_SYMBOLS => (symbol, 1),
                symbol => (symbol, model.phrases.get(symbol - BYTE_SYMBOLS).map_or(1, Vec::len)),
            };
            let (bytes, fused_bits) = fuse(&single, pattern);
            if bytes.len() > 1 && (texts.len() < TEXTS_MAX || fused_texts.contains_key(&bytes)) {
                (length, bits) = (bytes.len(), fused_bits);
                number = *fused_texts.entry(bytes).or_insert_with_key(|bytes| {
                    texts.push(text(bytes));
                    texts.len() - 1
                });
            }
            *entry = bits | ((length as u32) << 4) | ((number as u32) << 10);
        }
        let mut all = Box::new([[0; PHRASE_BYTES_MAX]; TEXTS_MAX]);
        all.iter_mut().zip(&texts).for_each(|(place, text)| *place = *text);
        Decoder { table, texts: all }
    }

    /// What it occupies, roughly.
    pub(crate) fn size_bytes(&self) -> usize {
        size_of_val(&*self.table) + size_of_val(&*self.texts)
    }

    /// Decodes one value into `output`, which is longer than it by at least [`PHRASE_BYTES_MAX`].
    pub(crate) fn decode(&self, input: &[u8], task: &Task, output: &mut [u8]) {
        debug_assert!(task.output + task.length + PHRASE_BYTES_MAX <= output.len());
        let mut lane = Lane::new(task);
        while !lane.is_done() {
            lane.advance(self, input, output);
        }
    }

    /// Decodes two lists of values of the same input side by side, each list into an output of its own. What lies behind a
    /// value in its output is destroyed while it is decoded: `begin` is called for each before it is its turn, puts down what
    /// goes before the value and says what is to be decoded.
    pub(crate) fn decode_lists<T>(
        &self,
        input: &[u8],
        lists: [&[T]; 2],
        outputs: [&mut [u8]; 2],
        begin: impl Fn(&T, &mut [u8]) -> Task,
    ) {
        let [first, second] = outputs;
        let [mut first_list, mut second_list] = lists.map(|list| list.iter());
        let (mut left, mut right) = (Lane::new(&Task::default()), Lane::new(&Task::default()));
        let ready = |lane: &mut Lane, list: &mut std::slice::Iter<'_, T>, output: &mut [u8]| {
            while lane.is_done() {
                let Some(item) = list.next() else { return false };
                *lane = Lane::new(&begin(item, output));
            }
            true
        };
        while ready(&mut left, &mut first_list, first) && ready(&mut right, &mut second_list, second) {
            left.refill(input);
            right.refill(input);
            for _ in 0..STEPS {
                left.step(self, first);
                right.step(self, second);
            }
        }
        while ready(&mut left, &mut first_list, first) {
            left.advance(self, input, first);
        }
        while ready(&mut right, &mut second_list, second) {
            right.advance(self, input, second);
        }
    }
}

fn text(bytes: &[u8]) -> [u8; PHRASE_BYTES_MAX] {
    let mut text = [0; PHRASE_BYTES_MAX];
    text[..bytes.len()].copy_from_slice(bytes);
    text
}

/// The symbol that each pattern of bits begins with, and the bits it takes. A pattern that no code has reads as a byte.
fn single_symbols(lengths: &[u8]) -> Vec<(u16, u32)> {
    let mut single = vec![(0, 1); TABLE_ENTRIES];
    for (symbol, (code, length)) in code::codes(lengths).into_iter().zip(lengths).enumerate() {
        for entry in single.iter_mut().skip(usize::from(code)).step_by(1 << length) {
            *entry = (symbol as u16, u32::from(*length));
        }
    }
    single
}

/// The single bytes that a pattern of bits holds completely, and the bits they take.
fn fuse(single: &[(u16, u32)], pattern: usize) -> (Vec<u8>, u32) {
    let (mut bytes, mut taken) = (Vec::new(), 0);
    while bytes.len() < FUSED_BYTES_MAX && taken < CODE_BITS_MAX {
        let (symbol, bits) = single[pattern >> taken];
        let Ok(byte) = u8::try_from(symbol) else { break };
        if taken + bits > CODE_BITS_MAX {
            break;
        }
        bytes.push(byte);
        taken += bits;
    }
    (bytes, taken)
}
