//! Writes that find their documents: update, delete, findAndModify; and inserts.
//!
//! Each runs a plan whose root changes what the plan finds. An upsert is an insert after an update that matched nothing; if
//! somebody inserts the same key in between, the update is tried again.
//!
//! The caller holds the locks; yields give them up for a while and take them again.

mod change;
mod delete;
mod expire;
mod find_and_modify;
mod insert;
mod object_ids;
mod update;
mod update_by_id;

pub use change::{Changed, DocumentChange};
pub use delete::DeleteResult;
pub use expire::{ExpireResult, Expired};
pub use find_and_modify::FindAndModifyResult;
pub use insert::InsertDocument;
pub use object_ids::ObjectIds;
pub use update::UpdateResult;
