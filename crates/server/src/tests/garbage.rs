//! Messages that make no sense: an error or a closed connection, and the node goes on.

use super::*;
use pando_env::Random;
use pando_env::simulated::SimulatedRandom;

/// A sound message with some of its bytes changed, or bytes of chance behind a sound header.
fn damaged(random: &SimulatedRandom) -> Vec<u8> {
    let body = doc! { "hello": 1, "client": { "driver": { "name": "d" } }, "lsid": { "id": 1 }, "$db": "admin" };
    let flags = MsgFlags::from_bits(random.below(2) as u32).unwrap();
    let compressor = pando_net::NetworkCounters::COMPRESSORS.get(random.below(6) as usize).copied();
    let mut message = RequestBuilder::new(flags, Vec::new()).body(body.view()).finish(1, compressor).unwrap();
    match random.below(4) {
        0 => {
            let length = 16 + random.below(200) as usize;
            message.resize(length, 0);
            random.fill(&mut message[16..]);
        }
        1 => message.truncate(16 + random.below(message.len() as u64 - 16) as usize),
        _ => {
            for _ in 0..=random.below(4) {
                let place = 4 + random.below(message.len() as u64 - 4) as usize;
                message[place] = random.next_u64() as u8;
            }
        }
    }
    let length = message.len() as i32;
    message[..4].copy_from_slice(&length.to_le_bytes());
    message
}

#[test]
fn u1_damaged_messages_are_survived() {
    run(async {
        let fixture = start().await;
        let random = SimulatedRandom::new(20260101);
        let mut sound = fixture.connect().await;
        for _ in 0..3000 {
            let mut client = fixture.connect().await;
            client.send_bytes(&damaged(&random)).await;
            client.stream.shutdown().await.unwrap();
            while client.read().await.is_some() {}
        }
        assert_eq!(number(&sound.admin(doc! { "ping": 1 }).await, "ok"), 1.0);
        drop(sound);
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
        let mut last = fixture.connect().await;
        let status = last.admin(doc! { "serverStatus": 1 }).await;
        let connections = status.get("connections").unwrap().as_document().unwrap();
        assert_eq!(connections.get("current"), Some(pando_doc::Value::Int32(1)), "none is left behind");
    });
}
