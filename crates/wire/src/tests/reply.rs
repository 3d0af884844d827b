//! Replies, in their request's own kind, read back as a client does.

use super::*;
use crate::{Protocol, Reply, ReplyBuilder, legacy_failure};
use pando_base::{Error, ErrorCode};

fn reply_to(request: Vec<u8>, more_to_come: bool) -> Reply {
    let mut reply = ReplyBuilder::new(decode(request).unwrap().reply_to(), Vec::new());
    reply.body().append("n", 3);
    reply.body().append("text", "yes ".repeat(50));
    let message = reply.finish(11, more_to_come).unwrap();
    Reply::decode(Bytes::from(message), &Compressors::all()).unwrap()
}

#[test]
fn u1_every_request_gets_a_reply_that_clients_read() {
    for request in good_messages() {
        let id = decode(request.clone()).unwrap().header().request_id;
        let reply = reply_to(request, false);
        assert_eq!(reply.body(), doc! { "n": 3, "text": "yes ".repeat(50) }.view());
        assert_eq!((reply.header().response_to, reply.header().request_id), (id, 11));
        assert!(!reply.more_to_come() && !reply.is_query_failure());
    }
    assert!(reply_to(insert_message(MsgFlags::EXHAUST_ALLOWED, None), true).more_to_come());
}

#[test]
fn u1_replies_follow_checksum_and_compression_of_the_request() {
    let written = |flags, compressor| {
        let to = decode(insert_message(flags, compressor)).unwrap().reply_to();
        let mut reply = ReplyBuilder::new(to, Vec::new());
        reply.body().append("ok", 1.0);
        reply.finish(1, false).unwrap()
    };
    assert_eq!(written(MsgFlags::NONE, None)[16], 0);
    assert_eq!(written(MsgFlags::CHECKSUM_PRESENT, None)[16], 1);
    assert_eq!(written(MsgFlags::NONE, None).len() + 4, written(MsgFlags::CHECKSUM_PRESENT, None).len());
    let compressed = written(MsgFlags::CHECKSUM_PRESENT, Some(Compressor::Zlib));
    assert_eq!(compressed[12..16], 2012_i32.to_le_bytes());
    assert_eq!(compressed[24], 2);
}

#[test]
fn u1_a_legacy_read_fails_with_the_flag() {
    let error = Error::new(ErrorCode::location(5739101), "OP_QUERY is no longer supported");
    let message = legacy_failure(4, 9, &error).unwrap();
    let reply = Reply::decode(Bytes::from(message), &Compressors::default()).unwrap();
    assert!(reply.is_query_failure());
    assert_eq!(reply.body(), doc! { "$err": error.reason(), "code": 5739101, "ok": 0.0 }.view());
    assert_eq!(reply.header().response_to, 4);
}

#[test]
fn u1_a_reply_over_the_limit_is_an_error() {
    for protocol in [Protocol::Msg, Protocol::Query] {
        let to = crate::ReplyTo { request_id: 1, protocol, checksum: false, compressor: None };
        let mut reply = ReplyBuilder::new(to, Vec::new());
        reply.body().append("x", "x".repeat(16 * 1024 * 1024 + 16 * 1024));
        assert_eq!(reply.finish(1, false).unwrap_err().code(), ErrorCode::BSONObjectTooLarge);
    }
}

#[test]
fn u1_a_buffer_is_used_again() {
    let mut buffer = Vec::with_capacity(4096);
    let place = buffer.as_ptr();
    for round in 0..3 {
        let mut reply = ReplyBuilder::new(decode(hello()).unwrap().reply_to(), buffer);
        reply.body().append("round", round);
        buffer = reply.finish(round, false).unwrap();
        assert_eq!(buffer.as_ptr(), place, "written in place");
    }
}
