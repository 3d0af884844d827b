//! Commands that are there only with `enableTestCommands`.

mod clear_log;
mod configure_fail_point;
mod wait_for_fail_point;

use crate::CommandRow;

/// The commands of this area.
pub static ROWS: &[CommandRow] = &[clear_log::ROW, configure_fail_point::ROW, wait_for_fail_point::ROW];
