//! An oplog entry: an operation, who did it and when.
//!
//! The same type is read and written. It borrows documents and names, so reading an entry allocates nothing and writing
//! one copies each document once, into the entry's bytes.

use crate::command::OplogCommand;
use crate::fields::{ENTRY, Read, date, document, int, long, missing, read_field, timestamp, uuid, uuid_value};
use crate::op_time::OpTime;
use crate::operation::{OpKind, Operation, OperationReader};
use pando_base::{Error, ErrorCode, Result, Timestamp, Uuid};
use pando_doc::{Doc, DocBuilder, DocRef, Element, Value};

/// The version of the format, in the field `v`.
pub const OPLOG_VERSION: i64 = 2;

/// The session that an operation belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SessionInfo<'a> {
    /// `lsid`: the session.
    pub session_id: Option<DocRef<'a>>,
    /// `txnNumber`: the transaction or retryable write in it.
    pub txn_number: Option<i64>,
    /// `txnRetryCounter`: which attempt.
    pub txn_retry_counter: Option<i32>,
}

/// An entry of the oplog.
#[derive(Clone, Debug, PartialEq)]
pub struct OplogEntry<'a> {
    /// Who: `lsid`, `txnNumber`.
    pub session: SessionInfo<'a>,
    /// What.
    pub operation: Operation<'a>,
    /// When: `ts`, `t`.
    pub op_time: OpTime,
    /// `v`: always `OPLOG_VERSION` in what we write.
    pub version: i64,
    /// `wall`: the clock on the wall, in milliseconds since 1970.
    pub wall_ms: i64,
    /// `fromTenantMigration`: the migration that caused it.
    pub from_tenant_migration: Option<Uuid>,
    /// `_id`: used by resharding.
    pub id: Option<Value<'a>>,
    /// `prevOpTime`: the entry before in the same session and transaction.
    pub previous_op_time: Option<OpTime>,
}

impl<'a> OplogEntry<'a> {
    /// An entry outside of any session.
    pub fn new(operation: Operation<'a>, op_time: OpTime, wall_ms: i64) -> OplogEntry<'a> {
        OplogEntry {
            session: SessionInfo::default(),
            operation,
            op_time,
            version: OPLOG_VERSION,
            wall_ms,
            from_tenant_migration: None,
            id: None,
            previous_op_time: None,
        }
    }

    /// Reads an entry. Fields that it does not know are passed over, as newer writers may have added them.
    pub fn parse(entry: DocRef<'a>) -> Result<OplogEntry<'a>> {
        let mut reader = EntryReader::default();
        let mut operation = OperationReader::new();
        for element in entry.elements() {
            if !reader.field(element)? {
                operation.field(element)?;
            }
        }
        reader.finish(operation.finish()?)
    }

    /// The command, if the entry is one.
    pub fn command(&self) -> Result<Option<OplogCommand<'a>>> {
        match self.operation.kind {
            OpKind::Command => OplogCommand::parse(self.operation.object).map(Some),
            _ => Ok(None),
        }
    }

    /// The entry as a document.
    pub fn to_doc(&self) -> Doc {
        Doc::trusted(self.to_bytes())
    }

    /// The encoded document.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.append_to_buffer(Vec::new())
    }

    /// The encoded document behind what the buffer holds.
    pub fn append_to_buffer(&self, mut buffer: Vec<u8>) -> Vec<u8> {
        let o2_bytes = self.operation.object2.map_or(0, DocRef::size_bytes);
        buffer.reserve(256 + self.operation.object.size_bytes() + o2_bytes);
        let mut builder = DocBuilder::behind(buffer);
        self.append_to(&mut builder);
        builder.finish_buffer()
    }

    /// Writes the entry's fields in MongoDB's order.
    pub fn append_to(&self, builder: &mut DocBuilder) {
        builder.append_some("lsid", self.session.session_id);
        builder.append_some("txnNumber", self.session.txn_number);
        builder.append_some("txnRetryCounter", self.session.txn_retry_counter);
        self.operation.append_to(builder);
        self.op_time.append_to(builder);
        builder.append("v", self.version);
        builder.append("wall", Value::DateTime(self.wall_ms));
        builder.append_some("fromTenantMigration", self.from_tenant_migration.as_ref().map(uuid_value));
        builder.append_some("_id", self.id);
        if let Some(previous) = self.previous_op_time {
            previous.append_as("prevOpTime", builder);
        }
    }
}

/// Collects the fields that an entry has besides its operation's.
#[derive(Default)]
struct EntryReader<'a> {
    session: SessionInfo<'a>,
    timestamp: Option<Timestamp>,
    term: Option<i64>,
    version: Option<i64>,
    wall_ms: Option<i64>,
    from_tenant_migration: Option<Uuid>,
    id: Option<Value<'a>>,
    previous_op_time: Option<OpTime>,
}

impl<'a> EntryReader<'a> {
    /// Takes a field; false if it is none of these.
    fn field(&mut self, element: Element<'a>) -> Result<bool> {
        let Element { name, value } = element;
        let bytes: &[u8] = name;
        match bytes {
            b"ts" => self.timestamp = Some(read(element, timestamp)?),
            b"t" => self.term = Some(read(element, long)?),
            b"v" => self.version = Some(read(element, long)?),
            b"wall" => self.wall_ms = Some(read(element, date)?),
            b"lsid" => self.session.session_id = Some(read(element, document)?),
            b"txnNumber" => self.session.txn_number = Some(read(element, long)?),
            b"txnRetryCounter" => self.session.txn_retry_counter = Some(read(element, int)?),
            b"prevOpTime" => self.previous_op_time = Some(OpTime::parse(read(element, document)?)?),
            b"fromTenantMigration" => self.from_tenant_migration = Some(read(element, uuid)?),
            b"_id" => self.id = Some(value),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn finish(self, operation: Operation<'a>) -> Result<OplogEntry<'a>> {
        let version = self.version.unwrap_or(OPLOG_VERSION);
        if version != OPLOG_VERSION {
            let reason = format!("Unsupported oplog version {version}");
            return Err(Error::new(ErrorCode::UnsupportedFormat, reason));
        }
        let timestamp = self.timestamp.ok_or_else(|| missing(ENTRY, "ts"))?;
        Ok(OplogEntry {
            session: self.session,
            operation,
            op_time: OpTime::new(timestamp, self.term.unwrap_or(OpTime::NULL.term)),
            version,
            wall_ms: self.wall_ms.ok_or_else(|| missing(ENTRY, "wall"))?,
            from_tenant_migration: self.from_tenant_migration,
            id: self.id,
            previous_op_time: self.previous_op_time,
        })
    }
}

fn read<'a, T>(element: Element<'a>, how: Read<'a, T>) -> Result<T> {
    read_field(ENTRY, element.name, element.value, how)
}
