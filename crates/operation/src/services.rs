//! What all operations of a node share.

use crate::parameters::{TEMPORARILY_UNAVAILABLE_BACKOFF_BASE_MS, TEMPORARILY_UNAVAILABLE_MAX_RETRIES};
use crate::{Extensions, Operation};
use pando_base::{Client, Log, MetricTree, MetricValue, OperationContext, OperationRegistry, ParameterSet, Result};
use pando_env::Env;
use pando_locks::{LockManager, Locker};
use pando_storage::{Engine, NoReplication, ReadTimestamps, RecoveryUnit, RetryCounters, RetryPolicy};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Finds a counter.
type Read = fn(&RetryCounters) -> &AtomicU64;

/// The handles of one node. Cloning is cheap; tickets are the lock manager's.
#[derive(Clone)]
pub struct Services {
    /// Time, chance, disk, network, tasks.
    pub env: Env,
    /// The storage engine.
    pub engine: Arc<dyn Engine>,
    /// What replication knows and read sources need.
    pub replication: Arc<dyn ReadTimestamps>,
    /// The locks, and through them the tickets.
    pub locks: Arc<LockManager>,
    /// The server's parameters.
    pub parameters: Arc<ParameterSet>,
    /// The operations in progress.
    pub operations: OperationRegistry,
    /// The log.
    pub log: Log,
    /// Conflicts and retries of all operations.
    pub retry_counters: Arc<RetryCounters>,
}

impl Services {
    /// A node without replication whose parameters have their defaults and that logs nothing: for tools and tests.
    pub fn plain(env: &Env, engine: Arc<dyn Engine>) -> Services {
        let clock = env.clone();
        Services {
            env: env.clone(),
            engine,
            replication: Arc::new(NoReplication),
            locks: LockManager::new(env),
            parameters: Arc::new(ParameterSet::empty()),
            operations: OperationRegistry::new(Arc::new(move || clock.clock().monotonic_ns())),
            log: Log::silent(),
            retry_counters: Arc::default(),
        }
    }

    /// A new operation of a client.
    pub fn operation(&self, client: &Arc<Client>) -> Operation {
        self.operation_of(self.operations.start(client))
    }

    /// A new operation of the server itself, e.g. "TTLMonitor".
    pub fn internal_operation(&self, name: &str) -> Operation {
        self.operation(&Arc::new(Client::internal(name)))
    }

    /// The operation of a context that there is already.
    pub fn operation_of(&self, context: OperationContext) -> Operation {
        let locker = self.locks.locker_of(context.id());
        self.operation_with(context, self.recovery_unit(), locker)
    }

    /// The operation of a context, with a recovery unit and a locker that there are already.
    pub(crate) fn operation_with(
        &self,
        context: OperationContext,
        mut recovery_unit: RecoveryUnit,
        locker: Locker,
    ) -> Operation {
        // What it takes is accounted to it.
        recovery_unit.set_meter(context.meter().cloned());
        Operation {
            locker,
            retry_policy: self.retry_policy(&context),
            context,
            recovery_unit,
            env: self.env.clone(),
            retry_counters: Arc::clone(&self.retry_counters),
            extensions: Extensions::default(),
            lock_wait_max: None,
            last_commit: None,
        }
    }

    /// A new recovery unit.
    pub fn recovery_unit(&self) -> RecoveryUnit {
        RecoveryUnit::new(Arc::clone(&self.engine), Arc::clone(&self.replication))
    }

    /// How an operation is tried again, as the parameters say now.
    pub fn retry_policy(&self, context: &OperationContext) -> RetryPolicy {
        let retries = self.parameters.get(&TEMPORARILY_UNAVAILABLE_MAX_RETRIES);
        let backoff_ms = self.parameters.get(&TEMPORARILY_UNAVAILABLE_BACKOFF_BASE_MS);
        RetryPolicy {
            temporarily_unavailable_retries_max: u32::try_from(retries).unwrap_or(u32::MAX),
            temporarily_unavailable_backoff_base_ms: u64::try_from(backoff_ms).unwrap_or(0),
            internal: context.client().is_internal(),
            ..RetryPolicy::default()
        }
    }

    /// Tells the tree of the counters that are kept here, under the names of serverStatus.
    pub fn add_metrics(&self, tree: &mut MetricTree) -> Result<()> {
        let rows: [(&str, Read); 6] = [
            ("writeConflicts", |counters| &counters.write_conflicts),
            ("temporarilyUnavailableErrors", |counters| &counters.temporarily_unavailable_errors),
            ("temporarilyUnavailableErrorsEscaped", |counters| &counters.temporarily_unavailable_errors_escaped),
            ("temporarilyUnavailableErrorsConvertedToWriteConflict", |counters| {
                &counters.temporarily_unavailable_errors_converted
            }),
            ("transactionTooLargeForCacheErrors", |counters| &counters.transaction_too_large_errors),
            ("transactionTooLargeForCacheErrorsConvertedToWriteConflict", |counters| {
                &counters.transaction_too_large_errors_converted
            }),
        ];
        for (name, counter) in rows {
            let counters = Arc::clone(&self.retry_counters);
            let read = move || {
                let count = counter(&counters).load(Ordering::Relaxed);
                MetricValue::Long(i64::try_from(count).unwrap_or(i64::MAX))
            };
            tree.add(&format!("metrics.operation.{name}"), Arc::new(read))?;
        }
        Ok(())
    }
}
