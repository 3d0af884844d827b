//! Builds over a rollback to stable: they stop before it, are put down while nobody writes, and go on after it.
//!
//! They are opened again after the data was taken back and before entries are applied from there on, so that what those write
//! comes into the side tables a second time: side writes are as old as the writes they belong to, and went with them. What a
//! build has put into sorters and indexes has no time and stays. A build therefore goes on only if all that it has read was
//! stable; else, or if the index itself is younger, it begins anew.

use crate::builder::Builder;
use crate::builds::IndexBuilds;
use crate::resume::ResumeInfo;
use crate::take_up::drop_table;
use pando_base::{Error, ErrorCode, OperationContext, Result, Timestamp, ensure};
use std::pin::pin;
use std::sync::Arc;

/// A build that was put down in memory.
pub struct PutDown {
    info: ResumeInfo,
    read_until: Timestamp,
}

impl IndexBuilds {
    /// Stops the tasks of builds that can go on, and waits until they have. The caller holds no locks. Writers' keys are kept
    /// aside as before.
    pub async fn interrupt_all(&self) {
        let builds: Vec<_> = self.active().into_iter().filter(|build| build.is_two_phase).collect();
        for build in &builds {
            build.interrupt();
        }
        for build in &builds {
            loop {
                let mut changed = pin!(self.changed.notified());
                changed.as_mut().enable();
                if self.of_uuid(build.build_uuid).is_none() {
                    break;
                }
                changed.await;
            }
        }
    }

    /// The builds that were interrupted, if nothing comes of the rollback.
    pub fn take_left(&self) -> Vec<Builder> {
        std::mem::take(&mut *self.left.lock())
    }

    /// What is left of the builds that were interrupted. Nobody writes.
    pub fn put_down_all(&self) -> Vec<PutDown> {
        let mut put_down = Vec::new();
        for builder in self.take_left() {
            let (build_uuid, read_until) = (builder.build_uuid, builder.read_until);
            let mut operation = self.parts.services.operation_of(OperationContext::detached());
            let info = builder.put_down(&mut operation);
            self.tell_put_down(build_uuid, info.as_ref().err());
            put_down.extend(info.ok().map(|info| PutDown { info, read_until }));
        }
        put_down
    }

    /// Opens the builds that can go on after a rollback to this time: from here on the keys of writers go to their side tables
    /// again. Those of the others are gone. Nobody writes.
    pub fn reopen(&self, put_down: Vec<PutDown>, stable: Timestamp) -> Result<Vec<Builder>> {
        let mut builders = Vec::new();
        for left in put_down {
            match self.reopen_one(&left, stable) {
                Ok(builder) => {
                    builder.install(&self.parts.interceptors);
                    builders.push(builder);
                }
                Err(error) => {
                    self.tell_not_resumed(left.info.build_uuid, &error);
                    left.info.index_idents().for_each(|ident| self.parts.interceptors.remove(ident));
                    left.info.idents().try_for_each(|ident| drop_table(self, ident))?;
                }
            }
        }
        Ok(builders)
    }

    fn reopen_one(&self, left: &PutDown, stable: Timestamp) -> Result<Builder> {
        let (PutDown { info, read_until }, parts) = (left, &self.parts);
        ensure!(
            *read_until <= stable,
            ErrorCode::SnapshotUnavailable,
            "the build has read what was committed at {read_until}, and the data is as of {stable}"
        );
        let latest = parts.catalog.latest();
        let namespace = latest.namespace_of(&info.collection_uuid);
        let collection = namespace.and_then(|namespace| latest.collection(namespace));
        let gone = || Error::new(ErrorCode::NamespaceNotFound, "the collection is gone");
        let collection = collection.ok_or_else(gone)?;
        let sorting = self.sorting(collection.indexes.len());
        let mut builder = info.open(&parts.services.engine, collection, &parts.write_path, &sorting)?;
        builder.read_until = *read_until;
        Ok(builder)
    }

    /// Goes on with builds that were opened again, and begins the others anew. The caller holds no locks.
    pub async fn go_on(self: &Arc<Self>, builders: Vec<Builder>) -> Result<()> {
        for builder in builders {
            self.tell_resumed(builder.build_uuid, &builder.namespace, builder.phase());
            let quorum = self.stored_quorum(builder.build_uuid, builder.collection_uuid).await?;
            self.counters.sorting.resumed.add(builder.indexes.len() as u64);
            self.launch(builder, true, quorum)?;
        }
        self.take_up(Vec::new()).await
    }
}
