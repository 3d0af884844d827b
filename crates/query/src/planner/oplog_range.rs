//! The part of the oplog that a filter can match: conditions on `ts` bound the scan, since an entry's record id is its
//! timestamp.
//!
//! Bounds are inclusive; the filter still decides at the edges.

use super::condition::conjuncts;
use pando_base::{RecordId, Timestamp};
use pando_expr::matcher::{ComparisonOperator, Node, Predicate};

/// The first and the last record that can match, as far as the filter says.
pub(super) fn oplog_range(root: &Node) -> (Option<RecordId>, Option<RecordId>) {
    let (mut least, mut greatest): (Option<Timestamp>, Option<Timestamp>) = (None, None);
    for node in conjuncts(root) {
        let Some((operator, timestamp)) = timestamp_condition(node) else { continue };
        let is_from = !matches!(operator, ComparisonOperator::Less | ComparisonOperator::LessOrEqual);
        let is_to = !matches!(operator, ComparisonOperator::Greater | ComparisonOperator::GreaterOrEqual);
        if is_from {
            least = Some(least.map_or(timestamp, |least| least.max(timestamp)));
        }
        if is_to {
            greatest = Some(greatest.map_or(timestamp, |greatest| greatest.min(timestamp)));
        }
    }
    let id = |timestamp: Timestamp| i64::try_from(timestamp.0).ok().map(RecordId::Long);
    (least.and_then(id), greatest.and_then(id))
}

fn timestamp_condition(node: &Node) -> Option<(ComparisonOperator, Timestamp)> {
    let Node::Leaf(leaf) = node else { return None };
    let Predicate::Comparison(comparison) = &leaf.predicate else { return None };
    let timestamp = comparison.value.view().as_timestamp()?;
    (leaf.path.text() == "ts").then_some((comparison.operator, timestamp))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::doc;
    use pando_expr::{MatchExpression, ParseContext};

    #[test]
    fn r2_conditions_on_ts_bound_a_scan_of_the_oplog() {
        let at = |increment: u32| Timestamp::new(10, increment);
        let id = |increment: u32| Some(RecordId::Long(at(increment).0 as i64));
        let cases = [
            (doc! {}, None, None),
            (doc! { "ts": at(3) }, id(3), id(3)),
            (doc! { "ts": { "$gt": at(3) } }, id(3), None),
            (doc! { "ts": { "$gte": at(3), "$lt": at(9) }, "op": "i" }, id(3), id(9)),
            (doc! { "$and": [{ "ts": { "$gte": at(3) } }, { "ts": { "$gte": at(5) } }] }, id(5), None),
            (doc! { "ts": { "$gt": 5 } }, None, None),
            (doc! { "o.ts": at(3) }, None, None),
            (doc! { "$or": [{ "ts": at(3) }, { "op": "i" }] }, None, None),
        ];
        for (filter, least, greatest) in cases {
            let parsed = MatchExpression::parse(filter.view(), &ParseContext::default()).unwrap();
            assert_eq!(oplog_range(parsed.root()), (least, greatest), "{filter}");
        }
    }
}
