//! The commands that read and write documents.
//!
//! One file each. What several share: `batch` (statements of a write command, their errors and the reply), `retryable`
//! (statements that a session has carried out before), `collections` (finding and creating the collection of a write),
//! `reading` (what reads begin with, first batches), `views` (reads of views, which become aggregations), `tailing` (news
//! for cursors that wait), `output` (`$out` and `$merge`), `transaction_stages` (what pipelines in transactions do without).

mod aggregate;
mod batch;
mod collections;
mod count;
mod delete;
mod distinct;
mod explain;
pub(crate) mod fail_points;
mod file_md5;
mod find;
mod find_and_modify;
mod get_more;
mod index_filters;
mod insert;
mod kill_cursors;
mod map_reduce;
mod output;
mod plan_cache_clear;
mod reading;
mod retryable;
mod stage_read_concern;
mod stored_functions;
mod tailing;
mod transaction_stages;
mod update;
mod views;

use crate::CommandRow;

pub(crate) use aggregate::AggregateArguments;
pub use collections::collection_for_insert;
pub(crate) use collections::{check_uuid, lock_for_write, lock_if_capped};
pub(crate) use file_md5::WAIT_WHILE_YIELDED;
pub(crate) use find::BEFORE_PLANNING;
pub(crate) use get_more::FAIL_AFTER_CHECKOUT as FAIL_GET_MORE;
pub(crate) use map_reduce::Output as MapReduceOutput;
pub use tailing::{InsertNews, Listener};

/// The rows of this area.
pub static ROWS: &[CommandRow] = &[
    aggregate::ROW,
    count::ROW,
    delete::ROW,
    distinct::ROW,
    explain::ROW,
    file_md5::ROW,
    find::ROW,
    find_and_modify::ROW,
    get_more::ROW,
    insert::ROW,
    kill_cursors::ROW,
    map_reduce::ROW,
    index_filters::CLEAR_ROW,
    index_filters::LIST_ROW,
    index_filters::SET_ROW,
    plan_cache_clear::ROW,
    update::ROW,
];
