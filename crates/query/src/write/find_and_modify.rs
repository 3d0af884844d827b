//! findAndModify: one document is changed or deleted, and returned.

use crate::QueryEngine;
use crate::request::{DeleteRequest, FindAndModifyChange, FindAndModifyRequest, UpdateRequest};
use crate::stage::ReturnedImage;
use pando_base::{Error, ErrorCode, Result};
use pando_doc::{Doc, OwnedValue};
use pando_expr::metadata::Meta;
use pando_expr::{MatchExpression, ParseContext, Projection, ProjectionPolicies};
use pando_operation::Operation;
use pando_oplog::{RetryImage, StatementIds};

/// What findAndModify did.
#[derive(Clone, Debug, Default)]
pub struct FindAndModifyResult {
    /// The document that is returned, with the wanted fields.
    pub value: Option<Doc>,
    /// How many documents were changed, made or deleted: 0 or 1.
    pub n: u64,
    /// A document that was there was updated.
    pub updated_existing: bool,
    /// The `_id` of the one that was made.
    pub upserted: Option<OwnedValue>,
    /// True after a removal, whose reply has fewer fields.
    pub is_remove: bool,
}

impl QueryEngine {
    /// Runs a findAndModify. The operation holds the collection in IX.
    pub async fn find_and_modify(
        &self,
        operation: &mut Operation,
        request: &FindAndModifyRequest,
    ) -> Result<FindAndModifyResult> {
        let context = self.parse_context(operation, &request.collation, &request.variables, None)?;
        let projection = parse_fields(request, &context)?;
        let is_retryable = !matches!(request.statement_ids, StatementIds::None);
        let mut result = match &request.change {
            FindAndModifyChange::Remove => self.find_and_remove(operation, request, is_retryable).await?,
            FindAndModifyChange::Update { .. } => self.find_and_update(operation, request, is_retryable).await?,
        };
        if let (Some(projection), Some(value)) = (&projection, &result.value) {
            result.value = Some(self.project_value(operation, request, projection, value)?);
        }
        Ok(result)
    }

    async fn find_and_remove(
        &self,
        operation: &mut Operation,
        request: &FindAndModifyRequest,
        is_retryable: bool,
    ) -> Result<FindAndModifyResult> {
        let delete = DeleteRequest {
            hint: request.hint.clone(),
            collation: request.collation.clone(),
            variables: request.variables.clone(),
            sort: request.sort.clone(),
            statement_ids: request.statement_ids.clone(),
            ..DeleteRequest::new(request.namespace.clone(), request.filter.clone(), false)
        };
        let image = is_retryable.then_some(RetryImage::Pre);
        let deleted = self.delete_returning(operation, &delete, true, image).await?;
        Ok(FindAndModifyResult {
            value: deleted.returned,
            n: deleted.n,
            is_remove: true,
            ..FindAndModifyResult::default()
        })
    }

    async fn find_and_update(
        &self,
        operation: &mut Operation,
        request: &FindAndModifyRequest,
        is_retryable: bool,
    ) -> Result<FindAndModifyResult> {
        let FindAndModifyChange::Update { update, upsert, returns_new, array_filters } = &request.change else {
            return Err(Error::internal("a removal is no update"));
        };
        let update = UpdateRequest {
            upsert: *upsert,
            array_filters: array_filters.clone(),
            hint: request.hint.clone(),
            collation: request.collation.clone(),
            variables: request.variables.clone(),
            sort: request.sort.clone(),
            bypass_document_validation: request.bypass_document_validation,
            bypass_empty_timestamp_replacement: request.bypass_empty_timestamp_replacement,
            statement_ids: request.statement_ids.clone(),
            ..UpdateRequest::new(request.namespace.clone(), request.filter.clone(), update.clone())
        };
        let (returned, image) = match returns_new {
            true => (ReturnedImage::After, RetryImage::Post),
            false => (ReturnedImage::Before, RetryImage::Pre),
        };
        let image = is_retryable.then_some(image);
        let updated = self.update_returning(operation, &update, returned, image).await?;
        Ok(FindAndModifyResult {
            value: updated.returned,
            n: updated.n,
            updated_existing: updated.n > 0 && updated.upserted.is_none(),
            upserted: updated.upserted,
            is_remove: false,
        })
    }

    fn project_value(
        &self,
        operation: &Operation,
        request: &FindAndModifyRequest,
        projection: &Projection,
        value: &Doc,
    ) -> Result<Doc> {
        if !projection.needs_match_details() {
            return projection.apply(value.view(), None);
        }
        let context = self.parse_context(operation, &request.collation, &request.variables, None)?;
        let details = MatchExpression::parse(request.filter.view(), &context)?.matches_with_details(value.view())?;
        projection.apply(value.view(), details.as_ref())
    }
}

fn parse_fields(request: &FindAndModifyRequest, context: &ParseContext) -> Result<Option<Projection>> {
    if request.fields.is_empty() {
        return Ok(None);
    }
    let parsed = Projection::parse(request.fields.view(), ProjectionPolicies::FIND, context)?;
    if context.metadata.get().contains(Meta::SortKey) {
        return Err(Error::bad_value("cannot use $meta sortKey projection in findAndModify commands."));
    }
    let returns_new = matches!(request.change, FindAndModifyChange::Update { returns_new: true, .. });
    if parsed.needs_match_details() && returns_new {
        let reason = "Cannot use a positional projection and return the new document.";
        return Err(Error::new(ErrorCode::BadValue, reason));
    }
    Ok(Some(parsed))
}
