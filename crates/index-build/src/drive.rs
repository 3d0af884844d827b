//! Driving a build to its end: locks, yields, progress, the vote, the commit, the abort.

use crate::active::{ActiveBuild, Finished};
use crate::builder::{BatchLimits, Builder, Phase};
use crate::builds::{IndexBuilds, SCAN_LIMITS, shown};
use crate::counters::MemoryMeter;
use crate::fail_points as points;
use crate::fail_points::{Place, wait_at};
use crate::parameters::{DRAIN_BATCH_SIZE, DRAIN_MEGABYTES, LOAD_YIELD_KEYS};
use crate::progress::Meter;
use pando_base::{Component, Error, ErrorCode, FailPoint, LogValue, Result, Severity, log};
use pando_catalog::{Collection, Index};
use pando_collection::rest_while_yielded;
use pando_doc::Doc;
use pando_locks::Mode;
use pando_operation::{Operation, write_conflict_retry, yield_now};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// A pass over the side tables that finds fewer rows ends the drain: what is left can be done while writers wait.
const DRAINED_ROWS: u64 = 1000;
/// Passes of one drain, however fast the writers are.
const PASSES_MAX: usize = 100;
/// How long a build waits for votes before it drains again.
const QUORUM_WAIT: Duration = Duration::from_secs(1);
/// How long a build waits before it looks again whether the node may write.
const PRIMARY_WAIT: Duration = Duration::from_millis(100);

/// Who waits for a step of a build.
#[derive(Clone, Copy)]
enum Haste {
    /// Nobody but who asked for the index: operations come first.
    Aside,
    /// Writers that the build's lock keeps out.
    Awaited,
}

impl IndexBuilds {
    /// The task of a build.
    pub(crate) async fn run(self: Arc<Self>, build: Arc<ActiveBuild>, mut builder: Builder, mut operation: Operation) {
        let log = self.parts.services.log.clone();
        self.counters.total.increment();
        let outcome = self.build(&build, &mut builder, &mut operation).await;
        Meter::end(&operation.context, &log);
        operation.locker.unlock_everything();
        let outcome = match outcome {
            Ok(finished) => Ok(finished),
            Err(error) if build.is_to_go_on(&error) => {
                if build.is_two_phase {
                    self.left.lock().push(builder);
                }
                Err(error)
            }
            Err(error) => {
                let cause = build.cause(error);
                match cause.code() {
                    ErrorCode::OutOfDiskSpace => self.counters.out_of_disk_space.increment(),
                    ErrorCode::DataCorruptionDetected => self.counters.data_corruption.increment(),
                    _ => {}
                }
                let (uuid, shown_cause) = (shown(&build.build_uuid), &cause);
                let message = "Index build: failed";
                log!(log, Severity::Info, Component::Index, 20649, message, "buildUUID" = uuid, "error" = shown_cause);
                let mut resting = self.parts.services.internal_operation("abort-index-build");
                // Told to end while it rests, it goes on and sees what is left to do.
                let _ = self.pause(&points::BEFORE_OWN_ABORT, &build, &[], 0, &mut resting).await;
                drop(resting);
                if let Err(error) = self.clean_up(&build, &mut builder, &cause).await {
                    let message = "Unexpected error code during index build cleanup";
                    log!(log, Severity::Warning, Component::Index, 6967701, message, "error" = &error);
                }
                Err(cause)
            }
        };
        if outcome.is_ok() {
            let _ = self.pause(&points::AFTER_COMMIT, &build, &[], 0, &mut operation).await;
        }
        drop(operation);
        self.unregister(&build);
        build.end(outcome);
    }

    async fn build(&self, build: &ActiveBuild, builder: &mut Builder, operation: &mut Operation) -> Result<Finished> {
        let (log, clock, counters) = (&self.parts.services.log, self.parts.services.env.clock(), &self.counters);
        let started_ns = clock.monotonic_ns();
        let indexes: Vec<Arc<Index>> = builder.indexes.iter().map(|building| Arc::clone(&building.index)).collect();
        for index in &indexes {
            let (uuid, name) = (shown(&build.build_uuid), index.name());
            let (message, namespace) = ("Index build: starting", &build.namespace);
            log!(
                log,
                Severity::Info,
                Component::Index,
                20384,
                message,
                "buildUUID" = uuid,
                "namespace" = namespace,
                "name" = name,
                "ident" = index.ident()
            );
        }
        self.pause(&points::BEFORE_INITIALIZING, build, &indexes, 0, operation).await?;
        if self.has_votes(build) {
            self.enter_entry(build).await?;
        }
        for point in
            [&points::AFTER_INITIALIZING, &points::BEFORE_BUILDING, &points::BEFORE_MAJORITY, &points::AFTER_SETTING_UP]
        {
            self.pause(point, build, &indexes, 0, operation).await?;
        }
        self.pause(&points::AFTER_SETTING_UP_UNLOCKED, build, &indexes, 0, operation).await?;
        if builder.phase() <= Phase::CollectionScan {
            counters.scans.increment();
            self.scan(build, builder, operation, &indexes).await?;
        }
        if builder.phase() == Phase::BulkLoad {
            self.load(build, builder, operation).await?;
        }
        self.pause(&points::AFTER_BULK_LOAD, build, &indexes, 0, operation).await?;
        counters.first_drains.increment();
        self.drain(build, builder, operation, &indexes).await?;
        self.pause(&points::AFTER_FIRST_DRAIN, build, &indexes, 0, operation).await?;
        if self.has_votes(build) {
            self.pause(&points::BEFORE_VOTE, build, &indexes, 0, operation).await?;
            self.pause(&points::BEFORE_ENTRY, build, &indexes, 0, operation).await?;
            self.await_primary(operation).await?;
            self.vote(build, &self.parts.members.own_host()).await?;
        }
        self.pause(&points::AFTER_VOTE, build, &indexes, 0, operation).await?;
        counters.quorum_waits.increment();
        self.await_quorum(build, builder, operation, &indexes).await?;
        counters.second_drains.increment();
        self.drain(build, builder, operation, &indexes).await?;
        self.pause(&points::AFTER_SECOND_DRAIN, build, &indexes, 0, operation).await?;
        self.pause(&points::BEFORE_COMMIT, build, &indexes, 0, operation).await?;
        let committed = self.commit(build, builder, operation).await?;
        counters.committed(clock.monotonic_ns().saturating_sub(started_ns) / 1_000_000);
        if self.has_votes(build)
            && let Err(error) = self.remove_entry(build.build_uuid).await
        {
            let message = "Failed to remove index build from system collection";
            log!(log, Severity::Warning, Component::Index, 4763501, message, "error" = &error);
        }
        let uuid = shown(&build.build_uuid);
        let (message, namespace) = ("Index build: completed successfully", &build.namespace);
        let names = build.index_names.iter().map(LogValue::from).collect::<Vec<_>>();
        let count_after = committed.indexes.len();
        log!(
            log,
            Severity::Info,
            Component::Index,
            20663,
            message,
            "buildUUID" = uuid,
            "namespace" = namespace,
            "uuid" = build.collection_uuid,
            "indexesBuilt" = names,
            "numIndexesBefore" = count_after - build.index_names.len().min(count_after),
            "numIndexesAfter" = count_after
        );
        Ok(Finished { last_commit: operation.last_commit, index_count: committed.indexes.len() })
    }

    async fn pause(
        &self,
        point: &'static FailPoint<Doc>,
        build: &ActiveBuild,
        indexes: &[Arc<Index>],
        iteration: u64,
        operation: &mut Operation,
    ) -> Result<()> {
        let place = Place { build_uuid: build.build_uuid, indexes, iteration, step: 1, document: None };
        wait_at(point, place, operation, &self.parts.services.log).await
    }

    /// Waits until the node may write: one that has stepped down goes on when it is primary again.
    async fn await_primary(&self, operation: &mut Operation) -> Result<()> {
        while !self.parts.members.may_write() {
            let sleep = self.parts.services.env.clock().sleep(PRIMARY_WAIT);
            operation.context.interruptible(sleep).await?;
            yield_now().await;
        }
        Ok(())
    }

    /// Locks the collection for good while the node may write. Who waits for it, e.g. behind a prepared transaction, makes way for a
    /// step down, and begins anew once somebody is primary.
    async fn lock_as_primary(&self, build: &ActiveBuild, operation: &mut Operation) -> Result<()> {
        loop {
            self.await_primary(operation).await?;
            let mut told = pin!(build.told_to_make_way());
            told.as_mut().enable();
            let is_locked = tokio::select! {
                biased;
                locked = self.lock(operation, &build.namespace, Mode::X) => locked.map(|()| true)?,
                () = told => false,
            };
            // With the lock nobody steps down.
            if is_locked && self.parts.members.may_write() {
                return Ok(());
            }
            operation.locker.unlock_everything();
            yield_now().await;
        }
    }

    /// Does a piece of work with the collection locked, off the workers of other operations; then lets others run.
    async fn step<T: Send>(
        &self,
        build: &ActiveBuild,
        operation: &mut Operation,
        work: &mut (dyn FnMut(&mut Operation, &Arc<Collection>) -> Result<T> + Send),
    ) -> Result<T> {
        operation.context.check()?;
        self.lock(operation, &build.namespace, Mode::IX).await?;
        let outcome = self.with_collection(build, operation, Haste::Aside, work);
        operation.locker.unlock_everything();
        operation.context.statistics().yields.add(1);
        rest_while_yielded(operation).await?;
        yield_now().await;
        outcome
    }

    fn with_collection<T: Send>(
        &self,
        build: &ActiveBuild,
        operation: &mut Operation,
        haste: Haste,
        work: &mut (dyn FnMut(&mut Operation, &Arc<Collection>) -> Result<T> + Send),
    ) -> Result<T> {
        let collection = self.collection(build)?;
        let mut outcome = Err(Error::internal("a step of an index build was not run"));
        let tasks = self.parts.services.env.tasks();
        let mut call = || outcome = work(operation, &collection);
        match haste {
            Haste::Aside => tasks.aside(&mut call),
            Haste::Awaited => tasks.blocking(&mut call),
        }
        outcome
    }

    fn collection(&self, build: &ActiveBuild) -> Result<Arc<Collection>> {
        let latest = self.parts.catalog.latest();
        let found = latest.collection(&build.namespace).filter(|collection| collection.uuid == build.collection_uuid);
        let gone = || Error::new(ErrorCode::NamespaceNotFound, format!("ns does not exist: {}", build.namespace));
        found.cloned().ok_or_else(gone)
    }

    // ---- The phases.

    async fn scan(
        &self,
        build: &ActiveBuild,
        builder: &mut Builder,
        operation: &mut Operation,
        indexes: &[Arc<Index>],
    ) -> Result<()> {
        let (log, mut read_before) = (&self.parts.services.log, builder.documents_read);
        let mut memory = MemoryMeter::new(&self.counters.sorting);
        let total = self.collection(build)?.records.num_records().map_or(0, |count| u64::try_from(count).unwrap_or(0));
        let mut meter = Meter::new("Index Build: scanning collection", total, &operation.context);
        loop {
            meter.show(builder.documents_read, &operation.context, &self.parts.services.log);
            self.require_disk_space()?;
            let is_watched = points::SCAN_BEFORE_INSERTION.is_on() || points::SCAN_AFTER_INSERTION.is_on();
            let limits = if is_watched { BatchLimits { count_max: 1, ..SCAN_LIMITS } } else { SCAN_LIMITS };
            let mut next = None;
            if is_watched {
                next = self.step(build, operation, &mut |operation, found| builder.peek(operation, found)).await?;
            }
            let iteration = builder.documents_read;
            let place = || Place { build_uuid: build.build_uuid, indexes, iteration, step: 1, document: next.as_ref() };
            if next.is_some() {
                wait_at(&points::SCAN_BEFORE_INSERTION, place(), operation, log).await?;
            }
            let read =
                self.step(build, operation, &mut |operation, found| builder.scan_batch(operation, found, limits)).await;
            memory.set(builder.sorting_bytes());
            match read {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(error) if error.code() == ErrorCode::CappedPositionLost => {
                    let (message, uuid) = ("Index build: collection scan restarted", shown(&build.build_uuid));
                    let error = &error;
                    log!(log, Severity::Info, Component::Index, 5470300, message, "buildUUID" = uuid, "error" = error);
                    builder.restart_scan(&self.sorting(indexes.len()));
                    read_before = 0;
                    continue;
                }
                Err(error) => return Err(error),
            }
            wait_at(&points::SCAN_AFTER_INSERTION, place(), operation, log).await?;
        }
        let (uuid, message, count) =
            (shown(&build.build_uuid), "Index build: collection scan done", builder.documents_read - read_before);
        log!(log, Severity::Info, Component::Index, 20391, message, "buildUUID" = uuid, "totalRecords" = count);
        self.pause(&points::AFTER_STARTING, build, indexes, 0, operation).await?;
        self.pause(&points::AFTER_STARTING_UNLOCKED, build, indexes, 0, operation).await?;
        Meter::end(&operation.context, &self.parts.services.log);
        for sorter in builder.indexes.iter().filter_map(|building| building.sorter.as_ref()) {
            self.counters.sorting.indexes.increment();
            self.counters.sorting.add(&sorter.statistics());
        }
        builder.end_scan();
        Ok(())
    }

    async fn load(&self, build: &ActiveBuild, builder: &mut Builder, operation: &mut Operation) -> Result<()> {
        let what = "Index Build: inserting keys from external sorter into index";
        let mut meter = Meter::new(what, builder.key_count(), &operation.context);
        loop {
            meter.show(builder.keys_loaded(), &operation.context, &self.parts.services.log);
            self.require_disk_space()?;
            let is_watched = points::DURING_BULK_LOAD.is_on() || points::BULK_LOAD_YIELD.is_on();
            let keys_max = usize::try_from(self.parts.services.parameters.get(&LOAD_YIELD_KEYS)).unwrap_or(1);
            let count_max = if is_watched { 1 } else { keys_max };
            if let Some((index, iteration)) = builder.loading_index().filter(|_| is_watched) {
                let index = [index];
                self.pause(&points::DURING_BULK_LOAD, build, &index, iteration, operation).await?;
                self.pause(&points::BULK_LOAD_YIELD, build, &index, iteration, operation).await?;
            }
            let is_loaded =
                self.step(build, operation, &mut |operation, _| builder.load_batch(operation, count_max)).await?;
            if is_loaded {
                break;
            }
        }
        Meter::end(&operation.context, &self.parts.services.log);
        for building in &builder.indexes {
            let (uuid, name, count) = (shown(&build.build_uuid), building.index.name(), building.keys_loaded);
            let (log, message) =
                (&self.parts.services.log, "Index build: inserted keys from external sorter into index");
            log!(
                log,
                Severity::Info,
                Component::Index,
                20685,
                message,
                "buildUUID" = uuid,
                "namespace" = &build.namespace,
                "index" = name,
                "keysInserted" = count
            );
        }
        Ok(())
    }

    /// Drains while writers go on, until little is left.
    async fn drain(
        &self,
        build: &ActiveBuild,
        builder: &mut Builder,
        operation: &mut Operation,
        indexes: &[Arc<Index>],
    ) -> Result<()> {
        let mut iteration = 0;
        let what = "Index Build: draining writes received during build";
        let mut meter = Meter::new(what, 0, &operation.context);
        for _ in 0..PASSES_MAX {
            let mut rows = 0;
            loop {
                let (drained, total) = builder.drain_progress();
                meter.set_total(total);
                meter.show(drained, &operation.context, &self.parts.services.log);
                let is_watched = points::DURING_DRAIN.is_on() || points::DRAIN_YIELD.is_on();
                let mut limits = self.drain_limits();
                if is_watched {
                    limits.count_max = 1;
                    self.pause(&points::DURING_DRAIN, build, indexes, iteration, operation).await?;
                    self.pause(&points::DRAIN_YIELD, build, indexes, iteration, operation).await?;
                }
                let work = &mut |operation: &mut Operation, found: &Arc<Collection>| {
                    builder.drain_batch(operation, found, limits)
                };
                match self.step(build, operation, work).await? {
                    Some(count) => (rows, iteration) = (rows + count, iteration + count),
                    None => break,
                }
            }
            if rows < DRAINED_ROWS {
                break;
            }
        }
        Meter::end(&operation.context, &self.parts.services.log);
        self.tell_drained(build, builder);
        Ok(())
    }

    /// What was drained of each index since the last time this was told.
    fn tell_drained(&self, build: &ActiveBuild, builder: &mut Builder) {
        let log = &self.parts.services.log;
        for building in &mut builder.indexes {
            let drained = std::mem::take(&mut building.drained);
            let severity = if drained.applied == 0 { Severity::Debug(1) } else { Severity::Info };
            log!(
                log,
                severity,
                Component::Index,
                20689,
                "Index build: drained side writes",
                "buildUUID" = shown(&build.build_uuid),
                "namespace" = &build.namespace,
                "index" = building.index.name(),
                "numApplied" = drained.applied,
                "totalInserted" = drained.inserted,
                "totalDeleted" = drained.deleted
            );
        }
    }

    fn drain_limits(&self) -> BatchLimits {
        let parameters = &self.parts.services.parameters;
        let megabytes = usize::try_from(parameters.get(&DRAIN_MEGABYTES)).unwrap_or(1);
        BatchLimits {
            count_max: usize::try_from(parameters.get(&DRAIN_BATCH_SIZE)).unwrap_or(1).max(1),
            bytes_max: megabytes.max(1).saturating_mul(1024 * 1024),
        }
    }

    /// Waits until enough members are ready, and drains meanwhile.
    async fn await_quorum(
        &self,
        build: &ActiveBuild,
        builder: &mut Builder,
        operation: &mut Operation,
        indexes: &[Arc<Index>],
    ) -> Result<()> {
        while self.has_votes(build) && !self.is_quorum_there(build).await? {
            let (changed, clock) = (build.quorum_changed.notified(), self.parts.services.env.clock());
            let sleep = clock.sleep(QUORUM_WAIT);
            let wait = async {
                tokio::select! {
                    () = changed => {}
                    () = sleep => {}
                }
            };
            operation.context.interruptible(wait).await?;
            self.drain(build, builder, operation, indexes).await?;
        }
        Ok(())
    }

    /// The end, under X: nobody reads or writes the collection meanwhile but by snapshots of before.
    async fn commit(
        &self,
        build: &ActiveBuild,
        builder: &mut Builder,
        operation: &mut Operation,
    ) -> Result<Arc<Collection>> {
        let limits = self.drain_limits();
        self.lock_as_primary(build, operation).await?;
        self.counters.last_drains.increment();
        loop {
            operation.context.check()?;
            let work =
                &mut |operation: &mut Operation, found: &Arc<Collection>| builder.drain_batch(operation, found, limits);
            if self.with_collection(build, operation, Haste::Awaited, work)?.is_none() {
                break;
            }
        }
        self.counters.constraint_checks.increment();
        self.with_collection(build, operation, Haste::Awaited, &mut |operation, found| {
            builder.retry_skipped(operation, found)?;
            builder.check_duplicates(operation)?;
            builder.require_drained(operation)?;
            Ok(operation.recovery_unit.abandon_snapshot()?)
        })?;
        let (parts, collection) = (&self.parts, self.collection(build)?);
        let committed = write_conflict_retry(operation, "createIndexes", &build.namespace, |operation| {
            operation
                .in_unit_of_work(|operation| builder.commit(operation, &parts.catalog, &*parts.observers, &collection))
        })
        .await?;
        if let Err(error) = builder.remove(&parts.interceptors) {
            let message = "Index build: failed to drop temporary tables";
            log!(parts.services.log, Severity::Warning, Component::Index, 7564401, message, "error" = &error);
        }
        operation.locker.unlock_everything();
        let log = &parts.services.log;
        for building in &builder.indexes {
            let (uuid, name) = (shown(&build.build_uuid), building.index.name());
            let (message, namespace) = ("Index build: done building", &build.namespace);
            log!(
                log,
                Severity::Info,
                Component::Index,
                20345,
                message,
                "buildUUID" = uuid,
                "namespace" = namespace,
                "index" = name
            );
        }
        Ok(committed)
    }

    /// Takes everything back, by an operation that nobody has told to stop: the build's own may have been.
    async fn clean_up(&self, build: &ActiveBuild, builder: &mut Builder, cause: &Error) -> Result<()> {
        let mut operation = self.parts.services.internal_operation("abort-index-build");
        let indexes: Vec<Arc<Index>> = builder.indexes.iter().map(|building| Arc::clone(&building.index)).collect();
        self.pause(&points::BEFORE_ABORT_CLEAN_UP, build, &indexes, 0, &mut operation).await?;
        self.lock_as_primary(build, &mut operation).await?;
        // A collection that is gone has taken its indexes with it.
        if let Ok(collection) = self.collection(build) {
            let names: Vec<&str> = build.index_names.iter().map(String::as_str).collect();
            let taken = self.take_out(&mut operation, &collection, build.build_uuid, &names, cause).await;
            if let Err(error) = taken {
                operation.locker.unlock_everything();
                return Err(error);
            }
        }
        let removed = builder.remove(&self.parts.interceptors);
        operation.locker.unlock_everything();
        removed?;
        if self.has_votes(build) {
            self.remove_entry(build.build_uuid).await?;
        }
        let (message, uuid) = ("Cleaned up index build after abort.", shown(&build.build_uuid));
        log!(self.parts.services.log, Severity::Info, Component::Index, 465611, message, "buildUUID" = uuid);
        Ok(())
    }
}
