//! Where a set keeps one value.

use parking_lot::RwLock;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// The place of one value. Which kind it is never changes; the definition that made it knows.
pub enum Cell {
    /// A boolean or a number, as bits.
    Bits(AtomicU64),
    /// A string.
    Text(RwLock<Arc<str>>),
    /// A document.
    Bytes(RwLock<Arc<[u8]>>),
}
