//! The commands: one file each, grouped by area, and the table that lists them.
//!
//! - [`CommandTable`], [`CommandRow`]: every command with what dispatch has to know about it. Nothing registers itself.
//! - [`arguments!`]: the strict parser. A command declares its fields with their types; unknown, missing, repeated and
//!   mistyped ones are refused with MongoDB's codes and words. What every command takes ([`GenericArguments`]) is parsed
//!   once, by dispatch.
//! - [`Invocation`]: what a command is given. [`Node`]: the handles it works with. [`ConnectionState`]: what is remembered
//!   of the client.
//! - [`reply`]: how success and errors look.
//! - [`StatusSection`]: what serverStatus is made of; other crates add theirs.
//!
//! A command never knows sockets, and never waits without [`OperationContext::interruptible`]. Its reply goes into a
//! builder that begins empty; if it fails, what it wrote is thrown away.
//!
//! [`OperationContext::interruptible`]: pando_base::OperationContext::interruptible

mod access;
pub mod administration;
pub mod arguments;
pub mod backup;
pub mod catalog;
mod connection;
mod counters;
pub mod crud;
mod data;
pub mod db_check;
pub mod diagnostic;
mod fail_command;
pub mod foreign_parameters;
mod handshake;
mod invocation;
mod labels;
pub mod locking;
mod node;
mod parameters;
pub mod pre_images;
pub mod replication;
pub mod reply;
pub mod security;
pub mod session;
pub mod settings;
pub mod stable_api;
mod stages;
pub mod status;
mod stored;
mod table;
pub mod testing;
mod timeseries;
pub mod transaction;
pub mod transaction_api;
pub mod ttl;
mod version;
pub mod watch;

pub use access::{Access, AccessRequest, Check};
pub use arguments::{ApiParameters, GenericArguments};
pub use connection::ConnectionState;
pub use counters::{AssertCounters, Counters, HelloCounters, OpCounters, OpLatencies};
pub use data::{CommandOperation, Data};
pub use fail_command::{FAIL_COMMAND, FailCommand};
pub use foreign_parameters::{FOREIGN_PARAMETERS, foreign_parameter};
pub use invocation::{Invocation, NextInvocation};
pub use labels::{error_labels, write_concern_labels};
pub use node::{Control, Node, NodeOptions, ShownCertificate};
pub use pando_security::Action;
pub use parameters::{
    ACCEPT_API_VERSION_2, AUTOMATION_SERVICE_DESCRIPTOR, BACKTRACE_LOG_FILE, BSON_DEPTH_MAX, ENABLE_TEST_COMMANDS,
    FEATURE_COMPATIBILITY_VERSION, LOG_COMPONENT_VERBOSITY, LOG_LEVEL, MAX_LOG_SIZE_KB, PARAMETERS, QUERY_FRAMEWORK,
    QUERY_FRAMEWORK_ONLY, QUERY_GLOBAL_PROFILE_FILTER, QUIET, REDACT_CLIENT_LOG_DATA, REQUIRE_API_VERSION,
    SIGNALED_SHUTDOWN_MS, SLOW_MS, SLOW_OP_SAMPLE_RATE, TESTING_DIAGNOSTICS,
};
pub use replication::{
    NotInitiated, OneMember, ReplicationView, StandAlone, TopologyVersion, append_cluster_time, check_as_secondary,
};
pub use status::StatusSection;
pub use table::{
    Admission, Class, CommandFuture, CommandRow, CommandTable, NamespaceOf, OpCounter, SecondaryOk, run_boxed,
};
pub use version::{GIT_VERSION, MAX_WIRE_VERSION, MIN_WIRE_VERSION, VERSION, VERSION_PARTS};

/// The fail points of this crate.
pub static FAIL_POINTS: &[&dyn pando_base::AnyFailPoint] = &[
    &FAIL_COMMAND,
    &catalog::create_fail_points::HANG_AND_FAIL,
    &catalog::create_fail_points::THROW_IN_TRANSACTION,
    &crud::BEFORE_PLANNING,
    &crud::FAIL_GET_MORE,
    &crud::WAIT_WHILE_YIELDED,
    &handshake::WAIT_IN_HELLO,
    &transaction::HANG_BEFORE_ABORTING,
    &transaction::HANG_BEFORE_COMMITTING,
    &transaction::PREPARE_LOGGED,
    &ttl::HANG_BETWEEN_PASSES,
    &ttl::HANG_WITH_LOCK,
];

/// Those of commands that change the catalog.
pub static CATALOG_FAIL_POINTS: &[&dyn pando_base::AnyFailPoint] = catalog::fail_points::ALL;

/// Those of writes.
pub static WRITE_FAIL_POINTS: &[&dyn pando_base::AnyFailPoint] = crud::fail_points::ALL;

/// The rows of this crate, by area.
pub static ROWS: &[&[CommandRow]] = &[
    handshake::ROWS,
    security::ROWS,
    diagnostic::ROWS,
    administration::ROWS,
    replication::ROWS,
    session::ROWS,
    transaction::ROWS,
    settings::ROWS,
    testing::ROWS,
    crud::ROWS,
    catalog::ROWS,
    db_check::ROWS,
];
