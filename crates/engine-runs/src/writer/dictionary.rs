//! Makes a table's dictionary from its first blocks: phrases, or a dictionary for zstd.
//!
//! [Phrases](crate::block::phrases) are quicker both ways; zstd sees what repeats nearby. How well zstd could do is judged
//! by letting it compress the whole sample in one piece, and if phrases come near that, they are taken.
//!
//! A trained dictionary brings the statistics of letters and matches along with the content, so that small blocks need no
//! tables of their own: they are smaller, and decompress in half the time. Training takes some ten milliseconds, which
//! only a table of some size earns; a smaller one gets plain content, the smallest nothing.

use super::WriterOptions;
use crate::block::builder::StagedBlock;
use crate::block::compression::{Compressor, WriteDictionary};
use crate::block::phrases;
use bytes::Bytes;
use std::sync::Arc;
use zstd::zstd_safe;

/// How much is sampled, and needed for training, for each byte of dictionary.
pub(super) const SAMPLE_RATIO: usize = 32;

/// A table with less than this many times a dictionary's size does without: storing it would cost more than it saves.
const CONTENT_RATIO: usize = 8;

/// Phrases are learned from this much.
const PHRASE_SAMPLE_BYTES: usize = 128 << 10;

/// What a formatted dictionary begins with.
const FORMAT_MAGIC: [u8; 4] = [0x37, 0xa4, 0x30, 0xec];

/// A dictionary from a table's first blocks; `None` if they are too few.
pub(super) fn make(blocks: &[&StagedBlock], options: &WriterOptions) -> Option<WriteDictionary> {
    let size = options.dictionary_bytes;
    let total: usize = blocks.iter().map(|block| block.size_bytes()).sum();
    if size == 0 || total < size * CONTENT_RATIO {
        return None;
    }
    let (samples, lengths) = encode(blocks);
    if total >= size * SAMPLE_RATIO
        && let Some(phrases) = make_phrases(blocks, &samples, options)
    {
        return Some(phrases);
    }
    let trained = (total >= size * SAMPLE_RATIO).then(|| train(&samples, &lengths, size)).flatten();
    let content = trained.unwrap_or_else(|| spread(&samples, &lengths, size));
    WriteDictionary::new(Bytes::from(content), options.level)
}

/// The table's phrases, if they are about as good as zstd could be.
fn make_phrases(blocks: &[&StagedBlock], samples: &[u8], options: &WriterOptions) -> Option<WriteDictionary> {
    if options.phrases_percent_max == 0 {
        return None;
    }
    let mut sampled_bytes = 0;
    let values = blocks.iter().flat_map(|block| block.values()).take_while(|value| {
        sampled_bytes += value.len();
        sampled_bytes <= PHRASE_SAMPLE_BYTES
    });
    let dictionary = Arc::new(WriteDictionary::of_phrases(&phrases::train(&values.collect::<Vec<_>>())));
    let mut compressor = Compressor::new(options.level);
    let mut output = Vec::new();
    compressor.compress(samples, &mut output);
    let by_zstd = if output.is_empty() { samples.len() } else { output.len() };
    compressor.set_dictionary(Some(dictionary.clone()));
    let mut by_phrases = 0;
    for block in blocks {
        compressor.compress_block(block, &mut output);
        by_phrases += output.len();
    }
    drop(compressor);

    let limit = (by_zstd as u64).saturating_mul(options.phrases_percent_max) / 100;
    (by_phrases as u64 <= limit).then(|| Arc::into_inner(dictionary)).flatten()
}

fn encode(blocks: &[&StagedBlock]) -> (Vec<u8>, Vec<usize>) {
    let (mut samples, mut encoded) = (Vec::new(), Vec::new());
    let mut lengths = Vec::with_capacity(blocks.len());
    for block in blocks {
        block.encode(&mut encoded);
        samples.extend_from_slice(&encoded);
        lengths.push(encoded.len());
    }
    (samples, lengths)
}

fn train(samples: &[u8], lengths: &[usize], size: usize) -> Option<Vec<u8>> {
    let mut dictionary = Vec::with_capacity(size);
    zstd_safe::train_from_buffer(&mut dictionary, samples, lengths).ok()?;
    // Every frame names its dictionary; the number 1 takes a byte there, the random one it was given takes four.
    dictionary.get_mut(4..8)?.copy_from_slice(&1u32.to_le_bytes());
    Some(dictionary)
}

/// The beginnings of the blocks, as many as there is room for.
fn spread(samples: &[u8], lengths: &[usize], size: usize) -> Vec<u8> {
    let each = (size / lengths.len().max(1)).max(256);
    let step = (lengths.len() * each).div_ceil(size).max(1);
    let mut content = Vec::with_capacity(size);
    let mut start = 0;
    for (position, length) in lengths.iter().enumerate() {
        if position % step == 0 {
            let take = each.min(*length).min(size.saturating_sub(content.len()));
            content.extend_from_slice(samples.get(start..start + take).unwrap_or_default());
        }
        start += length;
    }
    // Content that begins like a formatted dictionary would be taken for one.
    if content.starts_with(&FORMAT_MAGIC) {
        content.insert(0, 0);
    }
    content
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stamp;

    fn blocks(count: usize) -> Vec<StagedBlock> {
        let fill = |number: usize| {
            let mut block = StagedBlock::default();
            for entry in 0..10 {
                let value = format!("{{first: {}, second: 'text {}'}}", number * 7919 + entry, entry * number);
                block.push(format!("{number:04}-{entry:04}").as_bytes(), 0, &Stamp::SETTLED, value.as_bytes());
            }
            block
        };
        (0..count).map(fill).collect()
    }

    #[test]
    fn the_kind_depends_on_the_size_of_the_table() {
        let options = WriterOptions { dictionary_bytes: 1024, ..WriterOptions::default() };
        let made = |count: usize| {
            let blocks = blocks(count);
            make(&blocks.iter().collect::<Vec<_>>(), &options).map(|dictionary| dictionary.content().clone())
        };
        assert!(made(2).is_none());
        assert!(made(40).is_some_and(|content| !content.starts_with(&FORMAT_MAGIC) && content.len() <= 1024));
        assert!(made(200).is_some_and(|content| content.starts_with(&FORMAT_MAGIC)));
        let none = WriterOptions { dictionary_bytes: 0, ..WriterOptions::default() };
        assert!(make(&blocks(200).iter().collect::<Vec<_>>(), &none).is_none());
    }
}
