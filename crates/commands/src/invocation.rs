//! What a command is given: the request, who sent it, and the node it runs on.

use crate::arguments::GenericArguments;
use crate::transaction::TransactionStatement;
use crate::{CommandRow, ConnectionState, NamespaceOf, Node};
use bstr::{BStr, ByteSlice};
use pando_base::{DatabaseName, Error, ErrorCode, Namespace, OperationContext, Result};
use pando_doc::{Array, Doc, DocBuilder, DocRef, Value};
use pando_locks::LockStats;
use pando_operation::Operation;
use pando_query::request::Seen;
use pando_repl::write_concern::WriteConcern;
use pando_storage::LogPosition;
use pando_wire::Command;
use parking_lot::Mutex;
use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// One run of a command.
pub struct Invocation {
    /// The node.
    pub node: Arc<Node>,
    /// The client's connection.
    pub connection: Arc<ConnectionState>,
    /// The operation.
    pub context: OperationContext,
    /// The command's row.
    pub row: &'static CommandRow,
    /// The request as it was sent.
    pub request: Command,
    /// The database it is for.
    pub database: DatabaseName,
    /// The collection it is about, or the database.
    pub namespace: Namespace,
    /// What every command takes.
    pub generic: GenericArguments,
    /// The clock on the wall when somebody first asked.
    begun_ms: OnceLock<i64>,
    /// Labels that a fail point wants in place of an error's own.
    labels_in_place: OnceLock<Array>,
    /// The write concern that the client gave, once it was read.
    write_concern: OnceLock<WriteConcern>,
    /// What the connection does next, if the command decides that.
    next: Mutex<Option<NextInvocation>>,
    /// Has the command taken locks for writing? Then its reply waits for the write concern.
    has_written: AtomicBool,
    /// Where in the log its last commit lies, if it has committed anything.
    last_commit: Mutex<Option<LogPosition>>,
    /// The transaction that it is a statement of.
    transaction: OnceLock<TransactionStatement>,
    /// What it took to get its locks, if somebody wants to know; none if it has used no storage.
    lock_stats: Mutex<Option<Box<LockStats>>>,
    /// The collections that its pipeline named when it was found that the client may run it.
    seen_by_pipeline: OnceLock<Seen>,
    /// Its reply says `ok` as a whole number, as those do that are made of an aggregation's.
    says_whole_ok: AtomicBool,
}

/// What a command can decide about its connection.
#[derive(Clone, Debug, PartialEq)]
pub enum NextInvocation {
    /// Another reply follows: this command is run again by itself.
    Again(Doc),
    /// The connection closes without a reply.
    Close,
}

impl Invocation {
    /// A run of this command.
    pub fn new(
        node: Arc<Node>,
        connection: Arc<ConnectionState>,
        context: OperationContext,
        row: &'static CommandRow,
        request: Command,
        database: DatabaseName,
        generic: GenericArguments,
    ) -> Invocation {
        let namespace = namespace(row, request.body(), &database);
        Invocation::of_namespace(node, connection, context, row, request, namespace, database, generic)
    }

    /// The same where it is known what the command is about.
    #[allow(clippy::too_many_arguments, reason = "all of it is what a run is made of")]
    pub fn of_namespace(
        node: Arc<Node>,
        connection: Arc<ConnectionState>,
        context: OperationContext,
        row: &'static CommandRow,
        request: Command,
        namespace: Namespace,
        database: DatabaseName,
        generic: GenericArguments,
    ) -> Invocation {
        let (labels_in_place, write_concern, next) = (OnceLock::new(), OnceLock::new(), Mutex::new(None));
        Invocation {
            node,
            connection,
            context,
            row,
            request,
            database,
            namespace,
            generic,
            begun_ms: OnceLock::new(),
            labels_in_place,
            write_concern,
            next,
            has_written: AtomicBool::new(false),
            last_commit: Mutex::new(None),
            transaction: OnceLock::new(),
            lock_stats: Mutex::new(None),
            seen_by_pipeline: OnceLock::new(),
            says_whole_ok: AtomicBool::new(false),
        }
    }

    /// About when the request came, in milliseconds since 1970. Every look at the clock costs.
    pub fn begun_ms(&self) -> i64 {
        *self.begun_ms.get_or_init(|| self.node.now_ms())
    }

    /// The command document.
    #[inline]
    pub fn body(&self) -> DocRef<'_> {
        self.request.body()
    }

    /// The command document as it may be shown: without secrets.
    pub fn shown_body(&self) -> Doc {
        if self.row.secret_fields.is_empty() {
            return Doc::trusted(self.request.body_bytes());
        }
        let mut shown = DocBuilder::with_capacity(self.body().size_bytes());
        for element in self.body().raw_elements() {
            match self.row.secret_fields.iter().any(|field| element.name == *field) {
                true => shown.append(element.name, "xxx"),
                false => shown.append_raw(element),
            }
        }
        shown.finish()
    }

    /// The value of the command's own field.
    pub fn target(&self) -> Value<'_> {
        self.body().first().map_or(Value::Null, |element| element.value)
    }

    /// The value of the command's own field, which must be a string.
    pub fn target_text(&self) -> Result<&str> {
        match self.target() {
            Value::String(text) => utf8(text),
            other => Err(Error::type_mismatch(format!(
                "BSON field '{0}.{0}' is the wrong type '{1}', expected type 'string'",
                self.row.name,
                other.value_type().name()
            ))),
        }
    }

    /// The collection that the command's own field names, which must be there and may not be a UUID.
    pub fn collection(&self) -> Result<Namespace> {
        match self.target() {
            Value::String(name) | Value::Symbol(name) => {
                // Mostly it was made when the request came.
                let namespace = match self.namespace.collection() == name && self.is_named_by_first_field() {
                    true => self.namespace.clone(),
                    false => Namespace::new(&self.database, utf8(name)?)?,
                };
                namespace.validate()?;
                Ok(namespace)
            }
            Value::Binary { subtype: 4, .. } => {
                let reason = "Collection name must be provided. UUID is not valid in this context";
                Err(Error::new(ErrorCode::InvalidNamespace, reason))
            }
            other => {
                let reason = format!("collection name has invalid type {}", other.value_type().name());
                Err(Error::new(ErrorCode::InvalidNamespace, reason))
            }
        }
    }

    fn is_named_by_first_field(&self) -> bool {
        matches!(self.row.namespace, NamespaceOf::FirstField)
    }

    /// The write concern that the client gave; none if it gave none, or an empty one.
    pub fn given_write_concern(&self) -> Result<Option<&WriteConcern>> {
        if let Some(known) = self.write_concern.get() {
            return Ok(Some(known));
        }
        let Some(given) = self.generic.write_concern.as_ref().filter(|given| !given.is_empty()) else {
            return Ok(None);
        };
        let concern = WriteConcern::parse(given.view())?;
        Ok(Some(self.write_concern.get_or_init(|| concern)))
    }

    /// Puts these labels in place of those of whatever error this command ends with.
    pub fn set_labels_in_place(&self, labels: Array) {
        // The first fail point wins; there is only one.
        let _ = self.labels_in_place.set(labels);
    }

    /// The labels that a fail point wants.
    pub fn labels_in_place(&self) -> Option<&Array> {
        self.labels_in_place.get()
    }

    /// Says what the connection does after this command.
    pub fn set_next(&self, next: NextInvocation) {
        *self.next.lock() = Some(next);
    }

    /// What the command said, once.
    pub fn take_next(&self) -> Option<NextInvocation> {
        self.next.lock().take()
    }

    /// Its reply says `ok` as a whole number.
    pub(crate) fn say_whole_ok(&self) {
        self.says_whole_ok.store(true, Ordering::Relaxed);
    }

    /// Ends the reply of a command that succeeded.
    pub fn append_ok(&self, reply: &mut DocBuilder) {
        match self.says_whole_ok.load(Ordering::Relaxed) {
            true => reply.append("ok", 1),
            false => crate::reply::append_ok(reply),
        }
    }

    /// Notes which collections the command's pipeline names, where somebody has asked whether the
    /// client may use them.
    pub(crate) fn set_seen_by_pipeline(&self, seen: Seen) {
        // A command has one pipeline.
        let _ = self.seen_by_pipeline.set(seen);
    }

    /// The collections that the command's pipeline may name; none if everything.
    pub(crate) fn seen_by_pipeline(&self) -> Option<&Seen> {
        self.seen_by_pipeline.get()
    }

    /// Makes the command a statement of a transaction.
    pub fn set_transaction(&self, statement: TransactionStatement) {
        // There is one stage that does this, once.
        let _ = self.transaction.set(statement);
    }

    /// The transaction that it is a statement of.
    pub fn transaction(&self) -> Option<&TransactionStatement> {
        self.transaction.get()
    }

    /// The reply waits for the write concern, whatever the command has locked.
    pub(crate) fn set_has_written(&self) {
        self.has_written.store(true, Ordering::Relaxed);
    }

    /// Notes what an operation of this command has done.
    pub(crate) fn note_written(&self, operation: &Operation) {
        if operation.locker.was_global_locked_for_write() {
            self.has_written.store(true, Ordering::Relaxed);
        }
        if self.context.wants_details() {
            self.lock_stats.lock().get_or_insert_default().add(&operation.locker.stats());
        }
        if let Some(position) = operation.last_commit {
            let mut last = self.last_commit.lock();
            *last = Some(last.unwrap_or_default().joined(position));
        }
    }

    /// Notes what a command inside of this one has done.
    pub(crate) fn note_inner(&self, inner: &Invocation) {
        if inner.has_written() {
            self.has_written.store(true, Ordering::Relaxed);
        }
        if let Some(position) = inner.last_commit() {
            let mut last = self.last_commit.lock();
            *last = Some(last.unwrap_or_default().joined(position));
        }
    }

    /// What it took to get the command's locks, and whether it has used storage at all.
    pub(crate) fn take_lock_stats(&self) -> (LockStats, bool) {
        let taken = self.lock_stats.lock().take();
        let has_used_storage = taken.is_some();
        (taken.map(|stats| *stats).unwrap_or_default(), has_used_storage)
    }

    /// Where in the log the command's last commit lies; none if it has committed nothing.
    pub fn last_commit(&self) -> Option<LogPosition> {
        *self.last_commit.lock()
    }

    /// Has the command written, or tried to? A write that changed nothing waits for what it found, too.
    pub fn has_written(&self) -> bool {
        self.has_written.load(Ordering::Relaxed)
    }

    /// True if the client can take a stream of replies.
    pub fn is_exhaust(&self) -> bool {
        self.request.allows_exhaust()
    }
}

/// The namespace as far as the row says where it is; the database if it is not there or makes no sense.
pub(crate) fn namespace(row: &CommandRow, body: DocRef<'_>, database: &DatabaseName) -> Namespace {
    fn text(value: Option<Value<'_>>) -> Option<Cow<'_, str>> {
        match value? {
            Value::String(text) | Value::Symbol(text) => Some(text.to_str_lossy()),
            _ => None,
        }
    }
    let first = || text(body.first().map(|element| element.value));
    let found = match row.namespace {
        NamespaceOf::Database => None,
        NamespaceOf::FirstFieldOrPipeline if body.first().is_some_and(|element| element.value.is_number()) => {
            Some(Namespace::collectionless_aggregate(database))
        }
        NamespaceOf::FirstField | NamespaceOf::FirstFieldOrPipeline => {
            first().and_then(|name| Namespace::new(database, &name).ok())
        }
        NamespaceOf::Field(field) => text(body.get(field)).and_then(|name| Namespace::new(database, &name).ok()),
        NamespaceOf::InnerCommand => {
            let inner = body.first().and_then(|element| element.value.as_document()).and_then(|inner| inner.first());
            text(inner.map(|element| element.value)).and_then(|name| Namespace::new(database, &name).ok())
        }
        NamespaceOf::FullName => first().and_then(|name| Namespace::parse(&name).ok()),
    };
    found.unwrap_or_else(|| Namespace::from(database.clone()))
}

fn utf8(text: &BStr) -> Result<&str> {
    std::str::from_utf8(text).map_err(|_| Error::new(ErrorCode::InvalidNamespace, "a name must be valid UTF-8"))
}
