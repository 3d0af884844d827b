//! The keys that sign cluster times, in `admin.system.keys`: read at start and now and then, and made ahead of their time by the node
//! that may write. Only where clients have to prove who they are.

use crate::stored;
use crate::{Data, Node};
use pando_base::{Error, Namespace, Parameter, Result, Settable};
use pando_doc::{Doc, Value, doc};
use pando_repl::ReplGate;
use pando_security::{TIME_KEY_BYTES, TimeKey};
use std::sync::Weak;
use std::time::Duration;

/// How long a key is signed with.
pub static KEYS_ROTATION_INTERVAL_SECONDS: Parameter<i64> = Parameter::new(
    "KeysRotationIntervalSec",
    90 * 24 * 60 * 60,
    "After how many seconds a new key signs cluster times.",
)
.at_least(1)
.settable(Settable::AtStartup);

/// How often the keys are looked at.
const REFRESH_INTERVAL: Duration = Duration::from_secs(60);

/// Reads the keys, and makes those that are missing.
pub async fn refresh_time_keys(node: &Node, data: &Data) -> Result<()> {
    if !node.security.is_enabled || !data.replication.is_replicated() {
        return Ok(());
    }
    let namespace = Namespace::of("admin", "system.keys")?;
    let mut operation = data.services.internal_operation("KeysCollectionManager");
    let found = stored::find(data, &mut operation, &namespace, doc! { "purpose": "HMAC" }).await?;
    let mut keys: Vec<TimeKey> = found.iter().map(parse).collect::<Result<_>>()?;
    let signer = &node.security.times;
    signer.set_keys(keys.clone());
    if !data.replication.is_writable_primary() {
        return Ok(());
    }
    let seconds = node.parameters.get(&KEYS_ROTATION_INTERVAL_SECONDS);
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
        if let Some(data) = &served.data {
            // What fails now is tried again: times are signed with the keys that there are.
            let _ = refresh_time_keys(&served, data).await;
        }
        drop(served);
        clock.clock().sleep(REFRESH_INTERVAL).await;
    }
}
