//! New object ids: the second, five bytes of chance that name the process, and a counter.

use pando_doc::ObjectId;
use pando_env::Env;
use std::sync::atomic::{AtomicU32, Ordering};

/// Gives out object ids, each once.
pub struct ObjectIds {
    process: [u8; 5],
    counter: AtomicU32,
}

impl ObjectIds {
    /// A new source; two of them do not meet.
    pub fn new(env: &Env) -> ObjectIds {
        let mut process = [0; 5];
        env.random().fill(&mut process);
        ObjectIds { process, counter: AtomicU32::new(env.random().next_u64() as u32) }
    }

    /// Goes on at another place: somebody else has ids from here.
    pub(crate) fn leap(&self, env: &Env) {
        self.counter.store(env.random().next_u64() as u32, Ordering::Relaxed);
    }

    /// The next id.
    pub fn next(&self, env: &Env) -> ObjectId {
        let seconds = (env.clock().wall_ms() / 1000) as u32;
        ObjectId::from_parts(seconds, self.process, self.counter.fetch_add(1, Ordering::Relaxed))
    }
}
