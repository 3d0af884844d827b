//! Several observers as one.

use super::OpObserver;
use std::fmt;
use std::sync::Arc;

/// Calls its observers in the order in which they were added; the first error ends the round.
pub struct ObserverRegistry<C: ?Sized> {
    observers: Vec<Arc<dyn OpObserver<C>>>,
}

impl<C: ?Sized> ObserverRegistry<C> {
    /// Without observers.
    pub fn new() -> ObserverRegistry<C> {
        ObserverRegistry { observers: Vec::new() }
    }

    /// Adds an observer behind the others.
    pub fn add(&mut self, observer: Arc<dyn OpObserver<C>>) {
        self.observers.push(observer);
    }

    pub(super) fn observers(&self) -> impl Iterator<Item = &dyn OpObserver<C>> {
        self.observers.iter().map(|observer| &**observer)
    }
}

impl<C: ?Sized> Default for ObserverRegistry<C> {
    fn default() -> ObserverRegistry<C> {
        ObserverRegistry::new()
    }
}

impl<C: ?Sized> fmt::Debug for ObserverRegistry<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObserverRegistry").field("observers", &self.observers.len()).finish()
    }
}
