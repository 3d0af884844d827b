//! Finds a table's phrases in a value and writes the codes.
//!
//! At each position the longest phrase that fits is taken. Candidates are found by a hash of three bytes; nearly all positions have
//! none and cost one look-up. Bytes go out four at a time, as many codes as 56 bits hold.

use super::code;
use super::{BYTE_SYMBOLS, Model, PHRASE_BYTES_MAX};
use std::cmp::Reverse;

const HASH_BITS: u32 = 12;
/// Up to here before the end of a value, nothing that is loaded reaches beyond it.
const MARGIN_BYTES: usize = PHRASE_BYTES_MAX;
/// Single bytes that one load and one store serve.
const BYTES_AT_ONCE: usize = 4;

type Words = [u64; PHRASE_BYTES_MAX / 8];

#[derive(Clone, Copy, Default)]
struct Candidate {
    /// The phrase, and which of its bits count.
    words: Words,
    masks: Words,
    /// 0 ends a list.
    length: u32,
    symbol: u32,
}

/// Codes values with one model.
pub(crate) struct Encoder {
    /// By hash: where the candidates begin, longest first; 0 if there are none.
    heads: Box<[u16; 1 << HASH_BITS]>,
    candidates: Vec<Candidate>,
    /// By symbol: the code in the low half, its length in the high half.
    codes: Vec<u32>,
}

#[inline(always)]
fn hash(word: u64) -> usize {
    (((word as u32) << 8).wrapping_mul(0x9e37_79b1) >> (32 - HASH_BITS)) as usize
}

/// The first bytes, with zeros where there are none.
#[inline(always)]
fn load<const N: usize>(bytes: &[u8]) -> [u8; N] {
    match bytes.first_chunk::<N>() {
        Some(chunk) => *chunk,
        None => load_short(bytes),
    }
}

#[cold]
fn load_short<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut chunk = [0; N];
    chunk[..bytes.len()].copy_from_slice(bytes);
    chunk
}

#[inline(always)]
fn load_word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(load(bytes))
}

#[inline(always)]
fn words(bytes: [u8; PHRASE_BYTES_MAX]) -> Words {
    let word = |number: usize| {
        let start = number * 8;
        u64::from_le_bytes([
            bytes[start],
            bytes[start + 1],
            bytes[start + 2],
            bytes[start + 3],
            bytes[start + 4],
            bytes[start + 5],
            bytes[start + 6],
            bytes[start + 7],
        ])
    };
    [word(0), word(1), word(2), word(3)]
}

impl Candidate {
    fn new(phrase: &[u8], number: usize) -> Candidate {
        let mut mask = [0; PHRASE_BYTES_MAX];
        mask[..phrase.len()].fill(0xff);
        let symbol = (BYTE_SYMBOLS + number) as u32;
        Candidate { words: words(load(phrase)), masks: words(mask), length: phrase.len() as u32, symbol }
    }

    #[inline(always)]
    fn fits(&self, text: &Words) -> bool {
        let differs = |number: usize| (text[number] ^ self.words[number]) & self.masks[number];
        differs(0) == 0 && differs(1) | differs(2) | differs(3) == 0
    }
}

impl Encoder {
    pub(crate) fn new(model: &Model) -> Encoder {
        let mut buckets = vec![Vec::new(); 1 << HASH_BITS];
        for (number, phrase) in model.phrases.iter().enumerate() {
            buckets[hash(load_word(phrase))].push(number);
        }
        let packed = |(code, length): (u16, &u8)| u32::from(code) | (u32::from(*length) << 16);
        let codes = code::codes(&model.lengths).into_iter().zip(&model.lengths).map(packed).collect();
        let mut heads = Box::new([0; 1 << HASH_BITS]);
        let mut candidates = vec![Candidate::default()];
        for (head, bucket) in heads.iter_mut().zip(&mut buckets).filter(|(_, bucket)| !bucket.is_empty()) {
            bucket.sort_by_key(|number| Reverse(model.phrases[*number].len()));
            *head = candidates.len() as u16;
            candidates.extend(bucket.iter().map(|number| Candidate::new(&model.phrases[*number], *number)));
            candidates.push(Candidate::default());
        }
        Encoder { heads, candidates, codes }
    }

    /// The longest phrase at the beginning of `rest`: its symbol and length.
    #[inline(never)]
    fn find(&self, head: u16, rest: &[u8]) -> Option<(usize, usize)> {
        let text = words(load(rest));
        let list = self.candidates.get(usize::from(head)..)?.iter().take_while(|candidate| candidate.length != 0);
        for candidate in list {
            let length = candidate.length as usize;
            if candidate.fits(&text) && length <= rest.len() {
                return Some((candidate.symbol as usize, length));
            }
        }
        None
    }

    /// The symbol at the beginning of `rest`, and how many bytes it stands for.
    #[inline(always)]
    fn next(&self, rest: &[u8]) -> (usize, usize) {
        let word = load_word(rest);
        let head = self.heads[hash(word)];
        let phrase = (head != 0).then(|| self.find(head, rest)).flatten();
        phrase.unwrap_or((usize::from(word as u8), 1))
    }

    /// Shows the symbols of a value one after the other.
    pub(super) fn parse(&self, value: &[u8], mut see: impl FnMut(usize)) {
        let mut rest = value;
        while !rest.is_empty() {
            let (symbol, length) = self.next(rest);
            see(symbol);
            rest = rest.get(length..).unwrap_or_default();
        }
    }

    /// Appends the code of a value.
    pub(crate) fn encode(&self, value: &[u8], output: &mut Vec<u8>) {
        let start = output.len();
        // The longest code of a byte is one and a half, and the last store may reach a word beyond.
        output.resize(start + value.len() + value.len() / 2 + 24, 0);
        let mut writer = BitWriter { output, at: start, bits: 0, count: 0 };
        let mut position = 0;
        while position + MARGIN_BYTES <= value.len() {
            position += self.put_bytes(&value[position..], &mut writer);
            position += self.put_next(&value[position..], &mut writer);
        }
        while position < value.len() {
            position += self.put_next(&value[position..], &mut writer);
        }
        let end = writer.at + writer.count.div_ceil(8) as usize;
        output.truncate(end);
    }

    /// Puts single bytes as long as no phrase may begin; returns how many.
    #[inline(always)]
    fn put_bytes(&self, rest: &[u8], writer: &mut BitWriter<'_>) -> usize {
        let mut put = 0;
        loop {
            let Some(chunk) = rest.get(put..).and_then(|rest| rest.first_chunk::<8>()) else { return put };
            let mut word = u64::from_le_bytes(*chunk);
            for _ in 0..BYTES_AT_ONCE {
                if self.heads[hash(word)] != 0 {
                    writer.flush();
                    return put;
                }
                writer.add(self.codes[usize::from(word as u8)]);
                word >>= 8;
                put += 1;
            }
            writer.flush();
        }
    }

    #[inline(always)]
    fn put_next(&self, rest: &[u8], writer: &mut BitWriter<'_>) -> usize {
        if rest.is_empty() {
            return 0;
        }
        let (symbol, length) = self.next(rest);
        writer.add(self.codes[symbol]);
        writer.flush();
        length
    }
}

struct BitWriter<'a> {
    output: &'a mut Vec<u8>,
    at: usize,
    bits: u64,
    count: u32,
}

impl BitWriter<'_> {
    /// Adds a code; after [`BYTES_AT_ONCE`] of them there must be a flush.
    #[inline(always)]
    fn add(&mut self, code: u32) {
        self.bits |= u64::from(code as u16) << self.count;
        self.count += code >> 16;
        debug_assert!(self.count < 64);
    }

    /// Stores all and keeps the bits of the last incomplete byte.
    #[inline(always)]
    fn flush(&mut self) {
        if let Some(place) = self.output.get_mut(self.at..self.at + 8) {
            place.copy_from_slice(&self.bits.to_le_bytes());
        }
        self.at += (self.count >> 3) as usize;
        self.bits >>= self.count & !7;
        self.count &= 7;
    }
}
