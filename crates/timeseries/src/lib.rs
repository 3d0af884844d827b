//! Time-series collections without storage.
//!
//! A time-series collection "x" is a view on the collection "system.buckets.x". A *bucket* is a document with the measurements of one
//! source (those with the same value of the meta field) within a span of time, column by column, and with the least and greatest
//! value of each field. A full bucket is compressed.
//!
//! - [`TimeseriesOptions`]: what `create` and `collMod` may say;
//! - [`Bucket`]: a bucket that measurements are added to, within limits;
//! - [`compress`] and [`BucketReader`]: closed buckets, and measurements out of any bucket;
//! - [`Rows`]: all measurements of a compressed bucket at once, column by column;
//! - [`column`]: the form of a compressed column;
//! - [`BucketCatalog`]: which bucket of a source takes the next measurement;
//! - [`index_keys`]: indexes on measurements as indexes on buckets.
//!
//! The truth is in the stored buckets. The catalog only remembers where to look: who adds to a bucket reads it first, in the unit of
//! work that writes it. So writers to one bucket conflict as writers to any document do, a bucket that somebody changes or removes by
//! hand needs no message to the catalog, and a crash loses nothing.
//!
//! This crate must not know collections, queries or storage.

mod bucket;
mod catalog;
pub mod column;
mod compress;
mod extent;
pub mod index_keys;
mod limits;
mod meta;
mod options;
mod rows;
mod statistics;
mod unpack;
mod validate;

#[cfg(test)]
mod tests;

pub use bucket::{Bucket, Rollover, Stored, bucket_id, has_mixed_schema, is_out_of_range, measurement_time};
pub use catalog::{BucketCatalog, Candidate, Closed, Kept, SourceKey};
pub use compress::{column_values, compress, is_compressed, recompress};
pub use limits::BucketLimits;
pub use meta::{measurement_meta, normalized};
pub use options::{CollModTimeseries, Granularity, TimeseriesOptions, bucket_validator};
pub use rows::{RowValues, Rows};
pub use statistics::Statistics;
pub use unpack::{BucketReader, FieldSet, measurement_count};
pub use validate::{check_bucket, check_claims};

/// `control.version` of buckets that are open.
pub const VERSION_OPEN: i32 = 1;
/// `control.version` of buckets that are compressed.
pub const VERSION_COMPRESSED: i32 = 2;
