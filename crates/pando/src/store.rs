//! Opening a store: the one place that names a concrete engine.

use crate::error::{PandoError, Result};
use pando_env::Env;
use pando_storage::Engine;
use std::path::Path;
use std::sync::Arc;

/// Opens an existing store so that nothing in it changes.
pub fn open_to_look(env: &Env, directory: &Path) -> Result<Arc<dyn Engine>> {
    if !is_there(env, directory)? {
        return Err(PandoError::NoStore(directory.to_owned()));
    }
    Err(PandoError::Argument("the engine is not there yet".into()))
}

/// Makes a new store with an oplog.
pub fn create(env: &Env, directory: &Path) -> Result<Arc<dyn Engine>> {
    if is_there(env, directory)? {
        return Err(PandoError::Occupied(directory.to_owned()));
    }
    Err(PandoError::Argument("the engine is not there yet".into()))
}

/// True if there is something in the directory.
pub fn is_there(env: &Env, directory: &Path) -> Result<bool> {
    env.disk().exists(directory).map_err(|error| PandoError::Directory(directory.to_owned(), error))
}
