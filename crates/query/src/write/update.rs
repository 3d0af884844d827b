//! Updates, and what an upsert inserts.

use super::DocumentChange;
use super::insert::{InsertDocument, is_duplicate_key};
use super::update_by_id::AtOnce;
use crate::executor::{Executor, drive, give_way};
use crate::planner::SharedFilter;
use crate::request::{SortPattern, UpdateRequest, natural_direction};
use crate::stage::{ReturnedImage, StageNode, UpdateParameters, UpdateStage};
use crate::{CanonicalQuery, QueryEngine, engine};
use pando_base::{Error, ErrorCode, Result};
use pando_catalog::Collection;
use pando_collection::InsertOptions;
use pando_doc::{Doc, DocRef, OwnedValue, Value, fill_empty_timestamps};
use pando_env::BoxedFuture;
use pando_expr::Update;
use pando_operation::{Conflicts, Operation};
use pando_oplog::RetryImage;
use std::sync::Arc;

/// How often an upsert is tried that meets somebody else's.
const UPSERT_ATTEMPTS_MAX: u32 = 10;

/// What an update did.
#[derive(Clone, Debug, Default)]
pub struct UpdateResult {
    /// How many documents matched; 1 for one that was made.
    pub n: u64,
    /// How many were changed by it.
    pub modified: u64,
    /// The `_id` of the one that was made.
    pub upserted: Option<OwnedValue>,
    /// The document as it was or is, if that was asked for.
    pub returned: Option<Doc>,
}

/// An update that was read.
pub(crate) struct ParsedUpdate {
    pub(crate) query: Arc<CanonicalQuery>,
    pub(crate) change: Arc<DocumentChange>,
    returned: ReturnedImage,
    retry_image: Option<RetryImage>,
}

impl QueryEngine {
    /// Runs one update. The operation holds the collection in IX. Where an upsert needs a collection that is not there, that is
    /// an error: the caller makes it first.
    pub async fn update(&self, operation: &mut Operation, request: &UpdateRequest) -> Result<UpdateResult> {
        request.validate()?;
        let collection = self.collections.open_for_write(operation, &request.namespace)?;
        match collection {
            Some(collection) => self.update_in(operation, request, &collection).await,
            None => self.planned_update(operation, request).await,
        }
    }

    /// The same in the collection that was opened for it, or that a transaction has found under its lock: its snapshot is older
    /// than that, so that there is nothing to look for again.
    pub async fn update_in(
        &self,
        operation: &mut Operation,
        request: &UpdateRequest,
        collection: &Arc<Collection>,
    ) -> Result<UpdateResult> {
        request.validate()?;
        let mut conflicts = Conflicts::default();
        let mut opened_again = None;
        loop {
            let epoch = operation.recovery_unit.engine().prepare_epoch();
            let collection = opened_again.as_ref().unwrap_or(collection);
            match self.update_at_once(operation, request, collection, &mut conflicts)? {
                AtOnce::Done(updated) => return Ok(updated),
                AtOnce::Planned => return self.planned_update(operation, request).await,
                AtOnce::Conflict(cause) => Box::pin(give_way(operation, cause, epoch)).await?,
            }
            if operation.recovery_unit.in_unit_of_work() {
                continue; // its locks were kept
            }
            opened_again = self.collections.open_for_write(operation, &request.namespace)?;
            if opened_again.is_none() {
                return self.planned_update(operation, request).await;
            }
        }
    }

    /// In a box: it is large, and most updates need no plan.
    fn planned_update<'a>(
        &'a self,
        operation: &'a mut Operation,
        request: &'a UpdateRequest,
    ) -> BoxedFuture<'a, Result<UpdateResult>> {
        Box::pin(self.update_returning(operation, request, ReturnedImage::Nothing, None))
    }

    /// The same, returning a version of the document.
    pub(crate) async fn update_returning(
        &self,
        operation: &mut Operation,
        request: &UpdateRequest,
        returned: ReturnedImage,
        retry_image: Option<RetryImage>,
    ) -> Result<UpdateResult> {
        request.validate()?;
        let mut attempts = 0;
        loop {
            let collection = self.collections.open_for_write(operation, &request.namespace)?;
            let parsed = self.parse_update(operation, request, collection.as_deref(), returned, retry_image)?;
            let found = self.update_found(operation, request, &parsed, collection.as_ref()).await?;
            if found.n > 0 || !request.upsert {
                return Ok(found);
            }
            let collection = collection.ok_or_else(|| engine::namespace_not_found(&request.namespace))?;
            match Box::pin(self.upsert(operation, request, &parsed, &collection)).await {
                // Somebody has inserted what we looked for; now there is something to update.
                Err(error)
                    if is_duplicate_key(&error) && attempts < UPSERT_ATTEMPTS_MAX && may_meet(&parsed, &error) =>
                {
                    attempts += 1;
                    if operation.recovery_unit.in_unit_of_work() {
                        return Err(error);
                    }
                    operation.recovery_unit.abandon_snapshot()?;
                }
                outcome => return outcome,
            }
        }
    }

    pub(crate) fn parse_update(
        &self,
        operation: &Operation,
        request: &UpdateRequest,
        collection: Option<&Collection>,
        returned: ReturnedImage,
        retry_image: Option<RetryImage>,
    ) -> Result<ParsedUpdate> {
        let mut context = self.parse_context(operation, &request.collation, &request.variables, collection)?;
        let mut query = CanonicalQuery::of_filter(&request.namespace, request.filter.view(), &context)?;
        query.hint = request.hint.clone();
        query.natural = request.hint.natural();
        match request.sort.get("$natural") {
            Some(direction) => query.natural = Some(natural_direction(direction)?),
            None => query.sort = SortPattern::parse(request.sort.view())?,
        }
        query.limit = query.sort.is_some().then_some(1);
        if !request.constants.is_empty() {
            context.variables = merged(context.variables.view(), request.constants.view());
        }
        let filters: Vec<DocRef<'_>> = request.array_filters.iter().map(Doc::view).collect();
        let filled = self.filled_replacement(operation, request);
        let update = filled.as_ref().map_or(request.update.view(), |filled| Value::Document(filled.view()));
        let update = Update::parse(update, &filters, &context)?;
        let change = DocumentChange::new(update, context.now, self.present(operation));
        Ok(ParsedUpdate { query: Arc::new(query), change: Arc::new(change), returned, retry_image })
    }

    /// The document that replaces another, if it has empty timestamps that are to be filled.
    pub(super) fn filled_replacement(&self, operation: &Operation, request: &UpdateRequest) -> Option<Doc> {
        let OwnedValue::Document(replacement) = &request.update else { return None };
        if request.bypass_empty_timestamp_replacement || !request.is_replacement() {
            return None;
        }
        fill_empty_timestamps(replacement.view(), || self.present(operation))
    }

    pub(crate) fn update_executor(
        &self,
        request: &UpdateRequest,
        parsed: &ParsedUpdate,
        collection: Option<&Arc<Collection>>,
        is_explain: bool,
    ) -> Result<Executor> {
        let parameters = UpdateParameters {
            write_path: Arc::clone(&self.write_path),
            change: Arc::clone(&parsed.change),
            filter: SharedFilter::clone(&parsed.query.filter),
            multi: request.multi,
            returned: parsed.returned,
            statement_ids: request.statement_ids.clone(),
            retry_image: parsed.retry_image,
            bypass_validation: request.bypass_document_validation,
            is_explain,
        };
        self.run(&parsed.query, collection, |root, collection| {
            Ok(StageNode::new(UpdateStage::new(root, collection, parameters)))
        })
    }

    async fn update_found(
        &self,
        operation: &mut Operation,
        request: &UpdateRequest,
        parsed: &ParsedUpdate,
        collection: Option<&Arc<Collection>>,
    ) -> Result<UpdateResult> {
        let mut executor = self.update_executor(request, parsed, collection, false)?;
        operation.context.describe(|description| description.plan_summary = executor.plan_summary().to_owned().into());
        let mut returned: Vec<Doc> = Vec::new();
        drive(&mut executor, operation, &*self.collections, &mut returned).await?;
        let Some(stage) = executor.root().find::<UpdateStage>() else { return Ok(UpdateResult::default()) };
        Ok(UpdateResult {
            n: stage.matched(),
            modified: stage.modified(),
            upserted: None,
            returned: returned.into_iter().next(),
        })
    }

    async fn upsert(
        &self,
        operation: &mut Operation,
        request: &UpdateRequest,
        parsed: &ParsedUpdate,
        collection: &Arc<Collection>,
    ) -> Result<UpdateResult> {
        let env = operation.env.clone();
        let (filter, new_id) = (&parsed.query.filter, || self.object_ids.next(&env));
        let made = match request.supplied() {
            Some(supplied) => parsed.change.supplied_document(supplied, filter, new_id)?,
            None => parsed.change.new_document(filter, new_id)?,
        };
        let document = self.prepare_insert_unfilled(operation, made.view())?.unwrap_or(made);
        let insert = InsertDocument { document: document.clone(), statement_ids: request.statement_ids.clone() };
        let options =
            InsertOptions { bypass_validation: request.bypass_document_validation, ..InsertOptions::default() };
        let outcomes = self.insert(operation, collection, std::slice::from_ref(&insert), true, options).await;
        outcomes.into_iter().collect::<Result<()>>()?;
        operation.context.statistics().upserted.add(1);
        let id = document.get("_id").map(|id| id.to_shared(&document));
        let returned = (parsed.returned == ReturnedImage::After).then_some(document);
        Ok(UpdateResult { n: 1, modified: 0, upserted: id, returned })
    }
}

/// True if the key that was there already is one that the filter asked for: then trying again finds it.
fn may_meet(parsed: &ParsedUpdate, error: &Error) -> bool {
    debug_assert_eq!(error.code(), ErrorCode::DuplicateKey);
    let details = error.details().map(DocRef::trusted);
    let pattern = details.and_then(|details| details.get("keyPattern")).and_then(|value| value.as_document());
    let (Some(pattern), Ok(equalities)) = (pattern, parsed.query.filter.equalities()) else { return false };
    pattern.raw_elements().all(|element| equalities.iter().any(|(path, _)| path.text() == element.name))
}

fn merged(first: DocRef<'_>, second: DocRef<'_>) -> Doc {
    let mut builder = pando_doc::DocBuilder::with_capacity(first.size_bytes() + second.size_bytes());
    builder.append_all(first);
    builder.append_all(second);
    builder.finish()
}
