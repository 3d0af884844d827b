//! Forgetting: what is on disk leaves the system's memory.
//!
//! The system keeps what is written to a file in its page cache. Nearly nobody reads the log from there: who follows the
//! oplog finds its end in the tail's own memory, and recovery begins after a restart. Meanwhile each page that the log goes on
//! in is one that was never used, and on a virtual machine the first touch of such a page costs many times what
//! copying a record there does. So the log gives its pages back once they are on disk, and goes on in the same ones: at
//! once where syncs are large, as in a bulk load; a little later and in larger steps where they are small.
//!
//! Invariants: only what is durable is forgotten, since the system keeps what it has not written; the page that the next record
//! goes into is kept. All of it is a hint, which changes nothing that is read.

use crate::flush::Writer;
use crate::log::Inner;
use crate::segment::Segment;
use std::sync::Arc;

/// Systems have pages of this size or a divisor of it.
const PAGE_BYTES: u64 = 4096;
/// Where syncs are small, so much is kept behind the end for readers that fell a little behind.
const KEPT_BYTES: u64 = 16 << 20;
/// Where syncs are small, so much is forgotten at once.
const STEP_BYTES: u64 = 1 << 20;

impl Inner {
    /// After a sync: forgets what lies behind it.
    pub(crate) fn forget_behind(&self) {
        let mut writer = self.io.lock();
        let durable = self.durable.load();
        if durable.segment != writer.segment.id {
            return;
        }
        let (kept, step) = if self.filler.has_small_syncs() { (KEPT_BYTES, STEP_BYTES) } else { (0, PAGE_BYTES) };
        let end = u64::from(durable.offset).saturating_sub(kept) / PAGE_BYTES * PAGE_BYTES;
        if end >= writer.forgotten + step {
            writer.segment.forget(writer.forgotten, end);
            writer.forgotten = end;
        }
    }
}

impl Writer {
    /// Goes on in another segment; the one that is left is sealed and synced.
    pub(crate) fn enter(&mut self, next: &Arc<Segment>) {
        let left = std::mem::replace(&mut self.segment, Arc::clone(next));
        left.forget(std::mem::take(&mut self.forgotten), left.allocated_bytes);
    }
}

impl Segment {
    fn forget(&self, from: u64, to: u64) {
        if let Ok(file) = self.file() {
            file.forget(from, to.saturating_sub(from));
        }
    }
}
