//! `$_internalBoundedSort`: measurements in order, where their buckets come nearly in order.
//!
//! Each bucket tells how early (or, latest first, how late) its measurements and all that come behind can be. What is before that is given; only what is not
//! is kept. In front of the time the order may go by values that come in order themselves: with a new one all that was kept is given. Where more is kept than
//! memory allows, the rest is sorted as a whole, on disk.

use crate::pipeline::dependencies::without_places;
use crate::pipeline::source::pass_on_to_source;
use crate::pipeline::{
    DocumentSource, Needs, PipelineContext, PipelineParser, Pulled, SharedStage, StageFacts, StageSpec,
};
use crate::planner::BucketEnd;
use crate::request::{SortKey, SortPattern};
use crate::spill::{SpilledDocument, StageResources};
use crate::stage::SortKeyGenerator;
use pando_base::{Error, Result};
use pando_doc::{Doc, DocBuilder, DocRef, FieldPath, Value, doc, get_path};
use pando_expr::SharedCollator;
use pando_sorter::{Sorted, Sorter};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

const STAGE: &str = "$_internalBoundedSort";

/// How measurements to come are bounded by the bucket at hand.
#[derive(Clone, Copy, Debug)]
pub(in crate::pipeline) struct Bound {
    /// By this end of its times.
    pub(in crate::pipeline) end: BucketEnd,
    /// So much later.
    pub(in crate::pipeline) offset_ms: i64,
}

#[derive(Clone)]
struct BoundedSortSpec {
    pattern: SortPattern,
    /// The last part of the order.
    time: FieldPath,
    is_descending: bool,
    bound: Bound,
    limit: Option<u64>,
    collator: Option<SharedCollator>,
    resources: StageResources,
}

impl std::fmt::Debug for BoundedSortSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.to_doc())
    }
}

/// What the stage has in common with the sort that it takes the place of.
pub struct SortParts {
    /// The order.
    pub pattern: SortPattern,
    /// So many are enough.
    pub limit: Option<u64>,
    /// How strings are compared.
    pub collator: Option<SharedCollator>,
    /// What it may take.
    pub resources: StageResources,
}

/// The stage for an order whose last part is the time; none if it is by something that is not in documents.
pub(in crate::pipeline) fn of(sort: SortParts, bound: Bound) -> Option<SharedStage> {
    let last = sort.pattern.parts().last()?;
    let SortKey::Path(time) = &last.key else { return None };
    let (time, is_descending) = (time.clone(), last.descending);
    if sort.pattern.needs_metadata() {
        return None;
    }
    let SortParts { pattern, limit, collator, resources } = sort;
    Some(Arc::new(BoundedSortSpec { pattern, time, is_descending, bound, limit, collator, resources }))
}

/// Reads it.
pub(in crate::pipeline) fn parse(value: Value<'_>, parser: &PipelineParser) -> Result<SharedStage> {
    let Value::Document(specification) = value else {
        return Err(Error::location(6_369_905, format!("the {STAGE} key specification must be an object")));
    };
    let Some(Value::Document(key)) = specification.get("sortKey") else {
        return Err(Error::location(6_369_904, format!("{STAGE} sortKey must be an object")));
    };
    let empty = || Error::location(6_369_900, format!("{STAGE} sortKey must have at least one field"));
    let pattern = SortPattern::parse(key)?.ok_or_else(empty)?;
    let Some(Value::Document(bound)) = specification.get("bound") else {
        return Err(Error::location(6_460_200, format!("{STAGE} bound must be an object")));
    };
    let bound = parse_bound(bound)?;
    let limit = match specification.get("limit") {
        None => None,
        Some(limit) => {
            let reason = format!("{STAGE} limit must be a positive number");
            let limit = limit.to_i64_exact().and_then(|limit| u64::try_from(limit).ok());
            Some(limit.filter(|limit| *limit > 0).ok_or_else(|| Error::location(6_588_100, reason))?)
        }
    };
    let sort =
        SortParts { pattern, limit, collator: parser.context.collator.clone(), resources: parser.resources.clone() };
    of(sort, bound).ok_or_else(|| Error::location(6_369_908, format!("{STAGE} sortKey must not be a $meta expression")))
}

fn parse_bound(bound: DocRef<'_>) -> Result<Bound> {
    let end = match bound.get("base").and_then(|base| base.as_str()) {
        Some("min") => BucketEnd::Min,
        Some("max") => BucketEnd::Max,
        _ => return Err(Error::location(6_460_201, format!("{STAGE} bound.base must be 'min' or 'max'"))),
    };
    let offset_seconds = match bound.get("offsetSeconds") {
        None => 0,
        Some(offset) => offset
            .to_i64_exact()
            .ok_or_else(|| Error::location(6_460_202, format!("{STAGE} bound.offsetSeconds must be an integer")))?,
    };
    Ok(Bound { end, offset_ms: offset_seconds.saturating_mul(1000) })
}

/// A measurement that is kept: earlier ones come first, of one time those that came first.
struct Kept {
    key: i64,
    number: u64,
    document: Doc,
}

impl PartialEq for Kept {
    fn eq(&self, other: &Kept) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Kept {}

impl PartialOrd for Kept {
    fn partial_cmp(&self, other: &Kept) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Kept {
    fn cmp(&self, other: &Kept) -> std::cmp::Ordering {
        (self.key, self.number).cmp(&(other.key, other.number))
    }
}

/// A measurement that came.
struct Arrival {
    kept: Kept,
    /// What it is sorted by before the time.
    group: Box<[u8]>,
    /// Nothing comes behind it that is before this.
    bound: i64,
}

struct BoundedSortSource {
    source: Box<dyn DocumentSource>,
    specification: BoundedSortSpec,
    /// Makes the part of the key in front of the time, if there is one.
    groups: Option<SortKeyGenerator>,
    group: Box<[u8]>,
    kept: BinaryHeap<Reverse<Kept>>,
    kept_bytes: u64,
    bound: i64,
    /// The first of the next group, which waits until the one at hand is given.
    waiting: Option<Arrival>,
    is_exhausted: bool,
    number: u64,
    given: u64,
    sorted_bytes: u64,
    /// What sorts the rest, once there was too much.
    rest: Option<Box<Rest>>,
}

/// The rest of the measurements, sorted as a whole.
struct Rest {
    keys: SortKeyGenerator,
    sorter: Sorter<SpilledDocument>,
    sorted: Option<Sorted<SpilledDocument>>,
}

impl Rest {
    fn add(&mut self, document: Doc) -> Result<()> {
        let key = self.keys.of_document(document.view())?;
        Ok(self.sorter.add(&key, SpilledDocument(document))?)
    }
}

impl BoundedSortSource {
    /// Times in the order that is wanted.
    fn key(&self, time_ms: i64) -> i64 {
        if self.specification.is_descending { !time_ms } else { time_ms }
    }

    fn arrival(&mut self, document: Doc) -> Result<Arrival> {
        let only_dates = || Error::location(6_369_909, format!("{STAGE} only handles Date values"));
        let time_ms = get_path(document.view(), &self.specification.time)
            .and_then(|time| time.as_date())
            .ok_or_else(only_dates)?;
        let reason = format!("{STAGE} needs the times of the bucket that a measurement is from");
        let (least_ms, greatest_ms) = self.source.bucket_times().ok_or_else(|| Error::location(6_369_910, reason))?;
        let Bound { end, offset_ms } = self.specification.bound;
        let end_ms = if end == BucketEnd::Min { least_ms } else { greatest_ms };
        let group = match &mut self.groups {
            Some(groups) => groups.of_document(document.view())?,
            None => Box::default(),
        };
        let bound = self.key(end_ms.saturating_add(offset_ms));
        self.number += 1;
        Ok(Arrival { kept: Kept { key: self.key(time_ms), number: self.number, document }, group, bound })
    }

    fn keep(&mut self, arrival: Arrival) {
        let size_bytes = (arrival.kept.document.size_bytes() + size_of::<Kept>()) as u64;
        self.kept_bytes += size_bytes;
        self.sorted_bytes += size_bytes;
        self.group = arrival.group;
        self.bound = arrival.bound;
        self.kept.push(Reverse(arrival.kept));
    }

    /// The next measurement of those kept, if none can come before it.
    fn give(&mut self) -> Option<Doc> {
        let is_all_here = self.is_exhausted || self.waiting.is_some();
        let Reverse(first) = self.kept.peek()?;
        if !is_all_here && first.key > self.bound {
            return None;
        }
        let Reverse(first) = self.kept.pop()?;
        self.kept_bytes = self.kept_bytes.saturating_sub((first.document.size_bytes() + size_of::<Kept>()) as u64);
        Some(first.document)
    }

    /// Takes up a measurement; too many are handed over to a sort.
    fn take(&mut self, document: Doc) -> Result<()> {
        if let Some(rest) = &mut self.rest {
            return rest.add(document);
        }
        let arrival = self.arrival(document)?;
        if !self.kept.is_empty() && arrival.group != self.group {
            self.waiting = Some(arrival);
            return Ok(());
        }
        self.keep(arrival);
        if self.kept_bytes > self.specification.resources.sort_memory_bytes_max {
            self.hand_over()?;
        }
        Ok(())
    }

    fn hand_over(&mut self) -> Result<()> {
        let BoundedSortSpec { pattern, collator, resources, limit, .. } = &self.specification;
        let left = limit.map(|limit| limit.saturating_sub(self.given));
        let keys = SortKeyGenerator::new(pattern, collator.clone())?;
        let mut rest = Rest { keys, sorter: resources.sorter(left), sorted: None };
        for Reverse(kept) in std::mem::take(&mut self.kept).into_sorted_vec().into_iter().rev() {
            rest.add(kept.document)?;
        }
        self.kept_bytes = 0;
        self.rest = Some(Box::new(rest));
        Ok(())
    }

    fn finish(&mut self, context: &PipelineContext<'_>) -> Result<()> {
        self.is_exhausted = true;
        if let Some(rest) = &mut self.rest {
            rest.sorted = Some(rest.sorter.finish()?);
            self.specification.resources.counters.sorted(context.operation, &rest.sorter.statistics());
        }
        Ok(())
    }
}

impl DocumentSource for BoundedSortSource {
    fn next(&mut self, context: &mut PipelineContext<'_>) -> Result<Pulled> {
        loop {
            if self.specification.limit.is_some_and(|limit| self.given >= limit) {
                return Ok(Pulled::Exhausted);
            }
            let ready = match self.rest.as_mut().and_then(|rest| rest.sorted.as_mut()) {
                Some(sorted) => sorted.next_entry()?.map(|(_, document)| document.0),
                None => self.give(),
            };
            if let Some(document) = ready {
                self.given += 1;
                return Ok(Pulled::Document(document));
            }
            if let Some(arrival) = self.waiting.take() {
                self.keep(arrival);
                continue;
            }
            if self.is_exhausted {
                return Ok(Pulled::Exhausted);
            }
            match self.source.next(context)? {
                Pulled::Document(document) => self.take(document)?,
                Pulled::Exhausted => self.finish(context)?,
                Pulled::Yield(cause) => return Ok(Pulled::Yield(cause)),
            }
        }
    }

    fn facts(&self) -> StageFacts {
        let spilled = self.rest.as_ref().map(|rest| rest.sorter.statistics()).unwrap_or_default();
        let used_disk = spilled.spills > 0;
        let details = doc! {
            "totalDataSizeSortedBytesEstimate": (self.sorted_bytes.max(spilled.data_bytes) as i64),
            "usedDisk": used_disk,
            "spills": (spilled.spills as i64),
            "spilledDataStorageSize": (spilled.spilled_storage_bytes as i64),
        };
        StageFacts { used_disk, details }
    }

    pass_on_to_source!();
}

impl StageSpec for BoundedSortSpec {
    fn name(&self) -> &'static str {
        STAGE
    }

    fn start(&self, source: Box<dyn DocumentSource>) -> Result<Box<dyn DocumentSource>> {
        let in_front = self.pattern.parts().split_last().map(|(_, in_front)| in_front.to_vec()).unwrap_or_default();
        let groups = match in_front.is_empty() {
            true => None,
            false => Some(SortKeyGenerator::new(&SortPattern::from_parts(in_front), self.collator.clone())?),
        };
        Ok(Box::new(BoundedSortSource {
            source,
            specification: self.clone(),
            groups,
            group: Box::default(),
            kept: BinaryHeap::new(),
            kept_bytes: 0,
            bound: i64::MIN,
            waiting: None,
            is_exhausted: false,
            number: 0,
            given: 0,
            sorted_bytes: 0,
            rest: None,
        }))
    }

    fn to_doc(&self) -> Doc {
        let mut builder = DocBuilder::new();
        builder.append("sortKey", self.pattern.to_doc());
        builder.document("bound", |bound| {
            bound.append("base", if self.bound.end == BucketEnd::Min { "min" } else { "max" });
            if self.bound.offset_ms != 0 {
                bound.append("offsetSeconds", self.bound.offset_ms / 1000);
            }
        });
        builder.append("limit", self.limit.map_or(0, |limit| i64::try_from(limit).unwrap_or(i64::MAX)));
        doc! { (STAGE): builder.finish() }
    }

    fn needs(&self) -> Needs {
        Needs::These(self.pattern.paths().map(without_places).collect())
    }

    fn is_limited(&self) -> bool {
        self.limit.is_some()
    }

    fn with_limit(&self, limit: u64) -> Option<SharedStage> {
        Some(Arc::new(BoundedSortSpec { limit: Some(self.limit.map_or(limit, |own| own.min(limit))), ..self.clone() }))
    }
}
