//! A plan that a test gives, node by node, as `stageDebug` takes it: `{NAME: {filter: FILTER, args: ARGUMENTS}}`. It is run as it is
//! written; nothing looks whether it makes sense.

use super::{
    ClusterRange, CollectionScanPlan, FieldBounds, IndexBounds, IndexInfo, IndexScanPlan, IntervalList, KeyRange,
    PlanNode, SharedFilter,
};
use crate::request::SortPattern;
use pando_base::{Error, ErrorCode, Result, ensure};
use pando_catalog::Collection;
use pando_doc::{Doc, DocBuilder, DocRef, Value};
use pando_expr::{MatchExpression, ParseContext};
use pando_storage::Direction;
use std::sync::Arc;

/// A plan that was given.
#[derive(Debug)]
pub enum GivenPlan {
    /// Finds documents.
    Read(PlanNode),
    /// Deletes what it finds; only the first if false.
    Delete(PlanNode, bool),
}

/// One node as it was written.
struct Written<'d> {
    name: String,
    filter: Option<SharedFilter>,
    arguments: DocRef<'d>,
}

impl GivenPlan {
    /// Reads a plan for the collection.
    pub fn parse(plan: DocRef<'_>, collection: &Collection, context: &ParseContext) -> Result<GivenPlan> {
        let reader = Reader { collection, context };
        let written = reader.written(plan)?;
        if written.name != "delete" {
            return Ok(GivenPlan::Read(reader.node(&written)?));
        }
        let is_multi = match written.arguments.get("isMulti") {
            Some(Value::Bool(is_multi)) => is_multi,
            _ => return refused(18638, "isMulti argument must be provided to delete"),
        };
        Ok(GivenPlan::Delete(reader.child(&written, 18637)?, is_multi))
    }
}

fn refused<T>(code: i32, reason: impl Into<String>) -> Result<T> {
    Err(Error::location(code, reason.into()))
}

struct Reader<'r> {
    collection: &'r Collection,
    context: &'r ParseContext,
}

impl Reader<'_> {
    fn written<'d>(&self, plan: DocRef<'d>) -> Result<Written<'d>> {
        let bad = || Error::location(16911, format!("Couldn't parse plan from {plan}"));
        let first = plan.first().ok_or_else(bad)?;
        let node = first.value.as_document().ok_or_else(bad)?;
        let (mut filter, mut arguments) = (None, DocRef::EMPTY);
        for part in node.elements() {
            let value = part.value.as_document().ok_or_else(bad)?;
            match &**part.name {
                b"filter" => filter = Some(Arc::new(MatchExpression::parse(value, self.context)?.optimize())),
                b"args" => arguments = value,
                _ => return refused(16910, format!("Unknown fieldname {} in query node {plan}", part.name)),
            }
        }
        Ok(Written { name: first.name.to_string(), filter, arguments })
    }

    fn node(&self, written: &Written<'_>) -> Result<PlanNode> {
        pando_base::operation::tick(1)?;
        let arguments = written.arguments;
        match written.name.as_str() {
            "ixscan" => self.index_scan(written),
            "cscan" => {
                let Some(direction) = arguments.get("direction").and_then(|value| value.as_number()) else {
                    return refused(16963, "Direction argument must be specified and be a number");
                };
                Ok(collection_scan(direction_of(direction.truncated_i64()), written.filter.clone()))
            }
            "andHash" => Ok(PlanNode::And { children: self.children(written, 16921, 2)?, is_sorted: false }),
            "andSorted" => Ok(PlanNode::And { children: self.children(written, 16924, 2)?, is_sorted: true }),
            "or" => {
                let Some(Value::Bool(dedups)) = arguments.get("dedup") else {
                    return refused(16935, "Dedup argument must be provided to OR");
                };
                Ok(PlanNode::Or { children: self.children(written, 16934, 0)?, keeps_duplicates: !dedups })
            }
            "mergeSort" => {
                let pattern = arguments.get("pattern").and_then(|value| value.as_document());
                let pattern = pattern.map(SortPattern::parse).transpose()?.flatten();
                let Some(pattern) = pattern else {
                    return refused(16972, "Pattern argument must be provided to sort");
                };
                Ok(PlanNode::SortMerge { children: self.children(written, 16971, 0)?, pattern })
            }
            "fetch" => {
                let child = Box::new(self.child(written, 16929)?);
                Ok(PlanNode::Fetch { child, filter: written.filter.clone() })
            }
            "limit" => {
                let count = self.count(written, 16931)?;
                Ok(PlanNode::Limit { child: Box::new(self.child(written, 16930)?), count })
            }
            "skip" => {
                let count = self.count(written, 16933)?;
                Ok(PlanNode::Skip { child: Box::new(self.child(written, 16932)?), count })
            }
            other => refused(16911, format!("Couldn't parse plan from a node '{other}'")),
        }
    }

    fn child(&self, written: &Written<'_>, code: i32) -> Result<PlanNode> {
        match written.arguments.get("node").and_then(|value| value.as_document()) {
            Some(child) => self.node(&self.written(child)?),
            None => refused(code, format!("Node argument must be provided to {}", written.name)),
        }
    }

    fn children(&self, written: &Written<'_>, code: i32, least: usize) -> Result<Vec<PlanNode>> {
        let Some(Value::Array(nodes)) = written.arguments.get("nodes") else {
            return refused(code, format!("Nodes argument must be provided to {}", written.name));
        };
        let node = |value: Value<'_>| match value {
            Value::Document(child) => self.node(&self.written(child)?),
            other => refused(16922, format!("node of {} isn't an obj?: {other}", written.name)),
        };
        let children: Vec<PlanNode> = nodes.values().map(node).collect::<Result<_>>()?;
        ensure!(children.len() >= least, ErrorCode::location(16927), "AND requires more than one child");
        Ok(children)
    }

    fn count(&self, written: &Written<'_>, code: i32) -> Result<u64> {
        ensure!(
            written.filter.is_none(),
            ErrorCode::location(16937),
            "{} stage doesn't have a filter (put it on the child)",
            written.name
        );
        let count = written.arguments.get("num").and_then(|value| value.as_number());
        match count {
            Some(count) => Ok(u64::try_from(count.truncated_i64()).unwrap_or(0)),
            None => refused(code, format!("Num argument must be provided to {}", written.name)),
        }
    }

    /// A filter of a scan looks at the keys: one that needs more is refused.
    fn index_scan(&self, written: &Written<'_>) -> Result<PlanNode> {
        let info = self.index(written.arguments)?;
        let keys = info.fields.iter().map(|field| field.path.clone()).collect::<Vec<_>>();
        let needed = written.filter.as_ref().map_or(Some(Vec::new()), |filter| filter.paths());
        let is_covered = needed.is_some_and(|paths| paths.iter().all(|path| keys.contains(path)));
        ensure!(is_covered, ErrorCode::BadValue, "the filter of a scan has to be about fields of the index");
        let direction = direction_of(
            written.arguments.get("direction").and_then(|value| value.as_number()).map_or(1, |it| it.truncated_i64()),
        );
        let scan = self.range_scan(written.arguments, info, direction)?;
        Ok(match &written.filter {
            None => scan,
            Some(filter) => PlanNode::Fetch { child: Box::new(scan), filter: Some(Arc::clone(filter)) },
        })
    }

    fn index(&self, arguments: DocRef<'_>) -> Result<IndexInfo> {
        let found = match arguments.get("keyPattern") {
            Some(Value::Document(pattern)) => {
                let mut fitting =
                    self.collection.ready_indexes().filter(|index| index.descriptor.key_pattern.view() == pattern);
                let Some(first) = fitting.next() else {
                    return refused(16890, format!("Can't find index: {pattern}"));
                };
                let count = 1 + fitting.count();
                ensure!(
                    count == 1,
                    ErrorCode::AmbiguousIndexKeyPattern,
                    "{count} matching indexes for key pattern: {pattern}"
                );
                first
            }
            _ => {
                let Some(name) = arguments.get("name").and_then(|name| name.as_str()) else {
                    return refused(40306, format!("Index 'name' must be a string in: {arguments}"));
                };
                let found = self.collection.ready_indexes().find(|index| index.name() == name);
                found.ok_or_else(|| Error::location(40223, format!("Can't find index: {name}")))?
            }
        };
        let info = IndexInfo::of(found)?;
        info.ok_or_else(|| Error::location(40223, "an index that a scan cannot use"))
    }

    fn range_scan(&self, arguments: DocRef<'_>, info: IndexInfo, direction: Direction) -> Result<PlanNode> {
        let key = |name: &str| match arguments.get(name) {
            Some(Value::Document(key)) => Ok(key),
            _ => Err(Error::bad_value(format!("'{name}' has to be an object"))),
        };
        let flag = |name: &str| match arguments.get(name) {
            Some(Value::Bool(flag)) => Ok(flag),
            _ => Err(Error::bad_value(format!("'{name}' has to be a bool"))),
        };
        let (start, end) = ((key("startKey")?, flag("startKeyInclusive")?), (key("endKey")?, flag("endKeyInclusive")?));
        let (min, max) = match direction {
            Direction::Forward => (start, end),
            Direction::Reverse => (end, start),
        };
        // Strings of an index with a collation are found by their sort keys.
        let stored = |key: DocRef<'_>| (!key.is_empty()).then(|| stored_key(key, &info)).transpose();
        let range = KeyRange {
            min: stored(min.0)?,
            max: stored(max.0)?,
            leaves_min_out: !min.1 && !min.0.is_empty(),
            takes_max_in: max.1,
        };
        let everything = |field: &super::IndexField| FieldBounds {
            name: field.path.text().to_owned(),
            intervals: IntervalList::everything(),
        };
        let bounds = IndexBounds { fields: info.fields.iter().map(everything).collect() };
        Ok(PlanNode::IndexScan(Box::new(IndexScanPlan {
            info,
            bounds,
            direction,
            is_same_collation: true,
            key_range: Some(range),
        })))
    }
}

fn stored_key(key: DocRef<'_>, info: &IndexInfo) -> Result<Doc> {
    ensure!(
        key.field_count() <= info.fields.len(),
        ErrorCode::BadValue,
        "a key of {} fields for an index of {}",
        key.field_count(),
        info.fields.len()
    );
    let mut stored = DocBuilder::new();
    key.elements().for_each(|element| stored.append("", element.value));
    Ok(stored.finish())
}

fn direction_of(direction: i64) -> Direction {
    if direction == 1 { Direction::Forward } else { Direction::Reverse }
}

fn collection_scan(direction: Direction, filter: Option<SharedFilter>) -> PlanNode {
    PlanNode::CollectionScan(CollectionScanPlan {
        direction,
        filter,
        min: None,
        max: None,
        tailable: false,
        resume: None,
        keeps_place: false,
        cluster: Box::new(ClusterRange::default()),
        key_order: None,
        is_direction_given: true,
    })
}
