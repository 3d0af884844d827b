//! Values coded with a table's own phrases.
//!
//! The documents of a collection repeat their field names and whole stretches between their values, and the values are mostly
//! letters and digits of uneven frequency, or bytes without any order. So a table's sample gives up to [`PHRASES_MAX`] phrases,
//! and one Huffman code covers phrases and single bytes alike; a phrase of twenty bytes then costs about one.
//!
//! Against zstd with a trained dictionary this makes documents a little smaller in half the time, because nothing is searched
//! that the sample did not show; and since no state is carried along, each value can be decoded alone. What repeats only
//! nearby (long texts, arrays of like elements) it cannot see: the writer compares both on the sample and takes the better.
//!
//! Decoding looks up [`CODE_BITS_MAX`] bits and copies a fixed number of bytes, whatever they mean, so that nearly nothing
//! branches; two values are decoded side by side. Bits come lowest first.

mod code;
mod decoder;
mod encoder;
#[cfg(test)]
mod tests;
mod train;

pub(crate) use decoder::{Decoder, Task};
pub(crate) use encoder::Encoder;
pub(crate) use train::train;

use crate::wire::{Reader, put_bytes, put_varint};

/// A shorter phrase is not looked for.
const PHRASE_BYTES_MIN: usize = 3;
/// A longer one is cut in two; decoding always copies this much.
pub(crate) const PHRASE_BYTES_MAX: usize = 32;
/// Phrases of one table.
const PHRASES_MAX: usize = 384;
/// The longest code.
const CODE_BITS_MAX: u32 = 12;
/// The symbols of single bytes come first, those of phrases from here on.
const BYTE_SYMBOLS: usize = 256;

/// What a stored model begins with. A zstd dictionary begins otherwise.
pub(crate) const MODEL_MAGIC: [u8; 4] = *b"phr1";

/// The phrases of a table and the length of every symbol's code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Model {
    phrases: Vec<Vec<u8>>,
    /// In bits, by symbol; never 0, and the code is complete or nearly so.
    lengths: Vec<u8>,
}

impl Model {
    /// The stored form.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = MODEL_MAGIC.to_vec();
        put_varint(&mut bytes, self.phrases.len() as u64);
        self.phrases.iter().for_each(|phrase| put_bytes(&mut bytes, phrase));
        bytes.extend_from_slice(&self.lengths);
        bytes
    }

    /// A model from its stored form, if it is one.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Model> {
        let mut reader = Reader::new(bytes.strip_prefix(&MODEL_MAGIC)?);
        let count = reader.length()?;
        if count > PHRASES_MAX {
            return None;
        }
        let mut phrases = Vec::with_capacity(count);
        for _ in 0..count {
            let phrase = reader.bytes()?;
            if !(PHRASE_BYTES_MIN..=PHRASE_BYTES_MAX).contains(&phrase.len()) {
                return None;
            }
            phrases.push(phrase.to_vec());
        }
        let lengths = bytes.get(bytes.len() - reader.remaining()..)?.to_vec();
        let complete = lengths.len() == BYTE_SYMBOLS + count && code::is_decodable(&lengths);
        complete.then_some(Model { phrases, lengths })
    }
}
