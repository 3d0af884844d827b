//! The logical sessions that clients of this node use: when each was last used, and which their clients have ended.
//!
//! It is filled by every request that names a session and emptied by the refresh, which writes the sessions down in
//! `config.system.sessions`; what was in it lives on there until it expires. A refresh that fails gives back what it took.
//!
//! The lock is held for a few instructions, or for as long as a list takes to copy.

use crate::id::{LogicalSessionId, SessionHasher};
use pando_base::{Error, ErrorCode, Result};
use pando_doc::{Doc, DocBuilder, Value};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};

/// A session in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachedSession {
    /// Which.
    pub session: LogicalSessionId,
    /// When it was last used, in milliseconds since 1970.
    pub last_use_ms: i64,
}

impl CachedSession {
    /// As `$listLocalSessions` shows it and `config.system.sessions` keeps it.
    pub fn to_doc(&self) -> Doc {
        let mut builder = DocBuilder::with_capacity(128);
        builder.append("_id", self.session.to_doc());
        builder.append("lastUse", Value::DateTime(self.last_use_ms));
        builder.finish()
    }
}

/// What the periodic work has done, for serverStatus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionCacheStatistics {
    /// How often sessions were written down.
    pub refresh_count: i64,
    /// When last, in milliseconds since 1970.
    pub refresh_date_ms: i64,
    /// How long that took.
    pub refresh_duration_ms: i64,
    /// Sessions written down then.
    pub refreshed: i64,
    /// Sessions that their clients had ended then.
    pub ended: i64,
    /// Cursors of sessions that were gone then.
    pub cursors_closed: i64,
    /// How often records of old sessions were looked for.
    pub reap_count: i64,
    /// When last.
    pub reap_date_ms: i64,
    /// How long that took.
    pub reap_duration_ms: i64,
    /// Records removed then.
    pub reaped: i64,
}

/// What a refresh works on.
#[derive(Debug, Default)]
pub struct TakenSessions {
    /// Sessions that were used since the last one.
    pub active: HashMap<LogicalSessionId, CachedSession, SessionHasher>,
    /// Sessions that their clients have ended; none of them is active.
    pub ending: HashSet<LogicalSessionId>,
}

/// The sessions in use.
#[derive(Default)]
pub struct SessionCache {
    taken: Mutex<TakenSessions>,
    statistics: Mutex<SessionCacheStatistics>,
}

impl SessionCache {
    /// Without sessions.
    pub fn new() -> SessionCache {
        SessionCache::default()
    }

    /// A session is used now. There are at most so many.
    pub fn vivify(&self, session: LogicalSessionId, now_ms: i64, count_max: usize) -> Result<()> {
        let session = session.parent();
        let mut taken = self.taken.lock();
        if let Some(known) = taken.active.get_mut(&session) {
            known.last_use_ms = now_ms;
            return Ok(());
        }
        if taken.active.len() >= count_max {
            let reason = format!(
                "Unable to add session ID {} into the cache because the number of active sessions is too high",
                session.id
            );
            return Err(Error::new(ErrorCode::TooManyLogicalSessions, reason));
        }
        taken.active.insert(session, CachedSession { session, last_use_ms: now_ms });
        Ok(())
    }

    /// Their clients will not use these any more.
    pub fn end(&self, sessions: &[LogicalSessionId]) -> Result<()> {
        if let Some(child) = sessions.iter().find(|session| session.is_child()) {
            return Err(Error::new(ErrorCode::InvalidOptions, format!("Cannot specify a child session id {child}")));
        }
        self.taken.lock().ending.extend(sessions.iter().copied());
        Ok(())
    }

    /// All sessions in use.
    pub fn list(&self) -> Vec<CachedSession> {
        self.taken.lock().active.values().copied().collect()
    }

    /// Is it in use?
    pub fn contains(&self, session: LogicalSessionId) -> bool {
        self.taken.lock().active.contains_key(&session.parent())
    }

    /// How many are in use.
    pub fn count(&self) -> usize {
        self.taken.lock().active.len()
    }

    /// Takes everything, for a refresh.
    pub fn take(&self) -> TakenSessions {
        let mut taken = std::mem::take(&mut *self.taken.lock());
        let ending = std::mem::take(&mut taken.ending);
        taken.active.retain(|session, _| !ending.contains(session));
        TakenSessions { ending, ..taken }
    }

    /// Gives back what a refresh could not write down; what was used since counts.
    pub fn give_back(&self, back: TakenSessions) {
        let mut taken = self.taken.lock();
        for (session, cached) in back.active {
            taken.active.entry(session).or_insert(cached);
        }
        taken.ending.extend(back.ending);
    }

    /// What the periodic work has done.
    pub fn statistics(&self) -> SessionCacheStatistics {
        *self.statistics.lock()
    }

    /// Notes what the periodic work does.
    pub fn note(&self, change: impl FnOnce(&mut SessionCacheStatistics)) {
        change(&mut self.statistics.lock());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::NO_USER;
    use pando_base::Uuid;

    fn session(byte: u8) -> LogicalSessionId {
        LogicalSessionId::new(Uuid::from_random([byte; 16]), NO_USER)
    }

    #[test]
    fn s16_sessions_are_kept_until_a_refresh_takes_them() {
        let cache = SessionCache::new();
        cache.vivify(session(1), 10, 2).unwrap();
        let child = LogicalSessionId { txn_uuid: Some(Uuid::from_random([9; 16])), ..session(1) };
        cache.vivify(child, 20, 2).unwrap();
        cache.vivify(session(2), 30, 2).unwrap();
        assert_eq!(cache.vivify(session(3), 30, 2).unwrap_err().code(), ErrorCode::TooManyLogicalSessions);
        assert_eq!(cache.count(), 2, "a child counts as its parent");
        cache.end(&[session(2)]).unwrap();
        assert!(cache.end(&[child]).is_err());
        let taken = cache.take();
        assert_eq!(
            taken.active.values().copied().collect::<Vec<_>>(),
            [CachedSession { session: session(1), last_use_ms: 20 }]
        );
        assert_eq!((cache.count(), taken.ending.len()), (0, 1));
        cache.vivify(session(1), 40, 2).unwrap();
        cache.give_back(taken);
        assert_eq!(cache.list(), [CachedSession { session: session(1), last_use_ms: 40 }]);
        assert!(cache.take().ending.contains(&session(2)));
    }
}
