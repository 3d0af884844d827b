//! Point reads: the overlay first, then the base.

use crate::core::Core;
use crate::overlay::{ChainRead, RangeRead, Rows};
use crate::table::EngineTable;
use crate::visibility::ReadView;
use bytes::Bytes;
use pando_engine_runs::{Lookup, prefetch_at};
use pando_storage::{Result, StorageError, give_each};

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
///
/// A range that moves to the base leaves versions behind that are newer than it, and which no longer say so: without a
/// range in the overlay they need no sequence. So a range hides what the base has only if it is still here afterwards.
pub fn get(core: &Core, view: &ReadView, table: &EngineTable, key: &[u8]) -> Result<Option<Bytes>> {
    // Where the base has everything and its blocks stay open, a look at rows that are only cached would be one more wait for memory.
    // It is worth it before a block is read.
    if table.overlay.is_clean() && core.runs.cache_is_roomy() && table.ranges.is_empty() {
        let sequence = view.point().sequence;
        match table.slot.glance().get_in_memory(key, view.point()).map_err(|error| core.of_base(error))? {
            Some(_) if table.base_is_hidden(sequence) => return Ok(None),
            Some(Lookup::Found { value, .. }) => return Ok(Some(value)),
            Some(Lookup::Deleted { .. } | Lookup::Absent) => return Ok(None),
            None => {}
        }
    }
    get_among(core, view, table, key, Rows::All)
}

/// The same for several keys that lie apart, until their values are `room_bytes` together; what is left of that.
///
/// Rows which the overlay only caches are passed by, as in a scan: each of them would have to be waited for, while what was announced
/// of the base is near.
pub fn get_each(
    core: &Core,
    view: &ReadView,
    table: &EngineTable,
    keys: &[&[u8]],
    mut room_bytes: usize,
    take: &mut dyn FnMut(Option<Bytes>),
) -> Result<usize> {
    if !table.ranges.is_empty() {
        return give_each(keys, room_bytes, take, |key| get_among(core, view, table, key, Rows::Dirty));
    }
    table.overlay.announce(keys);
    let reads: Vec<OverlayRead> = keys.iter().map(|key| overlay_read(view, table, key, Rows::Dirty)).collect();
    let is_asked = |read: &OverlayRead| matches!(read, OverlayRead::Nothing);
    let asked: Vec<&[u8]> = keys.iter().zip(&reads).filter(|(_, read)| is_asked(read)).map(|(key, _)| *key).collect();
    // Loaded after the overlay was looked at, as for one key.
    let runs = table.slot.load();
    let is_hidden = table.base_is_hidden(view.point().sequence);
    let announced = runs.announce(&asked);
    let mut asked_before = 0;
    for read in reads {
        if room_bytes == 0 {
            break;
        }
        core.counters.gets.increment();
        let value = match read {
            OverlayRead::PrepareConflict => return Err(conflict(core)),
            OverlayRead::Found { value, .. } => {
                core.counters.overlay_hits.increment();
                value
            }
            OverlayRead::Nothing if is_hidden => None,
            OverlayRead::Nothing => {
                asked_before += 1;
                match announced.get(asked_before - 1, view.point()).map_err(|error| core.of_base(error))? {
                    Lookup::Found { value, .. } => Some(value),
                    Lookup::Deleted { .. } | Lookup::Absent => None,
                }
            }
        };
        room_bytes = room_bytes.saturating_sub(value.as_ref().map_or(0, Bytes::len));
        take(value);
    }
    Ok(room_bytes)
}

fn get_among(core: &Core, view: &ReadView, table: &EngineTable, key: &[u8], rows: Rows) -> Result<Option<Bytes>> {
    let mut range = read_range(view, table, key);
    loop {
        match get_beside(core, view, table, key, (rows, range))? {
            Got::Answer(value) => return Ok(value),
            Got::Moved(now) => range = now,
        }
    }
}

/// What comes of a look at the overlay and the base.
#[derive(Debug, PartialEq, Eq)]
enum Got {
    Answer(Option<Bytes>),
    /// The range that was seen is in the base now; this is what is seen instead.
    Moved(RangeRead),
}

/// What the deleted ranges of the overlay say about a key.
pub fn read_range(view: &ReadView, table: &EngineTable, key: &[u8]) -> RangeRead {
    match table.ranges.is_empty() {
        true => RangeRead::Nothing,
        false => table.ranges.read(key, view),
    }
}

fn get_beside(
    core: &Core,
    view: &ReadView,
    table: &EngineTable,
    key: &[u8],
    (rows, range): (Rows, RangeRead),
) -> Result<Got> {
    let value = match (overlay_read(view, table, key, rows), range) {
        (OverlayRead::PrepareConflict, _) => return Err(conflict(core)),
        (OverlayRead::Found { value, sequence: u64::MAX }, _) => value,
        (_, RangeRead::PrepareConflict) => return Err(conflict(core)),
        (OverlayRead::Found { sequence, .. }, RangeRead::DeletedBefore(deleted)) if sequence < deleted => None,
        (OverlayRead::Found { value, .. }, _) => {
            core.counters.overlay_hits.increment();
            value
        }
        (OverlayRead::Nothing, _) if table.base_is_hidden(view.point().sequence) => None,
        (OverlayRead::Nothing, range) => {
            match table.slot.glance().get(key, view.point()).map_err(|error| core.of_base(error))? {
                Lookup::Found { stamp, .. } if deletes(range, stamp.sequence) => match read_range(view, table, key) {
                    now if now == range => None,
                    now => return Ok(Got::Moved(now)),
                },
                Lookup::Found { value, .. } => Some(value),
                Lookup::Deleted { .. } | Lookup::Absent => None,
            }
        }
    };
    Ok(Got::Answer(value))
}

fn overlay_read(view: &ReadView, table: &EngineTable, key: &[u8], rows: Rows) -> OverlayRead {
    let read = table.overlay.read(key, rows, |chain| match chain.read(view) {
        ChainRead::Nothing => OverlayRead::Nothing,
        ChainRead::PrepareConflict => OverlayRead::PrepareConflict,
        ChainRead::Version(version) => OverlayRead::Found {
            value: version.value().map(share),
            sequence: match version.is_own(view) {
                true => u64::MAX,
                false => version.stamp().map_or(0, |stamp| stamp.sequence),
            },
        },
    });
    read.unwrap_or(OverlayRead::Nothing)
}

/// Another handle on a value. Its bytes are on their way while its count is waited for: who reads it wants them next.
fn share(value: &Bytes) -> Bytes {
    prefetch_at(value.as_ptr());
    value.clone()
}

fn deletes(range: RangeRead, sequence: u64) -> bool {
    matches!(range, RangeRead::DeletedBefore(deleted) if sequence < deleted)
}

fn conflict(core: &Core) -> StorageError {
    core.counters.prepare_conflicts.increment();
    StorageError::PrepareConflict
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transaction::EngineTransaction;
    use crate::{DurableEngine, EngineOptions, Mode};
    use pando_env::simulated::Simulation;
    use pando_storage::{
        BeginOptions, CheckpointKind, Durability, Maintenance, Table, TableOptions, TableRegistry, Transaction,
    };
    use std::path::Path;

    fn written(engine: &DurableEngine, write: impl FnOnce(&mut dyn Transaction)) {
        let mut transaction = EngineTransaction::begin(&engine.core, BeginOptions::default()).unwrap();
        write(&mut transaction);
        Box::new(transaction).commit().unwrap();
    }

    /// The range is seen, then it and the row move to the base, where the row is merged until it has no sequence.
    #[test]
    fn x4_x25_a_range_that_moves_to_the_base_during_a_get_hides_nothing_newer() {
        let machine = Simulation::new(1);
        let opened = DurableEngine::open(&machine.env(), Path::new("/data"), EngineOptions::stepped(Mode::StandAlone));
        let engine = opened.unwrap();
        let table: Table = engine.create_table("t", &TableOptions::default()).unwrap();
        written(&engine, |transaction| transaction.put(&table, b"k", b"old").unwrap());
        written(&engine, |transaction| transaction.truncate(&table, b"", None).unwrap());
        written(&engine, |transaction| transaction.put(&table, b"k", b"new").unwrap());
        let reader = EngineTransaction::begin(&engine.core, BeginOptions::default()).unwrap();
        let body = EngineTable::of(&table, engine.core.id).unwrap();
        let seen = read_range(reader.view(), body, b"k");
        assert!(matches!(seen, RangeRead::DeletedBefore(_)));
        for number in 0..8_u8 {
            engine.checkpoint(CheckpointKind::Full).unwrap();
            while engine.core.maintain_step().unwrap() {}
            written(&engine, |transaction| transaction.put(&table, &[number], b"other").unwrap());
        }
        engine.set_memory_bytes(0);
        let core = &engine.core;
        assert_eq!(
            get_beside(core, reader.view(), body, b"k", (Rows::All, seen)).unwrap(),
            Got::Moved(RangeRead::Nothing)
        );
        assert_eq!(get(core, reader.view(), body, b"k").unwrap().as_deref(), Some(b"new".as_slice()));
    }

    #[test]
    fn x4_a_row_that_the_overlay_caches_spares_the_read_of_a_block() {
        let machine = Simulation::new(1);
        let opened = DurableEngine::open(&machine.env(), Path::new("/data"), EngineOptions::stepped(Mode::StandAlone));
        let engine = opened.unwrap();
        let table: Table = engine.create_table("t", &TableOptions::default()).unwrap();
        written(&engine, |transaction| transaction.put(&table, b"k", b"value").unwrap());
        engine.checkpoint(CheckpointKind::Full).unwrap();
        let (core, body) = (&engine.core, EngineTable::of(&table, engine.core.id).unwrap());
        assert!(body.overlay.is_clean() && !body.overlay.is_empty() && core.runs.cache_is_roomy());
        let reader = EngineTransaction::begin(core, BeginOptions::default()).unwrap();
        assert_eq!(get(core, reader.view(), body, b"k").unwrap().as_deref(), Some(b"value".as_slice()));
        let point = reader.view().point();
        assert!(body.slot.load().get_in_memory(b"k", point).unwrap().is_none(), "no block was read");
        // Once the block is there, it is asked; what neither has is not there.
        assert!(matches!(body.slot.load().get(b"k", point).unwrap(), Lookup::Found { .. }));
        assert!(matches!(body.slot.load().get_in_memory(b"k", point).unwrap(), Some(Lookup::Found { .. })));
        assert_eq!(get(core, reader.view(), body, b"k").unwrap().as_deref(), Some(b"value".as_slice()));
        assert_eq!(get(core, reader.view(), body, b"l").unwrap(), None);
    }
}
