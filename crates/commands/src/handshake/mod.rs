//! The first words of a connection, and the words that keep it informed.

mod hello;
mod metadata;

use crate::CommandRow;

pub use hello::WAIT_IN_HELLO;
pub(crate) use hello::{REFUSE_SHORT_STREAMING_WAITS, STREAMING_WAIT_MS_MIN};

/// The commands of this area.
pub static ROWS: &[CommandRow] = &[hello::HELLO, hello::IS_MASTER];
