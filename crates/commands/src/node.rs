//! The handles that commands work with. The server makes one and shares it; later layers add theirs.

use crate::counters::Counters;
use crate::security::Security;
use crate::transaction_api::TransactionApi;
use crate::{CommandTable, Data, ReplicationView, StatusSection};
use pando_base::{FailPointSet, Log, MetricTree, OperationRegistry, ParameterSet, Result};
use pando_doc::Doc;
use pando_env::{Env, Machine};
use pando_wire::Compressors;
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::Arc;

/// One node.
pub struct Node {
    /// The outside world.
    pub env: Env,
    /// The machine, for those who ask about it.
    pub machine: Arc<dyn Machine>,
    /// The log.
    pub log: Log,
    /// The parameters.
    pub parameters: Arc<ParameterSet>,
    /// The fail points.
    pub fail_points: Arc<FailPointSet>,
    /// The operations in progress.
    pub operations: OperationRegistry,
    /// What is counted.
    pub counters: Arc<Counters>,
    /// What is counted elsewhere, by path.
    pub metrics: MetricTree,
    /// The commands.
    pub table: CommandTable,
    /// What serverStatus shows.
    pub sections: Vec<Box<dyn StatusSection>>,
    /// The node's place in its set.
    pub replication: Arc<dyn ReplicationView>,
    /// The data; none only where there is no storage.
    pub data: Option<Arc<Data>>,
    /// Who may do what.
    pub security: Arc<Security>,
    /// What only the process can do.
    pub control: Arc<dyn Control>,
    /// Transactions that the node runs itself.
    pub transaction_api: TransactionApi,
    /// The last sample of diagnostic data.
    pub diagnostic_sample: Mutex<Doc>,
    /// How it was started.
    pub options: NodeOptions,
}

/// How the node was started.
#[derive(Clone, Debug, Default)]
pub struct NodeOptions {
    /// The words of the command line.
    pub arguments: Vec<String>,
    /// What they and the configuration file meant.
    pub parsed: Doc,
    /// The program's name: "mongod", "mongos".
    pub process_name: String,
    /// The name and port that others know the node by.
    pub host: String,
    /// Milliseconds since 1970 when it started.
    pub started_wall_ms: u64,
    /// The monotonic clock when it started.
    pub started_ns: u64,
    /// Are there commands for tests?
    pub test_commands_enabled: bool,
    /// The compressors that clients may use.
    pub compressors: Compressors,
    /// Is nothing to be written?
    pub is_read_only: bool,
    /// Where the data lies, if it is on a disk.
    pub data_directory: Option<PathBuf>,
}

/// What serverStatus tells of the certificate that clients are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShownCertificate {
    /// Its subject.
    pub subject: String,
    /// Until when it is good, in milliseconds since 1970.
    pub expires_ms: i64,
    /// The node knows authorities to check others against.
    pub has_authorities: bool,
}

/// What only the process can do.
pub trait Control: Send + Sync {
    /// Begins to end the process in good order; returns at once.
    fn shut_down(&self, timeout_seconds: u64);

    /// Reads the certificates again, for connections to come.
    fn rotate_certificates(&self) -> Result<()>;

    /// The certificate that clients are shown; none without TLS.
    fn certificate(&self) -> Option<ShownCertificate> {
        None
    }

    /// Begins a new log file. `kind` is "server" or "audit"; none means all.
    fn rotate_logs(&self, kind: Option<&str>) -> Result<()>;
}

impl Node {
    /// The last sample of diagnostic data; empty before the first.
    pub fn diagnostic_sample(&self) -> Doc {
        self.diagnostic_sample.lock().clone()
    }

    /// Keeps a sample of diagnostic data.
    pub fn set_diagnostic_sample(&self, sample: Doc) {
        *self.diagnostic_sample.lock() = sample;
    }

    /// Milliseconds since 1970.
    pub fn now_ms(&self) -> i64 {
        i64::try_from(self.env.clock().wall_ms()).unwrap_or(i64::MAX)
    }

    /// How long it has been running.
    pub fn uptime_ms(&self) -> u64 {
        self.env.clock().monotonic_ns().saturating_sub(self.options.started_ns) / 1_000_000
    }
}
