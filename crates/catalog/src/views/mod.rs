//! Views: named pipelines over a collection or another view of the same database.
//!
//! Their definitions are the documents of `system.views`; a [`ViewCatalog`] is what they say, one immutable version a
//! database, replaced by every change. Pipelines are documents here: what stages mean is the business of queries. Only the
//! names that a pipeline refers to are looked for, because a view must not depend on itself.
//!
//! Limits: 20 views deep, 16 MB of pipeline in all, one collation along a chain.

mod catalog;
mod definition;
mod graph;
mod references;
#[cfg(test)]
mod tests;

pub use catalog::{ResolvedView, ViewCatalog};
pub use definition::ViewDefinition;
pub(crate) use definition::is_simple;
pub use references::referenced_collections;

/// How many views may stand on each other.
pub const VIEW_DEPTH_MAX: usize = 20;
/// The most bytes of a resolved pipeline.
pub const VIEW_PIPELINE_BYTES_MAX: usize = 16 * 1000 * 1000;
