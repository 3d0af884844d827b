//! How a node is started, whoever says so: the command line, a test, a simulation.

use pando_doc::Doc;
use pando_net::NetOptions;
use pando_security::KeyFile;
use std::path::PathBuf;

/// Whether the node is a member of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplicationMode {
    /// Of none.
    StandAlone,
    /// Of a set of its own, which it starts by itself.
    OneMember(String),
    /// Of a set that somebody will initiate.
    ReplicaSet(String),
}

/// Who has to prove who they are.
#[derive(Clone, Debug, Default)]
pub struct SecurityOptions {
    /// Clients have to.
    pub is_enabled: bool,
    /// The key that the members of the deployment share.
    pub key_file: Option<KeyFile>,
}

/// How a node is started.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Where it listens.
    pub net: NetOptions,
    /// Its place.
    pub replication: ReplicationMode,
    /// Parameters by name, as text.
    pub parameters: Vec<(String, String)>,
    /// The words of the command line.
    pub arguments: Vec<String>,
    /// What they meant.
    pub parsed: Doc,
    /// The program's name: "mongod", "mongos".
    pub process_name: String,
    /// Who has to prove who they are, and how members do.
    pub security: SecurityOptions,
    /// Clients may send JavaScript.
    pub is_scripting: bool,
    /// How databases are profiled that nobody has said anything about: 0, 1 or 2.
    pub profile_level: i32,
    /// Which operations are logged and profiled, in place of the slow ones.
    pub profile_filter: Option<Doc>,
    /// Where the data lies, if it is on a disk: diagnostic data goes beside it.
    pub data_directory: Option<PathBuf>,
    /// Nothing is to be written.
    pub is_read_only: bool,
    /// Where `/metrics` is served; nowhere if empty.
    pub metrics_addresses: Vec<String>,
    /// The node does its periodic work by itself. Not on a simulated clock, whose sleeps end at once.
    pub runs_tasks: bool,
    /// Options that were given and have no effect, with what is so instead.
    pub ignored: Vec<(&'static str, &'static str)>,
}

impl Default for ServerOptions {
    fn default() -> ServerOptions {
        ServerOptions {
            net: NetOptions::default(),
            replication: ReplicationMode::StandAlone,
            parameters: Vec::new(),
            arguments: Vec::new(),
            parsed: Doc::new(),
            process_name: "mongod".to_owned(),
            security: SecurityOptions::default(),
            is_scripting: true,
            profile_level: 0,
            profile_filter: None,
            data_directory: None,
            is_read_only: false,
            metrics_addresses: Vec::new(),
            runs_tasks: true,
            ignored: Vec::new(),
        }
    }
}

impl ServerOptions {
    /// Are there commands for tests? It has to be known before the parameters are put together.
    pub fn test_commands_enabled(&self) -> bool {
        let last = self.parameters.iter().rev().find(|(name, _)| name == "enableTestCommands");
        last.is_some_and(|(_, value)| matches!(value.as_str(), "1" | "true"))
    }
}
