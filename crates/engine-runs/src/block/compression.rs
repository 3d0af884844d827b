//! Compression of payloads: zstd, with or without the section's dictionary.
//!
//! Contexts are costly to make and cheap to reuse. A compressor owns its own; decompression, which happens on whatever
//! thread reads, keeps one per thread.

use super::frame::Compression;
use bytes::Bytes;
use parking_lot::Mutex;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::Cursor;
use std::sync::{Arc, Weak};
use xxhash_rust::xxh3::xxh3_64;
use zstd::zstd_safe::{CCtx, CDict, DCtx, DDict};

/// The content of a dictionary, prepared for reading.
pub(crate) struct ReadDictionary {
    prepared: DDict<'static>,
    content: Box<[u8]>,
}

impl ReadDictionary {
    /// Prepares a dictionary.
    pub(crate) fn new(content: &[u8]) -> Option<ReadDictionary> {
        Some(ReadDictionary { prepared: DDict::try_create(content)?, content: content.into() })
    }

    /// What it occupies, roughly.
    pub(crate) fn size_bytes(&self) -> usize {
        2 * self.content.len() + (32 << 10)
    }
}

/// The prepared dictionaries in use, by content. Parts that one writer made share theirs; decompressing with the dictionary
/// that was used last is faster than with another one.
#[derive(Default)]
pub(crate) struct DictionaryShelf {
    known: Mutex<BTreeMap<u64, Weak<ReadDictionary>>>,
}

impl DictionaryShelf {
    /// The dictionary with this content.
    pub(crate) fn get(&self, content: &[u8]) -> Option<Arc<ReadDictionary>> {
        let hash = xxh3_64(content);
        let mut known = self.known.lock();
        if let Some(found) = known.get(&hash).and_then(Weak::upgrade).filter(|found| *found.content == *content) {
            return Some(found);
        }
        known.retain(|_, dictionary| dictionary.strong_count() > 0);
        let made = Arc::new(ReadDictionary::new(content)?);
        known.insert(hash, Arc::downgrade(&made));
        Some(made)
    }
}

/// The content of a dictionary, prepared for writing.
pub(crate) struct WriteDictionary {
    content: Bytes,
    prepared: CDict<'static>,
}

impl WriteDictionary {
    /// Prepares a dictionary for a level.
    pub(crate) fn new(content: Bytes, level: i32) -> Option<WriteDictionary> {
        let prepared = CDict::try_create(&content, level)?;
        Some(WriteDictionary { content, prepared })
    }

    /// The bytes to store.
    pub(crate) fn content(&self) -> &Bytes {
        &self.content
    }
}

/// Compresses payloads one after the other.
pub(crate) struct Compressor {
    context: CCtx<'static>,
    level: i32,
    dictionary: Option<Arc<WriteDictionary>>,
}

impl Compressor {
    /// A compressor without a dictionary yet.
    pub(crate) fn new(level: i32) -> Compressor {
        Compressor { context: CCtx::create(), level, dictionary: None }
    }

    /// Uses this dictionary from now on.
    pub(crate) fn set_dictionary(&mut self, dictionary: Option<Arc<WriteDictionary>>) {
        self.dictionary = dictionary;
    }

    /// Compresses into `output` (replacing its content). What does not shrink is stored as it is: then `output` stays
    /// empty and the caller stores the raw bytes.
    pub(crate) fn compress(&mut self, raw: &[u8], output: &mut Vec<u8>) -> Compression {
        output.clear();
        output.reserve(zstd::zstd_safe::compress_bound(raw.len()));
        let (result, compression) = match &self.dictionary {
            Some(dictionary) => {
                (self.context.compress_using_cdict(output, raw, &dictionary.prepared), Compression::ZstdDictionary)
            }
            None => (self.context.compress(output, raw, self.level), Compression::Zstd),
        };
        if result.is_err() || output.len() + output.len() / 32 >= raw.len() {
            output.clear();
            return Compression::None;
        }
        compression
    }
}

thread_local! {
    static DECOMPRESSOR: RefCell<DCtx<'static>> = RefCell::new(DCtx::create());
}

/// Decompresses `stored` into a new buffer with `reserve` spare bytes behind it. `None` if the bytes are not what a
/// compressor of ours made.
pub(crate) fn decompress(
    compression: Compression,
    dictionary: Option<&ReadDictionary>,
    stored: &[u8],
    raw_length: usize,
    reserve: usize,
) -> Option<Vec<u8>> {
    let mut output = Vec::with_capacity(raw_length.checked_add(reserve)?);
    match compression {
        Compression::None => output.extend_from_slice(stored),
        Compression::Zstd => DECOMPRESSOR
            .with_borrow_mut(|context| context.decompress(&mut Cursor::new(&mut output), stored))
            .map(drop)
            .ok()?,
        Compression::ZstdDictionary => {
            let prepared = &dictionary?.prepared;
            DECOMPRESSOR
                .with_borrow_mut(|context| {
                    context.decompress_using_ddict(&mut Cursor::new(&mut output), stored, prepared)
                })
                .map(drop)
                .ok()?
        }
    }
    (output.len() == raw_length).then_some(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(seed: usize) -> Vec<u8> {
        format!("{{name: 'somebody number {seed}', city: 'somewhere', zip: {}}}", seed * 7919).repeat(3).into_bytes()
    }

    #[test]
    fn round_trips_with_and_without_dictionary() {
        let dictionary = Bytes::from((0..20).flat_map(text).collect::<Vec<u8>>());
        let written = Arc::new(WriteDictionary::new(dictionary.clone(), 1).unwrap());
        let read = ReadDictionary::new(&dictionary).unwrap();
        let mut compressor = Compressor::new(1);
        let (mut plain, mut small) = (Vec::new(), Vec::new());
        let raw = text(77);
        assert_eq!(compressor.compress(&raw, &mut plain), Compression::Zstd);
        compressor.set_dictionary(Some(written));
        assert_eq!(compressor.compress(&raw, &mut small), Compression::ZstdDictionary);
        assert!(small.len() < plain.len());
        assert_eq!(decompress(Compression::Zstd, None, &plain, raw.len(), 8).as_ref(), Some(&raw));
        let output = decompress(Compression::ZstdDictionary, Some(&read), &small, raw.len(), 64).unwrap();
        assert_eq!(output, raw);
        assert_eq!(decompress(Compression::ZstdDictionary, Some(&read), &small, raw.len() + 1, 0), None);
        assert_eq!(decompress(Compression::ZstdDictionary, Some(&read), &small[1..], raw.len(), 0), None);
        assert_eq!(decompress(Compression::ZstdDictionary, None, &small, raw.len(), 0), None);
    }

    #[test]
    fn equal_dictionaries_are_prepared_once() {
        let shelf = DictionaryShelf::default();
        let first = shelf.get(b"some content").unwrap();
        assert!(Arc::ptr_eq(&first, &shelf.get(b"some content").unwrap()));
        drop(first);
        assert!(shelf.get(b"other content").is_some());
        assert_eq!(shelf.known.lock().len(), 1);
    }

    #[test]
    fn what_does_not_shrink_is_left_alone() {
        let mut output = vec![1];
        assert_eq!(Compressor::new(1).compress(&[1, 2, 3], &mut output), Compression::None);
        assert!(output.is_empty());
    }
}
