//! Finds a table's phrases in a value and writes the codes.
//!
//! At each position the longest phrase that fits is taken. Candidates are found by a hash of three bytes; nearly all positions have
//! none and cost one look-up: beside the place of its candidates an entry has a bit for each of 16 further values of the hash
//! that one of them has, so that bytes without any order nearly never lead to a comparison. Bytes go out four at a time, as
//! many codes as 56 bits hold.

use super::code;
use super::{BYTE_SYMBOLS, Model, PHRASE_BYTES_MAX, PHRASES_MAX};
use std::cmp::Reverse;

const HASH_BITS: u32 = 12;
/// A head has a bit for each tag.
const TAG_BITS: u32 = 4;
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
    /// By hash: in the low half where the candidates begin, longest first; in the high half the tags that they have.
    heads: Box<[u32; 1 << HASH_BITS]>,
    candidates: Vec<Candidate>,
    /// By symbol: the code in the low half, its length in the high half.
    codes: Box<[u32; BYTE_SYMBOLS + PHRASES_MAX]>,
}

/// Of the first three bytes: the place in the heads, and the bit of its tag there.
#[inline(always)]
fn hash(word: u64) -> (usize, u32) {
    let product = ((word as u32) << 8).wrapping_mul(0x9e37_79b1);
    let tag = (product >> (32 - HASH_BITS - TAG_BITS)) & ((1 << TAG_BITS) - 1);
    ((product >> (32 - HASH_BITS)) as usize, 1 << (16 + tag))
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
            buckets[hash(load_word(phrase)).0].push(number);
        }
        let packed = |(code, length): (u16, &u8)| u32::from(code) | (u32::from(*length) << 16);
        let mut codes = Box::new([0; BYTE_SYMBOLS + PHRASES_MAX]);
        for (place, code) in codes.iter_mut().zip(code::codes(&model.lengths).into_iter().zip(&model.lengths)) {
            *place = packed(code);
        }
        let mut heads = Box::new([0; 1 << HASH_BITS]);
        let mut candidates = vec![Candidate::default()];
        for (head, bucket) in heads.iter_mut().zip(&mut buckets).filter(|(_, bucket)| !bucket.is_empty()) {
            bucket.sort_by_key(|number| Reverse(model.phrases[*number].len()));
            let tag_of = |number: &usize| hash(load_word(&model.phrases[*number])).1;
            *head = bucket.iter().fold(candidates.len() as u32, |head, number| head | tag_of(number));
            candidates.extend(bucket.iter().map(|number| Candidate::new(&model.phrases[*number], *number)));
            candidates.push(Candidate::default());
        }
        Encoder { heads, candidates, codes }
    }

    /// The head of the phrases that may begin with the word's first bytes.
    #[inline(always)]
    fn head(&self, word: u64) -> Option<u32> {
        let (place, tag) = hash(word);
        let head = self.heads[place];
        (head & tag != 0).then_some(head)
    }

    /// The longest phrase at the beginning of `rest`: its symbol and length.
    #[inline(never)]
    fn find(&self, head: u32, rest: &[u8]) -> Option<(usize, usize)> {
        let text = words(load(rest));
        let list =
            self.candidates.get(usize::from(head as u16)..)?.iter().take_while(|candidate| candidate.length != 0);
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
        let phrase = self.head(word).and_then(|head| self.find(head, rest));
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

    /// The code of a value. `scratch` is where it is made: it only grows, so that nothing is cleared for every value.
    pub(crate) fn encode<'s>(&self, value: &[u8], scratch: &'s mut Vec<u8>) -> &'s [u8] {
        // The longest code of a byte is one and a half, and the last store may reach a word beyond.
        let needed = value.len() + value.len() / 2 + 24;
        if scratch.len() < needed {
            scratch.resize(needed, 0);
        }
        let mut writer = BitWriter { output: scratch, at: 0, bits: 0, count: 0 };
        let mut position = 0;
        while position + MARGIN_BYTES <= value.len() {
            position += self.put_bytes(&value[position..], &mut writer);
            position += self.put_next(&value[position..], &mut writer);
        }
        while position < value.len() {
            position += self.put_next(&value[position..], &mut writer);
        }
        let end = writer.at + writer.count.div_ceil(8) as usize;
        scratch.get(..end).unwrap_or_default()
    }

    /// Puts single bytes as long as no phrase may begin; returns how many.
    #[inline(always)]
    fn put_bytes(&self, rest: &[u8], writer: &mut BitWriter<'_>) -> usize {
        let mut put = 0;
        loop {
            let Some(chunk) = rest.get(put..).and_then(|rest| rest.first_chunk::<8>()) else { return put };
            let mut word = u64::from_le_bytes(*chunk);
            for _ in 0..BYTES_AT_ONCE {
                if self.head(word).is_some() {
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
    output: &'a mut [u8],
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
