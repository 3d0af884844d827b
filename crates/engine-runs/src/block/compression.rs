//! Compression of payloads: zstd, with or without the section's dictionary, or the section's phrases.
//!
//! Contexts are costly to make and cheap to reuse. A compressor owns its own; decompression, which happens on whatever
//! thread reads, keeps one per thread.

use super::builder::StagedBlock;
use super::frame::{Compression, FrameHeader};
use super::packed;
use super::phrases::{Decoder, Encoder, MODEL_MAGIC, Model};
use bytes::Bytes;
use parking_lot::Mutex;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::Cursor;
use std::sync::{Arc, Weak};
use xxhash_rust::xxh3::xxh3_64;
use zstd::zstd_safe::{CCtx, CDict, DCtx, DDict};

enum ReadKind {
    Zstd(DDict<'static>),
    Phrases(Decoder),
}

/// The content of a dictionary, prepared for reading.
pub(crate) struct ReadDictionary {
    kind: ReadKind,
    content: Box<[u8]>,
}

impl ReadDictionary {
    /// Prepares a dictionary.
    pub(crate) fn new(content: &[u8]) -> Option<ReadDictionary> {
        let kind = match content.starts_with(&MODEL_MAGIC) {
            true => ReadKind::Phrases(Decoder::new(&Model::decode(content)?)),
            false => ReadKind::Zstd(DDict::try_create(content)?),
        };
        Some(ReadDictionary { kind, content: content.into() })
    }

    /// What it occupies, roughly.
    pub(crate) fn size_bytes(&self) -> usize {
        let prepared = match &self.kind {
            ReadKind::Zstd(_) => self.content.len() + (32 << 10),
            ReadKind::Phrases(decoder) => decoder.size_bytes(),
        };
        self.content.len() + prepared
    }

    /// The decoder, if it is of phrases.
    pub(crate) fn phrases(&self) -> Option<&Decoder> {
        match &self.kind {
            ReadKind::Phrases(decoder) => Some(decoder),
            ReadKind::Zstd(_) => None,
        }
    }

    fn zstd(&self) -> Option<&DDict<'static>> {
        match &self.kind {
            ReadKind::Zstd(prepared) => Some(prepared),
            ReadKind::Phrases(_) => None,
        }
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

enum WriteKind {
    Zstd(CDict<'static>),
    Phrases(Encoder),
}

/// The content of a dictionary, prepared for writing.
pub(crate) struct WriteDictionary {
    content: Bytes,
    kind: WriteKind,
}

impl WriteDictionary {
    /// Prepares a dictionary for a level of zstd.
    pub(crate) fn new(content: Bytes, level: i32) -> Option<WriteDictionary> {
        let kind = WriteKind::Zstd(CDict::try_create(&content, level)?);
        Some(WriteDictionary { content, kind })
    }

    /// Prepares a table's phrases.
    pub(crate) fn of_phrases(model: &Model) -> WriteDictionary {
        WriteDictionary { content: model.encode().into(), kind: WriteKind::Phrases(Encoder::new(model)) }
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
    plain: Vec<u8>,
    code: Vec<u8>,
}

impl Compressor {
    /// A compressor without a dictionary yet.
    pub(crate) fn new(level: i32) -> Compressor {
        Compressor { context: CCtx::create(), level, dictionary: None, plain: Vec::new(), code: Vec::new() }
    }

    /// Uses this dictionary from now on.
    pub(crate) fn set_dictionary(&mut self, dictionary: Option<Arc<WriteDictionary>>) {
        self.dictionary = dictionary;
    }

    /// Encodes a block and compresses it into `output` (replacing its content). Returns how, and the length of the plain
    /// payload.
    pub(crate) fn compress_block(&mut self, staged: &StagedBlock, output: &mut Vec<u8>) -> (Compression, usize) {
        if let Some(WriteKind::Phrases(encoder)) = self.dictionary.as_ref().map(|dictionary| &dictionary.kind) {
            let raw_length = packed::pack(staged, encoder, &mut self.code, output);
            if output.len() < raw_length {
                return (Compression::Phrases, raw_length);
            }
            self.dictionary = None;
        }
        let mut plain = std::mem::take(&mut self.plain);
        staged.encode(&mut plain);
        let compression = self.compress(&plain, output);
        if compression == Compression::None {
            output.extend_from_slice(&plain);
        }
        self.plain = plain;
        (compression, self.plain.len())
    }

    /// Compresses into `output` (replacing its content). What does not shrink is stored as it is: then `output` stays
    /// empty and the caller stores the raw bytes. Phrases are for blocks only.
    pub(crate) fn compress(&mut self, raw: &[u8], output: &mut Vec<u8>) -> Compression {
        output.clear();
        output.reserve(zstd::zstd_safe::compress_bound(raw.len()));
        let (result, compression) = match self.dictionary.as_ref().map(|dictionary| &dictionary.kind) {
            Some(WriteKind::Zstd(prepared)) => {
                (self.context.compress_using_cdict(output, raw, prepared), Compression::ZstdDictionary)
            }
            _ => (self.context.compress(output, raw, self.level), Compression::Zstd),
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

/// Decompresses a frame's payload into a new buffer, behind so many zeros. `None` if the bytes are not what a compressor of ours
/// made.
pub(crate) fn decompress(
    header: &FrameHeader,
    dictionary: Option<&ReadDictionary>,
    stored: &[u8],
    zeros: usize,
) -> Option<Vec<u8>> {
    let raw_length = header.raw_length as usize;
    if header.compression == Compression::Phrases {
        return packed::unpack(stored, dictionary?.phrases()?, header.entries, raw_length, zeros);
    }
    let mut output = Vec::with_capacity(raw_length.checked_add(zeros)?);
    output.resize(zeros, 0);
    match header.compression {
        Compression::None | Compression::Phrases => output.extend_from_slice(stored),
        Compression::Zstd => DECOMPRESSOR
            .with_borrow_mut(|context| context.decompress(&mut behind(&mut output), stored))
            .map(drop)
            .ok()?,
        Compression::ZstdDictionary => {
            let prepared = dictionary?.zstd()?;
            DECOMPRESSOR
                .with_borrow_mut(|context| context.decompress_using_ddict(&mut behind(&mut output), stored, prepared))
                .map(drop)
                .ok()?
        }
    }
    (output.len() == zeros + raw_length).then_some(output)
}

/// Appends.
fn behind(output: &mut Vec<u8>) -> Cursor<&mut Vec<u8>> {
    let end = output.len() as u64;
    let mut cursor = Cursor::new(output);
    cursor.set_position(end);
    cursor
}

#[cfg(test)]
mod tests {
    use super::super::frame::FrameKind;
    use super::*;

    fn text(seed: usize) -> Vec<u8> {
        format!("{{name: 'somebody number {seed}', city: 'somewhere', zip: {}}}", seed * 7919).repeat(3).into_bytes()
    }

    fn header(compression: Compression, raw_length: usize) -> FrameHeader {
        FrameHeader { stored_length: 0, raw_length: raw_length as u32, kind: FrameKind::Data, compression, entries: 1 }
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
        let zstd = header(Compression::Zstd, raw.len());
        assert_eq!(decompress(&zstd, None, &plain, 0).as_ref(), Some(&raw));
        let with_dictionary = header(Compression::ZstdDictionary, raw.len());
        assert_eq!(decompress(&with_dictionary, Some(&read), &small, 3), Some([b"\0\0\0", &*raw].concat()));
        let longer = header(Compression::ZstdDictionary, raw.len() + 1);
        assert_eq!(decompress(&longer, Some(&read), &small, 0), None);
        assert_eq!(decompress(&with_dictionary, Some(&read), &small[1..], 0), None);
        assert_eq!(decompress(&with_dictionary, None, &small, 0), None);
        assert_eq!(decompress(&header(Compression::Phrases, raw.len()), Some(&read), &small, 0), None);
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
