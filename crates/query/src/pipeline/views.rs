//! Views: a pipeline in front of the client's, on the collection below.

use super::touch::touches;
use crate::request::{AggregateRequest, FindRequest, Hint, natural_direction};
use crate::timeseries::{hint_on_buckets, options_of_view};
use pando_base::{Error, ErrorCode, Result};
use pando_catalog::ResolvedView;
use pando_collation::Collation;
use pando_doc::{Doc, DocBuilder, DocRef, doc};

/// The aggregation on the collection below a view. Its collation is the view's, whatever the collection's is; a client that
/// names another is refused.
pub fn with_view(request: &AggregateRequest, view: &ResolvedView) -> Result<AggregateRequest> {
    let stages = view_stages(view);
    let collation = match (&view.collation, view.is_timeseries && !request.collation.is_empty()) {
        (_, true) => request.collation.clone(),
        (Some(collation), false) => collation.clone(),
        (None, false) => doc! { "locale": "simple" },
    };
    if !request.collation.is_empty() && !view.is_timeseries {
        let asked = Collation::parse(request.collation.view())?.map(|collation| collation.to_doc());
        require_collation(view, asked.as_ref())?;
    }
    let pipeline: Vec<Doc> = match index_statistics(request, view) {
        Some(pipeline) => pipeline,
        None => stages.chain(request.pipeline.iter().cloned()).collect(),
    };
    // What a view names does not matter to who may read the view.
    let own = || touches(view.pipeline.values().filter_map(|stage| stage.as_document()), &view.namespace);
    let seen = request.seen.as_ref().map(|seen| Ok::<_, Error>(seen.with(own()?.named))).transpose()?;
    Ok(AggregateRequest {
        namespace: view.namespace.clone(),
        seen,
        pipeline,
        collation,
        hint: match options_of_view(view) {
            Some(options) => hint_on_buckets(&request.hint, &options),
            None => request.hint.clone(),
        },
        ..request.clone()
    })
}

/// The pipeline that asks for the use of a time series' indexes, which are those of its buckets.
fn index_statistics(request: &AggregateRequest, view: &ResolvedView) -> Option<Vec<Doc>> {
    let options = options_of_view(view)?;
    let (first, rest) = request.pipeline.split_first().filter(|(first, _)| first.view().contains("$indexStats"))?;
    let mut fields = DocBuilder::new();
    fields.append("timeField", options.time_field.as_str());
    fields.append_some("metaField", options.meta_field.as_deref());
    let convert = doc! { "$_internalConvertBucketIndexStats": fields.finish() };
    Some([first.clone(), convert].into_iter().chain(rest.iter().cloned()).collect())
}

/// The stages that a view stands for.
pub fn view_stages(view: &ResolvedView) -> impl Iterator<Item = Doc> {
    view.pipeline.values().filter_map(|stage| stage.as_document()).map(DocRef::to_doc)
}

/// Refuses to read a view with another collation than its own.
pub fn require_collation(view: &ResolvedView, collation: Option<&Doc>) -> Result<()> {
    if view.collation.as_ref() == collation || view.is_timeseries {
        return Ok(());
    }
    Err(Error::new(ErrorCode::OptionNotSupportedOnView, "Cannot override a view's default collation"))
}

/// A find as an aggregation, for views.
pub fn find_as_pipeline(request: &FindRequest) -> Result<AggregateRequest> {
    let refused = |option: &str| {
        let reason = format!("Option {option} not supported in aggregation.");
        Err(Error::new(ErrorCode::InvalidPipelineOperator, reason))
    };
    if request.tailable {
        return refused("tailable");
    }
    if request.return_key {
        return refused("returnKey");
    }
    if request.show_record_id {
        return refused("showRecordId");
    }
    if request.wants_resume_token {
        return refused("$_requestResumeToken");
    }
    if !request.min.is_empty() || !request.max.is_empty() {
        return refused("min/max");
    }
    request.validate()?;
    let mut pipeline: Vec<Doc> = Vec::new();
    if !request.filter.is_empty() {
        pipeline.push(doc! { "$match": &request.filter });
    }
    // The order of the records below is a hint, since a pipeline cannot sort by it.
    let natural = request.sort.get("$natural").map(natural_direction).transpose()?;
    if !request.sort.is_empty() && natural.is_none() {
        pipeline.push(doc! { "$sort": &request.sort });
    }
    if let Some(skip) = request.skip.filter(|skip| *skip > 0) {
        pipeline.push(doc! { "$skip": skip });
    }
    if let Some(limit) = request.limit.filter(|limit| *limit > 0) {
        pipeline.push(doc! { "$limit": limit });
    }
    if !request.projection.is_empty() {
        pipeline.push(doc! { "$project": &request.projection });
    }
    Ok(AggregateRequest {
        batch_size: request.batch_size,
        hint: natural.map_or_else(|| request.hint.clone(), Hint::Natural),
        collation: request.collation.clone(),
        variables: request.variables.clone(),
        allow_disk_use: request.allow_disk_use,
        ..AggregateRequest::new(request.namespace.clone(), pipeline)
    })
}
