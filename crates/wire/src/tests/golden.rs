//! Messages whose every byte is known.

use super::*;
use crate::{ReplyBuilder, next_length};

/// `{ping: 1, $db: "admin"}` as drivers send it.
const PING: &[u8] = &[
    0x33, 0, 0, 0, // length 51
    1, 0, 0, 0, // request 1
    0, 0, 0, 0, // no response
    0xdd, 7, 0, 0, // OP_MSG
    0, 0, 0, 0, // flags
    0, // body
    0x1e, 0, 0, 0, // length 30
    0x10, b'p', b'i', b'n', b'g', 0, 1, 0, 0, 0, // int32
    2, b'$', b'd', b'b', 0, 6, 0, 0, 0, b'a', b'd', b'm', b'i', b'n', 0, // string
    0,
];

/// `{isMaster: 1}` on `admin.$cmd`.
const HELLO: &[u8] = &[
    0x3a, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0xd4, 7, 0, 0, // header: 58, request 2, OP_QUERY
    4, 0, 0, 0, // secondaryOk
    b'a', b'd', b'm', b'i', b'n', b'.', b'$', b'c', b'm', b'd', 0, //
    0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, // skip 0, return -1
    0x13, 0, 0, 0, 0x10, b'i', b's', b'M', b'a', b's', b't', b'e', b'r', 0, 1, 0, 0, 0, 0,
];

#[test]
fn u1_ping_is_read_and_written() {
    let command = decode(PING.to_vec()).unwrap();
    assert_eq!(command.name(), "ping");
    assert_eq!(command.database().unwrap(), "admin");
    assert_eq!(command.header().request_id, 1);
    let body = doc! { "ping": 1, "$db": "admin" };
    let written = RequestBuilder::new(MsgFlags::NONE, Vec::new()).body(body.view()).finish(1, None).unwrap();
    assert_eq!(written, PING);
}

#[test]
fn u1_legacy_hello_is_read() {
    let command = decode(HELLO.to_vec()).unwrap();
    assert_eq!((command.name(), command.database().unwrap()), ("isMaster".into(), "admin".into()));
    assert!(command.secondary_ok());
    assert!(!command.is_fire_and_forget());
}

#[test]
fn u1_replies_are_written() {
    let mut reply = ReplyBuilder::new(decode(PING.to_vec()).unwrap().reply_to(), vec![9; 100]);
    reply.body().append("ok", 1.0);
    let expected = [
        &[0x26, 0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0, 0xdd, 7, 0, 0][..],
        &[0, 0, 0, 0, 0],
        &[0x11, 0, 0, 0, 1, b'o', b'k', 0, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0],
    ];
    assert_eq!(reply.finish(5, false).unwrap(), expected.concat());

    let mut reply = ReplyBuilder::new(decode(HELLO.to_vec()).unwrap().reply_to(), Vec::new());
    reply.body().append("ok", 1.0);
    let expected = [
        &[0x35, 0, 0, 0, 6, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0][..],
        &[8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0],
        &[0x11, 0, 0, 0, 1, b'o', b'k', 0, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0],
    ];
    assert_eq!(reply.finish(6, false).unwrap(), expected.concat());
}

/// CRC-32C a bit at a time, as its definition has it.
fn crc32c_by_bits(bytes: &[u8]) -> u32 {
    let step = |sum: u32| if sum & 1 == 1 { (sum >> 1) ^ 0x82f6_3b78 } else { sum >> 1 };
    !bytes.iter().fold(!0, |sum, byte| (0..8).fold(sum ^ u32::from(*byte), |sum, _| step(sum)))
}

#[test]
fn u1_checksum_is_crc32c_of_all_before_it() {
    assert_eq!(crc32c_by_bits(b"123456789"), 0xe306_9283);
    let message = insert_message(MsgFlags::CHECKSUM_PRESENT, None);
    let (content, sum) = message.split_at(message.len() - 4);
    assert_eq!(sum, crc32c_by_bits(content).to_le_bytes());
    assert_eq!(message[16], 1);
}

#[test]
fn u1_lengths_are_judged_by_the_header() {
    let header = |length: i32| {
        let mut header = [0; 16];
        header[..4].copy_from_slice(&length.to_le_bytes());
        next_length(&header, 48_000_000)
    };
    assert_eq!(header(16).unwrap(), 16);
    assert_eq!(header(48_000_000).unwrap(), 48_000_000);
    for wrong in [i32::MIN, -1, 0, 15, 48_000_001, i32::MAX] {
        assert_eq!(header(wrong).unwrap_err().code().number(), 17, "{wrong}");
    }
}

#[test]
fn u1_frames_are_cut_wherever_the_stream_breaks() {
    let messages = good_messages();
    let stream = messages.concat();
    for piece in [1, 7, 16, 17, 100, stream.len()] {
        let mut decoder = crate::FrameDecoder::new();
        let mut found = Vec::new();
        for bytes in stream.chunks(piece) {
            decoder.push(bytes);
            while let Some(message) = decoder.next_message().unwrap() {
                found.push(message.to_vec());
            }
        }
        assert_eq!(found, messages, "pieces of {piece}");
        assert_eq!(decoder.pending_bytes(), 0);
    }
    let mut decoder = crate::FrameDecoder::new();
    decoder.push(&[0xff; 16]);
    assert!(decoder.next_message().is_err());
    assert!(decoder.next_message().is_err(), "a lost frame stays lost");
}
