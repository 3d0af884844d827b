//! Scans of buckets that give measurements nearly in order.
//!
//! Where buckets come in the order of one end of their times, every measurement to come is no earlier than the start of the bucket at hand (or no
//! later than its end): a sort by time has to keep few measurements at once. In front of the time the order may go by the meta value, where the index does.
//! A field of the index that is bounded to one value does not disturb the order of those behind it.

use super::{IndexScanPlan, PlanNode};
use crate::request::{SortKey, SortPattern};
use pando_storage::Direction;
use pando_timeseries::{TimeseriesOptions, index_keys};

/// Which end of a bucket's times the buckets are in the order of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BucketEnd {
    /// The start.
    Min,
    /// The end.
    Max,
}

/// A scan that helps a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HelpfulScan {
    /// Which way it goes.
    pub direction: Direction,
    /// What its buckets are in the order of.
    pub end: BucketEnd,
}

/// A wanted order of measurements.
#[derive(Clone, Debug)]
pub struct BucketOrder {
    /// What it goes by before the time: paths of buckets, and whether the greatest comes first.
    sources: Vec<(String, bool)>,
    /// The latest comes first.
    pub is_descending: bool,
    time_field: String,
    /// Some bucket starts before 1970 or after 2038: neither `_id`s nor starts are in the order of times.
    is_out_of_range: bool,
}

impl BucketOrder {
    /// The order of this pattern on measurements, if it is by meta values and then by time.
    pub fn of(pattern: &SortPattern, options: &TimeseriesOptions, is_out_of_range: bool) -> Option<BucketOrder> {
        let named: Option<Vec<(String, bool)>> = pattern
            .parts()
            .iter()
            .map(|part| match &part.key {
                SortKey::Path(path) => Some((path.text().to_string(), part.descending)),
                SortKey::Meta(_) => None,
            })
            .collect();
        let named = named?;
        let ((time, is_descending), sources) = named.split_last()?;
        let on_buckets =
            |(path, descending): &(String, bool)| index_keys::meta_path(path, options).map(|path| (path, *descending));
        let sources = sources.iter().map(on_buckets).collect::<Option<Vec<_>>>()?;
        (*time == options.time_field).then(|| BucketOrder {
            sources,
            is_descending: *is_descending,
            time_field: time.clone(),
            is_out_of_range,
        })
    }

    /// How a scan of the records helps: they are in the order of their starts.
    pub fn of_records(&self) -> Option<HelpfulScan> {
        let direction = if self.is_descending { Direction::Reverse } else { Direction::Forward };
        let helps = self.sources.is_empty() && !self.is_out_of_range;
        helps.then_some(HelpfulScan { direction, end: BucketEnd::Min })
    }

    /// How a scan of an index helps, whichever way it goes now.
    pub fn of_scan(&self, scan: &IndexScanPlan) -> Option<HelpfulScan> {
        let info = &scan.info;
        if info.is_multikey || scan.key_range.is_some() || info.fields.iter().any(|field| field.is_hashed) {
            return None;
        }
        let mut wanted: Option<Direction> = None;
        let mut agrees = |is_descending: bool, descending: bool| {
            let direction = if is_descending == descending { Direction::Forward } else { Direction::Reverse };
            *wanted.get_or_insert(direction) == direction
        };
        let mut sources = self.sources.iter().peekable();
        for (place, field) in info.fields.iter().enumerate() {
            let path = field.path.text().to_string();
            let end = match path.strip_suffix(&self.time_field) {
                Some("control.min.") if !self.is_out_of_range => Some(BucketEnd::Min),
                Some("control.max.") => Some(BucketEnd::Max),
                _ => None,
            };
            match (sources.peek(), end) {
                (None, Some(end)) => {
                    return agrees(field.is_descending, self.is_descending)
                        .then_some(HelpfulScan { direction: wanted.unwrap_or_default(), end });
                }
                (Some((source, descending)), _) if *source == path && scan.is_same_collation => {
                    if !agrees(field.is_descending, *descending) {
                        return None;
                    }
                    sources.next();
                }
                _ if scan.bounds.fields.get(place).is_some_and(|field| field.intervals.is_point()) => {}
                _ => return None,
            }
        }
        None
    }

    /// The same plan with its scan going the way that helps.
    pub fn turned(&self, plan: PlanNode, is_clustered: bool) -> PlanNode {
        match plan {
            PlanNode::Fetch { child, filter } => {
                PlanNode::Fetch { child: Box::new(self.turned(*child, is_clustered)), filter }
            }
            PlanNode::IndexScan(mut scan) => {
                if let Some(helpful) = self.of_scan(&scan) {
                    scan.direction = helpful.direction;
                }
                PlanNode::IndexScan(scan)
            }
            PlanNode::CollectionScan(mut scan) => {
                if let Some(helpful) = self.of_records().filter(|_| is_clustered) {
                    scan.direction = helpful.direction;
                }
                PlanNode::CollectionScan(scan)
            }
            other => other,
        }
    }

    /// True if the end of the times that buckets are in the order of bounds the measurements to come by itself.
    pub fn is_exact(&self, end: BucketEnd) -> bool {
        self.is_descending == (end == BucketEnd::Max)
    }
}
