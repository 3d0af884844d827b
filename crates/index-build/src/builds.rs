//! The index builds of a node: which are under way, how one starts, how all end.

use crate::active::ActiveBuild;
use crate::builder::{BatchLimits, Builder};
use crate::counters::BuildCounters;
use crate::parameters::{
    MAX_ACTIVE_BUILDS, MAX_ITERATORS_MEMORY_PERCENTAGE, MAX_MEMORY_MEGABYTES, MIN_DISK_SPACE_MEGABYTES,
};
use crate::quorum::{CommitQuorum, Members, Membership};
use crate::resume::{KEY, PURPOSE, ResumeInfo};
use crate::temporary::TemporaryTable;
use pando_base::{
    Component, DatabaseName, Error, ErrorCode, LogValue, Namespace, OperationContext, OperationKind, Result, Severity,
    Uuid, ensure, log,
};
use pando_catalog::{Catalog, Collection, Index, Observers};
use pando_collection::WritePath;
use pando_doc::{Doc, DocBuilder, DocRef};
use pando_env::Place;
use pando_index::Interceptors;
use pando_locks::{Mode, Priority, ResourceId};
use pando_operation::{Operation, Services, write_conflict_retry, yield_now};
use pando_oplog::observer::IndexBuildArguments;
use pando_sorter::{SorterOptions, SpillDirectory};
use pando_storage::PrepareBehaviour;
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

const MEGABYTE: u64 = 1024 * 1024;

/// Documents that a scan reads between two yields.
pub(crate) const SCAN_LIMITS: BatchLimits = BatchLimits { count_max: 2000, bytes_max: 2 * 1024 * 1024 };
/// How long somebody waits for a build to end before the log says so again.
const ABORT_PATIENCE: Duration = Duration::from_secs(1);
/// Keys that are loaded between two yields.
pub(crate) const LOAD_KEYS: usize = 5000;

/// What builds are made with.
pub struct BuildParts {
    /// Engine, locks, parameters, the log.
    pub services: Services,
    /// The collections.
    pub catalog: Arc<Catalog>,
    /// That of commands: the entries of builds are written with it.
    pub write_path: Arc<WritePath>,
    /// Who is told of the builds: the oplog's writer in a set.
    pub observers: Arc<Observers>,
    /// What all write paths of the node look into.
    pub interceptors: Arc<Interceptors>,
    /// Who is in the set.
    pub members: Arc<dyn Members>,
    /// Where sorters write; none if everything must fit into memory.
    pub spill_directory: Option<Arc<SpillDirectory>>,
    /// Whose file system has to have space.
    pub data_directory: Option<PathBuf>,
}

/// The builds of a node.
pub struct IndexBuilds {
    pub(crate) parts: BuildParts,
    /// What the last shutdown has left, until it is taken up.
    pub(crate) found: Mutex<Vec<(String, Option<ResumeInfo>)>>,
    active: Mutex<Vec<Arc<ActiveBuild>>>,
    /// A build has begun or ended.
    pub(crate) changed: Notify,
    /// Builds that have stopped, to go on after the shutdown or the rollback.
    pub(crate) left: Mutex<Vec<Builder>>,
    next_number: AtomicU64,
    /// What was done so far.
    pub counters: BuildCounters,
}

/// What is to be built.
pub struct StartBuild<'a> {
    /// The collection, which the caller holds in X.
    pub collection: &'a Arc<Collection>,
    /// New and complete.
    pub specifications: &'a [Doc],
    /// Who must be ready.
    pub quorum: CommitQuorum,
    /// The oplog tells of it.
    pub is_two_phase: bool,
}

impl IndexBuilds {
    /// None are under way yet; what was found of the last life of the server is for [`IndexBuilds::take_resume_infos`].
    pub fn new(parts: BuildParts, found: Vec<(String, Option<ResumeInfo>)>) -> Arc<IndexBuilds> {
        Arc::new(IndexBuilds {
            parts,
            found: Mutex::new(found),
            active: Mutex::default(),
            changed: Notify::new(),
            left: Mutex::default(),
            next_number: AtomicU64::new(0),
            counters: BuildCounters::default(),
        })
    }

    /// The builds under way of a collection.
    pub fn of_collection(&self, uuid: Uuid) -> Vec<Arc<ActiveBuild>> {
        self.active.lock().iter().filter(|build| build.collection_uuid == uuid).cloned().collect()
    }

    /// The build under way of this id.
    pub fn of_uuid(&self, build_uuid: Uuid) -> Option<Arc<ActiveBuild>> {
        self.active.lock().iter().find(|build| build.build_uuid == build_uuid).cloned()
    }

    /// All builds under way.
    pub fn active(&self) -> Vec<Arc<ActiveBuild>> {
        self.active.lock().clone()
    }

    /// Ends the builds of a collection for a reason, and waits until they have. The caller holds no locks.
    pub async fn abort_collection(&self, uuid: Uuid, reason: &str) {
        let builds = self.of_collection(uuid);
        let (log, message) = (&self.parts.services.log, "About to abort all index builders on collection");
        log!(log, Severity::Info, Component::Storage, 23879, message, "uuid" = uuid, "reason" = reason);
        for build in &builds {
            self.tell_abort(build, reason);
            build.abort(aborted(build, reason));
        }
        for build in &builds {
            self.wait_aborted(build, reason).await;
        }
    }

    /// Ends one build, and waits until it has.
    pub async fn abort(&self, build: &ActiveBuild, reason: &str) {
        self.tell_abort(build, reason);
        build.abort(aborted(build, reason));
        self.wait_aborted(build, reason).await;
    }

    /// Waits for the end of a build that was told to. How it ended is told to whoever asked for it.
    async fn wait_aborted(&self, build: &ActiveBuild, reason: &str) {
        loop {
            let patience = self.parts.services.env.clock().sleep(ABORT_PATIENCE);
            tokio::select! {
                biased;
                _ = build.wait() => return,
                () = patience => self.tell_abort(build, reason),
            }
            // Simulated time does not wait for tasks.
            yield_now().await;
        }
    }

    /// Ends the builds of a database for a reason, and waits until they have. The caller holds no locks.
    pub async fn abort_database(&self, database: &DatabaseName, reason: &str) {
        let message = "About to abort all index builders running for collections in the given database";
        let (log, name) = (&self.parts.services.log, database.to_string());
        log!(log, Severity::Info, Component::Storage, 4612302, message, "database" = name, "reason" = reason);
        let builds = self.active();
        for build in builds.iter().filter(|build| build.namespace.database_name() == *database) {
            self.abort(build, reason).await;
        }
    }

    /// Says in the log that a build is about to be ended.
    pub fn tell_abort(&self, build: &ActiveBuild, reason: &str) {
        log!(
            self.parts.services.log,
            Severity::Info,
            Component::Index,
            4656010,
            "About to abort index builder",
            "buildUUID" = shown(&build.build_uuid),
            "collectionUUID" = build.collection_uuid,
            "reason" = reason
        );
    }

    /// Who is in the set now.
    pub fn membership(&self) -> Membership {
        self.parts.members.membership()
    }

    /// May another build of a client begin?
    pub fn has_turn(&self) -> bool {
        let active_max = usize::try_from(self.parts.services.parameters.get(&MAX_ACTIVE_BUILDS)).unwrap_or(0);
        self.active.lock().len() < active_max
    }

    /// Waits until another build of a client may begin.
    pub async fn wait_for_turn(&self, context: &OperationContext) -> Result<()> {
        loop {
            let changed = self.changed.notified();
            if self.has_turn() {
                return Ok(());
            }
            let message = "Too many index builds running simultaneously, waiting until the number of active index \
                           builds is below the threshold";
            log!(self.parts.services.log, Severity::Info, Component::Index, 4715500, message);
            context.interruptible(changed).await?;
        }
    }

    /// Begins a build: when this returns, the indexes are in the catalog, writers' keys are kept aside, and a task goes on
    /// with the rest. The caller holds the collection in X and lets go of it next.
    pub async fn start(self: &Arc<Self>, operation: &mut Operation, start: StartBuild<'_>) -> Result<Arc<ActiveBuild>> {
        self.require_disk_space()?;
        let StartBuild { collection, specifications, quorum, is_two_phase } = start;
        let (build_uuid, namespace) = (self.new_uuid(), &collection.namespace);
        let stored = is_two_phase.then_some(build_uuid);
        let parts = &self.parts;
        let started = write_conflict_retry(operation, "createIndexes", namespace, |operation| {
            operation.in_unit_of_work(|operation| {
                let mut next = Arc::clone(collection);
                for specification in specifications {
                    next = parts.catalog.start_index(operation, &next, specification, stored)?;
                }
                let views: Vec<DocRef<'_>> = specifications.iter().map(Doc::view).collect();
                parts.observers.on_start_index_build(operation, &told(build_uuid, &next, &views))?;
                Ok(next)
            })
        })
        .await?;
        let names: Vec<&str> = specifications.iter().filter_map(name_of).collect();
        let indexes: Vec<Arc<Index>> = names.iter().filter_map(|name| started.index(name)).cloned().collect();
        let intercepted = Some((&parts.services.engine, &*parts.catalog));
        let sorting = self.sorting(indexes.len());
        let builder = Builder::new(build_uuid, &started, &indexes, &parts.write_path, &sorting, intercepted);
        let builder = match builder {
            Ok(builder) => builder,
            Err(error) => {
                let mut beside = operation.beside();
                self.take_out(&mut beside, &started, build_uuid, &names, &error).await?;
                return Err(error);
            }
        };
        builder.install(&parts.interceptors);
        self.launch(builder, is_two_phase, quorum)
    }

    /// Has a task do the rest of a build.
    pub(crate) fn launch(
        self: &Arc<Self>,
        builder: Builder,
        is_two_phase: bool,
        quorum: CommitQuorum,
    ) -> Result<Arc<ActiveBuild>> {
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        let mut operation = self.parts.services.internal_operation(&format!("IndexBuildsCoordinatorMongod-{number}"));
        // What prepared transactions have written is in the side tables once they commit.
        operation.recovery_unit.set_prepare_behaviour(PrepareBehaviour::IgnoreAndWrite)?;
        operation.locker.set_priority(Priority::Low);
        let command = shown_command(&builder);
        operation.context.describe(|description| {
            description.kind = OperationKind::Command;
            description.namespace = Some(builder.namespace.clone());
            description.command_name = "createIndexes";
            description.command = Some(command.into_bytes());
        });
        let build = Arc::new(ActiveBuild::new(&builder, is_two_phase, operation.context.clone(), quorum));
        self.active.lock().push(Arc::clone(&build));
        let task = Arc::clone(self).run(Arc::clone(&build), builder, operation);
        if let Err(error) = self.parts.services.env.tasks().spawn_at(Place::Lanes, Box::pin(task)) {
            self.unregister(&build);
            return Err(Error::internal(error.to_string()));
        }
        Ok(build)
    }

    pub(crate) fn unregister(&self, build: &Arc<ActiveBuild>) {
        self.active.lock().retain(|other| !Arc::ptr_eq(other, build));
        self.changed.notify_waiters();
    }

    /// Builds indexes while the caller holds the collection in X throughout: there are no writers, and whatever fails takes the
    /// indexes out again.
    pub async fn build_exclusively(
        &self,
        operation: &mut Operation,
        collection: &Arc<Collection>,
        specifications: &[Doc],
    ) -> Result<Arc<Collection>> {
        let (build_uuid, parts) = (self.new_uuid(), &self.parts);
        let namespace = &collection.namespace;
        let started = write_conflict_retry(operation, "createIndexes", namespace, |operation| {
            operation.in_unit_of_work(|operation| {
                let mut next = Arc::clone(collection);
                for specification in specifications {
                    next = parts.catalog.start_index(operation, &next, specification, None)?;
                }
                Ok(next)
            })
        })
        .await?;
        let names: Vec<&str> = specifications.iter().filter_map(name_of).collect();
        let indexes: Vec<Arc<Index>> = names.iter().filter_map(|name| started.index(name)).cloned().collect();
        let built = self.fill_exclusively(operation, &started, build_uuid, &indexes).await;
        if let Err(error) = &built {
            let mut beside = operation.beside();
            beside.context = self.parts.services.internal_operation("abort-index-build").context;
            self.take_out(&mut beside, &started, build_uuid, &names, error).await?;
        }
        built
    }

    async fn fill_exclusively(
        &self,
        operation: &mut Operation,
        collection: &Arc<Collection>,
        build_uuid: Uuid,
        indexes: &[Arc<Index>],
    ) -> Result<Arc<Collection>> {
        let (parts, sorting) = (&self.parts, self.sorting(indexes.len()));
        let mut builder = Builder::new(build_uuid, collection, indexes, &parts.write_path, &sorting, None)?;
        while builder.scan_batch(operation, collection, SCAN_LIMITS)?.is_some() {
            operation.context.check()?;
            yield_now().await;
        }
        builder.end_scan();
        while !builder.load_batch(operation, LOAD_KEYS)? {
            operation.context.check()?;
            yield_now().await;
        }
        write_conflict_retry(operation, "createIndexes", &collection.namespace, |operation| {
            operation
                .in_unit_of_work(|operation| builder.commit(operation, &parts.catalog, &*parts.observers, collection))
        })
        .await
    }

    /// Takes the indexes of a build out of the catalog and tells observers why. The collection is locked in X.
    pub(crate) async fn take_out(
        &self,
        operation: &mut Operation,
        collection: &Arc<Collection>,
        build_uuid: Uuid,
        names: &[&str],
        cause: &Error,
    ) -> Result<()> {
        let parts = &self.parts;
        write_conflict_retry(operation, "createIndexes", &collection.namespace, |operation| {
            operation.in_unit_of_work(|operation| {
                let mut next = Arc::clone(collection);
                let mut specifications = Vec::new();
                for name in names {
                    let Some(index) = next.index(name).filter(|index| !index.ready) else { continue };
                    specifications.push(index.descriptor.specification.clone());
                    next = parts.catalog.remove_index(operation, &next, name)?;
                }
                let views: Vec<DocRef<'_>> = specifications.iter().map(Doc::view).collect();
                parts.observers.on_abort_index_build(operation, &told(build_uuid, &next, &views), cause)
            })
        })
        .await
    }

    /// Waits until the tasks of all builds have ended, which their operations were told to, and writes down where they stand.
    /// Nobody writes any more.
    pub async fn shut_down(&self) {
        loop {
            let changed = self.changed.notified();
            if self.active.lock().is_empty() {
                break;
            }
            changed.await;
        }
        let mut left = std::mem::take(&mut *self.left.lock());
        self.parts.services.env.tasks().blocking(&mut || {
            for builder in left.drain(..) {
                let build_uuid = builder.build_uuid;
                let outcome = self.put_down(builder);
                self.tell_put_down(build_uuid, outcome.as_ref().err());
            }
        });
    }

    /// Says in the log whether a build that has stopped can go on where it was.
    pub(crate) fn tell_put_down(&self, build_uuid: Uuid, error: Option<&Error>) {
        let (log, uuid) = (&self.parts.services.log, shown(&build_uuid));
        match error {
            None => {
                let message = "Index build: wrote resumable state to disk";
                log!(log, Severity::Info, Component::Index, 4841502, message, "buildUUID" = uuid);
            }
            Some(error) => {
                let message = "Index build: failed to write resumable state to disk";
                log!(log, Severity::Error, Component::Index, 4841501, message, "buildUUID" = uuid, "error" = error);
            }
        }
    }

    fn put_down(&self, builder: Builder) -> Result<()> {
        let Services { engine, .. } = &self.parts.services;
        let mut operation = self.parts.services.operation_of(OperationContext::detached());
        let info = builder.put_down(&mut operation)?;
        let table = TemporaryTable::create(engine, &self.parts.catalog, PURPOSE, true)?;
        operation.in_unit_of_work(|operation| table.put(&mut operation.recovery_unit, KEY, info.to_doc().bytes()))
    }

    /// Fails if less space is left than an index build has to leave.
    pub(crate) fn require_disk_space(&self) -> Result<()> {
        let Some(directory) = &self.parts.data_directory else { return Ok(()) };
        let required = self.disk_space_min_bytes();
        let free = self.parts.services.env.disk().free_bytes(directory);
        let free = free.map_err(|error| Error::new(ErrorCode::FileStreamFailed, error.to_string()))?;
        ensure!(
            free > required,
            ErrorCode::OutOfDiskSpace,
            "available disk space of {free} bytes is less than required minimum of {required}"
        );
        Ok(())
    }

    fn disk_space_min_bytes(&self) -> u64 {
        let megabytes = self.parts.services.parameters.get(&MIN_DISK_SPACE_MEGABYTES);
        u64::try_from(megabytes).unwrap_or(0).saturating_mul(MEGABYTE)
    }

    pub(crate) fn sorting(&self, index_count: usize) -> SorterOptions {
        let megabytes = self.parts.services.parameters.get(&MAX_MEMORY_MEGABYTES);
        let memory_bytes_max = u64::try_from(megabytes).unwrap_or(0).saturating_mul(MEGABYTE);
        let directory = self.parts.spill_directory.as_ref();
        let sorting = Builder::sorting(memory_bytes_max, index_count, directory, self.disk_space_min_bytes());
        let share = self.parts.services.parameters.get(&MAX_ITERATORS_MEMORY_PERCENTAGE);
        let readers_bytes = (sorting.memory_bytes_max as f64 * share) as u64;
        // The scan goes on while another thread sorts and writes what it has found.
        let helper = Some(self.parts.services.env.clone());
        SorterOptions { helper, readers_memory_bytes_max: Some(readers_bytes), ..sorting }
    }

    /// Locks a collection.
    pub(crate) async fn lock(&self, operation: &mut Operation, namespace: &Namespace, mode: Mode) -> Result<()> {
        let tenant = namespace.tenant().map(ResourceId::from);
        let (database, collection) = (ResourceId::from(&namespace.database_name()), ResourceId::from(namespace));
        let interruption = operation.interruption();
        operation.locker.hold_collection(tenant, database, collection, mode, &interruption.wait()).await
    }

    pub(crate) fn new_uuid(&self) -> Uuid {
        Uuid::from_random(self.parts.services.env.random().id_bytes())
    }
}

fn told<'b>(build_uuid: Uuid, collection: &'b Collection, views: &'b [DocRef<'b>]) -> IndexBuildArguments<'b> {
    IndexBuildArguments { collection: collection.observed(), build_uuid, specifications: views, from_migrate: false }
}

fn aborted(build: &ActiveBuild, reason: &str) -> Error {
    let reason = format!("Index build aborted: {}: {reason}", build.build_uuid);
    Error::new(ErrorCode::IndexBuildAborted, reason)
}

pub(crate) fn name_of(specification: &Doc) -> Option<&str> {
    specification.get("name").and_then(|name| name.as_str())
}

/// The command that the build's own operation shows.
fn shown_command(builder: &Builder) -> Doc {
    let mut command = DocBuilder::new();
    command.append("createIndexes", builder.namespace.collection());
    command.array("indexes", |indexes| builder.specifications().iter().for_each(|index| indexes.push(index)));
    command.append("$db", builder.namespace.database());
    command.finish()
}

/// An id as the log shows it.
pub(crate) fn shown(uuid: &Uuid) -> LogValue {
    LogValue::Json(format!(r#"{{"uuid":{{"$uuid":"{uuid}"}}}}"#))
}
