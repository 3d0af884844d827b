//! Who sees what: transaction states, the published watermark and the open snapshots.
//!
//! Invariants:
//! * A transaction's outcome is one store to its [`TransactionState`]; every version of it points there.
//! * The [`Watermark`] advances only over transactions whose outcome is stored, in sequence order.
//! * A snapshot's sequence is registered in [`Snapshots`] while it is still the watermark. Whoever collects the open
//!   snapshots reads the watermark first; so every snapshot that is not in the collection is at or after that watermark, and
//!   what no collected snapshot and no later one can see may be dropped.
//!
//! These are the lock-free parts of the engine; `tests/schedules.rs` explores their schedules with shuttle.

mod snapshots;
mod state;
pub mod sync;
mod view;
mod watermark;

pub use snapshots::{Collected, SnapshotTicket, Snapshots};
pub use state::{Outcome, TransactionState};
pub use view::{ReadView, Visibility};
pub use watermark::Watermark;
