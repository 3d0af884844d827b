//! Locks that end with a guard. Inside a unit of work the end of the guard is not the end of the lock, see
//! [`Locker::unit_of_work`].
//!
//! Guards are dropped in the reverse order in which they were made, as scopes do: collection, then database with global.

use crate::locker::{LockRequest, Locker};
use crate::mode::Mode;
use crate::resource::ResourceId;
use crate::wait::Wait;
use pando_base::Result;

/// What is not taken along with the global lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GlobalLockOptions {
    /// Not the barrier of batches: for those who apply batches, and for reads that may see half of one.
    pub skip_batch_barrier: bool,
    /// Not the barrier of the feature compatibility version: for those who change it.
    pub skip_feature_compatibility: bool,
    /// Not the replication state: for reads that take no other lock, and for those who change the state.
    pub skip_replication_state: bool,
}

/// The most that one guard takes.
const BUNDLE_LENGTH_MAX: usize = 7;

/// Several locks, taken in order and given back together. The usual case, that all are intents which nobody minds, is one
/// visit to the locker.
struct Bundle<'a> {
    locker: &'a Locker,
    wanted: [(ResourceId, Mode); BUNDLE_LENGTH_MAX],
    length: usize,
    taken: usize,
}

impl<'a> Bundle<'a> {
    fn new(locker: &'a Locker) -> Bundle<'a> {
        Bundle { locker, wanted: [(ResourceId::GLOBAL, Mode::IS); BUNDLE_LENGTH_MAX], length: 0, taken: 0 }
    }

    /// A collection's lock and those above it.
    fn of_collection(
        locker: &'a Locker,
        tenant: Option<ResourceId>,
        database: ResourceId,
        collection: ResourceId,
        mode: Mode,
    ) -> Bundle<'a> {
        let mut locks = Bundle::new(locker);
        locks.want_global(mode.intent(), GlobalLockOptions::default());
        if let Some(tenant) = tenant {
            locks.want(tenant, mode.intent());
        }
        locks.want(database, mode.intent());
        locks.want(collection, mode);
        locks
    }

    fn want(&mut self, resource: ResourceId, mode: Mode) {
        self.wanted[self.length] = (resource, mode);
        self.length += 1;
    }

    fn want_global(&mut self, mode: Mode, options: GlobalLockOptions) {
        if !options.skip_batch_barrier {
            self.want(ResourceId::PARALLEL_BATCH_WRITER_MODE, Mode::IS);
        }
        if !options.skip_feature_compatibility {
            self.want(ResourceId::FEATURE_COMPATIBILITY_VERSION, mode.intent());
        }
        if !options.skip_replication_state {
            self.want(ResourceId::REPLICATION_STATE_TRANSITION, Mode::IX);
        }
        self.want(ResourceId::GLOBAL, mode);
    }

    async fn take(&mut self, wait: &Wait<'_>) -> Result<()> {
        self.taken = self.locker.lock_uncontended(&self.wanted[..self.length], wait)?;
        while self.taken < self.length {
            let (resource, mode) = self.wanted[self.taken];
            self.locker.lock_ordered(LockRequest::new(resource, mode), wait).await?;
            self.taken += 1;
        }
        Ok(())
    }

    /// The locks stay; somebody else gives them back.
    fn keep(mut self) {
        self.taken = 0;
    }
}

impl Drop for Bundle<'_> {
    fn drop(&mut self) {
        self.locker.unlock_all(self.wanted[..self.taken].iter().rev().map(|(resource, _)| *resource));
    }
}

/// The global lock and what is taken before it: the barrier of batches (IS), that of the feature compatibility version
/// (intent), the replication state (IX), a ticket.
#[must_use]
pub struct GlobalLock<'a> {
    _locks: Bundle<'a>,
}

impl<'a> GlobalLock<'a> {
    /// Takes everything.
    pub async fn acquire(locker: &'a Locker, mode: Mode, wait: &Wait<'_>) -> Result<GlobalLock<'a>> {
        GlobalLock::acquire_with(locker, mode, GlobalLockOptions::default(), wait).await
    }

    /// Takes what the options leave.
    pub async fn acquire_with(
        locker: &'a Locker,
        mode: Mode,
        options: GlobalLockOptions,
        wait: &Wait<'_>,
    ) -> Result<GlobalLock<'a>> {
        let mut locks = Bundle::new(locker);
        locks.want_global(mode, options);
        locks.take(wait).await?;
        Ok(GlobalLock { _locks: locks })
    }
}

impl Locker {
    /// Takes the global lock without a guard: what is taken so is given back with everything else by
    /// [`Locker::unlock_everything`]. For operations that are changed while they hold it, which a guard would forbid.
    pub async fn hold_global(&self, mode: Mode, options: GlobalLockOptions, wait: &Wait<'_>) -> Result<()> {
        let mut locks = Bundle::new(self);
        locks.want_global(mode, options);
        locks.take(wait).await?;
        locks.keep();
        Ok(())
    }

    /// Takes a database's lock in the same way, with those above it.
    pub async fn hold_database(
        &self,
        tenant: Option<ResourceId>,
        database: ResourceId,
        mode: Mode,
        wait: &Wait<'_>,
    ) -> Result<()> {
        let mut locks = Bundle::new(self);
        locks.want_global(mode.intent(), GlobalLockOptions::default());
        if let Some(tenant) = tenant {
            locks.want(tenant, mode.intent());
        }
        locks.want(database, mode);
        locks.take(wait).await?;
        locks.keep();
        Ok(())
    }

    /// Takes a collection's lock in the same way, with those above it.
    pub async fn hold_collection(
        &self,
        tenant: Option<ResourceId>,
        database: ResourceId,
        collection: ResourceId,
        mode: Mode,
        wait: &Wait<'_>,
    ) -> Result<()> {
        let mut locks = Bundle::of_collection(self, tenant, database, collection, mode);
        locks.take(wait).await?;
        locks.keep();
        Ok(())
    }

    /// Takes a collection's lock once more in the same way, with those above it, if it is held already; false if it is not. For
    /// transactions: every statement takes what the one before has taken, and nothing of it has to be waited for.
    pub fn hold_collection_again(
        &self,
        tenant: Option<ResourceId>,
        database: ResourceId,
        collection: ResourceId,
        mode: Mode,
        wait: &Wait<'_>,
    ) -> Result<bool> {
        if !self.is_locked_for(collection, mode) {
            return Ok(false);
        }
        let mut locks = Bundle::of_collection(self, tenant, database, collection, mode);
        locks.taken = self.lock_uncontended(&locks.wanted[..locks.length], wait)?;
        let has_all = locks.taken == locks.length;
        if has_all {
            locks.keep();
        }
        Ok(has_all)
    }
}

macro_rules! resource_guard {
    ($(#[$documentation:meta])* $name:ident) => {
        $(#[$documentation])*
        #[must_use]
        pub struct $name<'a> {
            locker: &'a Locker,
            resource: ResourceId,
        }

        impl<'a> $name<'a> {
            async fn take(locker: &'a Locker, request: LockRequest, resource: ResourceId, wait: &Wait<'_>) -> Result<Self> {
                locker.lock(request, wait).await?;
                Ok($name { locker, resource })
            }

            /// What is locked.
            pub fn resource(&self) -> ResourceId {
                self.resource
            }
        }

        impl Drop for $name<'_> {
            fn drop(&mut self) {
                self.locker.unlock(self.resource);
            }
        }
    };
}

resource_guard!(
    /// The lock of a tenant.
    TenantLock
);

impl<'a> TenantLock<'a> {
    /// Takes it. The global lock must be held.
    pub async fn acquire(locker: &'a Locker, tenant: ResourceId, mode: Mode, wait: &Wait<'_>) -> Result<Self> {
        TenantLock::take(locker, LockRequest::new(tenant, mode), tenant, wait).await
    }
}

resource_guard!(
    /// The lock of a collection.
    CollectionLock
);

impl<'a> CollectionLock<'a> {
    /// Takes it. Its database must be locked with the intent that belongs to the mode.
    pub async fn acquire(
        locker: &'a Locker,
        database: ResourceId,
        collection: ResourceId,
        mode: Mode,
        wait: &Wait<'_>,
    ) -> Result<Self> {
        debug_assert!(locker.is_database_locked_for(database, mode.intent()), "the database is not locked");
        CollectionLock::take(locker, LockRequest::new(collection, mode), collection, wait).await
    }

    /// Takes it in addition to others without regard to their order: for the collections that the server itself writes
    /// along with those of the user (the oplog, `config.transactions`), always in an intent.
    pub async fn acquire_unordered(
        locker: &'a Locker,
        collection: ResourceId,
        mode: Mode,
        wait: &Wait<'_>,
    ) -> Result<Self> {
        debug_assert!(mode.is_intent());
        CollectionLock::take(locker, LockRequest::new(collection, mode).unordered(), collection, wait).await
    }
}

resource_guard!(
    /// A locked resource mutex.
    ResourceMutexLock
);

/// A mutex that the lock manager keeps: fair, with several modes, seen in reports. Its label is its identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResourceMutex {
    label: &'static str,
    resource: ResourceId,
}

impl ResourceMutex {
    /// The mutex of this label.
    pub fn new(label: &'static str) -> ResourceMutex {
        ResourceMutex { label, resource: ResourceId::mutex(label) }
    }

    /// The label.
    pub fn label(&self) -> &'static str {
        self.label
    }

    /// Its id.
    pub fn resource(&self) -> ResourceId {
        self.resource
    }

    /// Takes it.
    pub async fn lock<'a>(&self, locker: &'a Locker, mode: Mode, wait: &Wait<'_>) -> Result<ResourceMutexLock<'a>> {
        ResourceMutexLock::take(locker, LockRequest::new(self.resource, mode), self.resource, wait).await
    }
}

/// The lock of a database, with the global lock and, if there is a tenant, its lock in the intent that belongs to the mode.
#[must_use]
pub struct DatabaseLock<'a> {
    resource: ResourceId,
    _locks: Bundle<'a>,
}

impl<'a> DatabaseLock<'a> {
    /// Takes everything.
    pub async fn acquire(
        locker: &'a Locker,
        tenant: Option<ResourceId>,
        database: ResourceId,
        mode: Mode,
        wait: &Wait<'_>,
    ) -> Result<DatabaseLock<'a>> {
        DatabaseLock::acquire_with(locker, tenant, database, mode, GlobalLockOptions::default(), wait).await
    }

    /// Takes what the options leave.
    pub async fn acquire_with(
        locker: &'a Locker,
        tenant: Option<ResourceId>,
        database: ResourceId,
        mode: Mode,
        options: GlobalLockOptions,
        wait: &Wait<'_>,
    ) -> Result<DatabaseLock<'a>> {
        let mut locks = Bundle::new(locker);
        locks.want_global(mode.intent(), options);
        if let Some(tenant) = tenant {
            locks.want(tenant, mode.intent());
        }
        locks.want(database, mode);
        locks.take(wait).await?;
        Ok(DatabaseLock { resource: database, _locks: locks })
    }

    /// What is locked.
    pub fn resource(&self) -> ResourceId {
        self.resource
    }
}
