//! Point reads: the overlay first, then the base.

use crate::core::Core;
use crate::failure::of_runs;
use crate::overlay::{ChainRead, RangeRead};
use crate::table::EngineTable;
use crate::visibility::ReadView;
use bytes::Bytes;
use pando_engine_runs::Lookup;
use pando_storage::{Result, StorageError};

/// What the overlay knows about a key.
enum OverlayRead {
    /// Ask the base.
    Nothing,
    PrepareConflict,
    /// `sequence` is `MAX` for the reader's own write, which no range deletes.
    Found {
        value: Option<Bytes>,
        sequence: u64,
    },
}

/// The value that a view sees.
///
/// The base is loaded after the overlay was found to have nothing: a key that moves from one to the other in between is
/// then in the base. Deleted ranges are looked at before either: one that moves in between is then seen here.
pub fn get(core: &Core, view: &ReadView, table: &EngineTable, key: &[u8]) -> Result<Option<Bytes>> {
    let range = match table.ranges.is_empty() {
        true => RangeRead::Nothing,
        false => table.ranges.read(key, view),
    };
    match (overlay_read(view, table, key), range) {
        (OverlayRead::PrepareConflict, _) => Err(conflict(core)),
        (OverlayRead::Found { value, sequence: u64::MAX }, _) => Ok(value),
        (_, RangeRead::PrepareConflict) => Err(conflict(core)),
        (OverlayRead::Found { sequence, .. }, RangeRead::DeletedBefore(deleted)) if sequence < deleted => Ok(None),
        (OverlayRead::Found { value, .. }, _) => {
            core.counters.overlay_hits.increment();
            Ok(value)
        }
        (OverlayRead::Nothing, _) if table.base_is_hidden(view.point().sequence) => Ok(None),
        (OverlayRead::Nothing, range) => match table.slot.glance().get(key, view.point()).map_err(of_runs)? {
            Lookup::Found { stamp, .. } if deletes(range, stamp.sequence) => Ok(None),
            Lookup::Found { value, .. } => Ok(Some(value)),
            Lookup::Deleted { .. } | Lookup::Absent => Ok(None),
        },
    }
}

fn overlay_read(view: &ReadView, table: &EngineTable, key: &[u8]) -> OverlayRead {
    let read = table.overlay.read(key, |chain| match chain.read(view) {
        ChainRead::Nothing => OverlayRead::Nothing,
        ChainRead::PrepareConflict => OverlayRead::PrepareConflict,
        ChainRead::Version(version) => OverlayRead::Found {
            value: version.value().cloned(),
            sequence: match version.is_own(view) {
                true => u64::MAX,
                false => version.stamp().map_or(0, |stamp| stamp.sequence),
            },
        },
    });
    read.unwrap_or(OverlayRead::Nothing)
}

fn deletes(range: RangeRead, sequence: u64) -> bool {
    matches!(range, RangeRead::DeletedBefore(deleted) if sequence < deleted)
}

fn conflict(core: &Core) -> StorageError {
    core.counters.prepare_conflicts.increment();
    StorageError::PrepareConflict
}
