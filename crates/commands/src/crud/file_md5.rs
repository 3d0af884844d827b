//! `filemd5`: the MD5 of a file that is kept in chunks, as older drivers of GridFS ask for it.

use super::reading::begin_whole_read;
use crate::arguments::{SafeBool, SafeLong};
use crate::catalog::hex;
use crate::table::run_boxed;
use crate::{Access, AccessRequest, Admission, Class, CommandRow, Data, Invocation, SecondaryOk, arguments};
use md5::digest::common::hazmat::SerializableState;
use md5::{Digest, Md5};
use pando_base::{Error, ErrorCode, FailPoint, Namespace, Result, bail, ensure};
use pando_doc::{Doc, DocBuilder, DocRef, OwnedValue, Value, doc};
use pando_env::Place;
use pando_operation::Operation;
use pando_query::FindPlan;
use pando_query::executor::{DocumentSink, drive};
use pando_query::request::{FindRequest, Hint};
use pando_security::{Action, Target};

const ROOT: &str = "fs";

/// Before each batch of chunks.
pub(crate) static WAIT_WHILE_YIELDED: FailPoint = FailPoint::new("waitInFilemd5DuringManualYield");

pub(super) const ROW: CommandRow = CommandRow {
    name: "filemd5",
    help: "example: { filemd5 : ObjectId(aaaaaaa) , root : \"fs\" }",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    class: Class::Read,
    secondary_ok: SecondaryOk::OptIn,
    is_stopped_when_abandoned: true,
    admission: Admission::Read,
    privileges: Access::Checked(may_read_chunks),
    place: Place::Lanes,
    ..CommandRow::DEFAULT
};

arguments! {
    struct Arguments<'a> of "filemd5" {
        root: Option<Value<'a>> = "root",
        partial_ok: SafeBool = "partialOk" or SafeBool(false),
        state: Option<Value<'a>> = "md5state",
        start_at: Option<SafeLong> = "startAt",
    }
}

fn may_read_chunks(request: &AccessRequest<'_>) -> Result<bool> {
    let namespace = chunks(&request.namespace, request.body.get("root"))?;
    Ok(request.may(Target::of(&namespace), Action::Find))
}

fn chunks(database: &Namespace, root: Option<Value<'_>>) -> Result<Namespace> {
    let root = match root {
        None => ROOT,
        Some(root) => root.as_str().ok_or_else(|| Error::type_mismatch("'root' must be a string"))?,
    };
    let namespace = Namespace::new(&database.database_name(), &format!("{root}.chunks"))?;
    namespace.validate()?;
    Ok(namespace)
}

/// Takes chunks in their order.
struct Chunks {
    digest: Md5,
    /// The number of the next.
    next: i64,
    partial_ok: bool,
    /// Something is wrong with a chunk, or it is not the next.
    outcome: Result<bool>,
}

impl Chunks {
    fn take(&mut self, chunk: DocRef<'_>) -> Result<bool> {
        let number = chunk.get("n").and_then(|n| n.as_number()).and_then(|n| n.to_i64_exact());
        if number != Some(self.next) {
            ensure!(self.partial_ok, ErrorCode::location(10040), "chunks out of order");
            return Ok(false);
        }
        match chunk.get("data") {
            Some(Value::Binary { bytes, .. }) => self.digest.update(bytes),
            Some(_) => {
                bail!(ErrorCode::location(50849), "The element that calls binDataClean() must be type of BinData")
            }
            None => bail!(ErrorCode::location(50848), "The element that calls binDataClean() must be type of BinData"),
        }
        self.next += 1;
        Ok(true)
    }
}

impl DocumentSink for Chunks {
    fn offer(&mut self, document: &Doc) -> bool {
        if matches!(self.outcome, Ok(true)) {
            self.outcome = self.take(document.view());
        }
        true
    }

    fn is_full(&self) -> bool {
        !matches!(self.outcome, Ok(true))
    }
}

async fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    let arguments = Arguments::parse(&invocation.request)?;
    let namespace = chunks(&invocation.namespace, arguments.root)?;
    let (digest, first) = match (arguments.partial_ok.0, arguments.state) {
        (true, Some(state)) => (resumed(state)?, arguments.start_at.map_or(0, |at| at.0)),
        _ => (Md5::new(), 0),
    };
    let mut chunks = Chunks { digest, next: first, partial_ok: arguments.partial_ok.0, outcome: Ok(true) };
    let mut operation = invocation.operation()?;
    begin_whole_read(invocation, data, &mut operation).await?;
    invocation.context.describe(|description| description.namespace = Some(namespace.clone()));
    read(data, &mut operation, &namespace, invocation.target().to_owned(), &mut chunks).await?;
    chunks.outcome?;
    if arguments.partial_ok.0 {
        reply.append("md5state", Value::Binary { subtype: 0, bytes: &chunks.digest.serialize() });
    }
    match i32::try_from(chunks.next) {
        Ok(count) => reply.append("numChunks", count),
        Err(_) => reply.append("numChunks", chunks.next),
    }
    reply.append("md5", hex(chunks.digest));
    Ok(())
}

/// The digest as a client has got it before.
fn resumed(state: Value<'_>) -> Result<Md5> {
    let Value::Binary { bytes, .. } = state else {
        bail!(ErrorCode::location(50847), "The element that calls binDataClean() must be type of BinData");
    };
    let state = bytes.try_into().ok().and_then(|state| Md5::deserialize(state).ok());
    state.ok_or_else(|| Error::bad_value("'md5state' is none that this command has given"))
}

/// Reads the chunks of a file from the index that every such collection has.
async fn read(
    data: &Data,
    operation: &mut Operation,
    namespace: &Namespace,
    file: OwnedValue,
    chunks: &mut Chunks,
) -> Result<()> {
    let filter = doc! { "files_id": file, "n": { "$gte": (chunks.next) } };
    let Some(collection) = data.catalog.latest().collection(namespace).cloned() else { return Ok(()) };
    let index = collection.ready_indexes().find(|index| {
        let names = index.descriptor.key_pattern.elements().map(|element| element.name);
        names.eq(["files_id", "n"])
    });
    let Some(index) = index else {
        bail!(ErrorCode::NoQueryExecutionPlans, "Can't get executor for query {filter}");
    };
    let request = FindRequest {
        filter,
        sort: doc! { "files_id": 1, "n": 1 },
        hint: Hint::KeyPattern(index.descriptor.key_pattern.clone()),
        ..FindRequest::new(namespace.clone())
    };
    let FindPlan::Executor(mut executor) = data.query.find(operation, &request)? else { return Ok(()) };
    WAIT_WHILE_YIELDED.rest(&operation.context).await?;
    while !chunks.is_full() && !drive(&mut *executor, operation, data.collections(), chunks).await? {}
    Ok(())
}
