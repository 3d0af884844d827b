//! How large a time-series collection is: its buckets in numbers.

use super::Timeseries;
use crate::Data;
use crate::catalog::append_storage_stats;
use pando_base::Result;
use pando_doc::DocBuilder;

/// Appends what `collStats` says of a time-series collection: the sizes of its buckets, their number and what made them.
pub(crate) fn append_timeseries_stats(data: &Data, found: &Timeseries, scale: i64, out: &mut DocBuilder) -> Result<()> {
    let buckets = &found.buckets;
    out.document("timeseries", |section| {
        section.append("bucketsNs", buckets.namespace.as_str());
        let count = buckets.records.num_records().unwrap_or(0).max(0);
        let size_bytes = buckets.records.data_size_bytes().unwrap_or(0).max(0);
        section.append("bucketCount", count);
        section.append_some("avgBucketSize", size_bytes.checked_div(count));
        data.query.buckets.name_statistics(buckets.uuid, buckets.namespace.as_str());
        data.query.buckets.statistics(buckets.uuid).append_to(section);
    });
    let mut sizes = DocBuilder::new();
    append_storage_stats(Some(buckets), scale, &mut sizes)?;
    for element in sizes.finish().elements() {
        // Documents are buckets here, which nobody asked for.
        if element.name != "count" && element.name != "avgObjSize" {
            out.append_element(element);
        }
    }
    Ok(())
}
