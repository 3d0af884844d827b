//! The keys that sign cluster times, in `admin.system.keys`: read at start and now and then, and made ahead of their time by the node
//! that may write. A set has them also where clients need not prove who they are; then nothing is signed with them.

use crate::stored;
use crate::{Data, Node};
use pando_base::{Error, Namespace, Parameter, Result, Settable};
use pando_doc::{Doc, Value, doc};
use pando_repl::ReplGate;
use pando_security::{TIME_KEY_BYTES, TimeKey, TimeSigner};
use std::sync::Weak;
use std::time::Duration;

/// How long a key is signed with.
pub static KEYS_ROTATION_INTERVAL_SECONDS: Parameter<i32> = Parameter::new(
    "KeysRotationIntervalSec",
    90 * 24 * 60 * 60,
    "After how many seconds a new key signs cluster times.",
)
.at_least(1)
.settable(Settable::AtStartup);

/// How often the keys are looked at.
const REFRESH_INTERVAL: Duration = Duration::from_secs(60);
/// The same while there is no primary that could make them.
const AWAIT_PRIMARY_INTERVAL: Duration = Duration::from_millis(500);

/// Reads the keys, and makes those that are missing.
pub async fn refresh_time_keys(node: &Node, data: &Data) -> Result<()> {
    if !data.replication.is_replicated() {
        return Ok(());
    }
    let namespace = Namespace::of("admin", "system.keys")?;
    let mut operation = data.services.internal_operation("KeysCollectionManager");
    let found = stored::find(data, &mut operation, &namespace, doc! { "purpose": "HMAC" }).await?;
    let mut keys: Vec<TimeKey> = found.iter().map(parse).collect::<Result<_>>()?;
    // Without logins nobody is to see signatures.
    let unused = TimeSigner::default();
    let signer = if node.security.is_enabled { &node.security.times } else { &unused };
    signer.set_keys(keys.clone());
    if !data.replication.is_writable_primary() {
        return Ok(());
    }
    let seconds = i64::from(node.parameters.get(&KEYS_ROTATION_INTERVAL_SECONDS));
    for (id, expires) in signer.missing(data.replication.clock().now(), u32::try_from(seconds).unwrap_or(u32::MAX)) {
        let mut key = [0; TIME_KEY_BYTES];
        node.env.random().fill(&mut key);
        let document = doc! {
            "_id": id, "purpose": "HMAC", "key": (Value::Binary { subtype: 0, bytes: &key }), "expiresAt": expires,
        };
        stored::save(data, &mut operation, &namespace, &document).await?;
        keys.push(TimeKey { id, key, expires });
    }
    signer.set_keys(keys);
    Ok(())
}

fn parse(document: &Doc) -> Result<TimeKey> {
    let bad = || Error::bad_value(format!("this is no key of cluster times: {document}"));
    let id = document.get("_id").and_then(|id| id.to_i64_exact()).ok_or_else(bad)?;
    let expires = document.get("expiresAt").and_then(|time| time.as_timestamp()).ok_or_else(bad)?;
    match document.get("key") {
        Some(Value::Binary { bytes, .. }) => Ok(TimeKey { id, key: bytes.try_into().map_err(|_| bad())?, expires }),
        _ => Err(bad()),
    }
}

/// Looks at the keys again and again, until the node is gone.
pub async fn keep_time_keys(node: Weak<Node>) {
    loop {
        let Some(served) = node.upgrade() else { return };
        let clock = served.env.clone();
        let mut pause = REFRESH_INTERVAL;
        if let Some(data) = &served.data {
            // What fails now is tried again: times are signed with the keys that there are.
            let refreshed = refresh_time_keys(&served, data).await;
            if refreshed.is_err() || !data.replication.is_writable_primary() {
                pause = AWAIT_PRIMARY_INTERVAL;
            }
        }
        drop(served);
        clock.clock().sleep(pause).await;
    }
}
