//! All operations in progress of one server.

use super::client::Client;
use super::context::{Operation, OperationContext};
use super::slice::Slices;
use crate::ErrorCode;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Weak};

/// The monotonic clock in nanoseconds, as the server's environment has it.
pub type MonotonicClock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// Every operation enters and leaves; shards keep them from queueing for one lock.
const SHARD_COUNT: usize = 16;

type Shard = Mutex<BTreeMap<u32, Weak<Operation>>>;

/// The operations in progress. Clones are of the same registry.
#[derive(Clone)]
pub struct OperationRegistry(Arc<Registry>);

struct Registry {
    clock: MonotonicClock,
    /// What is done about operations that keep a thread for long; none where nothing can be.
    slices: Option<Box<dyn Slices>>,
    last_id: AtomicU32,
    is_shutting_down: AtomicBool,
    shards: [Shard; SHARD_COUNT],
    connections: Mutex<Connections>,
}

/// The clients behind connections, by number. Those that have gone are swept out when there are twice as many as there were.
#[derive(Default)]
struct Connections {
    clients: BTreeMap<i64, Weak<Client>>,
    swept_at: usize,
}

/// An operation's tie to its registry: takes the operation out when its last handle goes.
pub(super) struct Registered {
    registry: Arc<Registry>,
    /// None for a part of an operation, which is not entered itself.
    id: Option<u32>,
}

impl Registered {
    /// The tie of a part of the operation.
    pub(super) fn of_part(&self) -> Registered {
        Registered { registry: Arc::clone(&self.registry), id: None }
    }

    /// What is done about operations that keep a thread for long.
    pub(super) fn slices(&self) -> Option<&dyn Slices> {
        self.registry.slices.as_deref()
    }
}

impl OperationRegistry {
    /// A registry whose operations use this clock.
    pub fn new(clock: MonotonicClock) -> OperationRegistry {
        OperationRegistry::with_slices(clock, None)
    }

    /// A registry whose operations use this clock, and work in slices if there is somebody to see to it.
    pub fn with_slices(clock: MonotonicClock, slices: Option<Box<dyn Slices>>) -> OperationRegistry {
        OperationRegistry(Arc::new(Registry {
            clock,
            slices,
            last_id: AtomicU32::new(0),
            is_shutting_down: AtomicBool::new(false),
            shards: Default::default(),
            connections: Mutex::default(),
        }))
    }

    /// Takes note of the client behind a connection, for as long as it is there.
    pub fn note_connection(&self, client: &Arc<Client>) {
        let mut connections = self.0.connections.lock();
        if connections.clients.len() >= connections.swept_at {
            connections.clients.retain(|_, client| client.strong_count() > 0);
            connections.swept_at = connections.clients.len().saturating_mul(2).max(64);
        }
        connections.clients.insert(client.connection_id(), Arc::downgrade(client));
    }

    /// The clients behind connections, by number.
    pub fn connections(&self) -> Vec<Arc<Client>> {
        self.0.connections.lock().clients.values().filter_map(Weak::upgrade).collect()
    }

    /// Begins an operation. During shutdown it is told to stop at once.
    pub fn start(&self, client: &Arc<Client>) -> OperationContext {
        let context = self.enter(client);
        // Looked at after the operation is known: shutdown either finds it or is seen here.
        if self.0.is_shutting_down.load(Ordering::SeqCst) {
            context.shut_down();
        }
        context
    }

    /// Enters an operation under a number that no living one has. Zero is nobody's.
    fn enter(&self, client: &Arc<Client>) -> OperationContext {
        loop {
            let id = self.0.last_id.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
            let mut shard = self.0.shard(id).lock();
            if id != 0 && !shard.contains_key(&id) {
                let registered = Registered { registry: Arc::clone(&self.0), id: Some(id) };
                let clock = Arc::clone(&self.0.clock);
                let context = OperationContext::create(id, Arc::clone(client), clock, Some(registered));
                shard.insert(id, context.downgrade());
                return context;
            }
        }
    }

    /// The operation of this number.
    pub fn find(&self, id: u32) -> Option<OperationContext> {
        OperationContext::upgrade(self.0.shard(id).lock().get(&id)?)
    }

    /// The operations in progress, by number.
    pub fn list(&self) -> Vec<OperationContext> {
        let mut found = Vec::new();
        for shard in &self.0.shards {
            found.extend(shard.lock().values().filter_map(OperationContext::upgrade));
        }
        found.sort_unstable_by_key(OperationContext::id);
        found
    }

    /// How many operations are in progress.
    pub fn count(&self) -> usize {
        self.0.shards.iter().map(|shard| shard.lock().len()).sum()
    }

    /// Tells an operation to stop; false if there is none of this number.
    pub fn kill(&self, id: u32, code: ErrorCode) -> bool {
        let found = self.find(id);
        found
            .inspect(|context| {
                context.kill(code);
            })
            .is_some()
    }

    /// Tells every operation to stop that the function picks, and says how many were not stopped before.
    pub fn kill_where(&self, code: ErrorCode, picks: impl Fn(&OperationContext) -> bool) -> usize {
        self.list().iter().filter(|context| picks(context)).filter(|context| context.kill(code)).count()
    }

    /// Tells every operation to stop, but the one that shuts the server down; those that begin later stop at once.
    pub fn shut_down(&self, except: Option<u32>) {
        self.0.is_shutting_down.store(true, Ordering::SeqCst);
        self.list().iter().filter(|context| Some(context.id()) != except).for_each(OperationContext::shut_down);
    }

    /// True once [`shut_down`](Self::shut_down) was called.
    pub fn is_shutting_down(&self) -> bool {
        self.0.is_shutting_down.load(Ordering::SeqCst)
    }
}

impl Registry {
    fn shard(&self, id: u32) -> &Shard {
        &self.shards[id as usize % SHARD_COUNT]
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.registry.shard(id).lock().remove(&id);
        }
    }
}

impl fmt::Debug for OperationRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.list()).finish()
    }
}
