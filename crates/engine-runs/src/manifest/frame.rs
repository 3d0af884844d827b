//! Frames: how one record lies in a manifest file.
//!
//! A frame is a 24-byte head and a payload padded with zeros to a multiple of eight. The head has its own checksum, so that
//! looking for a valid frame behind a damaged one costs one pass over the bytes and not one hash of the rest of the file
//! per candidate. Both checksums are seeded with the manifest's number and the frame's offset: a frame that was written
//! to another place, or is left over from another file, never passes.
//!
//! This module knows neither files nor what payloads mean.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Bytes before the payload.
pub(crate) const HEAD_BYTES: usize = 24;
/// Frames begin at multiples of this.
pub(crate) const ALIGNMENT: usize = 8;
/// The largest payload; far above any edit, so that a damaged length is recognised.
pub(crate) const PAYLOAD_BYTES_MAX: usize = 1 << 30;

/// A frame that passed its checks.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    /// The frame's number in its file, from one.
    pub number: u64,
    /// What was stored.
    pub payload: &'a [u8],
    /// Where the next frame begins.
    pub end: u64,
}

/// The checksum seed of something at `offset` of manifest `number`.
pub(crate) fn seed(number: u64, offset: u64) -> u64 {
    number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29) ^ offset
}

/// The frame's bytes for `offset` of manifest `manifest`.
pub(crate) fn encode(manifest: u64, offset: u64, number: u64, payload: &[u8]) -> Vec<u8> {
    debug_assert!(payload.len() <= PAYLOAD_BYTES_MAX && offset.is_multiple_of(ALIGNMENT as u64));
    let padded = payload.len().next_multiple_of(ALIGNMENT);
    let mut frame = Vec::with_capacity(HEAD_BYTES + padded);
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    frame.extend_from_slice(&number.to_le_bytes());
    frame.extend_from_slice(&[0; 8]);
    frame.extend_from_slice(payload);
    frame.resize(HEAD_BYTES + padded, 0);
    let seed = seed(manifest, offset);
    let body = xxh3_64_with_seed(&frame[HEAD_BYTES..], seed);
    frame[16..24].copy_from_slice(&body.to_le_bytes());
    let head = xxh3_64_with_seed(&frame[4..HEAD_BYTES], seed) as u32;
    frame[..4].copy_from_slice(&head.to_le_bytes());
    frame
}

/// The frame at `offset` of the file's bytes, if there is a whole and sound one.
pub(crate) fn decode(manifest: u64, file: &[u8], offset: usize) -> Option<Frame<'_>> {
    let rest = file.get(offset..)?;
    let head = rest.first_chunk::<HEAD_BYTES>()?;
    let seed = seed(manifest, offset as u64);
    if (xxh3_64_with_seed(&head[4..], seed) as u32).to_le_bytes() != head[..4] {
        return None;
    }
    let length = u32::from_le_bytes(*head[4..].first_chunk()?) as usize;
    if length > PAYLOAD_BYTES_MAX {
        return None;
    }
    let padded = rest.get(HEAD_BYTES..HEAD_BYTES + length.next_multiple_of(ALIGNMENT))?;
    if xxh3_64_with_seed(padded, seed).to_le_bytes() != head[16..24] {
        return None;
    }
    let number = u64::from_le_bytes(*head[8..].first_chunk()?);
    Some(Frame { number, payload: &padded[..length], end: (offset + HEAD_BYTES + padded.len()) as u64 })
}

/// The offset of a sound frame at or behind `from`, if there is any.
pub(crate) fn find(manifest: u64, file: &[u8], from: usize) -> Option<usize> {
    let mut offset = from.next_multiple_of(ALIGNMENT);
    while offset.checked_add(HEAD_BYTES)? <= file.len() {
        if decode(manifest, file, offset).is_some() {
            return Some(offset);
        }
        offset += ALIGNMENT;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_round_trip_and_every_flipped_bit_is_noticed() {
        for length in [0, 1, 7, 8, 9, 100] {
            let payload: Vec<u8> = (0..length).map(|byte| byte as u8).collect();
            let mut file = vec![0; 16];
            file.extend(encode(3, 16, 5, &payload));
            let frame = decode(3, &file, 16).unwrap();
            assert_eq!((frame.number, frame.payload, frame.end), (5, &payload[..], file.len() as u64));
            assert_eq!(decode(4, &file, 16), None);
            for bit in 16 * 8..file.len() * 8 {
                file[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(decode(3, &file, 16), None, "bit {bit}");
                file[bit / 8] ^= 1 << (bit % 8);
            }
            for cut in 16..file.len() {
                assert_eq!(decode(3, &file[..cut], 16), None);
            }
        }
    }

    #[test]
    fn a_frame_elsewhere_is_not_a_frame() {
        let frame = encode(1, 8, 1, b"payload");
        assert_eq!(decode(1, &frame, 0), None);
        let mut file = vec![0xAB; 8];
        file.extend(&frame);
        assert_eq!(find(1, &file, 0), Some(8));
        assert_eq!(find(1, &file, 9), None);
    }
}
