//! Where a locker's state is kept, so that reports find it.

use super::state::State;
use crate::sync::Mutex;

/// The state of a locker, or of none.
#[derive(Default)]
pub(crate) struct Seat {
    pub(super) state: Mutex<State>,
}
