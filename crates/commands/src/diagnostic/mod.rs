//! Commands that tell about the node.

mod build_info;
mod conn_pool_stats;
mod conn_pool_sync;
mod connection_status;
mod current_op;
mod features;
mod get_cmd_line_opts;
mod get_diagnostic_data;
mod get_log;
mod host_info;
mod list_commands;
mod lock_info;
mod long_waits;
mod ping;
mod server_status;
mod top;
mod whats_my_uri;

pub use build_info::append_build_info;
pub(crate) use current_op::{Observer, append_cursor};
pub use long_waits::{LongWait, LongWaits};

use crate::CommandRow;

/// The commands of this area.
pub static ROWS: &[CommandRow] = &[
    build_info::ROW,
    conn_pool_stats::ROW,
    conn_pool_sync::ROW,
    connection_status::ROW,
    current_op::ROW,
    features::ROW,
    get_cmd_line_opts::ROW,
    get_diagnostic_data::ROW,
    get_log::ROW,
    host_info::ROW,
    list_commands::ROW,
    lock_info::ROW,
    ping::ROW,
    server_status::ROW,
    top::ROW,
    whats_my_uri::ROW,
];
