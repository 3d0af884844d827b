//! Tests of the codec as a whole: known bytes, round trips, damage of every kind.

mod command;
mod compression;
mod damage;
mod golden;
mod reply;

use crate::{Command, Compressor, Compressors, MsgFlags, RequestBuilder, legacy_request};
use bytes::Bytes;
use pando_doc::{Doc, doc};

/// How many seeds a test plays: its default number, scaled by `PANDO_SEEDS` (500 is the usual number, 10,000 the long one).
fn seeds(default: u64) -> u64 {
    let chosen: Option<u64> = std::env::var("PANDO_SEEDS").ok().and_then(|text| text.parse().ok());
    let long = std::env::var("PANDO_TEST_LONG").is_ok().then_some(10_000);
    (default * chosen.or(long).unwrap_or(500)).div_ceil(500)
}

fn decode(message: Vec<u8>) -> crate::Decoded<Command> {
    Command::decode(Bytes::from(message), &Compressors::all())
}

fn insert_body() -> Doc {
    doc! { "insert": "things", "ordered": true, "$db": "test" }
}

fn things() -> Vec<Doc> {
    (0..3).map(|number| doc! { "_id": number, "name": "a thing of some length, a thing of some length" }).collect()
}

/// An insert with its documents in a sequence.
fn insert_message(flags: MsgFlags, compressor: Option<Compressor>) -> Vec<u8> {
    let things = things();
    let request = RequestBuilder::new(flags, Vec::new()).body(insert_body().view());
    request.sequence("documents", things.iter().map(Doc::view)).finish(7, compressor).unwrap()
}

fn hello() -> Vec<u8> {
    legacy_request("admin", doc! { "isMaster": 1, "helloOk": true }.view(), 3).unwrap()
}

/// One good message of every kind.
fn good_messages() -> Vec<Vec<u8>> {
    let two = RequestBuilder::new(MsgFlags::EXHAUST_ALLOWED, Vec::new())
        .sequence("updates", [doc! { "q": { "a": 1 }, "u": { "$set": { "b": [1, 2.5, null] } } }.view()])
        .body(doc! { "update": "c", "$db": "test" }.view())
        .sequence("more", [])
        .finish(8, None)
        .unwrap();
    let mut messages = vec![hello(), two];
    for flags in [MsgFlags::NONE, MsgFlags::CHECKSUM_PRESENT, MsgFlags::MORE_TO_COME] {
        messages.push(insert_message(flags, None));
    }
    for compressor in [Compressor::Noop, Compressor::Snappy, Compressor::Zlib, Compressor::Zstd] {
        messages.push(insert_message(MsgFlags::CHECKSUM_PRESENT, Some(compressor)));
    }
    messages
}

/// Writes a message's length where it belongs.
fn with_true_length(mut message: Vec<u8>) -> Vec<u8> {
    let length = (message.len() as i32).to_le_bytes();
    message[..4].copy_from_slice(&length);
    message
}
