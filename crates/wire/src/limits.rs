//! The sizes that the protocol allows.
//!
//! A length that a peer announces is compared with these before a single byte is reserved for it.

/// The header that opens every message.
pub const HEADER_SIZE_BYTES: usize = 16;

/// The largest message, header included (`maxMessageSizeBytes` in the reply to hello).
pub const MESSAGE_SIZE_BYTES_MAX: usize = 48_000_000;

/// The largest document that a user may store (`maxBsonObjectSize` in the reply to hello).
pub const DOCUMENT_SIZE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The largest document inside a message: a user's document and room for what a command wraps around it.
pub const DOCUMENT_SIZE_BYTES_MAX_INTERNAL: usize = DOCUMENT_SIZE_BYTES_MAX + 16 * 1024;

/// How many document sequences one message may carry.
pub const SEQUENCES_MAX: usize = 2;

const _: () = assert!(DOCUMENT_SIZE_BYTES_MAX_INTERNAL < MESSAGE_SIZE_BYTES_MAX);
