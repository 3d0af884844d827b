//! The composition root: the only crate that puts the parts of a node together.
//!
//! - [`Server::start`]: from options to a node that listens; [`Server::run`]: until a signal or a command ends it.
//! - `dispatch`: the way of a request. A list of [`Stage`]s, then the command, then the stages' last words, then the reply.
//! - `lists`: the parameters, fail points, commands, sections and stages of all crates, written down by hand.
//! - `logging`: where log lines go.
//!
//! A capability that a later layer brings (sessions, tickets, authorization, shard versions) is a stage in the list, not
//! an `if` in a command.
//!
//! Order of start: log, parameters, engine (given), data (`data`, which recovers it), node, tasks (`background`), sockets.
//! Order of shutdown: operations are told, sockets drain, tasks end, the engine closes, the log ends.

mod accepted_fail_points;
mod background;
mod before_login;
mod compatibility;
mod control;
mod data;
mod diagnostic_data;
mod dispatch;
mod engine_events;
mod lists;
mod logging;
mod metrics_page;
mod options;
mod repair;
mod replication;
mod schema_log;
mod sections;
mod slices;
mod start;
mod startup_log;
mod user_observer;

pub use control::ProcessControl;
pub use dispatch::{Dispatcher, Entered, Hold, Stage};
pub use lists::{foreign_parameters, parameters};
pub use logging::{FileSink, LogTarget, StreamSink, SyslogSink, syslog_facility};
pub use options::{ReplicationMode, SecurityOptions, ServerOptions};
pub use repair::{RepairReport, repair_catalog, repair_data};
pub use start::Server;

#[cfg(test)]
mod tests;
