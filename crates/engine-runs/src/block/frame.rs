//! The frame: 16 bytes of header and a payload, the only thing a run file consists of.
//!
//! | bytes | content |
//! | --- | --- |
//! | 0..4 | checksum of all that follows, seeded with file id and offset |
//! | 4..8 | length of the payload as stored |
//! | 8..12 | length of the payload when decompressed |
//! | 12 | [`FrameKind`] |
//! | 13 | [`Compression`] |
//! | 14..16 | number of entries, for data and history blocks |
//!
//! The seed makes a frame that was written to, or read from, the wrong place as damaged as one with a flipped bit.

use crate::FileId;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Bytes before the payload.
pub const FRAME_HEADER_BYTES: usize = 16;

/// No frame is larger: a key and a value of 17 MB each fit with room to spare.
pub(crate) const FRAME_BYTES_MAX: u32 = 256 << 20;

/// What a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum FrameKind {
    /// The first frame of a file.
    FileHeader = 1,
    /// The newest version of each key.
    Data = 2,
    /// Older versions.
    History = 3,
    /// One value that is too large for a block.
    Value = 4,
    /// What the section's blocks were compressed with.
    Dictionary = 5,
    /// The range tombstones of a section.
    RangeTombstones = 6,
    /// A filter over the keys of one index partition.
    Filter = 7,
    /// Where data blocks lie.
    Index = 8,
    /// Where history blocks lie.
    HistoryIndex = 9,
    /// The end of a section: where everything else lies.
    Root = 10,
    /// The sections of a file, for whoever has no manifest.
    Directory = 11,
    /// The last frame: where the directory lies.
    FileTail = 12,
}

impl FrameKind {
    fn from_byte(byte: u8) -> Option<FrameKind> {
        use FrameKind::*;
        let all = [
            FileHeader,
            Data,
            History,
            Value,
            Dictionary,
            RangeTombstones,
            Filter,
            Index,
            HistoryIndex,
            Root,
            Directory,
            FileTail,
        ];
        all.into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// How a payload is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Compression {
    /// As it is.
    None = 0,
    /// By zstd.
    Zstd = 1,
    /// By zstd with the section's dictionary.
    ZstdDictionary = 2,
    /// Values one by one with the section's phrases.
    Phrases = 3,
}

impl Compression {
    fn from_byte(byte: u8) -> Option<Compression> {
        match byte {
            0 => Some(Compression::None),
            1 => Some(Compression::Zstd),
            2 => Some(Compression::ZstdDictionary),
            3 => Some(Compression::Phrases),
            _ => None,
        }
    }
}

/// The header, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// Payload bytes in the file.
    pub stored_length: u32,
    /// Payload bytes after decompression.
    pub raw_length: u32,
    /// What it holds.
    pub kind: FrameKind,
    /// How it is stored.
    pub compression: Compression,
    /// Entries in a data or history block.
    pub entries: u16,
}

impl FrameHeader {
    /// Header and payload together.
    pub fn frame_length(&self) -> u64 {
        FRAME_HEADER_BYTES as u64 + u64::from(self.stored_length)
    }

    /// Reads a header without checking the checksum; only good for learning how long the frame claims to be.
    pub fn decode(bytes: &[u8]) -> Result<FrameHeader, &'static str> {
        let header: &[u8; FRAME_HEADER_BYTES] = bytes.first_chunk().ok_or("the frame header is cut off")?;
        let number = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let decoded = FrameHeader {
            stored_length: number(4),
            raw_length: number(8),
            kind: FrameKind::from_byte(header[12]).ok_or("unknown kind of frame")?,
            compression: Compression::from_byte(header[13]).ok_or("unknown compression")?,
            entries: u16::from_le_bytes([header[14], header[15]]),
        };
        if decoded.stored_length > FRAME_BYTES_MAX || decoded.raw_length > FRAME_BYTES_MAX {
            return Err("the frame is longer than any frame can be");
        }
        if decoded.compression == Compression::None && decoded.stored_length != decoded.raw_length {
            return Err("the lengths of an uncompressed frame differ");
        }
        Ok(decoded)
    }
}

fn checksum(file: FileId, offset: u64, checked: &[u8]) -> u32 {
    let seed = file.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ offset.rotate_left(17).wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
    xxh3_64_with_seed(checked, seed) as u32
}

/// Appends a frame that will lie at `offset` of the file; `buffer` may hold earlier frames.
pub(crate) fn seal(buffer: &mut Vec<u8>, file: FileId, offset: u64, header: &FrameHeader, payload: &[u8]) {
    debug_assert_eq!(header.stored_length as usize, payload.len());
    let start = buffer.len();
    buffer.extend_from_slice(&[0; 4]);
    buffer.extend_from_slice(&header.stored_length.to_le_bytes());
    buffer.extend_from_slice(&header.raw_length.to_le_bytes());
    buffer.extend_from_slice(&[header.kind as u8, header.compression as u8]);
    buffer.extend_from_slice(&header.entries.to_le_bytes());
    buffer.extend_from_slice(payload);
    let sum = checksum(file, offset, &buffer[start + 4..]);
    buffer[start..start + 4].copy_from_slice(&sum.to_le_bytes());
}

/// Checks a whole frame that was read from `offset` and splits it.
pub(crate) fn open(file: FileId, offset: u64, frame: &[u8]) -> Result<(FrameHeader, &[u8]), &'static str> {
    let (sum, checked) = frame.split_first_chunk::<4>().ok_or("the frame header is cut off")?;
    if u32::from_le_bytes(*sum) != checksum(file, offset, checked) {
        return Err("the checksum does not match");
    }
    let header = FrameHeader::decode(frame)?;
    let payload = frame.get(FRAME_HEADER_BYTES..).ok_or("the frame header is cut off")?;
    if payload.len() != header.stored_length as usize {
        return Err("the frame is not as long as its header says");
    }
    Ok((header, payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_flip_or_move_is_detected() {
        let header = FrameHeader {
            stored_length: 5,
            raw_length: 5,
            kind: FrameKind::Data,
            compression: Compression::None,
            entries: 3,
        };
        let mut frame = Vec::new();
        seal(&mut frame, 9, 4096, &header, b"hello");
        assert_eq!(open(9, 4096, &frame), Ok((header, b"hello".as_slice())));
        assert!(open(9, 4097, &frame).is_err() && open(8, 4096, &frame).is_err());
        for bit in 0..frame.len() * 8 {
            let mut damaged = frame.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(open(9, 4096, &damaged).is_err(), "bit {bit}");
        }
        for cut in 0..frame.len() {
            assert!(open(9, 4096, &frame[..cut]).is_err());
        }
    }
}
