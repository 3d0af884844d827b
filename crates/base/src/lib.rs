//! What every layer shares.
//!
//! - *Values*: [`Timestamp`], [`RecordId`], [`Uuid`], the names of databases and collections ([`Namespace`]).
//! - *Errors*: MongoDB's codes ([`ErrorCode`]) and the error that ends in a reply ([`Error`], [`bail!`], [`ensure!`]).
//! - *Operations*: who asked for what, until when, and whether to stop ([`OperationContext`], [`OperationRegistry`]).
//! - *What people turn and read*: parameters ([`Parameter`]), fail points ([`FailPoint`]), metrics ([`MetricTree`]), the
//!   log ([`Log`], [`log!`]).
//!
//! This crate knows nothing of BSON, storage or commands: a document is bytes to it. It touches neither clock nor chance:
//! both are passed in. Definitions are listed by hand, never registered by themselves; values belong to handles that a
//! server owns, but for fail points, which are the process's.

pub mod date;
mod error;
mod fail_point;
mod log;
mod metrics;
mod namespace;
pub mod operation;
mod parameter;
pub mod record_id;
mod timestamp;
mod uuid;

pub use error::{Category, Context, Error, ErrorCode, Result};
pub use fail_point::{AnyFailPoint, FailPoint, FailPointHit, FailPointMode, FailPointSet, FailPointStatus};
pub use log::{Component, Log, LogLine, LogSink, LogValue, NoSink, Progress, RateLimit, Severity, WallClock};
pub use metrics::{
    BUCKET_COUNT, Counter, Gauge, HistogramSnapshot, LatencyHistogram, Metric, MetricTree, MetricValue, ShardedCounter,
};
pub use namespace::{
    DATABASE_LENGTH_MAX, DatabaseName, NAMESPACE_LENGTH_MAX, Namespace, NamespaceOrUuid, SHARDED_NAMESPACE_LENGTH_MAX,
    TenantId,
};
pub use operation::{
    Client, ClientUser, CursorFacts, DeadlineScope, FAIL_POINTS, IgnoreInterruptsScope, MonotonicClock,
    OperationContext, OperationDescription, OperationKind, OperationRegistry, OperationStatistics, PlanFacts,
    ReadResources, ResourceMeter, ResourceUse, Tally, UnitSizes, Units, WeakOperation, WriteResources,
};
pub use parameter::{AnyParameter, Document, Kind, Number, Parameter, ParameterSet, ParameterValue, Settable};
pub use record_id::{RecordId, RecordIdKind};
pub use timestamp::Timestamp;
pub use uuid::Uuid;
