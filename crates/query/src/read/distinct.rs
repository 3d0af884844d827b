//! The values that a path leads to, each once.
//!
//! Arrays count by their values. An index whose first field is the path gives the values without a look at the documents,
//! skipping from one to the next; but it does not tell null from what is missing, which is then looked up.

use crate::executor::{DocumentSink, Executor, Next, drive, give_way};
use crate::planner::{IndexField, IndexInfo, IndexScanPlan, PlanNode, everything};
use crate::request::{DistinctRequest, FindRequest};
use crate::stage::build;
use crate::{CanonicalQuery, QueryEngine, engine};
use pando_base::{Error, ErrorCode, Result};
use pando_catalog::Collection;
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
            && context.collator.is_none()
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
        let context = self.build_context(collection, &Arc::new(engine::matches_all()), None);
        let (root, policy) = (build(&plan, &context)?, self.yield_policy());
        let namespace = request.namespace.clone();
        let mut executor = Executor::new(root, namespace, Some(Arc::clone(collection)), policy, plan.summary());
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
            if matches!(value, OwnedValue::Null) && !self.has_null(operation, request).await? {
                continue;
            }
            values.add(value.view())?;
        }
        values.finish()
    }

    /// True if some document has null there, not nothing.
    async fn has_null(&self, operation: &mut Operation, request: &DistinctRequest) -> Result<bool> {
        let mut find = FindRequest::new(request.namespace.clone());
        let is_null = doc! { (request.key.as_str()): { "$type": 10 } };
        find.filter = match request.filter.is_empty() {
            true => is_null,
            false => doc! { "$and": [(&request.filter), is_null] },
        };
        find.limit = Some(1);
        let collection = self.collections.open(operation, &request.namespace)?;
        let mut executor = self.find_in(operation, &find, collection)?;
        let mut found: Vec<Doc> = Vec::new();
        drive(&mut executor, operation, &*self.collections, &mut found).await?;
        Ok(!found.is_empty())
    }
}

impl QueryEngine {
    /// A skip scan, if the keys of an index have all the values and say everything about the filter.
    pub(crate) fn distinct_plan(
        &self,
        request: &DistinctRequest,
        collection: &Collection,
        context: &ParseContext,
    ) -> Result<Option<PlanNode>> {
        if !request.hint.is_none() {
            return Ok(None);
        }
        if request.filter.is_empty() {
            return whole_index_plan(request, collection);
        }
        let mut query = CanonicalQuery::of_filter(&request.namespace, request.filter.view(), context)?;
        query.is_count = true;
        if query.filter.has_text() || self.index_filter(&query, collection).is_some() {
            return Ok(None);
        }
        let skips = self.plans(&query, collection, None)?.into_iter().filter_map(|plan| skipping(plan, request));
        // The fewer fields are skipped over, the fewer keys there are to look at.
        Ok(skips.min_by_key(|plan| if let PlanNode::DistinctScan { field, .. } = plan { *field } else { usize::MAX }))
    }
}

/// The plan as a skip scan, if it is a scan of keys that have the values.
fn skipping(plan: PlanNode, request: &DistinctRequest) -> Option<PlanNode> {
    let (PlanNode::CountScan(scan) | PlanNode::IndexScan(scan)) = plan else { return None };
    let info = &scan.info;
    let is_plain = info.wildcard.is_none() && info.index.descriptor.collation.is_none() && scan.is_same_collation;
    let has_value = |field: &IndexField| *field.path.text() == *request.key.as_bytes() && !field.is_hashed;
    let field = info.fields.iter().position(has_value).filter(|_| is_plain)?;
    (!info.is_multikey).then(|| PlanNode::DistinctScan { scan, field })
}

/// A skip scan of all of an index.
fn whole_index_plan(request: &DistinctRequest, collection: &Collection) -> Result<Option<PlanNode>> {
    for index in collection.ready_indexes().filter(|index| index.descriptor.is_visible()) {
        let descriptor = &index.descriptor;
        if descriptor.sparse || descriptor.partial_filter.is_some() || descriptor.collation.is_some() {
            continue;
        }
        let is_plain = |info: &IndexInfo| info.wildcard.is_none() && !info.is_for_places();
        let Some(info) = IndexInfo::of(index)?.filter(is_plain) else { continue };
        let first = info.fields.first();
        let is_first = first.is_some_and(|field| *field.path.text() == *request.key.as_bytes() && !field.is_hashed);
        if is_first && !info.is_field_multikey(0) {
            let bounds = everything(&info);
            let scan = Box::new(IndexScanPlan {
                info,
                bounds,
                direction: Direction::Forward,
                is_same_collation: true,
                key_range: None,
            });
            return Ok(Some(PlanNode::DistinctScan { scan, field: 0 }));
        }
    }
    Ok(None)
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
