//! The catalog in memory: immutable versions, cheap to copy, replaced as a whole.
//!
//! A [`CollectionCatalog`] is one version of everything: collections by name and by id, databases with their views, changes
//! that are about to commit, and where names led in the past. Its maps share structure with the version before, so a
//! change costs the same however many collections there are.
//!
//! Versions are made by [`CatalogVersions::write`]: writers queue their changes, and whoever gets the lock runs all that are
//! queued on one copy. Readers load the current version and keep it; nobody waits for them, and they wait for nobody.

mod catalog;
mod history;
mod known;
mod versions;

pub use catalog::CollectionCatalog;
pub(crate) use catalog::Next;
pub(crate) use history::PastName;
pub(crate) use versions::CatalogVersions;
