//! The table of all cursors.

use super::client_cursor::{ClientCursor, CursorOptions, check_use};
use crate::executor::BatchSource;
use pando_base::{
    AnyParameter, Counter, CursorFacts, Error, ErrorCode, MetricTree, MetricValue, Namespace, OperationContext,
    Parameter, Result, Uuid,
};
use pando_doc::Doc;
use pando_env::Env;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// How long an idle cursor lives.
pub static CURSOR_TIMEOUT_MS: Parameter<i64> = Parameter::new(
    "cursorTimeoutMillis",
    10 * 60 * 1000,
    "After how many milliseconds without use a cursor is closed.",
);

/// How often idle cursors are looked for.
pub static CURSOR_INTERVAL_SECONDS: Parameter<i32> = Parameter::new(
    "clientCursorMonitorFrequencySecs",
    4,
    "How many seconds there are between two looks for cursors that were not used for long.",
)
.at_least(1);

/// All parameters of cursors.
pub static PARAMETERS: &[&dyn AnyParameter] = &[&CURSOR_TIMEOUT_MS, &CURSOR_INTERVAL_SECONDS];

/// A cursor in the table.
enum Entry {
    Idle(Box<ClientCursor>),
    Pinned(Pinned),
}

/// A cursor that rests between two batches.
#[derive(Clone, Debug)]
pub struct IdleCursor {
    /// What is known of it.
    pub options: CursorOptions,
    /// What it has done.
    pub facts: CursorFacts,
    /// Its plan in few words.
    pub plan_summary: String,
}

/// What is known of a cursor while somebody uses it.
struct Pinned {
    options: CursorOptions,
    user: OperationContext,
    /// It is to be gone when it comes back.
    is_killed: bool,
}

impl Entry {
    fn options(&self) -> &CursorOptions {
        match self {
            Entry::Idle(cursor) => &cursor.options,
            Entry::Pinned(pinned) => &pinned.options,
        }
    }
}

/// Counts of cursors.
#[derive(Default)]
pub struct CursorStatistics {
    /// Cursors that timed out.
    pub timed_out: Counter,
    /// Cursors ever opened.
    pub total_opened: Counter,
    /// Batches taken by getMore and first replies.
    pub more_than_one_batch: Counter,
}

/// How many cursors there are now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenCursors {
    /// All.
    pub total: u64,
    /// Those in use.
    pub pinned: u64,
    /// Those that do not time out.
    pub no_timeout: u64,
}

/// Picks one of the counts.
type OfOpen = fn(OpenCursors) -> u64;
/// Picks one of the counters.
type OfStatistics = fn(&CursorStatistics) -> &Counter;

/// The cursors of a node. Cloning shares them.
#[derive(Clone)]
pub struct CursorManager(Arc<Shared>);

struct Shared {
    env: Env,
    cursors: Mutex<HashMap<i64, Entry>>,
    statistics: CursorStatistics,
}

impl CursorManager {
    /// Without cursors.
    pub fn new(env: &Env) -> CursorManager {
        let shared = Shared { env: env.clone(), cursors: Mutex::default(), statistics: CursorStatistics::default() };
        CursorManager(Arc::new(shared))
    }

    /// What was counted.
    pub fn statistics(&self) -> &CursorStatistics {
        &self.0.statistics
    }

    /// Adds what serverStatus shows.
    pub fn add_metrics(&self, tree: &mut MetricTree) -> Result<()> {
        let open: [(&str, OfOpen); 3] = [
            ("open.noTimeout", |open| open.no_timeout),
            ("open.pinned", |open| open.pinned),
            ("open.total", |open| open.total),
        ];
        for (name, count) in open {
            let manager = self.clone();
            let read = move || MetricValue::Long(count(manager.open()) as i64);
            tree.add(&format!("metrics.cursor.{name}"), Arc::new(read))?;
        }
        let counted: [(&str, OfStatistics); 3] = [
            ("moreThanOneBatch", |statistics| &statistics.more_than_one_batch),
            ("timedOut", |statistics| &statistics.timed_out),
            ("totalOpened", |statistics| &statistics.total_opened),
        ];
        for (name, counter) in counted {
            let manager = self.clone();
            let read = move || MetricValue::Long(counter(manager.statistics()).get() as i64);
            tree.add(&format!("metrics.cursor.{name}"), Arc::new(read))?;
        }
        Ok(())
    }

    fn now_ms(&self) -> u64 {
        self.0.env.clock().monotonic_ns() / 1_000_000
    }

    /// Enters a cursor, pinned by this operation. Its source is saved when it is let go of.
    pub fn register(
        &self,
        user: &OperationContext,
        options: CursorOptions,
        source: Box<dyn BatchSource>,
    ) -> PinnedCursor {
        let now_ms = self.now_ms();
        let pinned = Pinned { options: options.clone(), user: user.clone(), is_killed: false };
        let id = self.enter(pinned);
        self.0.statistics.total_opened.increment();
        let cursor = ClientCursor {
            id,
            options,
            source,
            created_ms: now_ms,
            last_used_ms: now_ms,
            returned: 0,
            batches: 0,
            time_left_ns: None,
        };
        PinnedCursor { manager: self.clone(), cursor: Some(Box::new(cursor)) }
    }

    /// Takes a random id that nobody has, neither zero nor negative.
    fn enter(&self, pinned: Pinned) -> i64 {
        let mut cursors = self.0.cursors.lock();
        loop {
            let id = (self.0.env.random().next_u64() >> 1) as i64;
            if id != 0 && !cursors.contains_key(&id) {
                cursors.insert(id, Entry::Pinned(pinned));
                return id;
            }
        }
    }

    /// Takes a cursor for a getMore. Its source has to be restored before it is used.
    pub fn pin(
        &self,
        id: i64,
        user: &OperationContext,
        namespace: &Namespace,
        session: Option<&Doc>,
        transaction_number: Option<i64>,
    ) -> Result<PinnedCursor> {
        let mut cursors = self.0.cursors.lock();
        let Some(entry) = cursors.get(&id) else { return Err(not_found(id)) };
        if let Entry::Pinned(pinned) = entry {
            return Err(if pinned.is_killed { not_found(id) } else { in_use(id) });
        }
        check_use(id, entry.options(), namespace, session, transaction_number)?;
        let pinned = Pinned { options: entry.options().clone(), user: user.clone(), is_killed: false };
        let Some(Entry::Idle(cursor)) = cursors.insert(id, Entry::Pinned(pinned)) else { return Err(not_found(id)) };
        Ok(PinnedCursor { manager: self.clone(), cursor: Some(cursor) })
    }

    /// Closes a cursor; one in use is closed by its user, who is told. False if there is none.
    pub fn kill(&self, id: i64) -> bool {
        let dropped = {
            let mut cursors = self.0.cursors.lock();
            match cursors.get_mut(&id) {
                None => return false,
                Some(Entry::Pinned(pinned)) => {
                    pinned.is_killed = true;
                    pinned.user.kill(ErrorCode::CursorKilled);
                    return true;
                }
                Some(Entry::Idle(_)) => cursors.remove(&id),
            }
        };
        drop(dropped);
        true
    }

    /// Closes the cursors that are picked; how many.
    pub fn kill_where(&self, picks: impl Fn(&CursorOptions) -> bool) -> usize {
        self.kill_each(picks).len()
    }

    /// Closes the cursors that are picked; which.
    pub fn kill_each(&self, picks: impl Fn(&CursorOptions) -> bool) -> Vec<i64> {
        let ids: Vec<i64> = {
            let cursors = self.0.cursors.lock();
            cursors.iter().filter(|(_, entry)| picks(entry.options())).map(|(id, _)| *id).collect()
        };
        ids.into_iter().filter(|id| self.kill(*id)).collect()
    }

    /// Closes the cursors of a session, which is named by its id.
    pub fn kill_session(&self, session: &Doc) -> usize {
        let id_of = |session: &Doc| session.get("id").map(|id| id.to_string());
        self.kill_where(|options| options.session.as_ref().is_some_and(|of| id_of(of) == id_of(session)))
    }

    /// The sessions that have cursors, as their requests named them.
    pub fn sessions(&self) -> Vec<Doc> {
        self.0.cursors.lock().values().filter_map(|entry| entry.options().session.clone()).collect()
    }

    /// Closes the cursors on a collection.
    pub fn kill_collection(&self, uuid: &Uuid) -> usize {
        self.kill_where(|options| options.collection.as_ref() == Some(uuid))
    }

    /// What is known of a cursor.
    pub fn options_of(&self, id: i64) -> Option<CursorOptions> {
        self.0.cursors.lock().get(&id).map(|entry| entry.options().clone())
    }

    /// The cursors that are not in use, as currentOp tells of them.
    pub fn idle(&self) -> Vec<IdleCursor> {
        let cursors = self.0.cursors.lock();
        let idle = cursors.values().filter_map(|entry| match entry {
            Entry::Idle(cursor) => Some(IdleCursor {
                options: cursor.options.clone(),
                facts: cursor.facts(),
                plan_summary: cursor.source.plan_summary().to_owned(),
            }),
            Entry::Pinned(_) => None,
        });
        idle.collect()
    }

    /// Closes idle cursors that nobody has used for so long; those of sessions live as long as their sessions. How many.
    pub fn time_out(&self, timeout_ms: i64) -> usize {
        let Ok(timeout_ms) = u64::try_from(timeout_ms) else { return 0 };
        let now_ms = self.now_ms();
        let is_old = |entry: &Entry| match entry {
            Entry::Idle(cursor) => {
                !cursor.options.no_timeout
                    && cursor.options.session.is_none()
                    && now_ms.saturating_sub(cursor.last_used_ms) >= timeout_ms
            }
            Entry::Pinned(_) => false,
        };
        let dropped: Vec<Entry> = {
            let mut cursors = self.0.cursors.lock();
            let ids: Vec<i64> = cursors.iter().filter(|(_, entry)| is_old(entry)).map(|(id, _)| *id).collect();
            ids.iter().filter_map(|id| cursors.remove(id)).collect()
        };
        self.0.statistics.timed_out.add(dropped.len() as u64);
        dropped.len()
    }

    /// How many there are.
    pub fn open(&self) -> OpenCursors {
        let cursors = self.0.cursors.lock();
        let count = |picks: &dyn Fn(&Entry) -> bool| cursors.values().filter(|entry| picks(entry)).count() as u64;
        OpenCursors {
            total: cursors.len() as u64,
            pinned: count(&|entry| matches!(entry, Entry::Pinned(_))),
            no_timeout: count(&|entry| entry.options().no_timeout),
        }
    }

    /// Puts a cursor back, unless it was killed meanwhile.
    fn put_back(&self, mut cursor: Box<ClientCursor>) {
        cursor.last_used_ms = self.now_ms();
        let id = cursor.id;
        let dropped = {
            let mut cursors = self.0.cursors.lock();
            match cursors.get(&id) {
                Some(Entry::Pinned(pinned)) if !pinned.is_killed => {
                    cursors.insert(id, Entry::Idle(cursor));
                    None
                }
                _ => {
                    cursors.remove(&id);
                    Some(cursor)
                }
            }
        };
        drop(dropped);
    }

    fn forget(&self, id: i64) {
        let entry = self.0.cursors.lock().remove(&id);
        drop(entry);
    }
}

fn not_found(id: i64) -> Error {
    Error::new(ErrorCode::CursorNotFound, format!("cursor id {id} not found"))
}

fn in_use(id: i64) -> Error {
    Error::new(ErrorCode::CursorInUse, format!("cursor id {id} is already in use"))
}

/// A cursor that one operation uses. Dropped, the cursor is gone: an operation that failed does not leave a cursor whose place
/// nobody knows. [`PinnedCursor::keep`] puts it back.
pub struct PinnedCursor {
    manager: CursorManager,
    cursor: Option<Box<ClientCursor>>,
}

impl PinnedCursor {
    /// Puts the cursor back for the next getMore; tells its id. The source is saved.
    pub fn keep(mut self) -> i64 {
        let Some(mut cursor) = self.cursor.take() else { return 0 };
        cursor.source.save();
        if cursor.batches == 2 {
            self.manager.0.statistics.more_than_one_batch.increment();
        }
        let id = cursor.id;
        self.manager.put_back(cursor);
        id
    }

    /// Closes the cursor.
    pub fn close(self) {
        drop(self);
    }
}

impl Drop for PinnedCursor {
    fn drop(&mut self) {
        if let Some(cursor) = self.cursor.take() {
            self.manager.forget(cursor.id);
        }
    }
}

impl Deref for PinnedCursor {
    type Target = ClientCursor;

    fn deref(&self) -> &ClientCursor {
        match &self.cursor {
            Some(cursor) => cursor,
            None => unreachable!("a cursor is taken only by what consumes its pin"),
        }
    }
}

impl DerefMut for PinnedCursor {
    fn deref_mut(&mut self) -> &mut ClientCursor {
        match &mut self.cursor {
            Some(cursor) => cursor,
            None => unreachable!("a cursor is taken only by what consumes its pin"),
        }
    }
}
