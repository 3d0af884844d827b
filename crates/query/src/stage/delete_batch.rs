//! Deletes in batches: how large a batch is, what waits for the next one, and what all batches of a node have done.
//!
//! Documents are *staged* as they are found, until there are enough of them. Then they are deleted in one unit of work, which is one
//! entry of the oplog and one wait for the disk, however many they are. A batch ends early when it takes too long, since it keeps
//! others who want to write the same from going on; what is left of it goes into the next.

use super::Member;
use pando_base::{AnyParameter, Error, FailPoint, Metric, MetricTree, Parameter, ParameterSet, Result, ShardedCounter};
use pando_doc::DocRef;
use pando_operation::Operation;
use pando_storage::StorageError;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Clients' deletes of many documents go in batches.
static CLIENT_DELETES: Parameter<bool> =
    Parameter::new("batchUserMultiDeletes", true, "Deletes of many documents write several of them at once.");

static DOCUMENTS: Parameter<i64> = Parameter::new(
    "batchedDeletesTargetBatchDocs",
    100,
    "How many documents a batch of deletes has at most; 0 for as many as there are.",
)
.at_least(0);

static TIME_MS: Parameter<i64> = Parameter::new(
    "batchedDeletesTargetBatchTimeMS",
    5,
    "After how many milliseconds a batch of deletes commits what it has; 0 for when it is done.",
)
.at_least(0);

static STAGED_BYTES: Parameter<i64> = Parameter::new(
    "batchedDeletesTargetStagedDocBytes",
    2 * 1024 * 1024,
    "How many bytes of documents may wait for being deleted together; 0 for any number.",
)
.at_least(0);

/// All of them.
pub static DELETE_PARAMETERS: &[&dyn AnyParameter] = &[&CLIENT_DELETES, &DOCUMENTS, &TIME_MS, &STAGED_BYTES];

/// A batch runs into a conflict.
static CONFLICT: FailPoint = FailPoint::new("throwWriteConflictExceptionInBatchedDeleteStage");
/// A batch takes its time after some documents.
static SLEEP: FailPoint<Sleep> = FailPoint::with_data("batchedDeleteStageSleepAfterNDocuments", Sleep::parse);

/// All of them.
pub static DELETE_FAIL_POINTS: &[&dyn pando_base::AnyFailPoint] = &[&CONFLICT, &SLEEP];

/// What a staged document takes beside its bytes.
const STAGED_OVERHEAD_BYTES: usize = 128;
/// What an operation takes in the entry of its batch beside the document's key, at most.
const LOGGED_OVERHEAD_BYTES: usize = 256;
/// One entry of the oplog has to hold a batch.
const LOGGED_BYTES_MAX: usize = pando_doc::USER_SIZE_BYTES_MAX - LOGGED_OVERHEAD_BYTES;

/// Are clients' deletes batched?
pub(crate) fn are_client_deletes_batched(parameters: &ParameterSet) -> bool {
    parameters.get(&CLIENT_DELETES)
}

/// How large batches are. What is none is not limited.
#[derive(Clone)]
pub struct DeleteBatch {
    documents: Option<u64>,
    time_ns: Option<u64>,
    staged_bytes: Option<u64>,
    counters: Arc<DeleteBatchCounters>,
}

impl DeleteBatch {
    /// As the parameters say.
    pub(crate) fn of(parameters: &ParameterSet, counters: &Arc<DeleteBatchCounters>) -> DeleteBatch {
        let limit = |parameter| u64::try_from(parameters.get(parameter)).ok().filter(|limit| *limit > 0);
        DeleteBatch {
            documents: limit(&DOCUMENTS),
            time_ns: limit(&TIME_MS).map(|ms| ms.saturating_mul(1_000_000)),
            staged_bytes: limit(&STAGED_BYTES),
            counters: Arc::clone(counters),
        }
    }

    /// What all batches have done.
    pub(super) fn counters(&self) -> &DeleteBatchCounters {
        &self.counters
    }

    /// True if a batch that began then and deletes one more document would take too long.
    pub(super) fn is_late(&self, start_ns: u64, now_ns: u64) -> bool {
        self.time_ns.is_some_and(|time_ns| now_ns.saturating_sub(start_ns) >= time_ns)
    }
}

/// A document that is to be deleted.
pub(super) struct StagedMember {
    pub(super) member: Member,
    /// What its operation takes in the oplog, rather too much than too little.
    logged_bytes: usize,
}

/// The documents that are to be deleted together.
#[derive(Default)]
pub(super) struct Staged {
    members: VecDeque<StagedMember>,
    bytes: usize,
    logged_bytes: usize,
}

impl Staged {
    /// Adds one.
    pub(super) fn add(&mut self, member: Member) {
        let staged = StagedMember { logged_bytes: logged_bytes(&member), member };
        self.bytes += staged_bytes(&staged.member);
        self.logged_bytes += staged.logged_bytes;
        self.members.push_back(staged);
    }

    /// As many as a batch may have.
    pub(super) fn is_full(&self, batch: &DeleteBatch) -> bool {
        batch.documents.is_some_and(|documents| self.count() >= documents)
            || batch.staged_bytes.is_some_and(|bytes| self.bytes as u64 >= bytes)
            || self.logged_bytes >= LOGGED_BYTES_MAX
    }

    pub(super) fn count(&self) -> u64 {
        self.members.len() as u64
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The first ones, as many as one entry of the oplog can hold; at least one.
    pub(super) fn of_one_entry(&mut self) -> impl Iterator<Item = &mut Member> {
        let mut sum_bytes = 0;
        let fits = move |staged: &&mut StagedMember| {
            let is_first = sum_bytes == 0;
            sum_bytes += staged.logged_bytes;
            is_first || sum_bytes <= LOGGED_BYTES_MAX
        };
        self.members.iter_mut().take_while(fits).map(|staged| &mut staged.member)
    }

    /// Drops the first ones, which are done with, and tells how many bytes they were.
    pub(super) fn drop_first(&mut self, count: usize) -> usize {
        let before = self.bytes;
        for staged in self.members.drain(..count.min(self.members.len())) {
            self.bytes = self.bytes.saturating_sub(staged_bytes(&staged.member));
            self.logged_bytes = self.logged_bytes.saturating_sub(staged.logged_bytes);
        }
        before - self.bytes
    }

    /// They were found under a snapshot that is gone: each is looked at again. How many that concerns.
    pub(super) fn forget_snapshots(&mut self) -> usize {
        let stale = self.members.iter_mut().filter(|staged| staged.member.snapshot.is_some());
        stale.map(|staged| staged.member.snapshot = None).count()
    }
}

fn staged_bytes(member: &Member) -> usize {
    member.document.as_ref().map_or(0, |document| document.size_bytes()) + STAGED_OVERHEAD_BYTES
}

fn logged_bytes(member: &Member) -> usize {
    let id = member.document.as_ref().and_then(|document| document.view().get_raw("_id"));
    DocRef::EMPTY.size_bytes() + id.map_or(0, |id| id.bytes.len()) + LOGGED_OVERHEAD_BYTES
}

/// What all batches of a node have done: the section `batchedDeletes` of serverStatus.
#[derive(Debug, Default)]
pub struct DeleteBatchCounters {
    batches: Arc<ShardedCounter>,
    documents: Arc<ShardedCounter>,
    staged_bytes: Arc<ShardedCounter>,
    time_ms: Arc<ShardedCounter>,
    refetched: Arc<ShardedCounter>,
}

impl DeleteBatchCounters {
    /// Adds what serverStatus shows.
    pub(crate) fn add_metrics(&self, tree: &mut MetricTree) -> Result<()> {
        for (name, counter) in [
            ("batches", &self.batches),
            ("docs", &self.documents),
            ("stagedSizeBytes", &self.staged_bytes),
            ("timeInBatchMillis", &self.time_ms),
            ("refetchesDueToYield", &self.refetched),
        ] {
            tree.add(&format!("batchedDeletes.{name}"), Arc::clone(counter) as Arc<dyn Metric>)?;
        }
        Ok(())
    }

    pub(super) fn committed(&self, documents: u64, staged_bytes: usize, time_ns: u64) {
        self.batches.add(1);
        self.documents.add(documents);
        self.staged_bytes.add(staged_bytes as u64);
        self.time_ms.add(time_ns / 1_000_000);
    }

    pub(super) fn refetched(&self, documents: usize) {
        self.refetched.add(documents as u64);
    }
}

/// What the data of the fail point says.
struct Sleep {
    documents: u64,
    namespace: Option<String>,
    pause: Duration,
}

impl Sleep {
    fn parse(bytes: &[u8]) -> Result<Sleep> {
        let data = if bytes.is_empty() { DocRef::EMPTY } else { DocRef::parse(bytes)? };
        let number =
            |name| data.get(name).and_then(|value| value.to_i64_exact()).and_then(|value| value.try_into().ok());
        Ok(Sleep {
            documents: number("nDocs").unwrap_or(0),
            namespace: data.get("ns").and_then(|name| name.as_str()).map(str::to_owned),
            pause: Duration::from_millis(number("sleepMs").unwrap_or(0)),
        })
    }
}

/// What tests want to happen inside a batch that has deleted so many documents.
pub(super) fn fail_if_wanted(operation: &Operation, namespace: &str, deleted: u64) -> Result<()> {
    if CONFLICT.should_fail() {
        return Err(Error::from(StorageError::WriteConflict));
    }
    let is_meant = |sleep: &Sleep| {
        sleep.documents == deleted && sleep.namespace.as_deref().is_none_or(|wanted| wanted == namespace)
    };
    if let Some(sleep) = SLEEP.hit_if(is_meant) {
        operation.env.clock().pause(sleep.pause);
    }
    Ok(())
}
