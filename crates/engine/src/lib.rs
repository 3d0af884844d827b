//! The durable engine: one log, one overlay, one base.
//!
//! Read top down:
//!
//! 1. [`DurableEngine`] (`engine.rs`): the interface's calls, each a few lines.
//! 2. `open`: from files to a running engine; recovery.
//! 3. `core`: what everything shares; how a commit gets its sequence.
//! 4. `transaction`, `visibility`: the life of a transaction; who sees what.
//! 5. `overlay`, `cursor`: versions in memory; reading them together with the base.
//! 6. `checkpoint`, `rollback`, `bulk`: from memory to the base, and back in time.
//! 7. `timestamps`, `ledger`, `memory`, `background`: the books, the budget, the threads.
//! 8. `oplog`, `backup`, `import`, `maintenance`: the log as oplog, copies, verification.
//! 9. `read_only`, [`salvage`]: looking without touching; saving what is intact.
//!
//! The log is the crate `engine-log`, the base the crate `engine-runs`; neither knows this one. `docs/engine.md` tells the
//! life of a write, a read, a checkpoint and a crash.

#![cfg_attr(feature = "shuttle", allow(dead_code, unused_imports))]

mod background;
mod backup;
mod backup_list;
mod bulk;
mod checkpoint;
mod core;
mod counters;
mod cursor;
mod engine;
mod epoch;
mod failure;
mod health;
mod import;
mod ledger;
mod maintenance;
mod memory;
mod open;
mod oplog;
mod options;
mod overlay;
mod read_only;
mod redo;
mod registry;
mod rollback;
mod salvage;
mod spread;
mod table;
mod timestamps;
mod transaction;
pub mod visibility;
mod watch;

pub use engine::DurableEngine;
pub use options::{EngineOptions, Mode};
pub use salvage::{Heir, SalvageReport, salvage};
