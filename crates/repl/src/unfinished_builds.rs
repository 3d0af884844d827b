//! Index builds that a crash has ended: at the next start they are given up, so that whoever wanted the index can ask again.
//! The client never heard that it was there.

use crate::startup::ReplicationParts;
use pando_base::{Error, ErrorCode, Result, Uuid};
use pando_catalog::{Collection, Index, Observers};
use pando_doc::{Doc, DocRef};
use pando_operation::Operation;
use pando_oplog::observer::IndexBuildArguments;
use std::collections::BTreeMap;
use std::sync::Arc;

impl ReplicationParts {
    /// Takes the indexes out whose builds had not ended, and tells observers so, build by build. Before anybody can begin a
    /// new build.
    pub(crate) fn give_up_unfinished_builds(&self, operation: &mut Operation, observers: &Observers) -> Result<()> {
        let collections: Vec<Arc<Collection>> = self.catalog.latest().all_collections().cloned().collect();
        for collection in collections {
            let mut builds: BTreeMap<Option<Uuid>, Vec<Arc<Index>>> = BTreeMap::new();
            for index in collection.indexes.iter().filter(|index| !index.ready) {
                builds.entry(index.build_uuid).or_default().push(Arc::clone(index));
            }
            for (build, indexes) in builds {
                operation.in_unit_of_work(|operation| {
                    self.give_up_build(operation, observers, &collection, build, &indexes)
                })?;
            }
        }
        Ok(())
    }

    fn give_up_build(
        &self,
        operation: &mut Operation,
        observers: &Observers,
        collection: &Arc<Collection>,
        build: Option<Uuid>,
        indexes: &[Arc<Index>],
    ) -> Result<()> {
        let mut next = self.catalog.collection_for_ddl(operation, &collection.namespace)?;
        for index in indexes {
            next = self.catalog.remove_index(operation, &next, index.name())?;
        }
        // One that was never told of need not be taken back.
        let Some(build_uuid) = build else { return Ok(()) };
        let specifications: Vec<Doc> = indexes.iter().map(|index| index.descriptor.specification.clone()).collect();
        let views: Vec<DocRef<'_>> = specifications.iter().map(Doc::view).collect();
        let told = IndexBuildArguments {
            collection: next.observed(),
            build_uuid,
            specifications: &views,
            from_migrate: false,
        };
        let cause = Error::new(ErrorCode::InterruptedAtShutdown, "the server ended before the index was built");
        observers.on_abort_index_build(operation, &told, &cause)
    }
}
