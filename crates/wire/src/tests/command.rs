//! What a request says, and what MongoDB answers to wrong ones.

use super::*;
use crate::{Reaction, Refusal};
use pando_doc::DocRef;

/// An OP_MSG with these sections, written by hand.
fn raw_msg(flags: u32, sections: &[&[u8]]) -> Vec<u8> {
    let mut message = vec![0; 16];
    message[12..14].copy_from_slice(&2013_u16.to_le_bytes());
    message.extend_from_slice(&flags.to_le_bytes());
    sections.iter().for_each(|section| message.extend_from_slice(section));
    with_true_length(message)
}

fn body_section(body: &Doc) -> Vec<u8> {
    [&[0], body.bytes()].concat()
}

fn sequence_section(name: &str, documents: &[&[u8]]) -> Vec<u8> {
    let content = [name.as_bytes(), &[0], &documents.concat()].concat();
    [&[1][..], &(content.len() as i32 + 4).to_le_bytes(), &content].concat()
}

fn refusal(message: Vec<u8>) -> Refusal {
    decode(message).expect_err("it is wrong")
}

fn expect_refusal(message: Vec<u8>, code: i32, reaction: Reaction) {
    let refusal = refusal(message);
    assert_eq!((refusal.error.code().number(), refusal.reaction), (code, reaction), "{}", refusal.error.reason());
}

#[test]
fn u1_documents_are_the_same_in_a_sequence_and_in_the_body() {
    let things = things();
    let in_sequence = decode(insert_message(MsgFlags::NONE, None)).unwrap();
    let body = doc! { "insert": "things", "documents": [&things[0], &things[1], &things[2]], "$db": "test" };
    let in_body = decode(raw_msg(0, &[&body_section(&body)])).unwrap();
    let views: Vec<DocRef<'_>> = things.iter().map(Doc::view).collect();
    for command in [&in_sequence, &in_body] {
        let documents = command.sequence("documents").unwrap().unwrap();
        assert_eq!(documents.iter().collect::<Vec<_>>(), views);
        assert_eq!((documents.len(), documents.iter().len(), documents.is_empty()), (3, 3, false));
        assert!(command.sequence("updates").unwrap().is_none());
        assert!(documents.size_bytes() >= views.iter().map(|view| view.size_bytes()).sum());
    }
    assert_eq!(
        in_sequence.sequences().map(|(name, all)| (name.to_string(), all.len())).collect::<Vec<_>>(),
        [("documents".to_string(), 3)]
    );
    assert_eq!(in_body.sequences().count(), 0);
}

#[test]
fn u1_a_list_that_is_no_list_of_documents_is_a_type_mismatch() {
    for (body, reason) in [
        (
            doc! { "insert": "c", "documents": 1 },
            "BSON field 'insert.documents' is the wrong type 'int', expected type 'array'",
        ),
        (
            doc! { "insert": "c", "documents": [{ "a": 1 }, "x"] },
            "BSON field 'insert.documents.1' is the wrong type 'string', expected type 'object'",
        ),
    ] {
        let command = decode(raw_msg(0, &[&body_section(&body)])).unwrap();
        let error = command.sequence("documents").unwrap_err();
        assert_eq!((error.code().number(), error.reason()), (14, reason));
    }
}

#[test]
fn u1_flags_are_known_or_optional() {
    let body = body_section(&insert_body());
    for optional in [1 << 16, 1 << 17, 1 << 31] {
        assert!(decode(raw_msg(optional, &[&body])).is_ok());
    }
    for bit in 2..16 {
        expect_refusal(raw_msg(1 << bit, &[&body]), 223, Reaction::Close);
    }
    assert!(decode(raw_msg(2, &[&body])).unwrap().is_fire_and_forget());
    assert!(decode(raw_msg(1 << 16, &[&body])).unwrap().allows_exhaust());
}

#[test]
fn u1_sections_are_refused_as_mongodb_does() {
    let (body, one) = (body_section(&insert_body()), doc! { "a": 1 });
    let sequence = sequence_section("documents", &[one.bytes()]);
    let taken = body_section(&doc! { "insert": "c", "documents": [] });
    let nested = body_section(&doc! { "insert": "c", "a": { "b": 1 } });
    let reply = Reaction::ReplyMsg;
    expect_refusal(raw_msg(0, &[&body, &body]), 40430, reply);
    expect_refusal(raw_msg(0, &[&body, &sequence, &sequence]), 40431, reply);
    expect_refusal(raw_msg(0, &[&body, &[9]]), 40432, reply);
    expect_refusal(raw_msg(0, &[&taken, &sequence]), 40433, reply);
    expect_refusal(raw_msg(0, &[&nested, &sequence_section("a.b", &[])]), 40433, reply);
    expect_refusal(raw_msg(0, &[&sequence]), 40587, reply);
    expect_refusal(raw_msg(0, &[]), 40587, reply);
    let names = ["a", "b", "c"].map(|name| sequence_section(name, &[]));
    expect_refusal(raw_msg(0, &[&body, &names[0], &names[1], &names[2]]), 233, Reaction::Close);
    expect_refusal(raw_msg(0, &[&body, &[&[2], one.bytes()].concat()]), 13, reply);
    expect_refusal(raw_msg(0, &[&[0, 5, 0, 0, 0, 1]]), 22, reply);
}

#[test]
fn u1_sequences_with_wrong_sizes_are_refused() {
    let body = body_section(&insert_body());
    for size in [i32::MIN, -1, 0, 3, 4, 13, i32::MAX] {
        let mut sequence = sequence_section("docs", &[doc! {}.bytes()]);
        assert!(decode(raw_msg(0, &[&body, &sequence])).is_ok());
        sequence[1..5].copy_from_slice(&size.to_le_bytes());
        assert!(decode(raw_msg(0, &[&body, &sequence])).is_err(), "size {size}");
    }
}

#[test]
fn u1_wrong_checksums_end_the_connection() {
    let mut message = insert_message(MsgFlags::CHECKSUM_PRESENT, None);
    *message.last_mut().unwrap() ^= 1;
    expect_refusal(message, 288, Reaction::Close);
    expect_refusal(raw_msg(1, &[&[0; 4]]), 51252, Reaction::ReplyMsg);
}

#[test]
fn u1_documents_are_limited_in_depth_and_size() {
    let deep = |levels: usize| {
        let inside = (0..levels).fold(doc! { "x": 1 }, |inside, _| doc! { "a": inside });
        decode(raw_msg(0, &[&body_section(&inside)]))
    };
    assert!(deep(199).is_ok());
    assert!(deep(201).is_err());
    let large = |size: usize| {
        let text = "x".repeat(size);
        decode(raw_msg(0, &[&body_section(&doc! { "a": text })]))
    };
    assert!(large(16 * 1024 * 1024).is_ok());
    assert!(large(16 * 1024 * 1024 + 16 * 1024).is_err());
}

#[test]
fn u1_op_query_serves_the_first_words_of_a_connection_only() {
    for name in ["hello", "isMaster", "ismaster", "_isSelf", "authenticate", "buildInfo", "saslStart", "saslContinue"] {
        let message = legacy_request("admin", doc! { (name): 1 }.view(), 1).unwrap();
        assert_eq!(decode(message).unwrap().name(), name);
    }
    let request = |database, body: Doc| legacy_request(database, body.view(), 1).unwrap();
    expect_refusal(request("admin", doc! { "serverStatus": 1 }), 352, Reaction::ReplyLegacy);
    expect_refusal(request("admin", doc! {}), 352, Reaction::ReplyLegacy);
    expect_refusal(request("admin", doc! { "hello": 1, "$db": "x" }), 40621, Reaction::ReplyLegacy);

    let mut exhaust = hello();
    exhaust[16] |= 1 << 6;
    expect_refusal(exhaust, 18527, Reaction::ReplyLegacy);
    let mut two = hello();
    two[35..39].copy_from_slice(&2_i32.to_le_bytes());
    expect_refusal(two, 16979, Reaction::ReplyLegacy);
    let mut plain = hello();
    plain[26] = b'x';
    expect_refusal(plain, 5739101, Reaction::ReplyLegacyFailure);
}

#[test]
fn u1_other_kinds_are_refused_as_mongodb_does() {
    for (number, code, reaction) in [
        (2001, 5745701, Reaction::Close),
        (2002, 5745702, Reaction::Close),
        (2006, 5745700, Reaction::Close),
        (2007, 5745703, Reaction::Close),
        (2005, 5739101, Reaction::ReplyLegacyFailure),
        (1, 17, Reaction::Ignore),
        (2010, 17, Reaction::Ignore),
        (-1, 17, Reaction::Ignore),
    ] {
        let mut message = hello();
        message[12..16].copy_from_slice(&i32::to_le_bytes(number));
        expect_refusal(message, code, reaction);
    }
}

#[test]
fn u1_a_database_is_a_string() {
    let database = |body: Doc| decode(raw_msg(0, &[&body_section(&body)])).unwrap().database().map(ToString::to_string);
    assert_eq!(database(doc! { "ping": 1, "$db": "d" }).as_deref(), Some("d"));
    assert_eq!(database(doc! { "ping": 1, "$db": 5 }), None);
    assert_eq!(database(doc! { "ping": 1 }), None);
}
