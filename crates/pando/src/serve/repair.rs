//! `pando repair`, or `--repair`: makes a damaged data directory one that a node can start on, and says what is lost.
//!
//! 1. The mark [`MARK`] is put into the directory; while it is there, no node starts. It goes when the repair is done, so that
//!    whatever ends it on the way, the next one begins with another repair.
//! 2. The engine's files are verified. If something is damaged, a new store is made of all that is intact (salvage) and put in the
//!    place of the old one, whose files stay beside it with `.corrupt` at the end of their directories' names.
//! 3. Catalog and collections: see `pando_server`'s repair. A member's store is brought to stand alone in between.
//!
//! The swap of step 2 can be interrupted: the mark says when it has begun, and it is then gone on with.

use super::meaning::Plan;
use crate::error::{PandoError, Result};
use crate::store;
use pando_base::{Log, Timestamp};
use pando_engine::{EngineOptions, Heir, Mode};
use pando_env::{Env, Machine, OpenMode};
use pando_server::{RepairReport, Server, repair_catalog, repair_data};
use pando_storage::{CheckpointKind, Damage, DamagedPart, Engine, StorageError, settle_copy};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file that says that a repair has begun and not ended.
pub const MARK: &str = "_repair_incomplete";
/// What it says while nothing of the store is changed.
const LOOKING: &[u8] = b"looking";
/// What it says while the salvaged store takes the place of the old one.
const SWAPPING: &[u8] = b"swapping";
/// Where the salvaged store is made.
const WORK: &str = "_repair";
/// What a store consists of.
const PARTS: [&str; 2] = ["base", "log"];
/// Files that nothing depends on; a damaged one is put aside.
const LIST_OF_BACKUPS: &str = "backups";

/// Refuses to go on if a repair was begun and not ended.
pub fn refuse_incomplete(env: &Env, directory: &Path) -> Result<()> {
    if is_there(env, &directory.join(MARK))? {
        let text = format!(
            "An incomplete repair has been detected in {}! It ended before it was done; the node does not start before a \
             repair is done",
            directory.display()
        );
        return Err(PandoError::Storage(StorageError::BadDirectory(text)));
    }
    Ok(())
}

/// Repairs; what was done, in words.
pub async fn run(env: &Env, machine: &dyn Machine, plan: &Plan, log: &Log) -> Result<Vec<String>> {
    let directory = &plan.data_directory;
    if !store::is_there(env, directory)? && !is_there(env, &directory.join(MARK))? {
        return Err(PandoError::NoStore(directory.clone()));
    }
    let mut repair = Repair { env, machine, plan, log, directory, report: RepairReport::default() };
    repair.begin()?;
    settle_copy(&**env.disk(), directory)?;
    repair.make_files_sound()?;
    let engine = repair.open()?;
    let outcome = repair.above(&engine).await;
    let ended = engine.shut_down();
    drop(engine);
    outcome?;
    ended?;
    remove(env, &directory.join(MARK))?;
    sync(env, directory)?;
    Ok(repair.report.changes)
}

struct Repair<'a> {
    env: &'a Env,
    machine: &'a dyn Machine,
    plan: &'a Plan,
    log: &'a Log,
    directory: &'a Path,
    report: RepairReport,
}

impl Repair<'_> {
    /// Puts the mark, and goes on with a swap that was interrupted.
    fn begin(&mut self) -> Result<()> {
        let mark = self.directory.join(MARK);
        if is_there(self.env, &mark)? {
            let said = self.env.disk().read_all(&mark).map_err(failed(&mark))?;
            if said == SWAPPING {
                self.swap()?;
            }
        }
        self.mark(LOOKING)
    }

    fn mark(&self, text: &[u8]) -> Result<()> {
        let mark = self.directory.join(MARK);
        let mode = if is_there(self.env, &mark)? { OpenMode::ReadWrite } else { OpenMode::CreateNew };
        let file = self.env.disk().open(&mark, mode).map_err(failed(&mark))?;
        let written = file.set_length(0).and_then(|()| file.write_at(text, 0)).and_then(|()| file.sync());
        written.map_err(failed(&mark))?;
        sync(self.env, self.directory)
    }

    /// Verifies the engine's files, and makes a new store of what is intact if they are not.
    fn make_files_sound(&mut self) -> Result<()> {
        if self.is_sound()? {
            return Ok(());
        }
        let work = self.directory.join(WORK);
        for below in [work.clone(), work.join("base"), work.join("log")] {
            self.clear(&below)?;
        }
        let saved = store::salvage(self.env, self.directory, &work, Heir::Member)?;
        for lost in &saved.damage {
            self.report.note(self.log, crate::inspect::told(lost));
        }
        if saved.damage.is_empty() {
            self.report.note(self.log, "what the missing files had, and no other has, is lost".to_owned());
        }
        self.report.damaged.extend(saved.damage.iter().filter_map(|lost| lost.ident.clone()));
        let is_of_base = |lost: &Damage| lost.ident.is_none() && lost.part != DamagedPart::Log;
        self.report.is_anything_damaged = saved.damage.iter().any(is_of_base);
        if let Some(time) = saved.oplog_start {
            self.report.note(self.log, format!("the oplog is applied from {time} on"));
        }
        self.mark(SWAPPING)?;
        self.swap()?;
        self.mark(LOOKING)
    }

    /// Can it be opened, and does everything in it hold?
    fn is_sound(&mut self) -> Result<bool> {
        for part in PARTS {
            if !is_there(self.env, &self.directory.join(part))? {
                return Ok(false);
            }
        }
        let engine = match store::open_to_look(self.env, self.directory) {
            Ok(engine) => engine,
            Err(PandoError::Storage(error)) => {
                self.report.note(self.log, format!("the store cannot be opened: {error}"));
                return Ok(false);
            }
            Err(error) => return Err(error),
        };
        let is_sound = engine.verify()?.damage.is_empty();
        engine.shut_down()?;
        Ok(is_sound)
    }

    fn clear(&self, directory: &Path) -> Result<()> {
        if is_there(self.env, directory)? {
            for path in self.env.disk().list(directory).map_err(failed(directory))? {
                remove(self.env, &path)?;
            }
        }
        Ok(())
    }

    /// The salvaged parts take the places of the old ones. Done again after an interruption, it goes on.
    fn swap(&mut self) -> Result<()> {
        for part in PARTS {
            let (new, place) = (self.directory.join(WORK).join(part), self.directory.join(part));
            if !is_there(self.env, &new)? {
                continue;
            }
            if is_there(self.env, &place)? {
                let aside = self.free_name(part)?;
                self.env.disk().rename(&place, &aside).map_err(failed(&place))?;
                self.report.note(self.log, format!("the old files are in {}", aside.display()));
            }
            self.env.disk().rename(&new, &place).map_err(failed(&new))?;
            sync(self.env, self.directory)?;
        }
        let list = self.directory.join(LIST_OF_BACKUPS);
        if is_there(self.env, &list)? {
            let aside = self.free_name(LIST_OF_BACKUPS)?;
            self.env.disk().rename(&list, &aside).map_err(failed(&list))?;
        }
        sync(self.env, self.directory)
    }

    /// A name beside a part that is not taken.
    fn free_name(&self, part: &str) -> Result<PathBuf> {
        for number in 0_u32.. {
            let end = if number == 0 { String::new() } else { format!(".{number}") };
            let path = self.directory.join(format!("{part}.corrupt{end}"));
            if !is_there(self.env, &path)? {
                return Ok(path);
            }
        }
        Err(PandoError::Argument("there is no free name".to_owned()))
    }

    /// Opens the store as that of a node that stands alone, its catalog repaired.
    fn open(&mut self) -> Result<Arc<dyn Engine>> {
        let alone = EngineOptions { mode: Mode::StandAlone, read_only: false, ..self.plan.engine.clone() };
        match store::open(self.env, self.directory, alone.clone()) {
            Err(PandoError::Storage(StorageError::OplogNotApplied(_))) => {}
            outcome => return outcome,
        }
        let as_member = EngineOptions { mode: Mode::ReplicaSet, ..alone.clone() };
        let engine = store::open(self.env, self.directory, as_member)?;
        let left = self.leave_replication(&engine);
        engine.shut_down()?;
        left?;
        drop(engine);
        store::open(self.env, self.directory, alone)
    }

    /// Applies what only the oplog has. If that cannot be done, it is lost.
    fn leave_replication(&mut self, engine: &Arc<dyn Engine>) -> Result<()> {
        repair_catalog(self.env, engine, self.log, &mut self.report).map_err(PandoError::Server)?;
        let left = Server::leave_replication(self.env, self.machine, engine, &self.plan.server, self.log);
        if let Err(error) = left {
            self.report.note(self.log, format!("the end of the oplog cannot be applied: {error}"));
            engine.set_initial_data(Timestamp::NONE);
            engine.checkpoint(CheckpointKind::Full)?;
        }
        Ok(())
    }

    async fn above(&mut self, engine: &Arc<dyn Engine>) -> Result<()> {
        repair_catalog(self.env, engine, self.log, &mut self.report).map_err(PandoError::Server)?;
        let (server, report) = (&self.plan.server, &mut self.report);
        repair_data(self.env, self.machine, engine, server, self.log, report).await.map_err(PandoError::Server)?;
        engine.checkpoint(CheckpointKind::Full)?;
        Ok(())
    }
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> PandoError + '_ {
    move |error| PandoError::Directory(path.to_owned(), error)
}

fn is_there(env: &Env, path: &Path) -> Result<bool> {
    env.disk().exists(path).map_err(failed(path))
}

fn remove(env: &Env, path: &Path) -> Result<()> {
    env.disk().remove(path).map_err(failed(path))
}

fn sync(env: &Env, directory: &Path) -> Result<()> {
    env.disk().sync_directory(directory).map_err(failed(directory))
}
