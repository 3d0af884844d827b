//! One key for each value of a field of an index: after a key the cursor seeks past all that agree with it up to that field.

use super::encoded_bounds::{EncodedBounds, Verdict};
use super::index_scan::{check_index, describe_scan, layout_of};
use super::{Examined, IndexKey, KeyLayout, Member, Stage, Step};
use crate::planner::IndexScanPlan;
use pando_base::Result;
use pando_catalog::Collection;
use pando_doc::DocBuilder;
use pando_keystring::prefix_size;
use pando_operation::Operation;
use pando_storage::{Direction, IndexCursor};
use std::sync::Arc;

/// Greater than every byte that a component can begin with.
const AFTER: u8 = 0xFE;

/// Skips from value to value.
pub struct DistinctScanStage {
    plan: IndexScanPlan,
    /// The place of the field in the key.
    field: usize,
    bounds: EncodedBounds,
    cursor: IndexCursor,
    layout: Arc<KeyLayout>,
    /// Where to seek next; none at the end.
    next: Option<Vec<u8>>,
    keys_examined: u64,
}

impl DistinctScanStage {
    /// A scan for the values of this field.
    pub fn new(plan: IndexScanPlan, field: usize) -> Result<DistinctScanStage> {
        let bounds = EncodedBounds::of(&plan)?;
        plan.info.index.usage.increment();
        Ok(DistinctScanStage {
            cursor: plan.info.index.data.cursor(plan.direction),
            layout: layout_of(&plan),
            next: (!bounds.is_nothing()).then(|| bounds.start()),
            plan,
            field,
            bounds,
            keys_examined: 0,
        })
    }
}

impl Stage for DistinctScanStage {
    fn work(&mut self, operation: &mut Operation) -> Result<Step> {
        let Some(position) = &self.next else { return Ok(Step::Finished) };
        let Some(entry) = self.cursor.seek(&mut operation.recovery_unit, position)? else {
            self.next = None;
            return Ok(Step::Finished);
        };
        self.keys_examined += 1;
        match self.bounds.check(entry.key) {
            Verdict::Inside => {}
            Verdict::Seek(position) => {
                self.next = Some(position);
                return Ok(Step::NeedTime);
            }
            Verdict::Done => {
                self.next = None;
                return Ok(Step::Finished);
            }
        }
        let info = &self.plan.info;
        let size_bytes = prefix_size(entry.key, info.ordering, info.version, self.field + 1)?;
        let mut position = entry.key.get(..size_bytes).unwrap_or_default().to_vec();
        if self.plan.direction == Direction::Forward {
            position.push(AFTER);
        }
        let key = IndexKey::new(&self.layout, entry.key, entry.type_bits);
        let record_id = Some(entry.record_id);
        self.next = Some(position);
        Ok(Step::Advanced(Member { record_id, document: None, snapshot: None, key: Some(key), ..Member::default() }))
    }

    fn name(&self) -> &'static str {
        "DISTINCT_SCAN"
    }

    fn save(&mut self) {
        self.cursor.save();
    }

    fn restore(&mut self, _operation: &mut Operation, collection: &Arc<Collection>) -> Result<()> {
        check_index(&self.plan, collection)
    }

    fn describe(&self, out: &mut DocBuilder) {
        describe_scan(&self.plan, out);
    }

    fn describe_run(&self, out: &mut DocBuilder) {
        out.append("keysExamined", i32::try_from(self.keys_examined).unwrap_or(i32::MAX));
    }

    fn examined(&self) -> Examined {
        Examined { keys: self.keys_examined, documents: 0 }
    }
}
