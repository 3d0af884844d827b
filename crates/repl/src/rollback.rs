//! Recovery to the stable timestamp while the node runs: what is newer leaves the data, the catalog is read again, and the
//! oplog is applied from there on.
//!
//! Nothing is lost by it: the oplog stays as it is. Cutting it where this node and the others part is for a rollback among
//! members, which does these same steps around it.
//!
//! The steps are apart because whoever builds indexes has to take up its builds between them: entries that are applied find
//! the side tables then.

use crate::recovery::{RecoveryOutcome, apply_after};
use crate::startup::ReplicationParts;
use pando_base::{Namespace, Result, Timestamp};
use pando_doc::doc;
use pando_storage::StorageError;

impl ReplicationParts {
    /// Takes the data back to the stable timestamp, which it returns; none as long as somebody reads or writes. The caller keeps
    /// everybody out, until [`ReplicationParts::apply_after`] is done.
    pub fn roll_back_to_stable(&self) -> Result<Option<Timestamp>> {
        let engine = &self.services.engine;
        // Entries that are to be applied again have to be on disk. Stable stays where it is.
        engine.flush_log()?;
        match engine.roll_back_to_stable() {
            Err(StorageError::Busy(_)) => return Ok(None),
            outcome => outcome?,
        }
        let stable = engine.timestamps().stable;
        self.catalog.reload(stable)?;
        let next = doc! { "_id": "rollbackId", "rollbackId": (self.rollback_id()?.saturating_add(1)) };
        self.local.replace(&mut self.operation(), Namespace::rollback_id(), next.view())?;
        Ok(Some(stable))
    }

    /// Brings the data up to the oplog's end again.
    pub fn apply_after(&self, stable: Timestamp) -> Result<RecoveryOutcome> {
        apply_after(&self.services, &self.applier, stable)
    }
}
