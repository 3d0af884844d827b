//! From operations of the oplog to events.
//!
//! An event is a document for the client and, beside it, what the stages behind need to know of it: its token, and where the
//! documents before and after the change are found.

use super::options::{BeforeChange, StreamOptions};
use super::token::{ResumeToken, TokenKind, uuid_value};
use bstr::ByteSlice;
use pando_base::{Error, ErrorCode, Namespace, Result, Timestamp, Uuid, bail, ensure};
use pando_doc::{Doc, DocBuilder, DocRef, Value};
use pando_oplog::diff::describe;
use pando_oplog::{OpKind, Operation, UpdateChange};

/// When an operation happened, and in which transaction.
#[derive(Clone, Debug, Default)]
pub(super) struct Moment {
    pub(super) cluster_time: Timestamp,
    pub(super) wall_ms: i64,
    /// Of an operation in a group.
    pub(super) place: Option<GroupPlace>,
    pub(super) session_id: Option<Doc>,
    pub(super) txn_number: Option<i64>,
}

/// Where an operation stands among others that happened at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct GroupPlace {
    /// Among all.
    pub(super) txn_op_index: i32,
    /// In its entry.
    pub(super) apply_ops_index: i64,
    /// Its entry's time.
    pub(super) apply_ops_time: Timestamp,
}

/// What the document before a change is kept under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PreImageId {
    pub(super) uuid: Uuid,
    pub(super) time: Timestamp,
    pub(super) apply_ops_index: i64,
}

impl PreImageId {
    /// The `_id` of the kept document.
    pub(super) fn to_doc(self) -> Doc {
        let mut builder = DocBuilder::new();
        builder.append("nsUUID", uuid_value(&self.uuid));
        builder.append("ts", self.time);
        builder.append("applyOpsIndex", self.apply_ops_index);
        builder.finish()
    }
}

/// What is known of an event beside its document.
#[derive(Clone, Debug)]
pub(super) struct EventFacts {
    pub(super) token: ResumeToken,
    /// The token as the event's `_id` has it.
    pub(super) token_document: Doc,
    pub(super) operation_type: &'static str,
    pub(super) namespace: Option<Namespace>,
    pub(super) document_key: Option<Doc>,
    pub(super) pre_image: Option<PreImageId>,
    /// The field `o` of an update.
    pub(super) change: Option<Doc>,
    pub(super) cluster_time: Timestamp,
    pub(super) wall_ms: i64,
    pub(super) txn_number: Option<i64>,
}

/// An event.
pub(super) struct Event {
    pub(super) document: Doc,
    pub(super) facts: EventFacts,
}

/// What an operation says, in the words of events.
#[derive(Default)]
struct Told<'a> {
    operation_type: &'static str,
    namespace: Option<Namespace>,
    to: Option<Namespace>,
    full_document: Option<DocRef<'a>>,
    document_key: Option<Doc>,
    description: Option<Doc>,
    update: Option<Doc>,
    change: Option<DocRef<'a>>,
    before: Option<Doc>,
}

/// The event of an operation that a stream covers.
pub(super) fn event_of(options: &StreamOptions, operation: &Operation<'_>, moment: &Moment) -> Result<Event> {
    let is_view = !options.scope.is_collection() && operation.ns.ends_with(b".system.views");
    let told = match operation.kind {
        OpKind::Command => command(operation)?,
        OpKind::Insert | OpKind::Update | OpKind::Delete if is_view => view(operation)?,
        OpKind::Insert | OpKind::Update | OpKind::Delete => document(options, operation)?,
        _ => return Err(Error::internal("a stream covers no marks")),
    };
    let token = token_of(options, operation, moment, &told);
    let token_document = token.to_doc()?;
    let event = match is_view {
        true => view_event(&told, &token_document, moment),
        false => event_document(options, operation, &told, &token_document, moment),
    };
    Ok(Event {
        document: event,
        facts: EventFacts {
            token,
            token_document,
            operation_type: told.operation_type,
            pre_image: pre_image_of(options, operation, moment, told.operation_type),
            namespace: told.namespace,
            document_key: told.document_key,
            change: told.change.filter(|_| options.full_document.is_of_its_time()).map(DocRef::to_doc),
            cluster_time: moment.cluster_time,
            wall_ms: moment.wall_ms,
            txn_number: moment.txn_number.filter(|_| moment.place.is_some()),
        },
    })
}

/// The event that says that a stream is over.
pub(super) fn invalidation(cause: &EventFacts) -> Result<Event> {
    let token = ResumeToken { from_invalidate: true, ..cause.token.clone() };
    let token_document = token.to_doc()?;
    let mut builder = DocBuilder::new();
    builder.append("_id", &token_document);
    builder.append("operationType", "invalidate");
    builder.append("clusterTime", cause.cluster_time);
    builder.append("wallTime", Value::DateTime(cause.wall_ms));
    let facts = EventFacts {
        token,
        token_document,
        operation_type: "invalidate",
        namespace: None,
        document_key: None,
        pre_image: None,
        change: None,
        ..cause.clone()
    };
    Ok(Event { document: builder.finish(), facts })
}

fn document<'a>(options: &StreamOptions, operation: &Operation<'a>) -> Result<Told<'a>> {
    let mut told = Told { namespace: Some(operation.namespace()?), ..Told::default() };
    let id_of = |document: DocRef<'_>| {
        let mut key = DocBuilder::new();
        key.append_some("_id", document.get("_id"));
        key.finish()
    };
    match operation.kind {
        OpKind::Insert => {
            told.operation_type = "insert";
            told.full_document = Some(operation.object);
            told.document_key = Some(operation.object2.map_or_else(|| id_of(operation.object), DocRef::to_doc));
        }
        OpKind::Delete => {
            told.operation_type = "delete";
            told.document_key = Some(operation.object.to_doc());
        }
        _ => {
            told.document_key = operation.object2.map(DocRef::to_doc);
            match UpdateChange::parse(operation.object)? {
                UpdateChange::Replacement(whole) => {
                    told.operation_type = "replace";
                    told.full_document = Some(whole);
                }
                UpdateChange::Delta(diff) => {
                    told.operation_type = "update";
                    told.change = Some(operation.object);
                    told.update = Some(match options.shows_raw_updates {
                        true => operation.object.to_doc(),
                        false => describe(diff, options.shows_expanded)?,
                    });
                }
            }
        }
    }
    Ok(told)
}

/// A view is a document, whose `_id` is its name.
fn view<'a>(operation: &Operation<'a>) -> Result<Told<'a>> {
    let id = operation.object.get("_id").and_then(|id| id.as_str());
    let mut told = Told { namespace: id.map(Namespace::parse).transpose()?, ..Told::default() };
    told.operation_type = match operation.kind {
        OpKind::Insert => "create",
        OpKind::Delete => "drop",
        _ => "modify",
    };
    if operation.kind != OpKind::Delete {
        told.description = Some(without(operation.object, &["_id"]));
    }
    Ok(told)
}

fn command<'a>(operation: &Operation<'a>) -> Result<Told<'a>> {
    let database = operation.namespace()?.database_name();
    let object = operation.object;
    let Some(first) = object.first() else { bail!(ErrorCode::BadValue, "an oplog entry has an empty command") };
    let collection = || -> Result<Option<Namespace>> {
        first.value.as_str().map(|name| Namespace::new(&database, name)).transpose()
    };
    let mut told = Told::default();
    match first.name.as_bytes() {
        b"drop" => {
            told.operation_type = "drop";
            told.namespace = collection()?;
        }
        b"dropDatabase" => {
            told.operation_type = "dropDatabase";
            told.namespace = Some(Namespace::new(&database, "")?);
        }
        b"renameCollection" => {
            told.operation_type = "rename";
            told.namespace = first.value.as_str().map(Namespace::parse).transpose()?;
            told.to = object.get("to").and_then(|to| to.as_str()).map(Namespace::parse).transpose()?;
            told.description = Some(rename_description(object, told.to.as_ref()));
        }
        b"create" => {
            told.operation_type = "create";
            told.namespace = collection()?;
            told.description = Some(without(object, &["create"]));
        }
        b"createIndexes" => {
            told.operation_type = "createIndexes";
            told.namespace = collection()?;
            told.description = Some(indexes([without(object, &["createIndexes"])]));
        }
        name @ (b"commitIndexBuild" | b"startIndexBuild" | b"abortIndexBuild") => {
            told.operation_type = match name {
                b"commitIndexBuild" => "createIndexes",
                b"startIndexBuild" => "startIndexBuild",
                _ => "abortIndexBuild",
            };
            told.namespace = collection()?;
            let mut description = DocBuilder::new();
            description.append_some("indexes", object.get("indexes"));
            told.description = Some(description.finish());
        }
        b"dropIndexes" => {
            told.operation_type = "dropIndexes";
            told.namespace = collection()?;
            told.description = Some(indexes(operation.object2.map(|index| without(index, &["dropIndexes"]))));
        }
        b"collMod" => {
            told.operation_type = "modify";
            told.namespace = collection()?;
            told.description = Some(without(object, &["collMod"]));
            let before = operation.object2.unwrap_or(DocRef::EMPTY);
            let mut state = DocBuilder::new();
            state.append_some("collectionOptions", before.get("collectionOptions_old"));
            state.append_some("indexOptions", before.get("indexOptions_old"));
            told.before = Some(state.finish());
        }
        _ => bail!(ErrorCode::BadValue, "an oplog entry has the unknown command {}", first.name),
    }
    ensure!(told.namespace.is_some(), ErrorCode::BadValue, "an oplog entry names no collection: {object}");
    Ok(told)
}

fn rename_description(object: DocRef<'_>, to: Option<&Namespace>) -> Doc {
    let mut builder = DocBuilder::new();
    for element in object.raw_elements() {
        match element.name.as_bytes() {
            b"renameCollection" | b"stayTemp" => {}
            b"to" => append_namespace(&mut builder, "to", to),
            _ => builder.append_raw(element),
        }
    }
    builder.finish()
}

fn indexes(specifications: impl IntoIterator<Item = Doc>) -> Doc {
    let mut builder = DocBuilder::new();
    builder.array("indexes", |array| specifications.into_iter().for_each(|index| array.push(index)));
    builder.finish()
}

fn without(document: DocRef<'_>, names: &[&str]) -> Doc {
    let mut builder = DocBuilder::with_capacity(document.size_bytes());
    let kept = document.raw_elements().filter(|element| names.iter().all(|name| element.name != *name));
    kept.for_each(|element| builder.append_raw(element));
    builder.finish()
}

fn append_namespace(builder: &mut DocBuilder, name: &str, namespace: Option<&Namespace>) {
    let Some(namespace) = namespace else { return };
    builder.document(name, |parts| {
        parts.append("db", namespace.database());
        if !namespace.collection().is_empty() {
            parts.append("coll", namespace.collection());
        }
    });
}

/// Events that tokens of the first version know by their documents alone.
fn is_classic(operation_type: &str) -> bool {
    super::CLASSIC.contains(&operation_type)
}

fn token_of(options: &StreamOptions, operation: &Operation<'_>, moment: &Moment, told: &Told<'_>) -> ResumeToken {
    let txn_op_index = moment.place.map_or(0, |place| place.txn_op_index);
    let beginning = &options.beginning;
    // Up to where the client came back, tokens are as they were then, or they could not be compared.
    let is_behind = moment.cluster_time > beginning.cluster_time || txn_op_index > beginning.txn_op_index;
    let version = if is_behind { options.token_version } else { beginning.version };
    let event = match version {
        ..=1 if is_classic(told.operation_type) => told.document_key.clone(),
        _ => {
            let mut event = DocBuilder::new();
            event.append("operationType", told.operation_type);
            match &told.document_key {
                Some(key) => event.append("documentKey", key),
                None => event.append_some("operationDescription", told.description.as_ref()),
            }
            Some(event.finish())
        }
    };
    ResumeToken {
        cluster_time: moment.cluster_time,
        version,
        kind: TokenKind::Event,
        txn_op_index,
        from_invalidate: false,
        uuid: operation.uuid,
        event,
        fragment: None,
    }
}

fn event_document(
    options: &StreamOptions,
    operation: &Operation<'_>,
    told: &Told<'_>,
    token: &Doc,
    moment: &Moment,
) -> Doc {
    let mut builder = DocBuilder::with_capacity(operation.object.size_bytes() + 512);
    append_namespace(&mut builder, "to", told.to.as_ref());
    if moment.place.is_some() {
        builder.append_some("txnNumber", moment.txn_number);
        builder.append_some("lsid", moment.session_id.as_ref());
    }
    builder.append("_id", token);
    builder.append("operationType", told.operation_type);
    builder.append("clusterTime", moment.cluster_time);
    if options.shows_expanded {
        builder.append_some("collectionUUID", operation.uuid.as_ref().map(uuid_value));
    }
    builder.append("wallTime", Value::DateTime(moment.wall_ms));
    builder.append_some("fullDocument", told.full_document);
    append_namespace(&mut builder, "ns", told.namespace.as_ref());
    builder.append_some("documentKey", told.document_key.as_ref());
    if options.shows_expanded {
        builder.append_some("operationDescription", told.description.as_ref());
    }
    let name = if options.shows_raw_updates { "rawUpdateDescription" } else { "updateDescription" };
    builder.append_some(name, told.update.as_ref());
    builder.append_some("stateBeforeChange", told.before.as_ref());
    builder.finish()
}

fn view_event(told: &Told<'_>, token: &Doc, moment: &Moment) -> Doc {
    let mut builder = DocBuilder::new();
    builder.append("_id", token);
    builder.append("operationType", told.operation_type);
    builder.append("clusterTime", moment.cluster_time);
    builder.append("wallTime", Value::DateTime(moment.wall_ms));
    append_namespace(&mut builder, "ns", told.namespace.as_ref());
    builder.append_some("operationDescription", told.description.as_ref());
    builder.finish()
}

/// Where the document before the change is kept, if it is wanted: also to make the one after it.
fn pre_image_of(
    options: &StreamOptions,
    operation: &Operation<'_>,
    moment: &Moment,
    operation_type: &str,
) -> Option<PreImageId> {
    let is_wanted = match operation_type {
        "update" => options.needs_pre_images(),
        "replace" | "delete" => options.before_change != BeforeChange::Off,
        _ => false,
    };
    let uuid = operation.uuid.filter(|_| is_wanted)?;
    Some(match moment.place {
        Some(place) => PreImageId { uuid, time: place.apply_ops_time, apply_ops_index: place.apply_ops_index },
        None => PreImageId { uuid, time: moment.cluster_time, apply_ops_index: 0 },
    })
}
