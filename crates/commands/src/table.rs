//! The command table: what dispatch has to know about each command.
//!
//! A row is a constant beside the command it describes; areas list their rows, and the server puts the lists together.
//! Looking a command up is one hash.

use crate::{Access, Invocation};
use foldhash::fast::RandomState;
use pando_base::{Counter, ErrorCode, OperationKind, Result, ensure};
use pando_doc::DocBuilder;
use pando_env::Place;
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;

/// What a running command is.
pub type CommandFuture<'a> = Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

/// How a command is called. Its fields go into the builder; `ok` and the times are added by dispatch.
pub type Run = for<'a> fn(&'a Invocation, &'a mut DocBuilder) -> CommandFuture<'a>;

/// Boxes a command's future; rows are written `run: |invocation, reply| run_boxed(run(invocation, reply))`.
pub fn run_boxed<'a>(future: impl Future<Output = Result<()>> + Send + 'a) -> CommandFuture<'a> {
    Box::pin(future)
}

/// What a command does to data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// It reads documents.
    Read,
    /// It changes documents.
    Write,
    /// It changes collections, indexes or databases.
    Catalog,
    /// Neither.
    Command,
}

/// Whether a node that is not primary runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecondaryOk {
    /// Yes.
    Always,
    /// Only on a primary.
    Never,
    /// If the client allows it with its read preference.
    OptIn,
}

/// How it is let into the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Without a ticket: it does not touch the engine, or must not wait.
    Free,
    /// With a read ticket.
    Read,
    /// With a write ticket.
    Write,
}

/// Which of the operation counters it counts in. Writes count their statements themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpCounter {
    /// "command".
    Command,
    /// "query".
    Query,
    /// "getmore".
    GetMore,
    /// In none here: the command counts what it does.
    Own,
}

/// Where the namespace of a command is found, for fail points, currentOp and privileges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamespaceOf {
    /// It is the database.
    Database,
    /// The value of the command's own field is the collection.
    FirstField,
    /// The same; a number in its place means the database's pipelines without a collection.
    FirstFieldOrPipeline,
    /// The value of this field is the collection.
    Field(&'static str),
    /// The value of the command's own field is the whole namespace.
    FullName,
    /// The command's own field is another command, whose own field is the collection.
    InnerCommand,
}

/// One command.
#[derive(Clone, Copy)]
pub struct CommandRow {
    /// The name.
    pub name: &'static str,
    /// Other names.
    pub aliases: &'static [&'static str],
    /// One line for people.
    pub help: &'static str,
    /// Runs it.
    pub run: Run,
    /// What it does to data.
    pub class: Class,
    /// Only on the database "admin".
    pub is_admin_only: bool,
    /// Allowed before the client has proved who it is.
    pub is_allowed_before_authentication: bool,
    /// Without authentication at all, only for clients on this machine.
    pub is_local_without_authentication: bool,
    /// On nodes that are not primary.
    pub secondary_ok: SecondaryOk,
    /// Inside a transaction.
    pub is_allowed_in_transaction: bool,
    /// Inside a transaction that reads what is newest: not of one that reads at a time.
    pub needs_local_transaction: bool,
    /// Ends a transaction, or prepares its end.
    pub ends_transaction: bool,
    /// A retryable write: takes a transaction number without a transaction.
    pub is_retryable_write: bool,
    /// Part of API version 1.
    pub is_in_api_version_1: bool,
    /// Part of API version 2, which only tests know.
    pub is_in_api_version_2: bool,
    /// The API versions in which it is deprecated.
    pub api_versions_deprecated: &'static [&'static str],
    /// The API parameters are not looked at.
    pub skips_api_version_check: bool,
    /// Takes a write concern.
    pub takes_write_concern: bool,
    /// Takes a read concern other than local.
    pub takes_read_concern: bool,
    /// But not the read concern snapshot.
    pub refuses_snapshot: bool,
    /// Stopped when the client goes away.
    pub is_stopped_when_abandoned: bool,
    /// How it is let into the engine.
    pub admission: Admission,
    /// Where it runs: nearly all with the requests, where they leave their worker if they take long. What is always long begins on a
    /// lane; what has to be answered whatever else goes on takes no ticket, and no lock that others hold for long.
    pub place: Place,
    /// What currentOp and the profiler call it.
    pub kind: OperationKind,
    /// Where it is counted.
    pub op_counter: OpCounter,
    /// Where its namespace is.
    pub namespace: NamespaceOf,
    /// What a client must be allowed to do. Every row has to say it.
    pub privileges: Access,
    /// Fields with secrets in them: they are shown nowhere.
    pub secret_fields: &'static [&'static str],
    /// Counted in the books of its collection; not where the collection goes.
    pub counts_in_top: bool,
    /// There only with enableTestCommands.
    pub is_for_tests: bool,
}

fn run_nothing<'a>(_: &'a Invocation, _: &'a mut DocBuilder) -> CommandFuture<'a> {
    Box::pin(std::future::ready(Ok(())))
}

impl CommandRow {
    /// What most administrative commands are; a row says in what it differs.
    pub const DEFAULT: CommandRow = CommandRow {
        name: "",
        aliases: &[],
        help: "",
        run: run_nothing,
        class: Class::Command,
        is_admin_only: false,
        is_allowed_before_authentication: false,
        is_local_without_authentication: false,
        secondary_ok: SecondaryOk::Always,
        is_allowed_in_transaction: false,
        needs_local_transaction: false,
        ends_transaction: false,
        is_retryable_write: false,
        is_in_api_version_1: false,
        is_in_api_version_2: false,
        api_versions_deprecated: &[],
        skips_api_version_check: false,
        takes_write_concern: false,
        takes_read_concern: false,
        refuses_snapshot: false,
        is_stopped_when_abandoned: false,
        admission: Admission::Free,
        place: Place::Requests,
        kind: OperationKind::Command,
        op_counter: OpCounter::Command,
        namespace: NamespaceOf::Database,
        privileges: Access::Unsaid,
        secret_fields: &[],
        counts_in_top: true,
        is_for_tests: false,
    };

    /// True if it goes by this name.
    pub fn is_called(&self, name: &[u8]) -> bool {
        self.name.as_bytes() == name || self.aliases.iter().any(|alias| alias.as_bytes() == name)
    }
}

/// How often a command ran.
#[derive(Clone, Debug, Default)]
pub struct CommandCounters {
    /// How often in all.
    pub total: Arc<Counter>,
    /// How often it failed.
    pub failed: Arc<Counter>,
}

/// A row with its counters.
pub struct Entry {
    /// The row.
    pub row: &'static CommandRow,
    /// Its counters.
    pub counters: CommandCounters,
}

/// All commands of a node.
pub struct CommandTable {
    entries: Vec<Entry>,
    /// Names are those of the lists: nobody can choose them to collide.
    by_name: HashMap<&'static [u8], usize, RandomState>,
    /// Requests for commands that there are not.
    pub unknown: Arc<Counter>,
}

impl CommandTable {
    /// Puts the lists together. Two commands of one name are a defect.
    pub fn new(lists: &[&'static [CommandRow]], test_commands_enabled: bool) -> Result<CommandTable> {
        let mut table = CommandTable { entries: Vec::new(), by_name: HashMap::default(), unknown: Arc::default() };
        for row in lists.iter().flat_map(|list| list.iter()) {
            if row.is_for_tests && !test_commands_enabled {
                continue;
            }
            let is_said = !matches!(row.privileges, Access::Unsaid);
            ensure!(is_said, ErrorCode::InternalError, "the command {} does not say who may run it", row.name);
            for name in std::iter::once(&row.name).chain(row.aliases) {
                let before = table.by_name.insert(name.as_bytes(), table.entries.len());
                ensure!(before.is_none(), ErrorCode::InternalError, "two commands are called {name}");
            }
            table.entries.push(Entry { row, counters: CommandCounters::default() });
        }
        table.entries.shrink_to_fit();
        Ok(table)
    }

    /// The command of this name.
    pub fn find(&self, name: &[u8]) -> Option<&Entry> {
        self.by_name.get(name).and_then(|place| self.entries.get(*place))
    }

    /// All commands, in the order of the lists.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }
}
