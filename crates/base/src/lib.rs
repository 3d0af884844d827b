//! What every layer shares: timestamps, record ids and MongoDB's error codes.
//!
//! This crate knows nothing of BSON, storage or commands. It has no state.

mod error_code;
mod record_id;
mod timestamp;

pub use error_code::ErrorCode;
pub use record_id::RecordId;
pub use timestamp::Timestamp;
