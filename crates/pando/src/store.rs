//! Opening a store: the one place that names a concrete engine.

use crate::error::{PandoError, Result};
use pando_engine::{DurableEngine, EngineOptions, Heir, Mode, SalvageReport};
use pando_env::{Env, LOCK_FILE_NAME};
use pando_storage::Engine;
use std::path::Path;
use std::sync::Arc;

/// Where the engine has its base below a data directory.
const BASE_DIRECTORY: &str = "base";

/// Opens an existing store so that nothing in it changes.
pub fn open_to_look(env: &Env, directory: &Path) -> Result<Arc<dyn Engine>> {
    if !is_there(env, directory)? {
        return Err(PandoError::NoStore(directory.to_owned()));
    }
    let options = EngineOptions { read_only: true, ..quiet() };
    Ok(DurableEngine::open(env, directory, options)?)
}

/// Opens the store of a node, or makes it.
pub fn open(env: &Env, directory: &Path, options: EngineOptions) -> Result<Arc<dyn Engine>> {
    // What was copied from a backup cursor becomes a store here.
    pando_storage::settle_copy(&**env.disk(), directory)?;
    Ok(DurableEngine::open(env, directory, options)?)
}

/// Makes a new store with an oplog.
pub fn create(env: &Env, directory: &Path) -> Result<Arc<dyn Engine>> {
    if is_there(env, directory)? {
        return Err(PandoError::Occupied(directory.to_owned()));
    }
    Ok(DurableEngine::open(env, directory, quiet())?)
}

/// Makes a new store of what is intact in one that may be too damaged to be opened.
pub fn salvage(env: &Env, directory: &Path, target: &Path, heir: Heir) -> Result<SalvageReport> {
    if !is_there(env, directory)? {
        return Err(PandoError::NoStore(directory.to_owned()));
    }
    Ok(pando_engine::salvage(env, directory, target, heir)?)
}

/// A short life needs no threads, and a tool little memory.
fn quiet() -> EngineOptions {
    EngineOptions { mode: Mode::ReplicaSet, background: false, memory_bytes: 256 << 20, ..EngineOptions::default() }
}

/// True if the directory has a store in it. A copy made from a backup has no lock file yet, but its base.
pub fn is_there(env: &Env, directory: &Path) -> Result<bool> {
    let exists = |name| env.disk().exists(&directory.join(name));
    let found = exists(LOCK_FILE_NAME).and_then(|is_locked| Ok(is_locked || exists(BASE_DIRECTORY)?));
    found.map_err(|error| PandoError::Directory(directory.to_owned(), error))
}
