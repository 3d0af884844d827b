//! Collections that were looked up in a version by the very same name: connections keep theirs from command to command, and a command
//! looks its collection up several times.
//!
//! A place is filled once and stays so for the version's life; a name that finds its place taken is looked up as ever. Copies of a
//! version, which are about to change, begin with none.

use crate::Collection;
use pando_base::Namespace;
use std::sync::{Arc, OnceLock};

const PLACES: usize = 64;
/// What is allocated lies so far apart at least.
const SPACING_BYTES: usize = 16;

/// A name and what it leads to, once somebody has asked.
type Place = OnceLock<(Namespace, Arc<Collection>)>;

/// The collections by where their names lie in memory.
pub(super) struct Known(Box<[Place]>);

impl Known {
    /// The collection of this name, kept for the next time.
    pub(super) fn get_or<'a>(
        &'a self,
        namespace: &Namespace,
        look_up: impl FnOnce() -> Option<&'a Arc<Collection>>,
    ) -> Option<&'a Arc<Collection>> {
        let place = namespace.as_str().as_ptr().addr() / SPACING_BYTES % PLACES;
        let Some(place) = self.0.get(place) else { return look_up() };
        match place.get() {
            Some((known, collection)) if is_copy(known, namespace) => Some(collection),
            Some(_) => look_up(),
            None => {
                let found = look_up()?;
                // Somebody else may have been first, with another name.
                let _ = place.set((namespace.clone(), Arc::clone(found)));
                Some(found)
            }
        }
    }
}

/// True if one is a copy of the other. The name that is known is kept alive: nothing else can have got its place in memory.
fn is_copy(known: &Namespace, namespace: &Namespace) -> bool {
    std::ptr::eq(known.as_str(), namespace.as_str()) && known.tenant() == namespace.tenant()
}

impl Default for Known {
    fn default() -> Known {
        Known((0..PLACES).map(|_| OnceLock::new()).collect())
    }
}

impl Clone for Known {
    fn clone(&self) -> Known {
        Known::default()
    }
}
