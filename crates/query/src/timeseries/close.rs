//! Compressing buckets that are closed.

use super::fail_points::LOSE_COMPRESSED;
use crate::QueryEngine;
use pando_base::{Component, Result, Severity, log};
use pando_catalog::Collection;
use pando_collection::UpdateArguments;
use pando_doc::{DocRef, ObjectId, Value};
use pando_operation::{Operation, write_conflict_retry};
use pando_oplog::update_object;
use pando_timeseries::{Closed, TimeseriesOptions, compress, is_compressed, measurement_count, recompress};

impl QueryEngine {
    /// Compresses the buckets. One that cannot be, or that somebody else has written meanwhile, stays as it is: nothing is lost by that.
    pub(super) async fn compress_closed(
        &self,
        operation: &mut Operation,
        collection: &Collection,
        options: &TimeseriesOptions,
        closed: Vec<Closed>,
    ) -> Result<()> {
        // Buckets of other collections are not locked; they stay as they are.
        for Closed { id, .. } in closed.into_iter().filter(|closed| closed.collection == collection.uuid) {
            operation.recovery_unit.abandon_snapshot()?;
            let sizes = write_conflict_retry(operation, "compressBucket", &collection.namespace, |operation| {
                let Some((record_id, bucket)) =
                    self.write_path.find_by_id(operation, collection, Value::ObjectId(id))?
                else {
                    return Ok(None);
                };
                let was_compressed = is_compressed(bucket.view());
                // A single measurement gains nothing, and what comes late can be added as long as the bucket is plain.
                if !was_compressed && measurement_count(bucket.view(), options) <= 1 {
                    return Ok(None);
                }
                let compressed = match was_compressed {
                    true => recompress(bucket.view()),
                    false => compress(bucket.view(), options),
                };
                let Some(compressed) = compressed else { return Ok((!was_compressed).then_some(None)) };
                let count = |bucket: DocRef<'_>| measurement_count(bucket, options);
                if LOSE_COMPRESSED.should_fail() || count(compressed.view()) != count(bucket.view()) {
                    self.tell_lost(collection, id);
                    return Ok(None);
                }
                let change = update_object(bucket.view(), compressed.view()).unwrap_or_else(|| compressed.clone());
                let arguments = UpdateArguments {
                    bypass_validation: true,
                    ..UpdateArguments::new(record_id, bucket.view(), compressed.view(), change.view())
                };
                self.write_path.update_document(operation, collection, &arguments)?;
                Ok(Some(Some((bucket.size_bytes(), compressed.size_bytes()))))
            })
            .await?;
            if let Some(sizes) = sizes {
                self.buckets.compressed(collection.uuid, sizes);
            }
        }
        Ok(())
    }

    /// What was compressed cannot be read as it was: the bucket stays as it is.
    fn tell_lost(&self, collection: &Collection, id: ObjectId) {
        self.buckets.tell(collection.uuid, |counts| &counts.decompressions_failed);
        log!(
            self.log,
            Severity::Error,
            Component::Storage,
            6179301,
            "Time-series bucket compression failed due to decompression data loss",
            "namespace" = &collection.namespace,
            "bucketId" = id.to_string()
        );
    }
}
