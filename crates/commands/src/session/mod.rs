//! Commands about logical sessions.

mod end_sessions;

use crate::CommandRow;

/// The commands of this area.
pub static ROWS: &[CommandRow] = &[end_sessions::ROW];
