//! Operations that are commands: carried out by the commands that clients run, under the names that collections have now.
//!
//! What is there already, or gone already, is as good as done: each kind of operation has errors that say so.

use super::{ApplyOpsArguments, Manner, apply_all, request};
use crate::arguments::GenericArguments;
use crate::{Data, Invocation};
use bytes::Bytes;
use pando_base::{DatabaseName, Error, ErrorCode, Namespace, Result, Uuid, bail};
use pando_doc::{Doc, DocBuilder, DocRef, Value};
use pando_oplog::Operation as OplogOperation;
use pando_wire::{Command, Compressors, MsgFlags, RequestBuilder};
use std::sync::Arc;

/// Carries out a command of the oplog.
pub(super) async fn apply(invocation: &Invocation, what: &OplogOperation<'_>, manner: Manner) -> Result<()> {
    let data = invocation.data()?;
    let invalid = || Error::new(ErrorCode::InvalidNamespace, format!("invalid ns: {}", what.ns));
    let namespace = what.namespace().map_err(|_| invalid())?;
    if data.catalog.latest().view(&namespace)?.is_some() {
        bail!(ErrorCode::CommandNotSupportedOnView, "applyOps not supported on view:{namespace}");
    }
    let name = what.object.first().map(|first| first.name.to_string()).unwrap_or_default();
    let step = Step { invocation, data, what, namespace };
    let (outcome, accepted): (Result<()>, &[ErrorCode]) = match name.as_str() {
        "applyOps" => return step.apply_inner(manner).await,
        "create" => (step.create().await, &[ErrorCode::NamespaceExists]),
        "createIndexes" if !manner.is_for_client => (step.create_index().await, &[ErrorCode::IndexAlreadyExists]),
        "createIndexes" | "startIndexBuild" | "commitIndexBuild" | "abortIndexBuild" => {
            bail!(ErrorCode::CommandNotSupported, "The {name} operation is not supported in applyOps mode")
        }
        "dropDatabase" => (step.run_on_database().await, &[ErrorCode::NamespaceNotFound]),
        "renameCollection" => (step.rename().await, &[ErrorCode::NamespaceNotFound, ErrorCode::NamespaceExists]),
        "collMod" if what.object.get("dryRun").is_some_and(|wish| wish.is_true()) => {
            bail!(ErrorCode::InvalidOptions, "Cannot use dryRun with collMod in applyOps")
        }
        "collMod" | "deleteIndex" | "deleteIndexes" | "dropIndex" | "dropIndexes" => {
            (step.run_on_collection(&name).await, &[ErrorCode::NamespaceNotFound, ErrorCode::IndexNotFound])
        }
        "drop" | "convertToCapped" | "emptycapped" => {
            (step.run_on_collection(&name).await, &[ErrorCode::NamespaceNotFound])
        }
        _ => bail!(ErrorCode::BadValue, "Invalid key '{name}' found in field 'o'"),
    };
    match outcome {
        Err(error) if accepted.contains(&error.code()) => Ok(()),
        outcome => outcome,
    }
}

struct Step<'a> {
    invocation: &'a Invocation,
    data: &'a Data,
    what: &'a OplogOperation<'a>,
    namespace: Namespace,
}

impl Step<'_> {
    async fn apply_inner(&self, manner: Manner) -> Result<()> {
        let target = self.what.object.first().map_or(Value::Null, |first| first.value);
        let operations = request::check_operations(target)?;
        let arguments = ApplyOpsArguments::parse_document(self.what.object)?;
        let mut ignored = DocBuilder::new();
        apply_all(self.invocation, operations, &arguments, manner, &mut ignored).await
    }

    /// The collection that the operation is about: by its id, or as the command names it.
    fn collection(&self) -> Result<Namespace> {
        match self.what.uuid {
            Some(uuid) => self.by_uuid(&uuid),
            None => {
                let name = self.what.object.first().and_then(|first| first.value.as_str());
                let name = name.ok_or_else(|| {
                    let reason = format!("collection name has invalid type in {}", self.what.object);
                    Error::new(ErrorCode::InvalidNamespace, reason)
                })?;
                self.namespace.sibling(name)
            }
        }
    }

    fn by_uuid(&self, uuid: &Uuid) -> Result<Namespace> {
        let found = self.data.catalog.latest().namespace_of(uuid).cloned();
        let reason = || format!("No namespace with UUID {uuid}");
        found.ok_or_else(|| Error::new(ErrorCode::NamespaceNotFound, reason()))
    }

    /// Runs the command on the collection as it is called now.
    async fn run_on_collection(&self, name: &str) -> Result<()> {
        let collection = self.collection()?;
        // Older names of commands that are still in logs.
        let name = match name {
            "deleteIndex" | "deleteIndexes" | "dropIndex" => "dropIndexes",
            name => name,
        };
        let mut body = DocBuilder::new();
        body.append(name, collection.collection());
        self.what.object.raw_elements().skip(1).for_each(|element| body.append_raw(element));
        run_inner(self.invocation, &collection.database_name(), body.finish()).await
    }

    async fn run_on_database(&self) -> Result<()> {
        run_inner(self.invocation, &self.namespace.database_name(), self.what.object.to_doc()).await
    }

    async fn create_index(&self) -> Result<()> {
        let collection = self.collection()?;
        let mut body = DocBuilder::new();
        body.append("createIndexes", collection.collection());
        body.array("indexes", |indexes| {
            indexes.document(|index| {
                self.what.object.raw_elements().skip(1).for_each(|element| index.append_raw(element));
            });
        });
        run_inner(self.invocation, &collection.database_name(), body.finish()).await
    }

    /// A collection with the id that the operation has. One that has this id already gets the name; one that has the name
    /// makes room.
    async fn create(&self) -> Result<()> {
        let name = self.what.object.first().and_then(|first| first.value.as_str());
        let name = name.ok_or_else(|| Error::new(ErrorCode::InvalidNamespace, "a collection's name is a string"))?;
        let namespace = self.namespace.sibling(name)?;
        let Some(uuid) = self.what.uuid else {
            return crate::catalog::create_from_oplog(self.invocation, &namespace, self.what.object, None).await;
        };
        let (holder, has_name) = {
            let latest = self.data.catalog.latest();
            (latest.namespace_of(&uuid).cloned(), latest.collection(&namespace).is_some())
        };
        if holder.as_ref() == Some(&namespace) {
            return Ok(());
        }
        if has_name {
            let name = crate::catalog::temporary_name(&*self.invocation.operation()?, "create");
            self.run_rename(&namespace, &namespace.sibling(&name)?, true, false).await?;
        }
        match holder {
            Some(holder) => self.run_rename(&holder, &namespace, false, false).await,
            None => crate::catalog::create_from_oplog(self.invocation, &namespace, self.what.object, Some(uuid)).await,
        }
    }

    async fn rename(&self) -> Result<()> {
        let named = |field: &str| {
            let name = self.what.object.get(field).and_then(|name| name.as_str());
            let missing = || Error::type_mismatch(format!("'{field}' must be of type String"));
            Namespace::parse(name.ok_or_else(missing)?)
        };
        let mut from = named("renameCollection")?;
        let to = named("to")?;
        if let Some(uuid) = self.what.uuid {
            from = self.by_uuid(&uuid)?;
        }
        if from == to {
            return Ok(());
        }
        let drops = self
            .what
            .object
            .get("dropTarget")
            .is_some_and(|target| matches!(target, Value::Binary { .. }) || target.is_true());
        let stays_temporary = self.what.object.get("stayTemp").is_some_and(|stays| stays.is_true());
        self.run_rename(&from, &to, stays_temporary, drops).await
    }

    async fn run_rename(&self, from: &Namespace, to: &Namespace, stay_temp: bool, drop_target: bool) -> Result<()> {
        let mut body = DocBuilder::new();
        body.append("renameCollection", from.as_str());
        body.append("to", to.as_str());
        body.append("stayTemp", stay_temp);
        body.append("dropTarget", drop_target);
        run_inner(self.invocation, &DatabaseName::new("admin")?, body.finish()).await
    }
}

/// Runs a command inside of this one: by the same client, in the same operation.
async fn run_inner(invocation: &Invocation, database: &DatabaseName, command: Doc) -> Result<()> {
    let mut body = DocBuilder::new();
    body.append_all(without_generic(command.view()).view());
    body.append("$db", database.as_str());
    let message = RequestBuilder::new(MsgFlags::NONE, Vec::new()).body(body.finish().view()).finish(0, None)?;
    let request = Command::decode(Bytes::from(message), &Compressors::default()).map_err(|refusal| refusal.error)?;
    let entry = invocation.node.table.find(request.name());
    let entry = entry.ok_or_else(|| Error::new(ErrorCode::FailedToParse, "Unrecognized command in op"))?;
    let generic = GenericArguments::parse(&request, true)?;
    let (node, connection) = (Arc::clone(&invocation.node), Arc::clone(&invocation.connection));
    let context = invocation.context.clone();
    let inner = Invocation::new(node, connection, context, entry.row, request, database.clone(), generic);
    let mut ignored = DocBuilder::new();
    let outcome = (entry.row.run)(&inner, &mut ignored).await;
    invocation.note_inner(&inner);
    outcome
}

/// A command of the oplog has no database and no session of its own.
fn without_generic(command: DocRef<'_>) -> Doc {
    let mut body = DocBuilder::with_capacity(command.size_bytes());
    let kept = |name: &[u8]| name != b"$db" && name != b"lsid" && name != b"txnNumber";
    command.raw_elements().filter(|element| kept(element.name)).for_each(|element| body.append_raw(element));
    body.finish()
}
