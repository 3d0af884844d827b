//! What travels between the servers of a cluster, or to tenants of a shared one. A node that is neither checks that it is well formed,
//! as mongod does, and refuses what it could not honour.

use super::field::Place;
use super::types::SafeInt;
use pando_base::{ErrorCode, Result, Timestamp, Uuid, ensure};
use pando_doc::{DocRef, ObjectId, RawElement, Value};

crate::arguments! {
    /// Which version of a collection's placement a router knows.
    struct ShardVersion<'a> of "ShardVersion" lenient {
        /// The collection's incarnation.
        epoch: ObjectId = "e",
        /// Since when it is as it is.
        time: Timestamp = "t",
        /// Where its ranges are.
        placement: Timestamp = "v",
        /// Which of its indexes are global.
        index: Option<Timestamp> = "i",
        /// What a transaction must not see moved.
        conflict_time: Option<Timestamp> = "placementConflictTime",
    }
}

crate::arguments! {
    /// Which version of a database's placement a router knows.
    struct DatabaseVersion<'a> of "DatabaseVersion" lenient {
        /// The database's incarnation.
        uuid: Option<Uuid> = "uuid",
        /// Since when its primary is what it is.
        time: Timestamp = "timestamp",
        /// How often that changed.
        changes: SafeInt = "lastMod",
        /// What a transaction must not see moved.
        conflict_time: Option<Timestamp> = "placementConflictTime",
    }
}

/// Checks a router's `shardVersion`. Where nothing is sharded every version of a collection is the current one.
pub(super) fn check_shard_version(element: RawElement<'_>) -> Result<()> {
    ShardVersion::parse_fields(document(element)?, &Place::of_command("ShardVersion"), false).map(drop)
}

/// Checks a router's `databaseVersion`.
pub(super) fn check_database_version(element: RawElement<'_>) -> Result<()> {
    DatabaseVersion::parse_fields(document(element)?, &Place::of_command("DatabaseVersion"), false).map(drop)
}

fn document(element: RawElement<'_>) -> Result<DocRef<'_>> {
    let found = element.value_type.name();
    let document = element.value().and_then(|value| match value {
        Value::Document(document) => Some(document),
        _ => None,
    });
    ensure!(
        document.is_some(),
        ErrorCode::location(13111),
        "wrong type for field ({}) {found} != object",
        element.name
    );
    Ok(document.unwrap_or(DocRef::EMPTY))
}
