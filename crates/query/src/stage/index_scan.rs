//! Part of an index, key after key.
//!
//! Keys are checked against the bounds as bytes. Where the bounds have gaps, the cursor seeks over them: a seek costs as much as
//! many steps, but what lies between may be most of the index. In a multikey index a record can have several keys inside;
//! it is found once.

use super::encoded_bounds::{EncodedBounds, Verdict};
use super::{Examined, IndexKey, KeyLayout, Member, Stage, Step, plan_killed};
use crate::executor::INDEX_SCAN_RESTORE;
use crate::planner::IndexScanPlan;
use pando_base::{Error, ErrorCode, RecordId, Result};
use pando_catalog::Collection;
use pando_doc::DocBuilder;
use pando_operation::Operation;
use pando_storage::{Direction, IndexCursor};
use std::collections::HashSet;
use std::sync::Arc;

/// How the cursor moves next.
#[derive(Debug)]
enum Move {
    Seek(Vec<u8>),
    Next,
    Nowhere,
}

/// Scans part of an index.
pub struct IndexScanStage {
    plan: IndexScanPlan,
    bounds: EncodedBounds,
    cursor: IndexCursor,
    next_move: Move,
    /// Records already found; only where a record can have several keys.
    found: Option<HashSet<RecordId>>,
    /// Results carry their keys.
    layout: Option<Arc<KeyLayout>>,
    keys_examined: u64,
    seeks: u64,
    duplicates_dropped: u64,
}

impl IndexScanStage {
    /// A scan that stands before its first key. Keys go with the results if somebody wants them.
    pub fn new(plan: IndexScanPlan, wants_keys: bool) -> Result<IndexScanStage> {
        plan.info.index.usage.increment();
        IndexScanStage::of(plan, wants_keys)
    }

    /// One of several scans that are one use of the index, without keys.
    pub(super) fn uncounted(plan: IndexScanPlan) -> Result<IndexScanStage> {
        IndexScanStage::of(plan, false)
    }

    fn of(plan: IndexScanPlan, wants_keys: bool) -> Result<IndexScanStage> {
        let bounds = EncodedBounds::of(&plan)?;
        let cursor = plan.info.index.data.cursor(plan.direction);
        let next_move = if bounds.is_nothing() { Move::Nowhere } else { Move::Seek(bounds.start()) };
        Ok(IndexScanStage {
            layout: wants_keys.then(|| layout_of(&plan)),
            found: (plan.info.is_multikey || plan.info.repeats).then(HashSet::new),
            plan,
            bounds,
            cursor,
            next_move,
            keys_examined: 0,
            seeks: 0,
            duplicates_dropped: 0,
        })
    }

    /// The plan that it runs.
    pub fn plan(&self) -> &IndexScanPlan {
        &self.plan
    }
}

/// How the keys of a scan are read.
pub(super) fn layout_of(plan: &IndexScanPlan) -> Arc<KeyLayout> {
    Arc::new(KeyLayout {
        paths: plan.info.fields.iter().map(|field| field.path.clone()).collect(),
        ordering: plan.info.ordering,
        version: plan.info.version,
    })
}

/// The error of a scan whose index is gone, unless it is still there.
pub(super) fn check_index(plan: &IndexScanPlan, collection: &Collection) -> Result<()> {
    let index = &plan.info.index;
    let is_there = collection.ready_indexes().any(|known| known.ident() == index.ident());
    if is_there {
        return Ok(());
    }
    Err(plan_killed(format!("query plan killed :: index '{}' dropped", index.name())))
}

/// Appends what `explain` tells of a scan of an index.
pub(super) fn describe_scan(plan: &IndexScanPlan, out: &mut DocBuilder) {
    describe_index(plan, out);
    describe_bounds(plan, out);
}

/// Appends what `explain` tells of the index that is scanned.
pub(super) fn describe_index(plan: &IndexScanPlan, out: &mut DocBuilder) {
    let descriptor = &plan.info.index.descriptor;
    out.append("keyPattern", plan.info.key_pattern());
    out.append("indexName", &*descriptor.name);
    if let Some(collation) = &descriptor.collation {
        out.append("collation", collation);
    }
    out.append("isMultiKey", plan.info.is_multikey);
    if !plan.info.multikey_paths.is_empty() || !plan.info.is_multikey {
        out.document("multiKeyPaths", |paths| {
            for (place, field) in plan.info.fields.iter().enumerate() {
                paths.array(field.path.text(), |array| {
                    let mut prefix = Vec::new();
                    for (component, part) in field.path.parts().enumerate() {
                        if component > 0 {
                            prefix.push(b'.');
                        }
                        prefix.extend_from_slice(part);
                        if plan.info.is_component_multikey(place, component) {
                            array.push(bstr::BStr::new(&prefix));
                        }
                    }
                });
            }
        });
    }
    out.append("isUnique", descriptor.unique || descriptor.is_id_index());
    out.append("isSparse", plan.info.is_sparse);
    out.append("isPartial", descriptor.partial_filter.is_some());
    out.append("indexVersion", descriptor.version);
}

/// Appends the direction of a scan and its bounds.
fn describe_bounds(plan: &IndexScanPlan, out: &mut DocBuilder) {
    let is_backward = plan.direction == Direction::Reverse;
    out.append("direction", if is_backward { "backward" } else { "forward" });
    let bounds = plan.bounds.to_doc(|field| plan.info.ordering.is_descending(field) != is_backward);
    out.append("indexBounds", bounds);
}

impl Stage for IndexScanStage {
    fn work(&mut self, operation: &mut Operation) -> Result<Step> {
        let unit = &mut operation.recovery_unit;
        let entry = match &self.next_move {
            Move::Nowhere => return Ok(Step::Finished),
            Move::Next => self.cursor.next(unit)?,
            Move::Seek(position) => {
                let entry = self.cursor.seek(unit, position)?;
                self.seeks += 1;
                entry
            }
        };
        let Some(entry) = entry else {
            self.next_move = Move::Nowhere;
            return Ok(Step::Finished);
        };
        let verdict = self.bounds.check(entry.key);
        // A plain range tells the cursor where to stop: what lies behind it is not looked at.
        if !(self.bounds.is_range() && matches!(verdict, Verdict::Done)) {
            self.keys_examined += 1;
        }
        match verdict {
            Verdict::Inside => self.next_move = Move::Next,
            Verdict::Seek(position) => {
                self.next_move = Move::Seek(position);
                return Ok(Step::NeedTime);
            }
            Verdict::Done => {
                self.next_move = Move::Nowhere;
                return Ok(Step::Finished);
            }
        }
        if let Some(found) = &mut self.found
            && !found.insert(entry.record_id.clone())
        {
            self.duplicates_dropped += 1;
            return Ok(Step::NeedTime);
        }
        let key = self.layout.as_ref().map(|layout| IndexKey::new(layout, entry.key, entry.type_bits));
        let record_id = Some(entry.record_id);
        let snapshot = operation.recovery_unit.snapshot_id();
        Ok(Step::Advanced(Member { record_id, document: None, snapshot, key, ..Member::default() }))
    }

    fn name(&self) -> &'static str {
        "IXSCAN"
    }

    fn save(&mut self) {
        self.cursor.save();
    }

    fn restore(&mut self, _operation: &mut Operation, collection: &Arc<Collection>) -> Result<()> {
        check_index(&self.plan, collection)?;
        if INDEX_SCAN_RESTORE.should_fail() {
            let reason = "Hit failpoint 'throwDuringIndexScanRestore'.";
            return Err(Error::new(ErrorCode::TemporarilyUnavailable, reason));
        }
        // It may have become multikey meanwhile.
        if self.found.is_none() && self.plan.info.index.multikey.is_multikey() {
            self.found = Some(HashSet::new());
        }
        Ok(())
    }

    fn describe(&self, out: &mut DocBuilder) {
        describe_scan(&self.plan, out);
    }

    fn describe_run(&self, out: &mut DocBuilder) {
        let int = |count: u64| i32::try_from(count).unwrap_or(i32::MAX);
        out.append("keysExamined", int(self.keys_examined));
        out.append("seeks", int(self.seeks));
        out.append("dupsTested", int(self.found.as_ref().map_or(0, |_| self.keys_examined)));
        out.append("dupsDropped", int(self.duplicates_dropped));
    }

    fn examined(&self) -> Examined {
        Examined { keys: self.keys_examined, documents: 0 }
    }
}
