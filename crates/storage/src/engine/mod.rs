//! What an engine implements, one idea a file.
//!
//! An engine is everything at once: [`Engine`] is the sum of the traits below, so that a component can ask for just the
//! part it needs (`&dyn TimestampControl`). All of it is object safe; calls are synchronous, except that waiting is also
//! offered as a future.

mod backup;
mod bulk;
mod cursor;
mod durability;
mod events;
mod maintenance;
mod oplog;
mod statistics;
mod table;
mod timestamps;
mod transaction;

pub use backup::{Backup, BackupFile, BackupOptions, BackupSource, Freeze, ImportedTable};
pub use bulk::BulkLoader;
pub use cursor::{Cursor, Entry, prefix_successor};
pub use durability::{CheckpointKind, CheckpointOutcome, Durability, LogPosition, PAUSE_CHECKPOINT_THREAD, Wait};
pub use events::{EngineEvent, EngineListener, Listener, Opening, Work};
pub use maintenance::{Damage, DamagedPart, Maintenance, VerifyReport};
pub use oplog::{Oplog, OplogCursor, OplogEntry, OplogPin, OplogSource, TruncateMarker};
pub use statistics::{Statistic, Statistics};
pub use table::{
    Estimate, KEY_LENGTH_MAX, KeyFilter, Table, TableBody, TableOptions, TableRegistry, TableSize, VALUE_LENGTH_MAX,
};
pub use timestamps::{Slot, SlotKeeper, TimestampControl, Timestamps};
pub use transaction::{
    BeginOptions, Committed, PrepareBehaviour, ReadAt, Transaction, TransactionSource, Urgency, give_each,
    retry_prepare_conflicts,
};

/// A whole storage engine.
pub trait Engine:
    TableRegistry
    + TransactionSource
    + TimestampControl
    + Durability
    + OplogSource
    + BackupSource
    + Maintenance
    + Send
    + Sync
    + 'static
{
    /// A short name for logs and serverStatus.
    fn name(&self) -> &'static str;
    /// Ends background work, flushes the log and takes a last checkpoint. Idempotent. Later calls that write fail.
    fn shut_down(&self) -> crate::Result<()>;
}
