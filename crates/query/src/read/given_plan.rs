//! Runs a plan that a test gives, as it is written.

use crate::QueryEngine;
use crate::engine::matches_all;
use crate::executor::drive;
use crate::planner::{GivenPlan, PlanNode};
use crate::stage::{DeleteParameters, DeleteStage, DeleteTarget, StageNode, build};
use pando_base::Result;
use pando_catalog::Collection;
use pando_doc::{Doc, DocRef};
use pando_expr::Features;
use pando_operation::Operation;
use pando_oplog::StatementIds;
use std::sync::Arc;

impl QueryEngine {
    /// What the plan finds; nothing of one that deletes. The operation holds the collection in IX.
    pub async fn run_given_plan(
        &self,
        operation: &mut Operation,
        collection: &Arc<Collection>,
        plan: DocRef<'_>,
    ) -> Result<Vec<Doc>> {
        let context = self.parse_context(operation, &Doc::new(), &Doc::new(), None)?;
        let context = context.with_features(Features { geo_near: false, text: false, ..Features::ALL });
        let given = GivenPlan::parse(plan, collection, &context)?;
        let filter = Arc::new(matches_all());
        let building = self.build_context(collection, &filter, None);
        let (root, node) = match given {
            GivenPlan::Read(node) => {
                let node = PlanNode::Fetch { child: Box::new(node), filter: None };
                (build(&node, &building)?, node)
            }
            GivenPlan::Delete(node, is_multi) => {
                let node = node.fetched();
                let parameters = DeleteParameters {
                    write_path: Arc::clone(&self.write_path),
                    filter,
                    multi: is_multi,
                    returns_deleted: false,
                    statement_ids: StatementIds::default(),
                    retry_image: None,
                    is_explain: false,
                    target: DeleteTarget::default(),
                    batch: None,
                };
                (StageNode::new(DeleteStage::new(build(&node, &building)?, collection, parameters)), node)
            }
        };
        let mut executor = self.executor(root, &collection.namespace, Some(collection), &node)?;
        let mut found: Vec<Doc> = Vec::new();
        while !drive(&mut executor, operation, &*self.collections, &mut found).await? {}
        Ok(found)
    }
}
