//! What somebody may do to the node who has not logged in: send short messages, and say who they
//! are in a way that means nothing.

use super::*;
use pando_wire::{Command, Compressor, limits::MESSAGE_SIZE_BYTES_MAX};

/// A hello of about this length.
fn padded(length: usize) -> Doc {
    doc! { "hello": 1, "comment": "x".repeat(length), "$db": "admin" }
}

async fn wrong_lengths(client: &mut Client) -> (f64, f64) {
    let status = client.ok("admin", doc! { "serverStatus": 1 }).await;
    let network = ["metrics", "network"]
        .iter()
        .fold(status, |section, name| section.get(name).unwrap().as_document().unwrap().to_doc());
    (number(&network, "totalMessageSizeErrorPreAuth"), number(&network, "totalMessageSizeErrorPostAuth"))
}

#[test]
fn u10_messages_before_login_are_short() {
    run(async {
        let (fixture, mut root) = with_root().await;
        let mut stranger = fixture.connect().await;
        assert!(stranger.try_ask(padded(16_000)).await.is_some());
        assert!(stranger.try_ask(padded(16_384)).await.is_none(), "the connection is closed");
        assert_eq!(wrong_lengths(&mut root).await, (1.0, 0.0));
        // The same client may send what it wants once it has logged in, and short messages again
        // when it has logged out.
        root.make_user("known", roles(&[])).await;
        let mut known = fixture.connect_as("known").await;
        assert!(known.try_ask(padded(4 << 20)).await.is_some());
        known.ok("admin", doc! { "logout": 1 }).await;
        assert!(known.try_ask(padded(16_384)).await.is_none());
        assert_eq!(wrong_lengths(&mut root).await, (2.0, 0.0));
        // The bound is a parameter, and may be set while the node runs.
        root.ok("admin", doc! { "setParameter": 1, "preAuthMaximumMessageSizeBytes": 32_768 }).await;
        assert!(fixture.connect().await.try_ask(padded(30_000)).await.is_some());
        assert_eq!(root.code("admin", doc! { "setParameter": 1, "preAuthMaximumMessageSizeBytes": 1000 }).await, 2);
    });
}

#[test]
fn u10_before_login_a_message_is_as_long_as_it_is_decompressed() {
    run(async {
        let (fixture, _root) = with_root().await;
        for compressor in pando_net::NetworkCounters::COMPRESSORS {
            let message = |body: &Doc, compressor: Compressor| {
                RequestBuilder::new(MsgFlags::NONE, Vec::new()).body(body.view()).finish(7, Some(compressor)).unwrap()
            };
            let mut stranger = fixture.connect().await;
            stranger.send_bytes(&message(&padded(16_000), compressor)).await;
            assert!(stranger.read().await.is_some());
            let bomb = message(&padded(200 << 10), compressor);
            assert!(bomb.len() < 16_384, "it comes as a short one");
            let decoded = Command::decode_within(bomb.clone().into(), &Compressors::all(), MESSAGE_SIZE_BYTES_MAX);
            assert!(decoded.unwrap().size_bytes() > 200 << 10, "it is sound");
            stranger.send_bytes(&bomb).await;
            assert!(stranger.read().await.is_none(), "{compressor:?}");
        }
    });
}

#[test]
fn u10_without_authentication_nobody_is_a_stranger() {
    run(async {
        let fixture = start().await;
        assert!(fixture.connect().await.try_ask(padded(4 << 20)).await.is_some());
    });
}

#[test]
fn u10_who_calls_itself_a_server_is_one_only_after_it_has_logged_in_as_one() {
    run(async {
        let (fixture, mut root) = with_root().await;
        let told = doc! { "hello": 1, "internalClient": { "minWireVersion": 0, "maxWireVersion": 21 } };
        // What only servers may send tells whether the node takes somebody for one.
        let probe = doc! { "ping": 1, "maxTimeMSOpOnly": 1000 };
        let mut stranger = fixture.connect().await;
        let reply = stranger.ok("admin", told.clone()).await;
        assert_eq!(number(&reply, "minWireVersion"), 0.0, "it is spoken to as any client");
        assert_eq!(stranger.code("admin", probe.clone()).await, 72);
        root.ok("admin", told.clone()).await;
        assert_eq!(root.code("admin", probe.clone()).await, 72);
        // Without authentication there is nobody to log in as.
        let open = start().await;
        let mut client = open.connect().await;
        client.ok("admin", told).await;
        client.ok("admin", probe).await;
    });
}
