//! The first words of a connection, and the words that keep it informed.

mod hello;
mod metadata;

use crate::CommandRow;

pub use hello::WAIT_IN_HELLO;

/// The commands of this area.
pub static ROWS: &[CommandRow] = &[hello::HELLO, hello::IS_MASTER];
