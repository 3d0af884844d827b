//! The algorithms themselves, each over a whole buffer.
//!
//! `judge` refuses what cannot be true before memory is reserved; `decompress` appends at most the announced number of
//! bytes, whatever the data say.

use flate2::{Decompress, FlushDecompress, Status};
use pando_base::{Error, Result};
use std::io::{Cursor, Read, Write};

/// The best that deflate can do is 1032 : 1; a wrapper that claims more is lying. A few bytes are for its framing.
const DEFLATE_RATIO_MAX: usize = 1032;
/// Snappy's densest form is a three-byte copy of 64 bytes.
const SNAPPY_RATIO_MAX: usize = 22;
/// Zstandard's is a three-byte block that repeats one byte 128 KiB times; its own byte comes on top.
const ZSTD_RATIO_MAX: usize = 128 * 1024 / 4 + 1;
const RATIO_SLACK_BYTES: usize = 1024;
/// The history that a zstd stream of unknown size may ask for: 8 MiB, more than any usual level takes.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

/// An algorithm for OP_COMPRESSED.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compressor {
    /// Changes nothing; for tests of the wrapping.
    Noop,
    /// Snappy, without its stream framing.
    Snappy,
    /// Zlib.
    Zlib,
    /// Zstandard.
    Zstd,
}

impl Compressor {
    /// The number on the wire.
    pub fn number(self) -> u8 {
        match self {
            Compressor::Noop => 0,
            Compressor::Snappy => 1,
            Compressor::Zlib => 2,
            Compressor::Zstd => 3,
        }
    }

    /// The algorithm with this number.
    pub fn from_number(number: u8) -> Option<Compressor> {
        match number {
            0 => Some(Compressor::Noop),
            1 => Some(Compressor::Snappy),
            2 => Some(Compressor::Zlib),
            3 => Some(Compressor::Zstd),
            _ => None,
        }
    }

    /// The name in hello and in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Compressor::Noop => "noop",
            Compressor::Snappy => "snappy",
            Compressor::Zlib => "zlib",
            Compressor::Zstd => "zstd",
        }
    }

    /// The algorithm with this name.
    pub fn from_name(name: &str) -> Option<Compressor> {
        let all = [Compressor::Noop, Compressor::Snappy, Compressor::Zlib, Compressor::Zstd];
        all.into_iter().find(|compressor| compressor.name() == name)
    }

    /// Can these data be that large? Looks at nothing but lengths.
    pub(super) fn judge(self, data: &[u8], size_bytes: usize) -> Result<()> {
        let is_possible = match self {
            Compressor::Noop => data.len() == size_bytes,
            Compressor::Snappy => {
                snap::raw::decompress_len(data).is_ok_and(|inside| inside == size_bytes)
                    && size_bytes <= data.len() * SNAPPY_RATIO_MAX + RATIO_SLACK_BYTES
            }
            Compressor::Zlib => size_bytes <= data.len() * DEFLATE_RATIO_MAX + RATIO_SLACK_BYTES,
            Compressor::Zstd => {
                let inside = zstd::zstd_safe::get_frame_content_size(data);
                inside.is_ok_and(|inside| inside.is_none_or(|inside| inside == size_bytes as u64))
                    && size_bytes <= data.len() * ZSTD_RATIO_MAX + RATIO_SLACK_BYTES
            }
        };
        if is_possible { Ok(()) } else { Err(implausible(self)) }
    }

    /// Appends the plain data, at most `size_bytes` of them.
    pub(super) fn decompress(self, data: &[u8], size_bytes: usize, plain: &mut Vec<u8>) -> Result<()> {
        match self {
            Compressor::Noop => {
                plain.extend_from_slice(data);
                Ok(())
            }
            Compressor::Snappy => decompress_snappy(data, size_bytes, plain),
            Compressor::Zlib => decompress_zlib(data, size_bytes, plain),
            Compressor::Zstd => decompress_zstd(data, size_bytes, plain),
        }
    }

    /// The largest that data of this size can get.
    pub(super) fn compressed_size_bytes_max(self, size_bytes: usize) -> usize {
        match self {
            Compressor::Noop => size_bytes,
            Compressor::Snappy => snap::raw::max_compress_len(size_bytes),
            Compressor::Zlib => size_bytes + size_bytes / 1000 + 64,
            Compressor::Zstd => zstd::zstd_safe::compress_bound(size_bytes),
        }
    }

    /// Appends the compressed data; `None` if the algorithm gave up.
    pub(super) fn compress(self, plain: &[u8], out: &mut Vec<u8>) -> Option<()> {
        match self {
            Compressor::Noop => out.extend_from_slice(plain),
            Compressor::Snappy => compress_snappy(plain, out)?,
            Compressor::Zlib => compress_zlib(plain, out)?,
            Compressor::Zstd => compress_zstd(plain, out)?,
        }
        Some(())
    }
}

fn implausible(compressor: Compressor) -> Error {
    Error::bad_value(format!("The size that a compressed message claims does not fit its {} data", compressor.name()))
}

fn damaged(compressor: Compressor) -> Error {
    Error::bad_value(format!("Compressed message was invalid or corrupted ({})", compressor.name()))
}

fn decompress_snappy(data: &[u8], size_bytes: usize, plain: &mut Vec<u8>) -> Result<()> {
    let start = plain.len();
    plain.resize(start + size_bytes, 0);
    let space = plain.get_mut(start..).unwrap_or_default();
    let written = snap::raw::Decoder::new().decompress(data, space).map_err(|_| damaged(Compressor::Snappy))?;
    plain.truncate(start + written);
    Ok(())
}

fn decompress_zlib(data: &[u8], size_bytes: usize, plain: &mut Vec<u8>) -> Result<()> {
    let start = plain.len();
    plain.reserve_exact(size_bytes + 1);
    let mut inflater = Decompress::new(true);
    loop {
        let before = (inflater.total_in(), inflater.total_out());
        let rest = data.get(inflater.total_in() as usize..).unwrap_or_default();
        let status =
            inflater.decompress_vec(rest, plain, FlushDecompress::Finish).map_err(|_| damaged(Compressor::Zlib))?;
        if plain.len() - start > size_bytes {
            return Err(implausible(Compressor::Zlib));
        }
        if status == Status::StreamEnd {
            return Ok(());
        }
        if before == (inflater.total_in(), inflater.total_out()) {
            return Err(damaged(Compressor::Zlib));
        }
    }
}

fn decompress_zstd(data: &[u8], size_bytes: usize, plain: &mut Vec<u8>) -> Result<()> {
    if matches!(zstd::zstd_safe::get_frame_content_size(data), Ok(Some(_))) {
        decompress_zstd_frame(data, plain)
    } else {
        decompress_zstd_stream(data, size_bytes, plain)
    }
    .map_err(|_| damaged(Compressor::Zstd))
}

/// A frame that knows its size goes straight into the space that is left in the buffer.
fn decompress_zstd_frame(data: &[u8], plain: &mut Vec<u8>) -> std::io::Result<()> {
    let mut target = Cursor::new(std::mem::take(plain));
    target.set_position(target.get_ref().len() as u64);
    let outcome = zstd::bulk::Decompressor::new().and_then(|mut one| one.decompress_to_buffer(data, &mut target));
    *plain = target.into_inner();
    outcome.map(drop)
}

/// One that does not is read piece by piece, and no further than it should be.
fn decompress_zstd_stream(data: &[u8], size_bytes: usize, plain: &mut Vec<u8>) -> std::io::Result<()> {
    let mut decoder = zstd::stream::read::Decoder::with_buffer(data)?;
    decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
    decoder.take(size_bytes as u64 + 1).read_to_end(plain).map(drop)
}

fn compress_snappy(plain: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let start = out.len();
    out.resize(start + snap::raw::max_compress_len(plain.len()), 0);
    let written = snap::raw::Encoder::new().compress(plain, out.get_mut(start..)?).ok()?;
    out.truncate(start + written);
    Some(())
}

fn compress_zlib(plain: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let mut encoder = flate2::write::ZlibEncoder::new(out, flate2::Compression::default());
    encoder.write_all(plain).ok()?;
    encoder.finish().ok()?;
    Some(())
}

fn compress_zstd(plain: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let compressed = zstd::bulk::compress(plain, zstd::DEFAULT_COMPRESSION_LEVEL).ok()?;
    out.extend_from_slice(&compressed);
    Some(())
}
