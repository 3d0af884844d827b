//! What data commands work with: storage, collections, queries, sessions and replication of a node, put together by the
//! server. A node without storage (some tests) has none of it.

use crate::Invocation;
use crate::backup::Backups;
use crate::catalog::DropsPending;
use crate::crud::InsertNews;
use crate::settings::ClusterSettings;
use crate::watch::{Profiler, Top};
use pando_base::{Error, ErrorCode, Result};
use pando_catalog::{Catalog, Observers};
use pando_collection::WritePath;
use pando_index_build::IndexBuilds;
use pando_locks::ResourceId;
use pando_operation::{Operation, Services};
use pando_query::QueryEngine;
use pando_query::cursor::CursorManager;
use pando_query::executor::Collections;
use pando_repl::{OplogWriter, ReplicationNode, ReplicationParts};
use pando_session::{History, SessionCache, SessionCatalog, SessionTable};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// The data of a node.
pub struct Data {
    /// Engine, locks, parameters: what operations are made from.
    pub services: Services,
    /// The collections.
    pub catalog: Arc<Catalog>,
    /// Who is told of every write: the oplog's writer in a set.
    pub observers: Arc<Observers>,
    /// The databases that are being dropped.
    pub drops_pending: DropsPending,
    /// The index builds under way.
    pub index_builds: Arc<IndexBuilds>,
    /// Plans and runs; it has the write path.
    pub query: QueryEngine,
    /// The cursors of clients.
    pub cursors: CursorManager,
    /// Wakes cursors that wait at the end of capped collections.
    pub inserts: Arc<InsertNews>,
    /// What keeps the files as they are while they are copied.
    pub backups: Arc<Backups>,
    /// How collections are used.
    pub top: Arc<Top>,
    /// The checks of the set's consistency that were asked for.
    pub checks: crate::db_check::DbChecks,
    /// Which databases are profiled.
    pub profiler: Profiler,
    /// What the deployment is set to.
    pub settings: Arc<ClusterSettings>,
    /// The sessions that clients use.
    pub session_cache: SessionCache,
    /// Who has which session.
    pub sessions: SessionCatalog,
    /// Where sessions are kept.
    pub session_table: Arc<dyn SessionTable>,
    /// What sessions have written.
    pub history: History,
    /// The node's part in its set: who may write, write and read concerns, cluster time.
    pub replication: Arc<ReplicationNode>,
    /// What starts and changes the set; the oplog's writer is in it.
    pub replication_parts: ReplicationParts,
}

impl Data {
    /// Writes documents.
    pub fn write_path(&self) -> &Arc<WritePath> {
        &self.query.write_path
    }

    /// Finds collections for reads.
    pub fn collections(&self) -> &dyn Collections {
        &*self.query.collections
    }

    /// The oplog's writer.
    pub fn oplog_writer(&self) -> &Arc<OplogWriter> {
        &self.replication_parts.writer
    }
}

/// The operation of a command. When it ends, its locks are given back, or kept by its transaction, and the command's invocation
/// learns what the reply has to wait for.
pub struct CommandOperation<'a> {
    /// There until the drop. In a box, as transactions keep it.
    operation: Option<Box<Operation>>,
    invocation: &'a Invocation,
}

impl Deref for CommandOperation<'_> {
    type Target = Operation;

    fn deref(&self) -> &Operation {
        self.operation.as_deref().unwrap_or_else(|| unreachable!("{UNTIL_DROP}"))
    }
}

/// Why there is an operation.
const UNTIL_DROP: &str = "only the drop takes the operation away";

impl DerefMut for CommandOperation<'_> {
    fn deref_mut(&mut self) -> &mut Operation {
        self.operation.as_deref_mut().unwrap_or_else(|| unreachable!("{UNTIL_DROP}"))
    }
}

impl Drop for CommandOperation<'_> {
    fn drop(&mut self) {
        let Some(operation) = self.operation.take() else { return };
        self.invocation.note_written(&operation);
        match self.invocation.transaction() {
            Some(statement) => statement.put_down(operation),
            None => operation.locker.unlock_everything(),
        }
    }
}

impl Invocation {
    /// The node's data.
    pub fn data(&self) -> Result<&Arc<Data>> {
        let none = || Error::new(ErrorCode::IllegalOperation, "this node has no storage");
        self.node.data.as_ref().ok_or_else(none)
    }

    /// The operation of this command. Made anew by each call; a command needs one.
    pub fn operation(&self) -> Result<CommandOperation<'_>> {
        let operation = match self.transaction() {
            Some(statement) => statement.take_up(self.context.clone())?,
            None => Box::new(self.data()?.services.operation_of(self.context.clone())),
        };
        Ok(CommandOperation { operation: Some(operation), invocation: self })
    }
}

/// The names of a namespace's locks.
pub(crate) struct LockNames {
    pub(crate) tenant: Option<ResourceId>,
    pub(crate) database: ResourceId,
    pub(crate) collection: ResourceId,
}

impl LockNames {
    pub(crate) fn of(namespace: &pando_base::Namespace) -> LockNames {
        let tenant = namespace.tenant();
        let id = tenant.as_ref().map(|tenant| &tenant.0[..]);
        LockNames {
            tenant: id.map(ResourceId::tenant),
            database: ResourceId::database(id, namespace.database().as_bytes()),
            collection: ResourceId::collection(id, namespace.as_str().as_bytes()),
        }
    }
}
