//! Truncated, corrupted and random messages: an error or a message that can be walked over, never a panic.

use super::*;
use crate::{FrameDecoder, Reply};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Decodes as both sides do and looks at everything that was accepted. True if a server accepted it.
fn digest(message: Vec<u8>) -> bool {
    let message = Bytes::from(message);
    if let Ok(reply) = Reply::decode(message.clone(), &Compressors::all()) {
        walk(reply.body());
    }
    let Ok(command) = Command::decode(message, &Compressors::all()) else {
        return false;
    };
    walk(command.body());
    command.database();
    for (name, documents) in command.sequences() {
        assert_eq!(documents.iter().count(), documents.len(), "{name}");
        documents.iter().for_each(walk);
    }
    if let Ok(Some(documents)) = command.sequence("documents") {
        assert_eq!(documents.iter().count(), documents.len());
    }
    true
}

/// Every accepted document is valid, from its own bytes alone.
fn walk(document: pando_doc::DocRef<'_>) {
    let again = pando_doc::DocRef::parse(document.bytes()).expect("what was accepted is valid");
    assert_eq!(again.elements().count(), document.elements().count());
}

#[test]
fn u1_every_truncation_is_an_error_or_a_message() {
    for message in good_messages() {
        assert!(digest(message.clone()));
        for length in 0..message.len() {
            let cut = message[..length].to_vec();
            assert!(!digest(cut.clone()), "the length in the header is wrong");
            if length >= 16 {
                digest(with_true_length(cut));
            }
        }
    }
}

#[test]
fn u1_every_corrupted_byte_is_an_error_or_a_message() {
    for message in good_messages() {
        let has_checksum = message[12..14] == 2013_u16.to_le_bytes() && message[16] & 1 == 1;
        for place in 0..message.len() {
            for change in [1, 2, 4, 8, 16, 32, 64, 128, 0xff] {
                let mut damaged = message.clone();
                damaged[place] ^= change;
                let is_accepted = digest(damaged);
                assert!(!(is_accepted && has_checksum), "a checksum finds byte {place} with {change:#x}");
            }
        }
    }
}

#[test]
fn u1_mutated_messages_never_panic() {
    let good = good_messages();
    let mut accepted = 0;
    for seed in 0..seeds(20_000) {
        let mut random = StdRng::seed_from_u64(seed);
        let mut message = good[random.random_range(0..good.len())].clone();
        for _ in 0..random.random_range(1..8) {
            mutate(&mut message, &good, &mut random);
        }
        if message.len() >= 16 && random.random_bool(0.8) {
            message = with_true_length(message);
        }
        accepted += u64::from(digest(message));
    }
    assert!(accepted > 0, "mutations reach past the first check");
}

fn mutate(message: &mut Vec<u8>, good: &[Vec<u8>], random: &mut StdRng) {
    let place = random.random_range(0..=message.len());
    match random.random_range(0..6) {
        0 => message.truncate(place),
        1 => message.insert(place, random.random()),
        2 if place < message.len() => message[place] = random.random(),
        3 if place < message.len() => drop(message.remove(place)),
        4 if place + 4 <= message.len() => {
            let number: i32 = [0, 1, -1, i32::MAX, i32::MIN, 48_000_000, 5][random.random_range(0..7)];
            message[place..place + 4].copy_from_slice(&number.to_le_bytes());
        }
        _ => {
            let other = &good[random.random_range(0..good.len())];
            let from = random.random_range(0..other.len());
            let tail = other[from..random.random_range(from..=other.len())].to_vec();
            message.splice(place..place, tail);
        }
    }
}

#[test]
fn u1_random_bytes_never_panic() {
    for seed in 0..seeds(5_000) {
        let mut random = StdRng::seed_from_u64(seed);
        let length = random.random_range(0..300);
        let mut bytes: Vec<u8> = (0..length).map(|_| random.random()).collect();
        let mut decoder = FrameDecoder::new();
        decoder.push(&bytes);
        while let Ok(Some(message)) = decoder.next_message() {
            digest(message.to_vec());
        }
        if length >= 16 {
            let code = [1, 2004, 2012, 2013_i32][random.random_range(0..4)];
            bytes[12..16].copy_from_slice(&code.to_le_bytes());
            digest(with_true_length(bytes));
        }
    }
}
