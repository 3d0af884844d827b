//! Edits: the only way in which a store changes.
//!
//! An edit is checked against the state, becomes one record of the manifest, and is then shown in the slots of the tables
//! it touched. All of that happens under the manifest's lock, so that slots change in the order of the records.

use super::statistics::count;
use super::{Runs, Shared};
use crate::lineage::Ages;
use crate::manifest::Manifest;
use crate::manifest::change::{Change, RunId};
use crate::manifest::record::{CheckpointMark, TableRecord};
use crate::manifest::state::State;
use crate::{FileDescriptor, FileId, NewRuns, Result, RunDescriptor, RunFile, RunsError, TableId};
use pando_base::Timestamp;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

/// What one step changes; everything takes effect together or not at all.
///
/// Within an edit the fence comes first and cuts only what was there before; then tables are created and updated, runs
/// added, tables dropped, the mark set. Runs and updates for tables that were dropped meanwhile are left out silently: a
/// checkpoint need not stop for a drop.
#[derive(Default)]
pub struct Edit {
    /// Finished runs, each the newest of its table.
    pub add: Option<NewRuns>,
    /// The checkpoint that the runs now hold.
    pub mark: Option<CheckpointMark>,
    /// New tables.
    pub create: Vec<TableRecord>,
    /// Tables that go, with all their runs.
    pub drop: Vec<TableId>,
    /// Tables whose record changes.
    pub update: Vec<TableRecord>,
    /// Timestamped versions in present runs that are durable only after this are dead from now on.
    pub fence: Option<Timestamp>,
}

/// The changes of an edit and what they touch.
#[derive(Default)]
pub(crate) struct Plan {
    pub changes: Vec<Change>,
    /// Tables whose slots show something new.
    pub touched: BTreeSet<TableId>,
    pub dropped: BTreeSet<TableId>,
    /// Files that become part of the store.
    pub files: Vec<FileDescriptor>,
    /// Written files of which nothing was installed.
    pub unused: Vec<FileId>,
    pub fence: Option<Timestamp>,
}

impl Runs {
    /// Makes an edit durable, then visible. On an error other than `Stopped`, nothing has changed.
    pub fn install(&self, edit: Edit) -> Result<()> {
        let shared = &self.shared;
        shared.refuse_if_stopped()?;
        let mut manifest = shared.manifest.lock();
        let plan = self.plan(manifest.state(), &edit)?;
        let committed = self.commit(&mut manifest, &plan);
        if let (Some(add), true) = (edit.add, keeps_files(&committed)) {
            add.keep();
        }
        committed
    }

    /// Appends the plan's changes and shows them. The caller keeps the plan's files unless this fails without a stop.
    pub(crate) fn commit(&self, manifest: &mut Manifest, plan: &Plan) -> Result<()> {
        if plan.changes.is_empty() {
            return Ok(());
        }
        let shared = &self.shared;
        let obsolete = shared.append(manifest, &plan.changes)?;
        count(&shared.counters.installs, 1);
        self.show(manifest.state(), plan, &obsolete);
        shared.merges.note_fence(plan.fence);
        shared.merges.consider(&shared.options.policy, manifest.state(), &plan.touched, &plan.dropped);
        shared.rotate_if_due(manifest)
    }

    /// The changes that the edit amounts to in this state, or why it makes no sense.
    fn plan(&self, state: &State, edit: &Edit) -> Result<Plan> {
        let mut plan = Plan::default();
        if let Some(fence) = edit.fence {
            plan.touched = state.tables_cut_by(fence);
            if !plan.touched.is_empty() {
                plan.changes.push(Change::Fence(fence));
                plan.fence = Some(fence);
            }
        }
        self.plan_tables(state, edit, &mut plan)?;
        if let Some(add) = &edit.add {
            self.plan_runs(state, edit, add, &mut plan)?;
        }
        plan.changes.extend(plan.dropped.iter().map(|table| Change::Drop(*table)));
        plan.touched.retain(|table| !plan.dropped.contains(table));
        plan.changes.extend(edit.mark.iter().cloned().map(Change::Mark));
        Ok(plan)
    }

    fn plan_tables(&self, state: &State, edit: &Edit, plan: &mut Plan) -> Result<()> {
        let mut created = BTreeSet::new();
        for record in &edit.create {
            if state.tables.contains_key(&record.id) || !created.insert(record.id) {
                return Err(RunsError::Invalid(format!("table {} is there already", record.id)));
            }
            plan.changes.push(Change::Create(record.clone()));
            plan.touched.insert(record.id);
        }
        for record in &edit.update {
            if self.is_known(state, &created, record.id)? {
                plan.changes.push(Change::Update(record.clone()));
            }
        }
        for table in &edit.drop {
            if self.is_known(state, &created, *table)? {
                plan.dropped.insert(*table);
            }
        }
        Ok(())
    }

    fn plan_runs(&self, state: &State, edit: &Edit, add: &NewRuns, plan: &mut Plan) -> Result<()> {
        let created: BTreeSet<TableId> = edit.create.iter().map(|record| record.id).collect();
        let mut wanted: Vec<(TableId, &RunDescriptor)> = Vec::new();
        let mut seen = BTreeSet::new();
        for (table, run) in add.tables() {
            run.check()?;
            if !seen.insert(*table) {
                return Err(RunsError::Invalid(format!("two runs for table {table} in one edit")));
            }
            if self.is_known(state, &created, *table)? && !plan.dropped.contains(table) {
                wanted.push((*table, run));
            }
        }
        plan_files(plan, add.files(), wanted.iter().map(|(_, run)| *run));
        let first_run = state.next_run;
        plan.changes.push(self.numbers(first_run + wanted.len() as u64));
        for (id, (table, run)) in (first_run..).zip(wanted) {
            let ages = Ages::of_files(run.parts.iter().map(|part| part.file));
            plan.changes.push(Change::Run { table, id, ages, run: run.clone() });
            plan.touched.insert(table);
        }
        Ok(())
    }

    /// The change that takes numbers, so that no restart gives them out again.
    pub(crate) fn numbers(&self, next_run: RunId) -> Change {
        Change::Numbers { next_file: self.shared.next_file.load(Ordering::Acquire), next_run }
    }

    /// True for a table that is there; false for one that was dropped since the open; an error for any other.
    fn is_known(&self, state: &State, created: &BTreeSet<TableId>, table: TableId) -> Result<bool> {
        if state.tables.contains_key(&table) || created.contains(&table) {
            return Ok(true);
        }
        if self.shared.catalog.read().dropped.contains(&table) {
            return Ok(false);
        }
        Err(RunsError::Invalid(format!("there is no table {table}")))
    }

    /// Shows the new state in the slots.
    fn show(&self, state: &State, plan: &Plan, obsolete: &[FileId]) {
        let shared = &self.shared;
        let mut catalog = shared.catalog.write();
        let mut files = shared.files.lock();
        for file in &plan.files {
            files.add(RunFile::new(&shared.env, &shared.directory, file.clone()));
        }
        for id in &plan.touched {
            catalog.dropped.remove(id);
            // A table without a slot gets one from the state when it is first asked for.
            if let (Some(table), Some(slot)) = (state.tables.get(id), catalog.slots.get(id)) {
                slot.replace(&table.runs, files.live(), &shared.cache);
            }
        }
        for id in &plan.dropped {
            catalog.dropped.insert(*id);
            if let Some(slot) = catalog.slots.remove(id) {
                slot.mark_dropped();
            }
        }
        files.forget(obsolete);
        drop((files, catalog));
        for file in &plan.unused {
            let _ = shared.env.disk().remove(&shared.path_of(*file));
        }
    }
}

impl Shared {
    /// Appends changes; on a full disk once more without the ballast.
    fn append(&self, manifest: &mut Manifest, changes: &[Change]) -> Result<Vec<FileId>> {
        let appended = match manifest.append(changes) {
            Err(RunsError::OutOfSpace { .. }) if self.release_ballast()? => manifest.append(changes),
            appended => appended,
        };
        appended.map_err(|error| self.stop_on_failed_sync(error))
    }

    /// Gives up the reserve. True if that may have helped.
    pub fn release_ballast(&self) -> Result<bool> {
        let released = self.ballast.release()?;
        count(&self.counters.ballast_releases, u64::from(released));
        Ok(released)
    }

    /// Rewrites the manifest if that pays. Failing to, other than by a failed sync, only means to try again later.
    fn rotate_if_due(&self, manifest: &mut Manifest) -> Result<()> {
        if !manifest.wants_rotation() {
            return Ok(());
        }
        match manifest.rotate() {
            Ok(()) => count(&self.counters.rotations, 1),
            Err(error) if error.is_failed_sync() => {
                // The edit itself is durable and shown; the store just cannot take another one.
                self.stop_on_failed_sync(error);
            }
            Err(_) => {}
        }
        Ok(())
    }
}

/// Names the files in which some of these runs lie; lists the others as unused.
pub(crate) fn plan_files<'a>(plan: &mut Plan, files: &[FileDescriptor], runs: impl Iterator<Item = &'a RunDescriptor>) {
    let used: BTreeSet<FileId> = runs.flat_map(|run| run.parts.iter().map(|part| part.file)).collect();
    for file in files {
        if used.contains(&file.id) {
            plan.changes.push(Change::File(file.clone()));
            plan.files.push(file.clone());
        } else {
            plan.unused.push(file.id);
        }
    }
}

/// True if the files of an edit belong to the store, or may: a record whose sync failed can be on disk all the same.
pub(crate) fn keeps_files(committed: &Result<()>) -> bool {
    !matches!(committed, Err(error) if !matches!(error, RunsError::Stopped(_)))
}
