//! The oplog's two ends: truncating the new one, dropping segments from the old one.
//!
//! Truncating the new end (rollback, recovery) and resetting (initial sync) are records in the log: entries vanish from the
//! view at once, and again at every recovery, in the order in which things happened; redo before and after is untouched.
//!
//! The old end goes by whole segments, which are the oplog's truncate markers. The oldest segment is dropped while the oplog
//! is over its size, unless a pinned timestamp, the minimum retention, the last checkpoint or a backup needs it. The drop
//! is first recorded (entries of younger segments that are older than a dropped one go too, so that no gap shows), then
//! made durable, then the files are removed one by one, each removal durable before the next, so that the files that are
//! left always form a chain. Without an oplog, segments before the checkpoint are dropped.

use crate::control::ControlRecord;
use crate::index::{OplogIndex, SegmentRows};
use crate::log::{Inner, LogOptions};
use crate::segment::{list_segments, segment_path};
use crate::{DurablePoint, Log, LogError, LogPosition, Result};
use pando_base::Timestamp;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

/// What decides over the old end.
pub(crate) struct Retention {
    pub(crate) max_bytes: u64,
    pub(crate) min_retention_ms: u64,
    pins: BTreeMap<String, Timestamp>,
    pub(crate) checkpoint: LogPosition,
}

impl Retention {
    pub(crate) fn new(options: &LogOptions) -> Retention {
        Retention {
            max_bytes: options.oplog_max_bytes,
            min_retention_ms: options.oplog_min_retention_ms,
            pins: BTreeMap::new(),
            checkpoint: LogPosition::START,
        }
    }
}

/// One segment of the oplog, as statistics show it: a whole truncate marker, or the partial one at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TruncateMarker {
    /// The segment.
    pub segment: u32,
    /// Its highest entry, or none.
    pub last: Timestamp,
    /// When that was written, at the latest.
    pub wall_ms: u64,
    /// Bytes of its entries.
    pub bytes: u64,
    /// How many entries it has.
    pub records: u64,
    /// It takes no more entries.
    pub whole: bool,
}

/// What a truncation of the old end did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Segments whose files are gone.
    pub segments: u64,
    /// Bytes of entries that are gone.
    pub bytes: u64,
    /// Entries that are gone.
    pub records: u64,
    /// Those of the segments that had entries.
    pub markers: u64,
}

impl Log {
    /// Takes away the oplog entries after a timestamp, and with `inclusive` the one at it. Entries with the same timestamps
    /// may be appended again. Waits for their durability end with [`LogError::Truncated`]. Durable after the next flush.
    pub fn truncate_oplog_after(&self, timestamp: Timestamp, inclusive: bool) -> Result<DurablePoint> {
        let kept = if inclusive { timestamp.previous() } else { timestamp };
        self.inner.truncate_after(kept)
    }

    /// Takes away all oplog entries.
    pub fn reset_oplog(&self) -> Result<DurablePoint> {
        self.inner.truncate_after(Timestamp::NONE)
    }

    /// Drops what retention allows from the old end. Call it now and then, and after a checkpoint.
    pub fn truncate_oplog_old(&self) -> Result<Dropped> {
        let inner = &self.inner;
        let _one_at_a_time = inner.truncating.lock();
        inner.check_running()?;
        let Some(dropped) = inner.drop_oldest()? else { return Ok(Dropped::default()) };
        inner.visibility.ring();
        // What emptied the segments (this drop, or a truncation of the new end) must outlive their files.
        self.flush()?;
        inner.remove_files(&dropped)?;
        Ok(Dropped {
            segments: dropped.len() as u64,
            bytes: dropped.iter().map(|segment| segment.bytes).sum(),
            records: dropped.iter().map(|segment| segment.count).sum(),
            markers: dropped.iter().filter(|segment| segment.count > 0).count() as u64,
        })
    }

    /// A checkpoint covers everything before this position; recovery will start there. Without an oplog, segments before
    /// it are dropped now.
    pub fn checkpointed(&self, position: LogPosition) -> Result<()> {
        {
            let mut retention = self.inner.retention.lock();
            retention.checkpoint = retention.checkpoint.max(position);
        }
        if !self.inner.options.oplog {
            self.truncate_oplog_old()?;
        }
        Ok(())
    }

    /// Keeps entries at or after a timestamp until unpinned; pinning again under the same name moves the pin.
    pub fn pin(&self, name: &str, timestamp: Timestamp) {
        self.inner.retention.lock().pins.insert(name.to_owned(), timestamp);
    }

    /// Lifts a pin; false if there is none of that name.
    pub fn unpin(&self, name: &str) -> bool {
        self.inner.retention.lock().pins.remove(name).is_some()
    }

    /// The pins, by name.
    pub fn pins(&self) -> Vec<(String, Timestamp)> {
        self.inner.retention.lock().pins.iter().map(|(name, timestamp)| (name.clone(), *timestamp)).collect()
    }

    /// Changes how large the oplog may become.
    pub fn set_oplog_max_bytes(&self, bytes: u64) {
        self.inner.retention.lock().max_bytes = bytes;
    }

    /// How large the oplog may become.
    pub fn oplog_max_bytes(&self) -> u64 {
        self.inner.retention.lock().max_bytes
    }

    /// Changes how long entries are kept at least.
    pub fn set_oplog_min_retention_ms(&self, ms: u64) {
        self.inner.retention.lock().min_retention_ms = ms;
    }

    /// The segments as truncate markers, oldest first; the last one is partial.
    pub fn truncate_markers(&self) -> Vec<TruncateMarker> {
        let index = self.inner.index.read();
        let last = index.segments.len().saturating_sub(1);
        let marker = |(at, entry): (usize, &SegmentRows)| TruncateMarker {
            segment: entry.segment.id,
            last: entry.last,
            wall_ms: entry.wall_ms,
            bytes: entry.bytes,
            records: entry.count,
            whole: at < last,
        };
        index.segments.iter().enumerate().map(marker).collect()
    }
}

impl Inner {
    fn truncate_after(&self, kept: Timestamp) -> Result<DurablePoint> {
        self.check_running()?;
        let mut loaded = self.loaded();
        let position = loop {
            let missing = {
                let mut tail = self.tail.lock();
                let mut index = self.index.write();
                match index.cut(Timestamp::NONE, kept, &loaded) {
                    Ok(_) => {
                        index.generation += 1;
                        // Slots right behind the last entry that stays may be given out again: only up to there is it
                        // known that no hole will open.
                        let kept = kept.min(index.last().unwrap_or_default());
                        drop(index);
                        self.push_control(&mut tail, &ControlRecord::truncate_after(kept), false);
                        if let Some(entry) = self.index.write().segments.last_mut() {
                            entry.cut_above = entry.cut_above.min(kept);
                        }
                        tail.no_holes = tail.no_holes.min(kept);
                        tail.highest = tail.highest.min(kept);
                        tail.truncations += 1;
                        self.truncations.store(tail.truncations, Ordering::Release);
                        self.durability.lock().truncated(tail.position(), kept);
                        break tail.position();
                    }
                    Err(missing) => missing,
                }
            };
            self.load_missing(&mut loaded, &missing)?;
        };
        self.hole_closed.ring();
        self.flushed.ring();
        self.flushes.ring();
        self.visibility.ring();
        Ok(position.into())
    }

    /// Takes the oldest segments that may go out of the index, and records it if entries go with them.
    fn drop_oldest(&self) -> Result<Option<Vec<SegmentRows>>> {
        let mut loaded = self.loaded();
        loop {
            let missing = {
                let mut tail = self.tail.lock();
                let mut index = self.index.write();
                let count = self.count_droppable(&index);
                if count == 0 {
                    return Ok(None);
                }
                let going = index.segments.iter().take(count).filter(|entry| entry.count > 0);
                let through = going.map(|entry| entry.last).max().unwrap_or_default();
                match self.cut_younger(&mut index, count, through, &loaded) {
                    Ok(dropped) => {
                        drop(index);
                        if through.is_some() {
                            self.push_control(&mut tail, &ControlRecord::truncate_old(through), false);
                            if let Some(entry) = self.index.write().segments.last_mut() {
                                entry.cut_below = entry.cut_below.max(through);
                            }
                        }
                        return Ok(Some(dropped));
                    }
                    Err(missing) => missing,
                }
            };
            self.load_missing(&mut loaded, &missing)?;
        }
    }

    /// Hides what lies below the dropped entries in younger segments; nothing changes if rows for that are missing.
    fn cut_younger(
        &self,
        index: &mut OplogIndex,
        count: usize,
        through: Timestamp,
        loaded: &dyn crate::index::RowSource,
    ) -> std::result::Result<Vec<SegmentRows>, crate::index::Missing> {
        let mut younger = OplogIndex { segments: index.segments.split_off(count), ..OplogIndex::default() };
        let cut = younger.cut(through, Timestamp::MAX, loaded);
        index.segments.append(&mut younger.segments);
        cut?;
        Ok(index.drop_oldest(count))
    }

    /// How many of the oldest segments may go.
    fn count_droppable(&self, index: &OplogIndex) -> usize {
        let retention = self.retention.lock();
        let backed_up = self.backups.lock().oldest_segment();
        let pinned = retention.pins.values().min().copied().unwrap_or(Timestamp::MAX);
        let now_ms = self.env.clock().wall_ms();
        let mut oplog_bytes = index.bytes;
        let closed = index.segments.len().saturating_sub(1);
        let may_go = |entry: &SegmentRows, oplog_bytes: u64| {
            if entry.segment.id >= retention.checkpoint.segment || backed_up.is_some_and(|id| entry.segment.id >= id) {
                return false;
            }
            let kept_ms = now_ms.saturating_sub(entry.wall_ms);
            !self.options.oplog
                || entry.count == 0
                || (oplog_bytes > retention.max_bytes && entry.last < pinned && kept_ms >= retention.min_retention_ms)
        };
        let mut count = 0;
        for entry in &index.segments[..closed] {
            if !may_go(entry, oplog_bytes) {
                break;
            }
            oplog_bytes -= entry.bytes;
            count += 1;
        }
        count
    }

    /// Removes the files of dropped segments, oldest first, and whatever unused file lies before them.
    fn remove_files(&self, dropped: &[SegmentRows]) -> Result<()> {
        let Some(last) = dropped.last().map(|entry| entry.segment.id) else { return Ok(()) };
        let disk = self.env.disk();
        for (id, path) in list_segments(disk, &self.directory)? {
            if id > last {
                break;
            }
            debug_assert_eq!(path, segment_path(&self.directory, id));
            disk.remove(&path).map_err(|error| LogError::io(&path, error))?;
            // If this removal came back while a later one did not, the chain would have a gap.
            disk.sync_directory(&self.directory).map_err(|error| {
                self.stop(format!("syncing {} after dropping a segment failed: {error}", self.directory.display()))
            })?;
            self.row_cache.lock().forget(id);
            self.counters.dropped_segments.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}
