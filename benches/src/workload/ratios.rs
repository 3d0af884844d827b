//! How far well-known compressors get with the workload: the yardstick beside every size that a run prints.
//!
//! Each is taken at the block size that its user takes: snappy in the 32 KB leaves of WiredTiger under MongoDB, lz4 in the
//! 4 KB blocks of fjall, zstd (level 3) in 16 KB blocks as RocksDB was measured. The index is random: it is counted as it is.

use super::{Workload, write_document};

/// Compressed over raw. Raw is documents and their keys; `with_index` adds the index to the compressed side only, as the
/// sizes in the design's table do.
pub struct Ratio {
    /// Compressor and block size.
    pub name: &'static str,
    /// Of the documents.
    pub documents: f64,
    /// Of documents and index.
    pub with_index: f64,
}

const SAMPLE_DOCUMENTS: u64 = 20_000;

/// All reference ratios, measured on the first documents.
pub fn reference_ratios() -> Result<Vec<Ratio>, crate::Error> {
    let mut sample = Vec::new();
    for number in 0..SAMPLE_DOCUMENTS {
        sample.extend_from_slice(&number.to_be_bytes());
        write_document(number, 0, &mut sample);
    }
    let snappy = |block: &[u8]| Ok(snap::raw::Encoder::new().compress_vec(block)?.len());
    let lz4 = |block: &[u8]| Ok(lz4_flex::block::compress(block).len());
    let zstd = |block: &[u8]| Ok(zstd::bulk::compress(block, 3)?.len());
    Ok(vec![
        ratio("snappy, 32 KB blocks", &sample, 32 << 10, snappy)?,
        ratio("lz4, 4 KB blocks", &sample, 4 << 10, lz4)?,
        ratio("zstd 3, 16 KB blocks", &sample, 16 << 10, zstd)?,
        ratio("zstd 3, 32 KB blocks", &sample, 32 << 10, zstd)?,
    ])
}

fn ratio(
    name: &'static str,
    sample: &[u8],
    block_bytes: usize,
    compress: impl Fn(&[u8]) -> Result<usize, crate::Error>,
) -> Result<Ratio, crate::Error> {
    let mut compressed = 0;
    for block in sample.chunks(block_bytes) {
        compressed += compress(block)?;
    }
    let index = SAMPLE_DOCUMENTS * Workload::INDEX_ENTRY_BYTES;
    let raw = sample.len() as f64;
    Ok(Ratio { name, documents: compressed as f64 / raw, with_index: (compressed as u64 + index) as f64 / raw })
}
