//! The values that a path leads to, each once.
//!
//! Arrays count by their values. An index with the path gives the values without a look at the documents, skipping from one to
//! the next. Its keys do not tell null from what is missing: where they are used, null is among the values if something is missing,
//! as in MongoDB.

use crate::executor::{DocumentSink, Executor, Next, drive, give_way};
use crate::planner::{IndexField, IndexInfo, IndexScanPlan, PlanNode, everything};
use crate::request::{DistinctRequest, Hint};
use crate::stage::build;
use crate::{CanonicalQuery, QueryEngine, engine};
use pando_base::{Error, ErrorCode, Result};
use pando_catalog::{Collection, Index, IndexKind};
use pando_doc::{
    Array, ArrayBuilder, CompareOptions, Doc, FieldPath, LeafArrays, OwnedValue, PathOptions, StringComparator, Value,
    compare_with, doc, visit_path,
};
use pando_expr::{ParseContext, SharedCollator};
use pando_operation::Operation;
use pando_storage::Direction;
use std::cmp::Ordering;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The most bytes that all values together may have.
const VALUES_BYTES_MAX: usize = 16 * 1024 * 1024;

impl QueryEngine {
    /// The distinct values, in their order. Views are the caller's business.
    pub async fn distinct(&self, operation: &mut Operation, request: &DistinctRequest) -> Result<Array> {
        request.validate()?;
        let collection = self.collections.open(operation, &request.namespace)?;
        let known = collection.as_deref();
        let context = self.parse_context(operation, &request.collation, &Doc::new(), known)?.without_clocks();
        let path = FieldPath::lenient(&request.key)?;
        let mut values = Distinct::new(path, context.collator.clone());
        if let Some(collection) = &collection
            && let Some(plan) = self.distinct_plan(request, collection, &context)?
        {
            return self.distinct_by_index(operation, request, collection, plan, values).await;
        }
        let mut query = CanonicalQuery::of_filter(&request.namespace, request.filter.view(), &context)?;
        query.hint = request.hint.clone();
        query.natural = request.hint.natural();
        let mut executor = self.run(&Arc::new(query), collection.as_ref(), |root, _| Ok(root))?;
        drive(&mut executor, operation, &*self.collections, &mut values).await?;
        values.finish()
    }

    async fn distinct_by_index(
        &self,
        operation: &mut Operation,
        request: &DistinctRequest,
        collection: &Arc<Collection>,
        plan: PlanNode,
        mut values: Distinct,
    ) -> Result<Array> {
        crate::fail_points::check_plan()?;
        let context = self.build_context(collection, &Arc::new(engine::matches_all()), None);
        let (root, policy) = (build(&plan, &context)?, self.yield_policy());
        let namespace = request.namespace.clone();
        let mut executor = Executor::new(root, namespace, Some(Arc::clone(collection)), policy, plan.summary());
        if plan.is_fetched() {
            drive(&mut executor, operation, &*self.collections, &mut values).await?;
            return values.finish();
        }
        let field = if let PlanNode::DistinctScan { field, .. } = &plan { *field } else { 0 };
        let mut keys = KeySink { field, values: Vec::new() };
        loop {
            let epoch = operation.recovery_unit.engine().prepare_epoch();
            match executor.next(operation)? {
                Next::Result(member) => keys.take(&member)?,
                Next::Exhausted => break,
                Next::Yield(cause) => {
                    executor.save();
                    give_way(operation, cause, epoch).await?;
                    executor.restore(operation, &*self.collections)?;
                }
            }
        }
        executor.report(operation);
        if operation.context.wants_details() {
            executor.tell_plan(&operation.context, false, false);
        }
        for value in keys.values {
            values.add(value.view())?;
        }
        values.finish()
    }
}

impl QueryEngine {
    /// A skip scan, if an index has the values and its bounds say everything about the filter. Where keys do not tell the values
    /// the documents are fetched.
    pub(crate) fn distinct_plan(
        &self,
        request: &DistinctRequest,
        collection: &Collection,
        context: &ParseContext,
    ) -> Result<Option<PlanNode>> {
        let mut query = CanonicalQuery::of_filter(&request.namespace, request.filter.view(), context)?;
        let filter = self.index_filter(&query, collection);
        let is_usable = |index: &Index| match (&filter, &request.hint) {
            (Some(filter), _) => filter.allows(index),
            (None, Hint::None) => true,
            (None, Hint::Natural(_)) => false,
            (None, Hint::Name(name)) => index.name() == name,
            (None, Hint::KeyPattern(pattern)) => index.descriptor.key_pattern == *pattern,
        };
        if request.filter.is_empty() {
            let collation = context.collator.as_ref().map(|collator| collator.specification());
            return whole_index_plan(request, collection, collation, is_usable);
        }
        if query.filter.has_text() || (filter.is_none() && request.hint.natural().is_some()) {
            return Ok(None);
        }
        query.hint = request.hint.clone();
        query.wants_all = true;
        let plans = self.plans(&query, collection, filter.as_deref())?;
        let skips = plans.into_iter().filter_map(|plan| skipping(plan, request));
        // The fewer fields are skipped over, the fewer keys there are to look at.
        Ok(skips.min_by_key(|plan| skipped_field(plan).unwrap_or(usize::MAX)))
    }
}

/// The field of a skip scan, by its place in the key.
fn skipped_field(plan: &PlanNode) -> Option<usize> {
    match plan {
        PlanNode::DistinctScan { field, .. } => Some(*field),
        PlanNode::Fetch { child, .. } => skipped_field(child),
        _ => None,
    }
}

/// The plan as a skip scan, if it is a scan of an index that has the values and nothing else decides.
fn skipping(plan: PlanNode, request: &DistinctRequest) -> Option<PlanNode> {
    let scan = match plan {
        PlanNode::IndexScan(scan) => scan,
        PlanNode::Fetch { child, filter: None } => match *child {
            PlanNode::IndexScan(scan) => scan,
            _ => return None,
        },
        _ => return None,
    };
    let info = &scan.info;
    if info.repeats || scan.key_range.is_some() {
        return None;
    }
    let has_value = |field: &IndexField| *field.path.text() == *request.key.as_bytes();
    let field = info.fields.iter().position(has_value).filter(|field| !info.is_field_multikey(*field))?;
    Some(with_values(scan, field))
}

/// The scan, with documents where keys do not tell the values.
fn with_values(scan: Box<IndexScanPlan>, field: usize) -> PlanNode {
    let info = &scan.info;
    let is_plain = info.fields.get(field).is_some_and(|field| !field.is_hashed && !has_place(&field.path));
    let are_read = is_plain && info.index.descriptor.collation.is_none();
    let skip_scan = PlanNode::DistinctScan { scan, field };
    if are_read { skip_scan } else { skip_scan.fetched() }
}

/// True if the path may lead through a place in an array, so that what is missing there is not told from null by any document.
fn has_place(path: &FieldPath) -> bool {
    path.parts().skip(1).any(|part| !part.is_empty() && part.iter().all(u8::is_ascii_digit))
}

/// A skip scan of all of an index: of the one with the fewest fields.
fn whole_index_plan(
    request: &DistinctRequest,
    collection: &Collection,
    collation: Option<&Doc>,
    is_usable: impl Fn(&Index) -> bool,
) -> Result<Option<PlanNode>> {
    let mut found: Option<IndexInfo> = None;
    for index in collection.ready_indexes().filter(|index| index.descriptor.is_visible() && is_usable(index)) {
        let descriptor = &index.descriptor;
        let is_plain = matches!(descriptor.kind, IndexKind::Btree | IndexKind::Hashed);
        if !is_plain || descriptor.partial_filter.is_some() || descriptor.collation.as_ref() != collation {
            continue;
        }
        let Some(info) = IndexInfo::of(index)? else { continue };
        let first = info.fields.first();
        let is_first = first.is_some_and(|field| *field.path.text() == *request.key.as_bytes() && !field.is_hashed);
        if is_first && found.as_ref().is_none_or(|found| info.fields.len() < found.fields.len()) {
            found = Some(info);
        }
    }
    Ok(found.map(|info| {
        let (bounds, direction) = (everything(&info), Direction::Forward);
        let scan = IndexScanPlan { info, bounds, direction, is_same_collation: true, key_range: None };
        with_values(Box::new(scan), 0)
    }))
}

/// One value of each key.
struct KeySink {
    /// Which value of the key.
    field: usize,
    values: Vec<OwnedValue>,
}

impl KeySink {
    fn take(&mut self, member: &crate::stage::Member) -> Result<()> {
        let key = member.key.as_ref().ok_or_else(|| Error::internal("a skip scan has keys"))?;
        self.values.extend(key.values()?.into_iter().nth(self.field));
        Ok(())
    }
}

/// Collects values.
struct Distinct {
    path: FieldPath,
    collator: Option<SharedCollator>,
    /// Ascending, each once.
    values: Vec<OwnedValue>,
    size_bytes: usize,
    /// Why it ended early.
    error: Option<Error>,
}

impl Distinct {
    fn new(path: FieldPath, collator: Option<SharedCollator>) -> Distinct {
        Distinct { path, collator, values: Vec::new(), size_bytes: 0, error: None }
    }

    fn order(&self, left: Value<'_>, right: Value<'_>) -> Ordering {
        let strings = self.collator.as_deref().map(|collator| collator as &dyn StringComparator);
        compare_with(left, right, &CompareOptions { strings, ..CompareOptions::default() })
    }

    fn add(&mut self, value: Value<'_>) -> Result<()> {
        let Err(place) = self.values.binary_search_by(|known| self.order(known.view(), value)) else { return Ok(()) };
        let owned = value.to_owned();
        self.size_bytes += doc! { "": &owned }.size_bytes();
        if self.size_bytes > VALUES_BYTES_MAX {
            return Err(Error::new(ErrorCode::location(17217), "distinct too big, 16mb cap"));
        }
        self.values.insert(place, owned);
        Ok(())
    }

    fn finish(self) -> Result<Array> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let mut builder = ArrayBuilder::new();
        self.values.iter().for_each(|value| builder.push(value));
        Ok(builder.finish())
    }
}

impl DocumentSink for Distinct {
    fn offer(&mut self, document: &Doc) -> bool {
        let path = self.path.clone();
        let options = PathOptions { leaf: LeafArrays::TraverseOmitArray, ..PathOptions::default() };
        let failed = visit_path(document.view(), &path, options, &mut |visit| match visit
            .value
            .map_or(Ok(()), |value| self.add(value))
        {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        });
        if let ControlFlow::Break(error) = failed {
            self.error = Some(error);
        }
        true
    }

    fn is_full(&self) -> bool {
        self.error.is_some()
    }
}
