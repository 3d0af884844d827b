//! The commands in oplog entries: the field `o` of `op: "c"`, typed.
//!
//! Reading is here; `build` has the other direction. A new command is a variant here, and the compiler then asks every
//! place that applies entries what it means there.

use crate::fields::{Fields, array, boolean, document, long, text, timestamp, uuid};
use crate::operation::Operation;
use bstr::{BStr, ByteSlice};
use pando_base::{Error, Result, Timestamp, Uuid};
use pando_doc::{ArrayRef, DocRef, Value};

/// A command of an oplog entry. Collections are named without their database, except by renames.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are those of MongoDB's format, under their own names")]
pub enum OplogCommand<'a> {
    /// A collection is created; the options are the other fields of the command.
    Create { collection: &'a BStr, id_index: Option<DocRef<'a>>, object: DocRef<'a> },
    /// A collection is dropped.
    Drop { collection: &'a BStr },
    /// A database, empty by now, is dropped.
    DropDatabase,
    /// A collection is renamed; both names are whole namespaces.
    RenameCollection { from: &'a BStr, to: &'a BStr, stay_temp: bool, drop_target: Option<Uuid> },
    /// Options of a collection or an index are changed; they are the other fields of the command.
    CollMod { collection: &'a BStr, object: DocRef<'a> },
    /// An index is created on an empty collection; its specification is the other fields of the command.
    CreateIndexes { collection: &'a BStr, object: DocRef<'a> },
    /// An index is dropped: its name, or `*`.
    DropIndexes { collection: &'a BStr, index: Option<Value<'a>> },
    /// An index build starts.
    StartIndexBuild(IndexBuild<'a>),
    /// An index build is complete; its indexes are ready.
    CommitIndexBuild(IndexBuild<'a>),
    /// An index build is given up.
    AbortIndexBuild(IndexBuild<'a>),
    /// Several operations that happen at once.
    ApplyOps(ApplyOps<'a>),
    /// A prepared transaction is committed.
    CommitTransaction { commit_timestamp: Option<Timestamp> },
    /// A transaction is aborted.
    AbortTransaction,
    /// A collection becomes capped.
    ConvertToCapped { collection: &'a BStr, size_bytes: i64 },
    /// A capped collection is emptied.
    EmptyCapped { collection: &'a BStr },
    /// A consistency check takes place.
    DbCheck { object: DocRef<'a> },
    /// A collection's files are imported.
    ImportCollection { object: DocRef<'a> },
    /// A shard's copy of the index catalog is changed.
    ModifyCollectionShardingIndexCatalog { object: DocRef<'a> },
    /// The collection behind a global index is created.
    CreateGlobalIndex { collection: &'a BStr },
    /// The collection behind a global index is dropped.
    DropGlobalIndex { collection: &'a BStr },
}

/// What the entries of an index build say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IndexBuild<'a> {
    /// The collection.
    pub collection: &'a BStr,
    /// The build's id, the same in its start and its end.
    pub build_uuid: Uuid,
    /// The specifications of its indexes.
    pub indexes: ArrayRef<'a>,
    /// Why it was given up.
    pub cause: Option<DocRef<'a>>,
}

/// Operations that happen at once: a transaction, a part of one, or a group of writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ApplyOps<'a> {
    /// The operations, not read yet.
    pub operations: ArrayRef<'a>,
    /// The transaction is prepared, not committed.
    pub prepare: bool,
    /// More of the transaction follows in later entries, which point back by `prevOpTime`.
    pub partial_txn: bool,
    /// In the last of several entries: how many operations they have together.
    pub count: Option<i64>,
}

impl<'a> ApplyOps<'a> {
    /// The operations in order.
    pub fn iter(&self) -> impl Iterator<Item = Result<Operation<'a>>> + use<'a> {
        self.operations.as_doc().elements().map(|element| match element.value {
            Value::Document(operation) => Operation::parse(operation),
            _ => Err(Error::bad_value(format!("applyOps[{}] is not an object", element.name))),
        })
    }
}

impl<'a> OplogCommand<'a> {
    /// Reads the field `o` of a command entry.
    pub fn parse(object: DocRef<'a>) -> Result<OplogCommand<'a>> {
        let name = object.raw_elements().next().map_or(b"".as_bstr(), |element| element.name);
        let Some(name) = name.to_str().ok() else {
            return Err(unknown(name));
        };
        let fields = Fields::of("OplogEntryBase.o", object);
        let collection = || fields.required(name, text);
        Ok(match name {
            "create" => {
                let id_index = fields.optional("idIndex", document)?;
                OplogCommand::Create { collection: collection()?, id_index, object }
            }
            "drop" => OplogCommand::Drop { collection: collection()? },
            "dropDatabase" => OplogCommand::DropDatabase,
            "renameCollection" => rename(fields)?,
            "collMod" => OplogCommand::CollMod { collection: collection()?, object },
            "createIndexes" => OplogCommand::CreateIndexes { collection: collection()?, object },
            "dropIndexes" | "deleteIndexes" => {
                OplogCommand::DropIndexes { collection: collection()?, index: object.get("index") }
            }
            "startIndexBuild" => OplogCommand::StartIndexBuild(index_build(fields, collection()?)?),
            "commitIndexBuild" => OplogCommand::CommitIndexBuild(index_build(fields, collection()?)?),
            "abortIndexBuild" => OplogCommand::AbortIndexBuild(index_build(fields, collection()?)?),
            "applyOps" => OplogCommand::ApplyOps(apply_ops(fields)?),
            "commitTransaction" => {
                OplogCommand::CommitTransaction { commit_timestamp: fields.optional("commitTimestamp", timestamp)? }
            }
            "abortTransaction" => OplogCommand::AbortTransaction,
            "convertToCapped" => {
                let size_bytes = fields.required("size", long)?;
                OplogCommand::ConvertToCapped { collection: collection()?, size_bytes }
            }
            "emptycapped" => OplogCommand::EmptyCapped { collection: collection()? },
            "dbCheck" => OplogCommand::DbCheck { object },
            "importCollection" => OplogCommand::ImportCollection { object },
            "modifyCollectionShardingIndexCatalog" => OplogCommand::ModifyCollectionShardingIndexCatalog { object },
            "createGlobalIndex" => OplogCommand::CreateGlobalIndex { collection: collection()? },
            "dropGlobalIndex" => OplogCommand::DropGlobalIndex { collection: collection()? },
            other => return Err(unknown(other.into())),
        })
    }
}

fn unknown(name: &BStr) -> Error {
    Error::bad_value(format!("Unknown oplog entry command type: {name}"))
}

fn rename(fields: Fields<'_>) -> Result<OplogCommand<'_>> {
    // Old entries said only that there was a target to drop, without its id.
    let drop_target = match fields.optional("dropTarget", Ok)? {
        None | Some(Value::Bool(_)) => None,
        Some(value) => Some(fields.read("dropTarget", value, uuid)?),
    };
    Ok(OplogCommand::RenameCollection {
        from: fields.required("renameCollection", text)?,
        to: fields.required("to", text)?,
        stay_temp: fields.optional("stayTemp", boolean)?.unwrap_or(false),
        drop_target,
    })
}

fn index_build<'a>(fields: Fields<'a>, collection: &'a BStr) -> Result<IndexBuild<'a>> {
    Ok(IndexBuild {
        collection,
        build_uuid: fields.required("indexBuildUUID", uuid)?,
        indexes: fields.required("indexes", array)?,
        cause: fields.optional("cause", document)?,
    })
}

fn apply_ops(fields: Fields<'_>) -> Result<ApplyOps<'_>> {
    Ok(ApplyOps {
        operations: fields.required("applyOps", array)?,
        prepare: fields.optional("prepare", boolean)?.unwrap_or(false),
        partial_txn: fields.optional("partialTxn", boolean)?.unwrap_or(false),
        count: fields.optional("count", long)?,
    })
}
