//! What a peer merely claims costs no memory.
#![allow(clippy::unwrap_used, reason = "a message that cannot be built fails the test")]

use bytes::Bytes;
use pando_wire::{Command, Compressors, FrameDecoder};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Remembers the largest piece that was asked for.
struct Watched;

static LARGEST_BYTES: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST_BYTES.fetch_max(layout.size(), Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size_bytes: usize) -> *mut u8 {
        LARGEST_BYTES.fetch_max(size_bytes, Ordering::Relaxed);
        unsafe { System.realloc(place, layout, size_bytes) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watched = Watched;

/// The largest piece of memory that was asked for meanwhile.
fn largest_bytes(run: impl FnOnce()) -> usize {
    LARGEST_BYTES.store(0, Ordering::Relaxed);
    run();
    LARGEST_BYTES.load(Ordering::Relaxed)
}

fn header(length: i32, op_code: i32) -> Vec<u8> {
    [length, 1, 0, op_code].iter().flat_map(|field| field.to_le_bytes()).collect()
}

/// OP_COMPRESSED whose wrapper claims this size.
fn claiming(size: i32, compressor: u8, data: &[u8]) -> Bytes {
    let length = 25 + data.len() as i32;
    let wrapper = [&2013_i32.to_le_bytes()[..], &size.to_le_bytes(), &[compressor]].concat();
    Bytes::from([&header(length, 2012)[..], &wrapper, data].concat())
}

/// One test, since the allocator is watched as a whole.
#[test]
fn u1_claims_cost_nothing() {
    const CLAIM: i32 = 47_000_000;
    let frame = largest_bytes(|| {
        let mut decoder = FrameDecoder::new();
        decoder.push(&header(CLAIM, 2013));
        assert!(decoder.next_message().unwrap().is_none());
    });
    assert!(frame < 4096, "{frame} bytes for sixteen");

    // A frame's magic number and descriptor, then its size in four bytes.
    let zstd = [&[0x28, 0xb5, 0x2f, 0xfd, 0xa0], &CLAIM.to_le_bytes()[..], &[0; 3]].concat();
    assert_eq!(zstd::zstd_safe::get_frame_content_size(&zstd).unwrap(), Some(CLAIM as u64));
    // The size in groups of seven bits.
    let snappy = [CLAIM | 0x80, CLAIM >> 7 | 0x80, CLAIM >> 14 | 0x80, CLAIM >> 21].map(|group| group as u8);
    assert_eq!(snap::raw::decompress_len(&snappy).unwrap(), CLAIM as usize);
    for (compressor, data) in [(0, &[0; 20][..]), (1, &snappy), (2, &[0x78, 0x9c, 3, 0]), (3, &zstd)] {
        let message = claiming(CLAIM, compressor, data);
        let claim = largest_bytes(|| {
            Command::decode(message, &Compressors::all()).expect_err("a lie");
        });
        assert!(claim < 64 * 1024, "{claim} bytes for a claim to compressor {compressor}");
    }

    let document = [&header(31, 2013)[..], &[0; 5], &CLAIM.to_le_bytes(), &[0; 6]].concat();
    let claim = largest_bytes(|| {
        Command::decode(Bytes::from(document), &Compressors::all()).expect_err("a lie");
    });
    assert!(claim < 4096, "{claim} bytes for a document's claim");

    // Data that unpack to far more than they claim are cut off at the claim.
    let zeros = vec![0; 5_000_000];
    for (compressor, data) in [(2, zlib(&zeros)), (3, zstd::stream::encode_all(&zeros[..], 3).unwrap())] {
        let message = claiming(100_000, compressor, &data);
        let bomb = largest_bytes(|| {
            Command::decode(message, &Compressors::all()).expect_err("a bomb");
        });
        assert!(bomb < 3_000_000, "{bomb} bytes for a bomb to compressor {compressor}");
    }
}

fn zlib(plain: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}
