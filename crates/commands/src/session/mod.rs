//! Commands about logical sessions, one file each.
//!
//! What several share: `ids` (reading lists of sessions), `killing` (ending what sessions have in progress), `collection`
//! (`config.system.sessions`), `upkeep` (writing sessions down, and reaping what old ones have left), `list_sessions` (the
//! stages that show them).

mod collection;
mod end_sessions;
mod ids;
mod kill_all_sessions;
mod kill_all_sessions_by_pattern;
mod kill_sessions;
mod killing;
mod list_sessions;
mod reap_logical_session_cache_now;
mod refresh_logical_session_cache_now;
mod refresh_sessions;
mod start_session;
mod upkeep;

pub(crate) use killing::{close_cursors_of_transaction, session_of};
pub(crate) use list_sessions::{WantedSessions, parse_local, parse_stored, replace_stage};
pub use upkeep::{reap_sessions, refresh_sessions};

use crate::CommandRow;

/// The commands of this area.
pub static ROWS: &[CommandRow] = &[
    end_sessions::ROW,
    kill_all_sessions::ROW,
    kill_all_sessions_by_pattern::ROW,
    kill_sessions::ROW,
    reap_logical_session_cache_now::ROW,
    refresh_logical_session_cache_now::ROW,
    refresh_sessions::ROW,
    start_session::ROW,
];
