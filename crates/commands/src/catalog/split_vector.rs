//! `splitVector`: keys at which a range of a collection could be divided into chunks of about half a size. For shards; the command
//! stands alone, because it only reads an index.

use super::data_size::{extended, index_with};
use super::names::full_name;
use crate::locking::lock_for_read;
use crate::{Access, Action, Admission, CommandRow, Data, Invocation, NamespaceOf, SecondaryOk, run_boxed};
use pando_base::{Error, ErrorCode, Namespace, Result, bail, ensure};
use pando_doc::{Doc, DocBuilder, DocRef, Value};
use pando_env::Place;
use pando_operation::Operation;
use pando_query::FindPlan;
use pando_query::executor::{DocumentSink, drive};
use pando_query::request::{FindRequest, Hint};

pub(super) const ROW: CommandRow = CommandRow {
    name: "splitVector",
    help: "Internal command.\n{ splitVector: \"db.c\", keyPattern: {x: 1}, min: {x: 10}, max: {x: 20}, maxChunkSize: 200 }",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    secondary_ok: SecondaryOk::Never,
    is_stopped_when_abandoned: true,
    admission: Admission::Read,
    namespace: NamespaceOf::FullName,
    privileges: Access::Collection(&[Action::SplitVector]),
    place: Place::Lanes,
    ..CommandRow::DEFAULT
};

/// So many documents a chunk has at most, unless told.
const DOCUMENTS_MAX: i64 = 250_000;
const MEBIBYTE: i64 = 1 << 20;
/// What a key takes in the reply beside its bytes.
const ITEM_BYTES: usize = 12;

/// What was asked for.
struct Wish {
    pattern: Doc,
    min: Doc,
    max: Doc,
    is_forced: bool,
    points_max: Option<i64>,
    documents_max: i64,
    bytes_max: Option<i64>,
}

impl Wish {
    fn read(body: DocRef<'_>) -> Result<Wish> {
        let failed = |reason: &str| Error::new(ErrorCode::CommandFailed, reason);
        let document = |name: &str| body.get(name).and_then(|value| value.as_document()).unwrap_or(DocRef::EMPTY);
        let number = |name: &str| body.get(name).filter(|value| value.is_number()).map(|value| value.to_i64_or_zero());
        let pattern = document("keyPattern").to_doc();
        ensure!(!pattern.view().is_empty(), ErrorCode::CommandFailed, "no key pattern found in splitVector");
        let (min, max) = (document("min"), document("max"));
        if min.is_empty() != max.is_empty() {
            return Err(failed("either provide both min and max or leave both empty"));
        }
        let documents_max = number("maxChunkObjects").unwrap_or(DOCUMENTS_MAX);
        let invalid = ErrorCode::InvalidOptions;
        ensure!(documents_max > 0, invalid, "maxChunkObjects must be greater than 0");
        let bytes_max = match (number("maxChunkSize"), number("maxChunkSizeBytes")) {
            (Some(mebibytes), _) => {
                let is_fit = (1..=1024).contains(&mebibytes);
                ensure!(is_fit, invalid, "maxChunkSize must lie within the range [1MB, 1024MB]");
                Some(mebibytes * MEBIBYTE)
            }
            (None, Some(bytes)) => {
                let is_fit = (MEBIBYTE..=1024 * MEBIBYTE).contains(&bytes);
                ensure!(is_fit, invalid, "The specified max chunk size must lie within the range [1MB, 1024MB]");
                Some(bytes)
            }
            (None, None) => None,
        };
        Ok(Wish {
            pattern,
            min: min.to_doc(),
            max: max.to_doc(),
            is_forced: body.get("force").is_some_and(|force| force.is_true()),
            points_max: number("maxSplitPoints").filter(|points| *points > 0),
            documents_max,
            bytes_max,
        })
    }
}

/// Takes every so many-th key, unless it is the one before.
struct Splitter {
    pattern: Doc,
    /// Keys between two points; none if all are only counted.
    interval: Option<i64>,
    points_max: Option<i64>,
    since_last: i64,
    /// The first key of all stands before the points.
    points: Vec<Doc>,
    bytes: usize,
    is_full: bool,
}

impl Splitter {
    fn key_of(&self, found: &Doc) -> Doc {
        let mut key = DocBuilder::new();
        for element in self.pattern.elements() {
            key.append(element.name, found.get(element.name).unwrap_or(Value::Null));
        }
        key.finish()
    }
}

impl DocumentSink for Splitter {
    fn offer(&mut self, found: &Doc) -> bool {
        if self.points.is_empty() {
            let first = self.key_of(found);
            self.points.push(first);
        }
        self.since_last += 1;
        let Some(interval) = self.interval else { return true };
        if self.since_last <= interval {
            return true;
        }
        let key = self.key_of(found);
        if self.points.last() == Some(&key) {
            // All documents of a key are in one chunk.
            return true;
        }
        self.bytes += key.bytes().len() + ITEM_BYTES;
        if self.bytes > pando_doc::USER_SIZE_BYTES_MAX {
            self.is_full = true;
            return true;
        }
        self.points.push(key);
        self.since_last = 0;
        self.is_full = self.points_max.is_some_and(|most| self.points.len() as i64 > most);
        true
    }

    fn is_full(&self) -> bool {
        self.is_full
    }
}

async fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    let wish = Wish::read(invocation.body())?;
    let namespace = full_name(invocation.target(), "splitVector.splitVector")?;
    let mut operation = invocation.operation()?;
    lock_for_read(&mut operation).await?;
    let points = split(data, &mut operation, &namespace, &wish).await?;
    reply.array("splitKeys", |keys| points.iter().for_each(|key| keys.push(key)));
    Ok(())
}

async fn split(data: &Data, operation: &mut Operation, namespace: &Namespace, wish: &Wish) -> Result<Vec<Doc>> {
    ensure!(
        data.catalog.latest().view(namespace)?.is_none(),
        ErrorCode::CommandNotSupportedOnView,
        "Namespace {namespace} is a view, not a collection"
    );
    let Some(collection) = data.collections().open(operation, namespace)? else {
        bail!(ErrorCode::NamespaceNotFound, "ns not found");
    };
    let Some(index) = index_with(&collection, wish.pattern.view(), false) else {
        bail!(ErrorCode::IndexNotFound, "couldn't find index over splitting key {}", wish.pattern);
    };
    let min = extended(wish.min.view(), index.view(), false);
    let max = extended(wish.max.view(), index.view(), wish.max.view().is_empty());
    let (documents, bytes) = (collection.records.num_records()?, collection.records.data_size_bytes()?);
    let bytes_max = if wish.is_forced { Some(bytes) } else { wish.bytes_max };
    let Some(bytes_max) = bytes_max.filter(|most| *most > 0) else {
        bail!(ErrorCode::InvalidOptions, "need to specify the desired max chunk size");
    };
    if bytes < bytes_max || documents == 0 {
        return Ok(Vec::new());
    }
    let average_bytes = (bytes / documents).max(1);
    let interval = (bytes_max / (2 * average_bytes)).min(wish.documents_max);
    let splitter = |interval: Option<i64>| Splitter {
        pattern: wish.pattern.clone(),
        interval,
        points_max: wish.points_max,
        since_last: 0,
        points: Vec::new(),
        bytes: 0,
        is_full: false,
    };
    let request = FindRequest {
        min,
        max,
        hint: Hint::KeyPattern(index),
        return_key: true,
        ..FindRequest::new(namespace.clone())
    };
    let mut sink = splitter(Some(interval).filter(|_| !wish.is_forced));
    pass(data, operation, &request, &mut sink).await?;
    ensure!(
        !sink.points.is_empty(),
        ErrorCode::OperationFailed,
        "can't open a cursor to scan the range (desired range is possibly empty)"
    );
    if wish.is_forced {
        // The keys were counted; now the one in the middle is looked for.
        let half = sink.since_last / 2;
        sink = splitter(Some(half));
        pass(data, operation, &request, &mut sink).await?;
    }
    Ok(sink.points.into_iter().skip(1).collect())
}

/// Shows the sink the keys of the range.
async fn pass(data: &Data, operation: &mut Operation, request: &FindRequest, sink: &mut Splitter) -> Result<()> {
    let FindPlan::Executor(mut executor) = data.query.find(operation, request)? else {
        bail!(ErrorCode::IndexNotFound, "couldn't find index over splitting key");
    };
    while !sink.is_full() && !drive(&mut *executor, operation, data.collections(), sink).await? {}
    Ok(())
}
