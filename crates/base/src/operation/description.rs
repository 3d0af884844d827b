//! What an operation says of itself to currentOp, the profiler and the log of slow operations.

use crate::Namespace;
use bytes::Bytes;
use std::borrow::Cow;

/// The kind of an operation, by currentOp's names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OperationKind {
    /// Not known yet.
    #[default]
    None,
    /// A query.
    Query,
    /// The next batch of a cursor.
    GetMore,
    /// An insert.
    Insert,
    /// An update.
    Update,
    /// A delete.
    Remove,
    /// Anything else.
    Command,
}

impl OperationKind {
    /// The name in currentOp's field "op".
    pub const fn name(self) -> &'static str {
        match self {
            OperationKind::None => "none",
            OperationKind::Query => "query",
            OperationKind::GetMore => "getmore",
            OperationKind::Insert => "insert",
            OperationKind::Update => "update",
            OperationKind::Remove => "remove",
            OperationKind::Command => "command",
        }
    }
}

/// What is told of an operation's plan when it is over, beside its summary.
#[derive(Clone, Debug, Default)]
pub struct PlanFacts {
    /// The results were sorted, not read in order.
    pub has_sort_stage: bool,
    /// The sort or a group went to disk.
    pub used_disk: bool,
    /// Several plans were tried.
    pub from_multi_planner: bool,
    /// The plan had won before.
    pub from_plan_cache: bool,
    /// Why a plan that had won before was given up.
    pub replan_reason: Option<String>,
    /// The hash of the query's shape, as clients see it.
    pub query_hash: String,
    /// The hash of the shape and of the indexes that it could use.
    pub plan_cache_key: String,
    /// What each stage did: a document.
    pub execution: Option<Bytes>,
}

/// The cursor that a getMore goes on with, as it was before. Times are those of the clock that only goes forward.
#[derive(Clone, Debug, Default)]
pub struct CursorFacts {
    /// Its id.
    pub id: i64,
    /// When it was made.
    pub created_ms: u64,
    /// When it was last used.
    pub last_used_ms: u64,
    /// How many documents it has given.
    pub returned: u64,
    /// How many batches.
    pub batches: u64,
    /// It does not time out by itself.
    pub no_timeout: bool,
    /// It stays open at the end.
    pub tailable: bool,
    /// It waits for new documents.
    pub await_data: bool,
}

/// What an operation is doing. Documents are BSON bytes; this crate does not look inside.
#[derive(Clone, Debug, Default)]
pub struct OperationDescription {
    /// The kind.
    pub kind: OperationKind,
    /// The collection, or the database with an empty collection.
    pub namespace: Option<Namespace>,
    /// The command's name; empty if it is not known yet.
    pub command_name: &'static str,
    /// The command as it was sent.
    pub command: Option<Bytes>,
    /// For a getMore: the command that made the cursor.
    pub originating_command: Option<Bytes>,
    /// For a getMore: the cursor.
    pub cursor: Option<CursorFacts>,
    /// The logical session's id document.
    pub session: Option<Bytes>,
    /// The session's transaction number.
    pub transaction_number: Option<i64>,
    /// How the plan was summed up: "IXSCAN { a: 1 }".
    pub plan_summary: Cow<'static, str>,
    /// What else is told of the plan; only of operations that want details.
    pub plan: Option<Box<PlanFacts>>,
    /// The cursor that was used, or is left for more.
    pub cursor_id: Option<i64>,
    /// The cursor has nothing more to give.
    pub cursor_exhausted: bool,
    /// The fail point that it rests at.
    pub fail_point: &'static str,
    /// Where a long task stands: its words, what is done, what there is to do.
    pub progress: Option<(String, u64, u64)>,
}
