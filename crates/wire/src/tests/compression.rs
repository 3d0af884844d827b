//! OP_COMPRESSED: round trips, agreement, lies about sizes.

use super::*;
use crate::{Reaction, may_compress};

const ALL: [Compressor; 4] = [Compressor::Noop, Compressor::Snappy, Compressor::Zlib, Compressor::Zstd];

/// OP_COMPRESSED by hand.
fn wrapped(op_code: i32, size: i32, number: u8, data: &[u8]) -> Vec<u8> {
    let header: Vec<u8> = [0, 1, 0, 2012_i32].iter().flat_map(|field| field.to_le_bytes()).collect();
    let wrapper = [&op_code.to_le_bytes()[..], &size.to_le_bytes(), &[number]].concat();
    with_true_length([&header[..], &wrapper, data].concat())
}

fn refused(message: Vec<u8>) -> String {
    let refusal = decode(message).expect_err("it is wrong");
    assert_eq!(refusal.reaction, Reaction::Close);
    refusal.error.reason().to_owned()
}

#[test]
fn u1_every_algorithm_round_trips() {
    let plain = decode(insert_message(MsgFlags::CHECKSUM_PRESENT, None)).unwrap();
    for compressor in ALL {
        let message = insert_message(MsgFlags::CHECKSUM_PRESENT, Some(compressor));
        assert_eq!(message[12..16], 2012_i32.to_le_bytes());
        let command = decode(message).unwrap();
        assert_eq!(command.compressor(), Some(compressor));
        assert_eq!(command.body(), plain.body());
        assert_eq!(command.size_bytes(), plain.size_bytes());
        assert_eq!(command.sequence("documents").unwrap().unwrap().len(), 3);
        assert_eq!(Compressor::from_name(compressor.name()), Some(compressor));
        assert_eq!(Compressor::from_number(compressor.number()), Some(compressor));
    }
    assert_eq!(Compressor::from_number(4), None);
}

#[test]
fn u1_a_zstd_stream_without_its_size_is_read() {
    let plain = insert_message(MsgFlags::NONE, None);
    let stream = zstd::stream::encode_all(&plain[16..], 3).unwrap();
    assert!(zstd::zstd_safe::get_frame_content_size(&stream).unwrap().is_none());
    let size = plain.len() as i32 - 16;
    assert!(decode(wrapped(2013, size, 3, &stream)).is_ok());
    for wrong in [size - 1, size + 1] {
        assert!(decode(wrapped(2013, wrong, 3, &stream)).is_err());
    }
}

#[test]
fn u1_only_allowed_algorithms_are_read() {
    for compressor in ALL {
        let message = Bytes::from(insert_message(MsgFlags::NONE, Some(compressor)));
        assert!(Command::decode(message.clone(), &Compressors::disabled()).is_err());
        let is_default = compressor != Compressor::Noop;
        assert_eq!(Command::decode(message, &Compressors::default()).is_ok(), is_default);
    }
    assert!(refused(wrapped(2013, 10, 9, &[0; 10])).contains("not available"));
}

#[test]
fn u1_the_first_common_algorithm_is_agreed_on() {
    let server = Compressors::default();
    assert_eq!(server.negotiate(["zlib", "lz4", "snappy", "zlib"]), [Compressor::Zlib, Compressor::Snappy]);
    assert_eq!(server.negotiate(["lz4", "noop"]), []);
    assert_eq!(Compressors::disabled().negotiate(["zlib"]), []);
    let named = Compressors::from_setting("zstd, snappy").unwrap();
    assert_eq!(named.iter().collect::<Vec<_>>(), [Compressor::Zstd, Compressor::Snappy]);
    assert_eq!(Compressors::from_setting("disabled").unwrap(), Compressors::disabled());
    assert!(Compressors::from_setting("lz4").is_err());
    assert!(!may_compress("hello") && !may_compress("saslStart") && may_compress("find"));
}

#[test]
fn u1_compression_inside_compression_is_refused() {
    let inner = insert_message(MsgFlags::NONE, Some(Compressor::Noop));
    let message = wrapped(2012, inner.len() as i32 - 16, 0, &inner[16..]);
    assert!(refused(message).contains("must not contain another"));
}

#[test]
fn u1_sizes_are_judged() {
    assert!(refused(wrapped(2013, -1, 0, &[])).contains("negative"));
    assert!(refused(wrapped(2013, 48_000_000 - 15, 0, &[])).contains("larger than maximum"));
    assert!(refused(wrapped(2013, i32::MAX, 0, &[])).contains("larger than maximum"));
    for compressor in ALL {
        let plain = insert_message(MsgFlags::NONE, None);
        let message = insert_message(MsgFlags::NONE, Some(compressor));
        for wrong in [0, 1, plain.len() as i32 - 17, plain.len() as i32 - 15, 40_000_000] {
            let mut message = message.clone();
            message[20..24].copy_from_slice(&wrong.to_le_bytes());
            assert!(decode(message).is_err(), "{compressor:?} {wrong}");
        }
    }
    for length in 16..25 {
        let message = wrapped(2013, 0, 0, &[]);
        assert!(refused(with_true_length(message[..length].to_vec())).contains("header"));
    }
}

#[test]
fn u1_a_message_too_large_to_wrap_goes_plainly() {
    let text = "x".repeat(15 * 1024 * 1024);
    let document = doc! { "x": text };
    let request = RequestBuilder::new(MsgFlags::NONE, Vec::new()).body(doc! { "insert": "c" }.view());
    let request = request.sequence("documents", [document.view(), document.view(), document.view()]);
    let message = request.finish(1, Some(Compressor::Snappy)).unwrap();
    assert_eq!(message[12..16], 2013_i32.to_le_bytes());
}
