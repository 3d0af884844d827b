//! Who may do what at the same time: the lock manager, the locker of each operation, and the tickets that admit operations
//! to the engine.
//!
//! - [`LockManager`]: resources in a hierarchy, locked in the modes IS, IX, S, X, with a fair queue for each. Intents, which
//!   nearly every operation takes, are counted in partitions and do not meet.
//! - [`Locker`]: the locks of one operation: taken recursively, kept to the end of a unit of work, given up and taken again
//!   when the operation yields. [`GlobalLock`], [`DatabaseLock`], [`CollectionLock`] and the others are its guards.
//! - [`Tickets`]: how many operations are in the engine at once, by priority, in a number that is fixed or found by
//!   probing.
//!
//! Everything waits asynchronously: a future that is dropped leaves no trace in any queue. Deadlocks are avoided by
//! order: locks are taken in the order of [`ResourceId`]s, checked by debug assertions.
//!
//! This crate knows nothing of collections, BSON or storage. It gets time from the environment only.

mod guards;
mod locker;
mod manager;
mod mode;
mod resource;
mod stats;
mod sync;
#[cfg(test)]
mod testing;
mod tickets;
mod wait;

pub use guards::{
    CollectionLock, DatabaseLock, GlobalLock, GlobalLockOptions, ResourceMutex, ResourceMutexLock, TenantLock,
};
pub use locker::{Acquisition, ClientState, LockRequest, Locker, LockerInfo, PendingLock, SavedLocks, UnitOfWorkLocks};
pub use manager::{LockInfo, LockManager, LockerId, LockerReport, RequestInfo};
pub use mode::{MODE_COUNT, Mode};
pub use resource::{GlobalResource, ResourceId, ResourceType};
pub use stats::{FlowStats, LockStats, ModeStats, SectionStats};
pub use tickets::{
    Algorithm, CONCURRENT_READ_TRANSACTIONS, CONCURRENT_WRITE_TRANSACTIONS, FLOW_TICKETS_UNLIMITED, FlowTickets,
    PARAMETERS, PoolStats, Priority, ProbingParameters, ProbingStats, QueueStats, Sample, Sizes, ThroughputProbing,
    Ticket, TicketParameters, TicketPool, Tickets,
};
pub use wait::{Deadline, Interruption, Wait};
