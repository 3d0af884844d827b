//! One operation: what an oplog entry says apart from when and by whom. Inside `applyOps` it stands alone.

use crate::fields::{ENTRY, Read, boolean, document, int, missing, object_id, read_field, text, uuid, uuid_value};
use crate::op_time::OpTime;
use bstr::{BStr, ByteSlice};
use pando_base::{Error, ErrorCode, Namespace, Result, Uuid};
use pando_doc::{DocBuilder, DocRef, Element, ObjectId, Value};

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpKind {
    /// A document is inserted.
    Insert,
    /// A document is updated, by a diff or as a whole.
    Update,
    /// A document is deleted.
    Delete,
    /// Something else happens; `object` names it.
    Command,
    /// Nothing happens; a mark in time.
    Noop,
    /// A key is put into a global index.
    InsertGlobalIndexKey,
    /// A key is taken out of a global index.
    DeleteGlobalIndexKey,
}

impl OpKind {
    /// The text in the field `op`.
    pub fn as_str(self) -> &'static str {
        match self {
            OpKind::Insert => "i",
            OpKind::Update => "u",
            OpKind::Delete => "d",
            OpKind::Command => "c",
            OpKind::Noop => "n",
            OpKind::InsertGlobalIndexKey => "xi",
            OpKind::DeleteGlobalIndexKey => "xd",
        }
    }

    fn parse(name: &BStr) -> Result<OpKind> {
        let bytes: &[u8] = name;
        match bytes {
            b"i" => Ok(OpKind::Insert),
            b"u" => Ok(OpKind::Update),
            b"d" => Ok(OpKind::Delete),
            b"c" => Ok(OpKind::Command),
            b"n" => Ok(OpKind::Noop),
            b"xi" => Ok(OpKind::InsertGlobalIndexKey),
            b"xd" => Ok(OpKind::DeleteGlobalIndexKey),
            _ => Err(Error::bad_value(format!(
                "Enumeration value '{name}' for field 'OplogEntryBase.op' is not a valid value."
            ))),
        }
    }

    /// Does it change one document?
    pub fn is_crud(self) -> bool {
        matches!(self, OpKind::Insert | OpKind::Update | OpKind::Delete)
    }
}

/// Which version of a document is kept for a retry of findAndModify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryImage {
    /// The one before.
    Pre,
    /// The one after.
    Post,
}

impl RetryImage {
    fn as_str(self) -> &'static str {
        match self {
            RetryImage::Pre => "preImage",
            RetryImage::Post => "postImage",
        }
    }

    fn parse(name: &BStr) -> Result<RetryImage> {
        let images = [RetryImage::Pre, RetryImage::Post];
        images.into_iter().find(|image| name == image.as_str()).ok_or_else(|| {
            Error::bad_value(format!(
                "Enumeration value '{name}' for field 'OplogEntryBase.needsRetryImage' is not a valid value."
            ))
        })
    }
}

/// Which statements of a session's command an operation carries out: none, one (an int), or several (an array).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StatementIds {
    /// Not a retryable write.
    #[default]
    None,
    /// The usual case.
    One(i32),
    /// Several statements in one operation, as for time-series.
    Many(Vec<i32>),
}

impl StatementIds {
    /// The ids as a slice.
    pub fn as_slice(&self) -> &[i32] {
        match self {
            StatementIds::None => &[],
            StatementIds::One(id) => std::slice::from_ref(id),
            StatementIds::Many(ids) => ids,
        }
    }

    fn parse(value: Value<'_>) -> Result<StatementIds> {
        let wrong = || {
            let reason = "BSON field 'OplogEntryBase.stmtId' is the wrong type, expected types '[int, array]'";
            Error::new(ErrorCode::TypeMismatch, reason)
        };
        match value {
            Value::Array(ids) => {
                let ids = ids.values().map(|id| int(id).map_err(|_| wrong()));
                ids.collect::<Result<Vec<_>>>().map(StatementIds::Many)
            }
            id => int(id).map(StatementIds::One).map_err(|_| wrong()),
        }
    }

    fn append_to(&self, builder: &mut DocBuilder) {
        match self.as_slice() {
            [] => {}
            [id] => builder.append("stmtId", *id),
            ids => builder.array("stmtId", |array| ids.iter().for_each(|id| array.push(*id))),
        }
    }
}

impl From<&[i32]> for StatementIds {
    fn from(ids: &[i32]) -> StatementIds {
        match ids {
            [] => StatementIds::None,
            [id] => StatementIds::One(*id),
            ids => StatementIds::Many(ids.to_vec()),
        }
    }
}

/// An operation, borrowed from the entry it was read from or from what it will be written from.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation<'a> {
    /// `op`: what is done.
    pub kind: OpKind,
    /// `tid`: the tenant.
    pub tenant: Option<ObjectId>,
    /// `ns`: the collection; for commands `<database>.$cmd`, for noops often empty.
    pub ns: &'a BStr,
    /// `ui`: the collection's id.
    pub uuid: Option<Uuid>,
    /// `o`: the document, the change, the key of the deleted document, the command.
    pub object: DocRef<'a>,
    /// `o2`: the key of the updated or inserted document; what a command leaves behind for rollback.
    pub object2: Option<DocRef<'a>>,
    /// `b`: an update that inserts if there is nothing to update.
    pub upsert: Option<bool>,
    /// `preImageOpTime`: the entry with the document before.
    pub pre_image_op_time: Option<OpTime>,
    /// `postImageOpTime`: the entry with the document after.
    pub post_image_op_time: Option<OpTime>,
    /// `needsRetryImage`: what secondaries have to keep.
    pub needs_retry_image: Option<RetryImage>,
    /// `destinedRecipient`: the shard that gets this document by a resharding under way.
    pub destined_recipient: Option<&'a BStr>,
    /// `stmtId`: the statements carried out.
    pub statement_ids: StatementIds,
    /// `fromMigrate`: caused by a chunk migration.
    pub from_migrate: Option<bool>,
    /// `checkExistenceForDiffInsert`: fields that a diff inserts may be there already.
    pub check_existence_for_diff_insert: Option<bool>,
}

impl<'a> Operation<'a> {
    /// An operation that has only what every one has.
    pub fn new(kind: OpKind, ns: &'a BStr, uuid: Option<Uuid>, object: DocRef<'a>) -> Operation<'a> {
        Operation {
            kind,
            tenant: None,
            ns,
            uuid,
            object,
            object2: None,
            upsert: None,
            pre_image_op_time: None,
            post_image_op_time: None,
            needs_retry_image: None,
            destined_recipient: None,
            statement_ids: StatementIds::None,
            from_migrate: None,
            check_existence_for_diff_insert: None,
        }
    }

    /// A document is inserted; the key is its `_id` and shard key.
    pub fn insert(ns: &'a BStr, uuid: Uuid, document: DocRef<'a>, key: DocRef<'a>) -> Operation<'a> {
        Operation { object2: Some(key), ..Operation::new(OpKind::Insert, ns, Some(uuid), document) }
    }

    /// The document with this key is changed; see `update` for what a change is.
    pub fn update(ns: &'a BStr, uuid: Uuid, change: DocRef<'a>, key: DocRef<'a>) -> Operation<'a> {
        Operation { object2: Some(key), ..Operation::new(OpKind::Update, ns, Some(uuid), change) }
    }

    /// The document with this key is deleted.
    pub fn delete(ns: &'a BStr, uuid: Uuid, key: DocRef<'a>) -> Operation<'a> {
        Operation::new(OpKind::Delete, ns, Some(uuid), key)
    }

    /// A command; `ns` is `<database>.$cmd`.
    pub fn command(ns: &'a BStr, uuid: Option<Uuid>, command: DocRef<'a>) -> Operation<'a> {
        Operation::new(OpKind::Command, ns, uuid, command)
    }

    /// Reads the fields of an operation; others are passed over.
    pub fn parse(operation: DocRef<'a>) -> Result<Operation<'a>> {
        let mut reader = OperationReader::new();
        for element in operation.elements() {
            reader.field(element)?;
        }
        reader.finish()
    }

    /// The collection that is meant. An error if `ns` is not a name that a collection can have.
    pub fn namespace(&self) -> Result<Namespace> {
        let invalid = || Error::new(ErrorCode::InvalidNamespace, format!("Invalid namespace specified '{}'", self.ns));
        let name = std::str::from_utf8(self.ns).map_err(|_| invalid())?;
        let tenant = self.tenant.map(|tenant| pando_base::TenantId(*tenant.bytes()));
        Namespace::parse_with_tenant(tenant, name)
    }

    /// The `_id` of the document that is changed.
    pub fn document_id(&self) -> Option<Value<'a>> {
        match self.kind {
            OpKind::Insert | OpKind::Delete => self.object.get("_id"),
            OpKind::Update => self.object2.and_then(|key| key.get("_id")),
            _ => None,
        }
    }

    /// Room for the operation as a document: mostly all that it needs, and no more.
    pub fn size_bytes_estimate(&self) -> usize {
        const REST_BYTES: usize = 56;
        const STATEMENT_BYTES: usize = 12;
        let statement_bytes = self.statement_ids.as_slice().len() * STATEMENT_BYTES;
        let documents_bytes = self.object.size_bytes() + self.object2.map_or(0, DocRef::size_bytes);
        REST_BYTES + self.ns.len() + documents_bytes + statement_bytes
    }

    /// Writes the operation's fields in MongoDB's order.
    pub fn append_to(&self, builder: &mut DocBuilder) {
        builder.append("op", self.kind.as_str());
        builder.append_some("tid", self.tenant);
        builder.append("ns", self.ns);
        builder.append_some("ui", self.uuid.as_ref().map(uuid_value));
        builder.append("o", self.object);
        builder.append_some("o2", self.object2);
        builder.append_some("b", self.upsert);
        let op_times = [("preImageOpTime", self.pre_image_op_time), ("postImageOpTime", self.post_image_op_time)];
        for (name, op_time) in op_times {
            op_time.into_iter().for_each(|op_time| op_time.append_as(name, builder));
        }
        builder.append_some("needsRetryImage", self.needs_retry_image.map(RetryImage::as_str));
        builder.append_some("destinedRecipient", self.destined_recipient);
        self.statement_ids.append_to(builder);
        builder.append_some("fromMigrate", self.from_migrate);
        builder.append_some("checkExistenceForDiffInsert", self.check_existence_for_diff_insert);
    }
}

/// Collects the fields of an operation in one walk over its document.
pub(crate) struct OperationReader<'a> {
    operation: Operation<'a>,
    has_kind: bool,
    has_ns: bool,
    has_object: bool,
}

impl<'a> OperationReader<'a> {
    pub(crate) fn new() -> OperationReader<'a> {
        let operation = Operation::new(OpKind::Noop, b"".as_bstr(), None, DocRef::EMPTY);
        OperationReader { operation, has_kind: false, has_ns: false, has_object: false }
    }

    /// Takes a field, if it is one of an operation.
    pub(crate) fn field(&mut self, element: Element<'a>) -> Result<()> {
        let Element { name, value } = element;
        let operation = &mut self.operation;
        let bytes: &[u8] = name;
        match bytes {
            b"op" => {
                operation.kind = OpKind::parse(read(element, text)?)?;
                self.has_kind = true;
            }
            b"ns" => {
                operation.ns = read(element, text)?;
                self.has_ns = true;
            }
            b"o" => {
                operation.object = read(element, document)?;
                self.has_object = true;
            }
            b"o2" => operation.object2 = Some(read(element, document)?),
            b"ui" => operation.uuid = Some(read(element, uuid)?),
            b"tid" => operation.tenant = Some(read(element, object_id)?),
            b"b" => operation.upsert = Some(read(element, boolean)?),
            b"stmtId" => operation.statement_ids = StatementIds::parse(value)?,
            b"fromMigrate" => operation.from_migrate = Some(read(element, boolean)?),
            b"preImageOpTime" => operation.pre_image_op_time = Some(OpTime::parse(read(element, document)?)?),
            b"postImageOpTime" => operation.post_image_op_time = Some(OpTime::parse(read(element, document)?)?),
            b"needsRetryImage" => operation.needs_retry_image = Some(RetryImage::parse(read(element, text)?)?),
            b"destinedRecipient" => operation.destined_recipient = Some(read(element, text)?),
            b"checkExistenceForDiffInsert" => {
                operation.check_existence_for_diff_insert = Some(read(element, boolean)?);
            }
            _ => {}
        }
        Ok(())
    }

    /// The operation, if it has what every one has and what one of its kind cannot be without.
    pub(crate) fn finish(self) -> Result<Operation<'a>> {
        let needs_key = self.operation.kind == OpKind::Update;
        let required = [
            ("op", self.has_kind),
            ("ns", self.has_ns),
            ("o", self.has_object),
            ("o2", !needs_key || self.operation.object2.is_some()),
        ];
        match required.iter().find(|(_, is_there)| !is_there) {
            Some((field, _)) => Err(missing(ENTRY, field)),
            None => Ok(self.operation),
        }
    }
}

fn read<'a, T>(element: Element<'a>, how: Read<'a, T>) -> Result<T> {
    read_field(ENTRY, element.name, element.value, how)
}
