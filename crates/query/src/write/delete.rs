//! Deletes.

use crate::executor::{Executor, drive};
use crate::planner::SharedFilter;
use crate::request::{DeleteRequest, SortPattern, natural_direction};
use crate::stage::{DeleteBatch, DeleteParameters, DeleteStage, DeleteTarget, StageNode, are_client_deletes_batched};
use crate::{CanonicalQuery, QueryEngine};
use pando_base::Result;
use pando_catalog::Collection;
use pando_doc::Doc;
use pando_operation::Operation;
use pando_oplog::RetryImage;
use std::sync::Arc;

/// What a delete did.
#[derive(Clone, Debug, Default)]
pub struct DeleteResult {
    /// How many documents were deleted.
    pub n: u64,
    /// The deleted document, if that was asked for.
    pub returned: Option<Doc>,
}

impl QueryEngine {
    /// Runs one delete. The operation holds the collection in IX.
    pub async fn delete(&self, operation: &mut Operation, request: &DeleteRequest) -> Result<DeleteResult> {
        self.delete_returning(operation, request, false, None).await
    }

    pub(crate) async fn delete_returning(
        &self,
        operation: &mut Operation,
        request: &DeleteRequest,
        returns_deleted: bool,
        retry_image: Option<RetryImage>,
    ) -> Result<DeleteResult> {
        let collection = self.collections.open_for_write(operation, &request.namespace)?;
        let mut executor =
            self.delete_executor(operation, request, collection.as_ref(), returns_deleted, retry_image, false)?;
        operation.context.describe(|description| description.plan_summary = executor.plan_summary().to_owned().into());
        let mut returned: Vec<Doc> = Vec::new();
        drive(&mut executor, operation, &*self.collections, &mut returned).await?;
        let n = executor.root().find::<DeleteStage>().map_or(0, DeleteStage::deleted);
        Ok(DeleteResult { n, returned: returned.into_iter().next() })
    }

    pub(crate) fn delete_executor(
        &self,
        operation: &Operation,
        request: &DeleteRequest,
        collection: Option<&Arc<Collection>>,
        returns_deleted: bool,
        retry_image: Option<RetryImage>,
        is_explain: bool,
    ) -> Result<Executor> {
        let context = self.parse_context(
            operation,
            &request.collation,
            &request.variables,
            collection.map(|collection| &**collection),
        )?;
        let mut query = CanonicalQuery::of_filter(&request.namespace, request.filter.view(), &context)?;
        query.hint = request.hint.clone();
        query.natural = request.hint.natural();
        match request.sort.get("$natural") {
            Some(direction) => query.natural = Some(natural_direction(direction)?),
            None => query.sort = SortPattern::parse(request.sort.view())?,
        }
        query.limit = query.sort.is_some().then_some(1);
        let batch = DeleteBatch::of(&self.parameters, &self.counters.delete_batches);
        let is_batched = request.multi
            && !returns_deleted
            && request.sort.is_empty()
            && request.statement_ids.as_slice().is_empty()
            && !operation.recovery_unit.in_unit_of_work()
            && !collection.is_some_and(|collection| collection.is_capped())
            && are_client_deletes_batched(&self.parameters);
        let parameters = DeleteParameters {
            write_path: Arc::clone(&self.write_path),
            filter: SharedFilter::clone(&query.filter),
            multi: request.multi,
            returns_deleted,
            statement_ids: request.statement_ids.clone(),
            retry_image,
            is_explain,
            target: DeleteTarget::default(),
            batch: is_batched.then_some(batch),
        };
        self.run(&Arc::new(query), collection, |root, collection| {
            Ok(StageNode::new(DeleteStage::new(root, collection, parameters)))
        })
    }
}
