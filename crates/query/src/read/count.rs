//! How many documents match.
//!
//! Without a filter the number is known. With one, an index whose bounds say everything is counted without a look at any
//! document.

use crate::executor::{CountingSink, Executor, drive};
use crate::request::CountRequest;
use crate::{CanonicalQuery, QueryEngine};
use pando_base::Result;
use pando_catalog::Collection;
use pando_operation::Operation;
use std::sync::Arc;

impl QueryEngine {
    /// Counts. Views are the caller's business.
    pub async fn count(&self, operation: &mut Operation, request: &CountRequest) -> Result<u64> {
        request.validate()?;
        let collection = self.collections.open(operation, &request.namespace)?;
        if let Some(count) = self.known_count(operation, request, collection.as_deref())? {
            let summary = if collection.is_some() { "RECORD_STORE_FAST_COUNT" } else { "EOF" };
            operation.context.describe(|description| description.plan_summary = summary.into());
            return Ok(count);
        }
        let mut executor = self.count_executor(operation, request, collection.as_ref())?;
        operation.context.describe(|description| description.plan_summary = executor.plan_summary().to_owned().into());
        let mut sink = CountingSink::default();
        drive(&mut executor, operation, &*self.collections, &mut sink).await?;
        Ok(sink.0)
    }

    /// The number that is kept with the collection, where that is the answer.
    pub(crate) fn known_count(
        &self,
        operation: &Operation,
        request: &CountRequest,
        collection: Option<&Collection>,
    ) -> Result<Option<u64>> {
        let has_filter = request.filter.elements().any(|element| element.name != "$comment");
        let is_plain = !has_filter && request.hint.is_none();
        // A filter is read in any case: it may be wrong.
        let Some(collection) = collection else { return Ok(request.filter.is_empty().then_some(0)) };
        // What a transaction sees may differ from what is committed.
        if !is_plain || operation.recovery_unit.in_unit_of_work() {
            return Ok(None);
        }
        let records = u64::try_from(collection.records.num_records()?).unwrap_or(0);
        let left = records.saturating_sub(request.skip.map_or(0, i64::unsigned_abs));
        Ok(Some(request.limit_count().map_or(left, |limit| left.min(limit))))
    }

    /// The plan that counts.
    pub(crate) fn count_executor(
        &self,
        operation: &Operation,
        request: &CountRequest,
        collection: Option<&Arc<Collection>>,
    ) -> Result<Executor> {
        let known = collection.map(|collection| &**collection);
        let context =
            self.parse_context(operation, &request.collation, &pando_doc::Doc::new(), known)?.without_clocks();
        let mut query = CanonicalQuery::of_filter(&request.namespace, request.filter.view(), &context)?;
        query.hint = request.hint.clone();
        query.natural = request.hint.natural();
        query.skip = request.skip.map_or(0, i64::unsigned_abs);
        query.limit = request.limit_count();
        query.is_count = true;
        self.run(&Arc::new(query), collection, |root, _| Ok(root))
    }
}
