//! The users that are known, so that a request does not read documents.
//!
//! Every change to users or roles raises the generation and empties the cache; whoever holds a user of an older generation
//! asks again. A user that was read while a change happened is given out but not kept.
//!
//! Locks: one, never held while anything else is done.

use crate::names::UserName;
use crate::user::User;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// More users are not kept; those that log in then are read again when their connection asks.
const USERS_MAX: usize = 10_000;

/// The users that are known.
#[derive(Debug, Default)]
pub struct UserCache {
    generation: AtomicU64,
    users: Mutex<HashMap<UserName, Arc<User>>>,
}

impl UserCache {
    /// Which state of users and roles is the present one. It only grows.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Users or roles have changed.
    pub fn invalidate(&self) {
        let mut users = self.users.lock();
        self.generation.fetch_add(1, Ordering::AcqRel);
        users.clear();
    }

    /// The user, if known.
    pub fn get(&self, name: &UserName) -> Option<Arc<User>> {
        self.users.lock().get(name).cloned()
    }

    /// Keeps a user that was read when the generation was this one.
    pub fn keep(&self, user: &Arc<User>, generation: u64) {
        let mut users = self.users.lock();
        if self.generation() == generation && users.len() < USERS_MAX {
            users.insert(user.name().clone(), Arc::clone(user));
        }
    }

    /// How many are known.
    pub fn len(&self) -> usize {
        self.users.lock().len()
    }

    /// Is none known?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u10_a_user_that_was_read_during_a_change_is_not_kept() {
        let cache = UserCache::default();
        let user = Arc::new(User::internal());
        let before = cache.generation();
        cache.keep(&user, before);
        assert!(cache.get(user.name()).is_some());
        cache.invalidate();
        assert!(cache.is_empty());
        cache.keep(&user, before);
        assert!(cache.get(user.name()).is_none());
    }
}
