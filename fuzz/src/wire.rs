//! Messages. The first byte chooses between bytes as they are and bytes whose header is made right, so that a fuzzer
//! need not find out about lengths first.

use bytes::Bytes;
use pando_wire::{Command, Compressors, FrameDecoder, Reply};

/// Decodes the bytes in every way there is and looks at all that is accepted.
pub fn fuzz_wire(bytes: &[u8]) {
    let Some((choice, bytes)) = bytes.split_first() else {
        return;
    };
    let mut message = bytes.to_vec();
    if choice % 2 == 1 && message.len() >= 16 {
        let length = (message.len() as i32).to_le_bytes();
        let op_code = [1, 2004, 2012, 2013_i32][usize::from(choice / 2 % 4)].to_le_bytes();
        message[..4].copy_from_slice(&length);
        message[12..16].copy_from_slice(&op_code);
    }
    let mut decoder = FrameDecoder::new();
    decoder.push(&message);
    while let Ok(Some(message)) = decoder.next_message() {
        decode(message);
    }
}

fn decode(message: Bytes) {
    if let Ok(reply) = Reply::decode(message.clone(), &Compressors::all()) {
        walk(reply.body());
    }
    let Ok(command) = Command::decode(message, &Compressors::all()) else {
        return;
    };
    walk(command.body());
    command.database();
    for (_, documents) in command.sequences() {
        assert_eq!(documents.iter().count(), documents.len());
        documents.iter().for_each(walk);
    }
    if let Ok(Some(documents)) = command.sequence("documents") {
        assert_eq!(documents.iter().count(), documents.len());
    }
}

/// What was accepted is valid by its own bytes.
fn walk(document: pando_doc::DocRef<'_>) {
    let again = pando_doc::DocRef::parse(document.bytes()).expect("what was accepted is valid");
    assert_eq!(again.elements().count(), document.field_count());
}
