//! Index builds that a crash or a shutdown has ended and that the oplog knows nothing of: at the next start they are given up, so
//! that whoever wanted the index can ask again. The client never heard that it was there. The others are taken up by those
//! who build indexes, once the node is primary.

use crate::startup::ReplicationParts;
use pando_base::Result;
use pando_catalog::{Collection, Index};
use pando_operation::Operation;
use std::sync::Arc;

impl ReplicationParts {
    /// Takes the indexes out whose builds had not ended and were never told of. Before anybody can begin a new build.
    pub(crate) fn give_up_unfinished_builds(&self, operation: &mut Operation) -> Result<()> {
        let collections: Vec<Arc<Collection>> = self.catalog.latest().all_collections().cloned().collect();
        for collection in collections {
            let is_unknown = |index: &&Arc<Index>| !index.ready && index.build_uuid.is_none();
            let names: Vec<&str> = collection.indexes.iter().filter(is_unknown).map(|index| index.name()).collect();
            if names.is_empty() {
                continue;
            }
            operation.in_unit_of_work(|operation| {
                let mut next = self.catalog.collection_for_ddl(operation, &collection.namespace)?;
                for name in &names {
                    next = self.catalog.remove_index(operation, &next, name)?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}
