//! One step of a history, complete in itself: a list of these replays a run.
//!
//! Transactions, tables, cursors and slots are known by small numbers, the same on both sides. A step that has lost its
//! meaning, because a step before it was taken out, is skipped.

use bytes::Bytes;
use pando_base::Timestamp;
use pando_storage::BeginOptions;

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the fields are what their names say
pub enum Operation {
    /// Begins a transaction. A stamped one may set commit timestamps and writes replicated tables only.
    Begin { transaction: usize, options: BeginOptions, stamped: bool },
    /// Reads a key.
    Get { transaction: usize, table: usize, key: u8 },
    /// Writes a key.
    Put { transaction: usize, table: usize, key: u8, value: Value },
    /// Deletes a key.
    Delete { transaction: usize, table: usize, key: u8 },
    /// Deletes a range.
    Truncate { transaction: usize, table: usize, start: u8, end: Option<u8> },
    /// Changes records and bytes.
    AdjustSize { transaction: usize, table: usize, records: i64, bytes: i64 },
    /// Writes an oplog entry.
    AppendOplog { transaction: usize, timestamp: Timestamp, value: Value },
    /// Sets the commit timestamp.
    SetCommit { transaction: usize, timestamp: Timestamp },
    /// Sets the durable timestamp.
    SetDurable { transaction: usize, timestamp: Timestamp },
    /// Gives a slot to a transaction.
    HoldSlot { transaction: usize, slot: usize },
    /// Prepares.
    Prepare { transaction: usize, timestamp: Timestamp },
    /// Commits.
    Commit { transaction: usize },
    /// Rolls back.
    RollBack { transaction: usize },

    /// Opens a cursor.
    OpenCursor { cursor: usize, transaction: usize, table: usize },
    /// Moves it.
    Move { cursor: usize, step: Step },
    /// Moves it to any key, which must then be there.
    MoveRandom { cursor: usize, seed: u64 },
    /// Lets go of its transaction.
    Detach { cursor: usize },
    /// Takes up another.
    Attach { cursor: usize, transaction: usize },
    /// Closes it.
    CloseCursor { cursor: usize },

    /// Makes a table.
    CreateTable { table: usize, replicated: bool },
    /// Drops it.
    DropTable { table: usize },
    /// Makes a table and fills it, with a write by another in between if asked for.
    BulkLoad { table: usize, replicated: bool, keys: Vec<u8>, value: Value, written_meanwhile: bool },
    /// Sets records and bytes.
    SetTableSize { table: usize, records: i64, bytes: i64 },

    /// Moves oldest.
    SetOldest { timestamp: Timestamp, force: bool },
    /// Moves stable.
    SetStable { timestamp: Timestamp },
    /// Sets where history begins.
    SetInitialData { timestamp: Timestamp },
    /// Reserves a slot.
    ReserveSlot { slot: usize, timestamp: Timestamp },
    /// Gives it back.
    DropSlot { slot: usize },

    /// Flushes the log.
    FlushLog,
    /// Waits until the last commit is durable.
    WaitDurable,
    /// Takes a checkpoint.
    Checkpoint { full: bool },
    /// Lets the engine do its own work.
    Maintain,
    /// Rolls back to stable.
    RollBackToStable,

    /// Opens a reader of the oplog.
    OpenOplog { cursor: usize, forward: bool },
    /// Reads on.
    OplogNext { cursor: usize },
    /// Reads elsewhere.
    OplogSeek { cursor: usize, timestamp: Timestamp },
    /// Closes it.
    CloseOplog { cursor: usize },
    /// Cuts the oplog's new end.
    TruncateOplog { timestamp: Timestamp, inclusive: bool },
    /// Empties the oplog.
    ResetOplog,

    /// Compares everything that can be seen.
    CompareAll,
    /// Shuts down and opens again.
    RestartClean,
    /// Loses power and opens again.
    Crash,
    /// Loses power during a step, after so many more changes of the disk.
    CrashDuring { operation: Box<Operation>, changes: u64 },
}

/// A move of a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // named after the calls
pub enum Step {
    First,
    Last,
    Seek(u8),
    SeekBack(u8),
    SeekExact(u8),
    Next,
    Previous,
    SkipPrefix(usize),
}

/// A value told by its number and length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    /// Makes it differ from others.
    pub number: u32,
    /// Its length in bytes, at least what the number takes; zero for the empty value.
    pub length: usize,
}

impl Value {
    /// The bytes.
    pub fn bytes(self) -> Bytes {
        if self.length == 0 {
            return Bytes::new();
        }
        let mut bytes = format!("v{}", self.number).into_bytes();
        let mut state = self.number;
        while bytes.len() < self.length {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            bytes.push((state >> 24) as u8);
        }
        Bytes::from(bytes)
    }
}

/// The key of this number: the empty one, prefixes of each other, highest bytes, long ones, then plain ones.
pub fn key(number: u8) -> Vec<u8> {
    match number {
        0 => Vec::new(),
        1 => b"a".to_vec(),
        2 => b"a\0".to_vec(),
        3 => b"aa".to_vec(),
        4 => b"b\xff".to_vec(),
        5 => b"b\xff\xff".to_vec(),
        6 => vec![b'd'; 300],
        7 => [vec![b'd'; 300], vec![b'x']].concat(),
        8 => vec![u8::MAX],
        9 => vec![u8::MAX; 2],
        _ => format!("k{number:03}").into_bytes(),
    }
}

/// The ident of this number.
pub fn ident(table: usize) -> String {
    format!("t{table}")
}

impl Operation {
    /// The transaction that it is a step of.
    pub fn transaction(&self) -> Option<usize> {
        match self {
            Operation::Begin { transaction, .. }
            | Operation::Get { transaction, .. }
            | Operation::Put { transaction, .. }
            | Operation::Delete { transaction, .. }
            | Operation::Truncate { transaction, .. }
            | Operation::AdjustSize { transaction, .. }
            | Operation::AppendOplog { transaction, .. }
            | Operation::SetCommit { transaction, .. }
            | Operation::SetDurable { transaction, .. }
            | Operation::HoldSlot { transaction, .. }
            | Operation::Prepare { transaction, .. }
            | Operation::Commit { transaction }
            | Operation::RollBack { transaction } => Some(*transaction),
            _ => None,
        }
    }

    /// The timestamp in it, if any.
    pub fn timestamp(&self) -> Timestamp {
        match self {
            Operation::AppendOplog { timestamp, .. }
            | Operation::SetCommit { timestamp, .. }
            | Operation::SetDurable { timestamp, .. }
            | Operation::Prepare { timestamp, .. }
            | Operation::SetOldest { timestamp, .. }
            | Operation::SetStable { timestamp }
            | Operation::ReserveSlot { timestamp, .. } => *timestamp,
            _ => Timestamp::NONE,
        }
    }
}
