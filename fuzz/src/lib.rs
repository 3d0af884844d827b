//! What the fuzz targets do with bytes: everything that a client or a disk could make us do with them. No input may
//! panic, and what is accepted has to keep the promises of its crate.

mod doc;
mod keystring;
mod wire;

pub use doc::fuzz_doc;
pub use keystring::fuzz_keystring;
pub use wire::fuzz_wire;
