//! A table's place in the store: where readers pick up its current runs.
//!
//! Loading is one atomic load and no lock. Only installs replace the runs, one after the other under the manifest's lock,
//! so the slot always holds what the last durable edit said.

use crate::lineage::Ages;
use crate::manifest::change::RunId;
use crate::manifest::state::RunState;
use crate::{BlockCache, FileId, Part, PartDescriptor, Run, RunFile, TableId, TableRuns};
use arc_swap::{ArcSwap, Guard};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The current runs of one table.
pub struct TableSlot {
    table: TableId,
    current: ArcSwap<TableRuns>,
    generation: AtomicU64,
    dropped: AtomicBool,
    numbered: Mutex<Vec<NumberedRun>>,
}

/// A run with the number that the manifest knows it by.
#[derive(Clone)]
pub(crate) struct NumberedRun {
    pub id: RunId,
    pub ages: Ages,
    pub run: Arc<Run>,
}

impl TableSlot {
    /// What it takes in memory beside its runs.
    pub(crate) const OWN_BYTES: usize = size_of::<TableSlot>() + size_of::<TableRuns>() + 4 * size_of::<usize>();

    pub(crate) fn new(table: TableId) -> TableSlot {
        TableSlot {
            table,
            current: ArcSwap::from_pointee(TableRuns::new(Vec::new())),
            generation: AtomicU64::new(0),
            dropped: AtomicBool::new(false),
            numbered: Mutex::new(Vec::new()),
        }
    }

    /// The table.
    pub fn table(&self) -> TableId {
        self.table
    }

    /// The runs now. They and their files stay readable as long as this is held.
    pub fn load(&self) -> Arc<TableRuns> {
        self.current.load_full()
    }

    /// The runs now, for a moment: cheaper than `load`, but a thread should hold few of these at a time.
    #[inline]
    pub fn glance(&self) -> Guard<Arc<TableRuns>> {
        self.current.load()
    }

    /// Changes whenever the list of runs does; read it before `load` to notice a change later.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// True once the table was dropped. Its last runs stay readable.
    pub fn is_dropped(&self) -> bool {
        self.dropped.load(Ordering::Acquire)
    }

    pub(crate) fn mark_dropped(&self) {
        self.dropped.store(true, Ordering::Release);
        self.numbered.lock().clear();
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// The runs, newest first, with their numbers.
    pub(crate) fn numbered(&self) -> Vec<NumberedRun> {
        self.numbered.lock().clone()
    }

    /// Takes over the manifest's list. Runs and parts that were there before are shared with it, with all they have cached.
    pub(crate) fn replace(&self, runs: &[RunState], files: &BTreeMap<FileId, Arc<RunFile>>, cache: &Arc<BlockCache>) {
        let mut numbered = self.numbered.lock();
        let old = Present::new(&numbered);
        *numbered = runs.iter().map(|state| old.run(state, files, cache)).collect();
        let table = TableRuns::new(numbered.iter().map(|numbered| numbered.run.clone()).collect());
        self.current.store(Arc::new(table));
        self.generation.fetch_add(1, Ordering::AcqRel);
    }
}

/// The runs and parts that a slot has open.
struct Present {
    runs: BTreeMap<RunId, Arc<Run>>,
    parts: BTreeMap<(FileId, u64), Arc<Part>>,
}

impl Present {
    fn new(numbered: &[NumberedRun]) -> Present {
        let runs = numbered.iter().map(|numbered| (numbered.id, numbered.run.clone())).collect();
        let parts = numbered.iter().flat_map(|numbered| numbered.run.parts());
        let parts = parts.map(|part| ((part.descriptor().file, part.descriptor().offset), part.clone())).collect();
        Present { runs, parts }
    }

    fn run(&self, state: &RunState, files: &BTreeMap<FileId, Arc<RunFile>>, cache: &Arc<BlockCache>) -> NumberedRun {
        let same = self
            .runs
            .get(&state.id)
            .filter(|run| run.parts().iter().map(|part| part.descriptor()).eq(state.run.parts.iter()));
        let build = || {
            let parts = state.run.parts.iter().filter_map(|part| self.part(part, files, cache)).collect();
            Run::new(parts)
        };
        NumberedRun { id: state.id, ages: state.ages, run: same.cloned().unwrap_or_else(build) }
    }

    fn part(
        &self,
        descriptor: &PartDescriptor,
        files: &BTreeMap<FileId, Arc<RunFile>>,
        cache: &Arc<BlockCache>,
    ) -> Option<Arc<Part>> {
        if let Some(part) = self.parts.get(&(descriptor.file, descriptor.offset)) {
            let same = part.descriptor().fence == descriptor.fence;
            return Some(if same { part.clone() } else { part.with_fence(descriptor.fence) });
        }
        let file = files.get(&descriptor.file);
        debug_assert!(file.is_some(), "the manifest's state names a file that the store does not have");
        Some(Part::new(file?.clone(), descriptor.clone(), cache.clone()))
    }
}
