//! Write concerns: what clients ask for, whether it can be had, and what a reply says if it was not.
//!
//! Pure; the waiting is the node's (`crate::node`).

mod options;
mod satisfiable;
#[cfg(test)]
mod tests;

pub use options::{Acknowledgement, Provenance, Sync, WriteConcern};
pub use satisfiable::check_satisfiable;

use pando_base::Error;
use pando_doc::{Doc, DocBuilder};

/// The sub-document `writeConcernError` of a reply: the write was done, but not acknowledged as asked.
pub fn write_concern_error(error: &Error, concern: &WriteConcern, timed_out: bool) -> Doc {
    let mut builder = DocBuilder::new();
    builder.append("code", error.code().number());
    builder.append("codeName", error.code().name().as_ref());
    builder.append("errmsg", error.reason());
    builder.document("errInfo", |info| {
        info.append_some("wtimeout", timed_out.then_some(true));
        info.append("writeConcern", concern.to_doc());
    });
    builder.finish()
}
