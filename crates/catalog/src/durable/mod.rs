//! The durable catalog: the table `_mdb_catalog` with one document a collection.
//!
//! It is an ordinary replicated table: its changes carry the timestamps of the DDL's oplog entries, so they roll back and
//! recover with the data, and reads of the past see the catalog of the past. One more document, the feature document,
//! says which features the store needs.
//!
//! Documents are read leniently: unknown fields are skipped. What is needed and missing is an error that names the record.

mod entry;
mod list;
mod table;

pub use entry::{CatalogEntry, IndexEntry};
pub use list::{list_catalog_row, list_catalog_view_row};
pub use table::{CATALOG_IDENT, CatalogFeatures, DurableCatalog};
