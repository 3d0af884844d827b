//! A search by distance: documents come nearest first.
//!
//! Ring after ring around the point is scanned in the index, each by a scan with a fetch of its own. What was found waits, ordered by distance, until no
//! nearer one can come: until the ring that its distance lies in has been scanned to its end. A document with several keys is taken once.

mod nearest;
mod rings;

pub(crate) use nearest::Nearest;

use super::fetch::FetchStage;
use super::{GeoNearMetadata, IndexScanStage, Member, Stage, StageNode, Step, plan_killed};
use crate::pipeline::with_field;
use crate::planner::{IndexScanPlan, IntervalList, NearPlan, SharedFilter};
use pando_base::{RecordId, Result};
use pando_catalog::Collection;
use pando_doc::{DocBuilder, OwnedValue, Value};
use pando_operation::Operation;
use pando_storage::Direction;
use rings::{Ring, Rings};
use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashSet};
use std::sync::Arc;

/// A document that waits for its turn.
struct Waiting {
    distance: f64,
    /// Which came first, among equals.
    number: u64,
    member: Member,
    place: OwnedValue,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Waiting) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Waiting) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    /// The nearest is the greatest, as a heap wants it.
    fn cmp(&self, other: &Waiting) -> Ordering {
        other.distance.total_cmp(&self.distance).then_with(|| other.number.cmp(&self.number))
    }
}

/// What a ring gave.
struct RingStats {
    inner: f64,
    outer: f64,
    is_last: bool,
    buffered: u64,
    returned: u64,
}

/// Searches.
pub struct NearStage {
    plan: NearPlan,
    collection: Arc<Collection>,
    whole_filter: SharedFilter,
    rings: Rings,
    /// The level that is probed; none when the probe is done.
    probing: Option<u32>,
    /// The scans of all rings so far; while there is a probe, that.
    children: Vec<StageNode>,
    is_scanning: bool,
    seen: HashSet<RecordId>,
    waiting: BinaryHeap<Waiting>,
    found_count: u64,
    stats: Vec<RingStats>,
}

impl NearStage {
    /// A search that has looked at nothing yet.
    pub fn new(plan: NearPlan, collection: &Arc<Collection>, whole_filter: &SharedFilter) -> Result<NearStage> {
        let rings = Rings::new(&plan)?;
        plan.info.index.usage.increment();
        Ok(NearStage {
            probing: Some(rings.first_probe()),
            rings,
            plan,
            collection: Arc::clone(collection),
            whole_filter: Arc::clone(whole_filter),
            children: Vec::new(),
            is_scanning: false,
            seen: HashSet::new(),
            waiting: BinaryHeap::new(),
            found_count: 0,
            stats: Vec::new(),
        })
    }

    /// A scan of these keys of the place's field.
    fn scan(&self, keys: &IntervalList) -> Result<IndexScanStage> {
        let mut bounds = self.plan.bounds.clone();
        if let Some(field) = bounds.fields.get_mut(self.plan.field) {
            field.intervals = field.intervals.intersect(keys);
        }
        let plan = IndexScanPlan {
            info: self.plan.info.clone(),
            bounds,
            direction: Direction::Forward,
            is_same_collation: self.plan.is_same_collation,
            key_range: None,
        };
        IndexScanStage::uncounted(plan)
    }

    fn probe(&mut self, level: u32, operation: &mut Operation) -> Result<()> {
        if self.children.is_empty() {
            let scan = self.scan(&self.rings.probe(level))?;
            self.children.push(StageNode::new(scan));
        }
        let step = self.children.last_mut().map_or(Ok(Step::Finished), |scan| scan.work(operation))?;
        let is_found = match step {
            Step::NeedTime => return Ok(()),
            Step::Advanced(_) => true,
            Step::Finished => false,
        };
        self.children.clear();
        if is_found || self.rings.is_whole(level) {
            self.rings.probed(level);
            self.probing = None;
        } else {
            self.probing = Some(level.saturating_sub(1));
        }
        Ok(())
    }

    /// Begins the next ring; false if there is none.
    fn begin_ring(&mut self) -> Result<bool> {
        let returned = self.stats.last().map_or(0, |ring| ring.returned);
        let Some(Ring { inner, outer, is_last, keys }) = self.rings.next(returned) else { return Ok(false) };
        let scan = StageNode::new(self.scan(&keys)?);
        let whole = Arc::clone(&self.whole_filter);
        let fetch = FetchStage::new(scan, &self.collection, self.plan.filter.clone(), whole);
        self.children.push(StageNode::new(fetch));
        self.stats.push(RingStats { inner, outer, is_last, buffered: 0, returned: 0 });
        self.is_scanning = true;
        Ok(true)
    }

    fn take(&mut self, member: Member) {
        let Some(document) = &member.document else { return };
        if let Some(id) = &member.record_id
            && !self.seen.insert(id.clone())
        {
            return;
        }
        let path = self.plan.info.fields.get(self.plan.field).map(|field| &field.path);
        let nearest = path.and_then(|path| Nearest::of(document.view(), path, &self.plan.near));
        let wanted = nearest.filter(|nearest| nearest.is_between(&self.plan.near, self.rings.range()));
        let Some(Nearest { distance, place, .. }) = wanted else { return };
        self.found_count += 1;
        if let Some(ring) = self.stats.last_mut() {
            ring.buffered += 1;
        }
        self.waiting.push(Waiting { distance, number: self.found_count, member, place });
    }

    /// The nearest document, if none that is nearer can come.
    fn release(&mut self) -> Option<Member> {
        let ring = self.stats.last_mut().filter(|_| !self.is_scanning)?;
        let next = self.waiting.peek()?;
        if !ring.is_last && next.distance >= ring.outer {
            return None;
        }
        ring.returned += 1;
        let Waiting { distance, mut member, place, .. } = self.waiting.pop()?;
        let shown = self.plan.near.shown_distance(distance);
        if let Some(output) = &self.plan.output {
            let shown = shown * output.multiplier;
            let document = member.document.take().unwrap_or_default();
            let mut document = with_field(document.view(), &output.distance, Some(Value::Double(shown)));
            if let Some(path) = &output.location {
                document = with_field(document.view(), path, Some(place.view()));
            }
            member.document = Some(document);
        }
        member.metadata.geo_near = Some(Arc::new(GeoNearMetadata { distance: shown, point: place }));
        Some(member)
    }
}

impl Stage for NearStage {
    fn work(&mut self, operation: &mut Operation) -> Result<Step> {
        if let Some(level) = self.probing {
            self.probe(level, operation)?;
            return Ok(Step::NeedTime);
        }
        if self.is_scanning {
            let step = self.children.last_mut().map_or(Ok(Step::Finished), |child| child.work(operation))?;
            match step {
                Step::Advanced(member) => self.take(member),
                Step::NeedTime => {}
                Step::Finished => self.is_scanning = false,
            }
            return Ok(Step::NeedTime);
        }
        if let Some(member) = self.release() {
            return Ok(Step::Advanced(member));
        }
        Ok(if self.begin_ring()? { Step::NeedTime } else { Step::Finished })
    }

    fn name(&self) -> &'static str {
        self.plan.stage_name()
    }

    fn children(&self) -> &[StageNode] {
        &self.children
    }

    fn children_mut(&mut self) -> &mut [StageNode] {
        &mut self.children
    }

    fn restore(&mut self, _operation: &mut Operation, collection: &Arc<Collection>) -> Result<()> {
        let index = &self.plan.info.index;
        if !collection.ready_indexes().any(|known| known.ident() == index.ident()) {
            return Err(plan_killed(format!("query plan killed :: index '{}' dropped", index.name())));
        }
        self.collection = Arc::clone(collection);
        Ok(())
    }

    fn describe(&self, out: &mut DocBuilder) {
        let descriptor = &self.plan.info.index.descriptor;
        out.append("keyPattern", &descriptor.key_pattern);
        out.append("indexName", &*descriptor.name);
        out.append("indexVersion", descriptor.version);
    }

    fn describe_run(&self, out: &mut DocBuilder) {
        let int = |count: u64| i32::try_from(count).unwrap_or(i32::MAX);
        out.array("searchIntervals", |array| {
            for ring in &self.stats {
                array.document(|interval| {
                    interval.append("minDistance", ring.inner);
                    interval.append("maxDistance", ring.outer);
                    interval.append("maxInclusive", ring.is_last);
                    interval.append("nBuffered", int(ring.buffered));
                    interval.append("nReturned", int(ring.returned));
                });
            }
        });
    }
}
