//! Cursors of clients: queries that are left after a batch and taken up by the next getMore.
//!
//! A cursor is idle or pinned by the operation that uses it; nobody else can use it meanwhile, but it can be marked to be
//! killed, and its operation is told. Idle cursors that nobody asks for time out. Ids are random, so that nobody guesses one.
//!
//! Invariants: an id is given out once while its cursor lives; a pinned cursor comes back idle, or it is gone.
//!
//! Lock order: the mutex of the table is a leaf; executors are never touched or dropped under it.

mod client_cursor;
mod manager;

#[cfg(test)]
mod tests;

pub use client_cursor::{ClientCursor, CursorOptions};
pub use manager::{
    CURSOR_INTERVAL_SECONDS, CURSOR_TIMEOUT_MS, CursorManager, CursorStatistics, IdleCursor, OpenCursors, PARAMETERS,
    PinnedCursor,
};
