//! Builds that an earlier life of the server has begun: resumed after a clean shutdown, begun anew after a crash.

use crate::active::ActiveBuild;
use crate::builder::{Builder, Phase};
use crate::builds::{IndexBuilds, shown};
use crate::quorum::CommitQuorum;
use crate::resume::ResumeInfo;
use pando_base::{Component, Error, LogValue, Namespace, Result, Severity, Uuid, log};
use pando_catalog::{Collection, INTERNAL_PREFIX, Index};
use pando_doc::doc;
use pando_locks::Mode;
use pando_operation::write_conflict_retry;
use pando_oplog::observer::InternalMessage;
use pando_storage::StorageError;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl IndexBuilds {
    /// Takes out what shutdowns have left, durably: it is true once. What cannot be read any more, or is not to be used, is
    /// dropped with everything else that belongs to no build.
    pub fn take_resume_infos(&self, is_usable: bool) -> Result<Vec<ResumeInfo>> {
        let found = std::mem::take(&mut *self.found.lock());
        let engine = &self.parts.services.engine;
        let infos: Vec<ResumeInfo> = found.into_iter().filter_map(|(_, info)| info.filter(|_| is_usable)).collect();
        let needed: BTreeSet<&str> = infos.iter().flat_map(ResumeInfo::idents).collect();
        for ident in engine.idents() {
            if ident.starts_with(INTERNAL_PREFIX) && !needed.contains(ident.as_str()) {
                drop_table(self, &ident)?;
            }
        }
        engine.flush_log()?;
        Ok(infos)
    }

    /// Takes up all builds that are in the catalog and had not ended. The node may write, and nobody else does yet, or they keep
    /// up indexes without builds.
    pub async fn take_up(self: &Arc<Self>, mut infos: Vec<ResumeInfo>) -> Result<()> {
        for (build_uuid, collection, indexes) in self.unfinished() {
            let place = infos.iter().position(|info| info.build_uuid == build_uuid);
            let info = place.map(|place| infos.swap_remove(place));
            let log = &self.parts.services.log;
            let (uuid, namespace) = (shown(&build_uuid), &collection.namespace);
            for index in &indexes {
                log!(
                    log,
                    Severity::Info,
                    Component::Storage,
                    22253,
                    "Found index from unfinished build",
                    "namespace" = namespace,
                    "index" = index.name(),
                    "buildUUID" = shown(&build_uuid)
                );
            }
            if let Some(info) = info {
                self.tell_resumed(build_uuid, namespace, info.phase);
                match self.resume(&info, &collection).await {
                    Ok(_) => continue,
                    Err(error) => {
                        self.tell_not_resumed(build_uuid, &error);
                        for ident in info.idents() {
                            drop_table(self, ident)?;
                        }
                    }
                }
            } else {
                let message = "Index build: restarting";
                log!(
                    log,
                    Severity::Info,
                    Component::Index,
                    20660,
                    message,
                    "buildUUID" = uuid,
                    "namespace" = namespace
                );
            }
            self.restart(build_uuid, &collection, &indexes).await?;
        }
        for info in infos {
            for ident in info.idents() {
                drop_table(self, ident)?;
            }
        }
        Ok(())
    }

    pub(crate) fn tell_resumed(&self, build_uuid: Uuid, namespace: &Namespace, phase: Phase) {
        log!(
            self.parts.services.log,
            Severity::Info,
            Component::Index,
            4841700,
            "Index build: resuming",
            "buildUUID" = shown(&build_uuid),
            "namespace" = namespace,
            "details" = LogValue::Map(vec![("phase".into(), phase.name().into())])
        );
    }

    pub(crate) fn tell_not_resumed(&self, build_uuid: Uuid, error: &Error) {
        let message = "Index build: failed to resume, restarting instead";
        let (log, uuid) = (&self.parts.services.log, shown(&build_uuid));
        log!(log, Severity::Info, Component::Index, 4841701, message, "buildUUID" = uuid, "error" = error);
    }

    /// The builds in the catalog that are not under way, with the oplog's knowledge.
    fn unfinished(&self) -> Vec<(Uuid, Arc<Collection>, Vec<Arc<Index>>)> {
        let mut found = Vec::new();
        for collection in self.parts.catalog.latest().all_collections() {
            let mut builds: BTreeMap<Uuid, Vec<Arc<Index>>> = BTreeMap::new();
            for index in collection.indexes.iter().filter(|index| !index.ready) {
                if let Some(build_uuid) = index.build_uuid.filter(|uuid| self.of_uuid(*uuid).is_none()) {
                    builds.entry(build_uuid).or_default().push(Arc::clone(index));
                }
            }
            found.extend(builds.into_iter().map(|(uuid, indexes)| (uuid, Arc::clone(collection), indexes)));
        }
        found
    }

    async fn resume(self: &Arc<Self>, info: &ResumeInfo, collection: &Arc<Collection>) -> Result<Arc<ActiveBuild>> {
        let parts = &self.parts;
        let sorting = self.sorting(collection.indexes.len());
        let mut builder = info.open(&parts.services.engine, collection, &parts.write_path, &sorting)?;
        builder.note_read(&*parts.services.engine);
        let mut operation = parts.services.internal_operation("resume-index-build");
        self.lock(&mut operation, &collection.namespace, Mode::X).await?;
        builder.install(&parts.interceptors);
        operation.locker.unlock_everything();
        let quorum = self.stored_quorum(info.build_uuid, collection.uuid).await?;
        self.counters.sorting.resumed.add(builder.indexes.len() as u64);
        self.launch(builder, true, quorum)
    }

    /// Begins anew, with fresh tables: what the old ones hold is not known. Nothing, if the build is under way or gone.
    async fn restart(
        self: &Arc<Self>,
        build_uuid: Uuid,
        collection: &Arc<Collection>,
        indexes: &[Arc<Index>],
    ) -> Result<()> {
        let (parts, namespace) = (&self.parts, &collection.namespace);
        let mut operation = parts.services.internal_operation("restart-index-build");
        self.lock(&mut operation, namespace, Mode::X).await?;
        // Somebody may have begun it, or dropped the collection, until the lock was there.
        let latest = parts.catalog.latest().collection(namespace).cloned();
        let latest = latest.filter(|latest| latest.uuid == collection.uuid && self.of_uuid(build_uuid).is_none());
        let Some(collection) = &latest else {
            operation.locker.unlock_everything();
            return Ok(());
        };
        let message = doc! { "msg": "Restarting index build", "coll": (namespace.as_str()) };
        let restarted = write_conflict_retry(&mut operation, "createIndexes", namespace, |operation| {
            operation.in_unit_of_work(|operation| {
                let mut next = Arc::clone(collection);
                for index in indexes {
                    next = parts.catalog.restart_index(operation, &next, index.name())?;
                }
                // A mark in the oplog gives the unit its time.
                let message = InternalMessage {
                    namespace: Some(namespace),
                    uuid: Some(collection.uuid),
                    message: message.view(),
                    message2: None,
                    slot: None,
                };
                parts.observers.on_internal_message(operation, &message)?;
                Ok(next)
            })
        })
        .await?;
        let fresh: Vec<Arc<Index>> =
            indexes.iter().filter_map(|index| restarted.index(index.name())).cloned().collect();
        for index in &fresh {
            log!(
                parts.services.log,
                Severity::Info,
                Component::Storage,
                6987700,
                "Resetting unfinished index",
                "namespace" = namespace,
                "index" = index.name(),
                "ident" = index.ident()
            );
        }
        let intercepted = Some((&parts.services.engine, &*parts.catalog));
        let sorting = self.sorting(fresh.len());
        let builder = Builder::new(build_uuid, &restarted, &fresh, &parts.write_path, &sorting, intercepted)?;
        builder.install(&parts.interceptors);
        operation.locker.unlock_everything();
        let quorum = self.stored_quorum(build_uuid, collection.uuid).await?;
        self.launch(builder, true, quorum).map(|_| ())
    }

    pub(crate) async fn stored_quorum(&self, build_uuid: Uuid, collection_uuid: Uuid) -> Result<CommitQuorum> {
        let mut quorum = CommitQuorum::default();
        self.change_entry(build_uuid, collection_uuid, |entry| {
            if let Some(entry) = entry {
                quorum = entry.quorum;
            }
            None
        })
        .await?;
        Ok(quorum)
    }
}

pub(crate) fn drop_table(builds: &IndexBuilds, ident: &str) -> Result<()> {
    match builds.parts.services.engine.drop_table(ident) {
        Ok(()) | Err(StorageError::IdentNotFound(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
