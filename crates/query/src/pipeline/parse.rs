//! Reading pipelines: the table of stages.

use super::stages::{
    add_fields, apply_oplog_update, bounded_sort, bucket, bucket_auto, change_stream, convert_index_stats, count,
    densify, documents, facet, fill, geo_near, graph_lookup, group, limit, lookup, match_stage, no_effect, options,
    output, project, redact, replace_root, sample, skip, sort, sort_by_count, union_with, unpack, unset, unwind,
    window,
};
use super::within::{self, Within};
use super::{CountedSource, DocumentSource, Pushdown, SharedStage};
use crate::request::Seen;
use crate::spill::StageResources;
use pando_base::{Error, ErrorCode, Namespace, Result, Timestamp, ensure, operation};
use pando_doc::{Doc, DocRef, Element};
use pando_expr::ParseContext;
use std::sync::Arc;

/// Reads stages that only the layers above know, such as `$collStats` or `$currentOp`.
pub trait StageProvider: Send + Sync {
    /// The stage of this name, if it is known.
    fn parse(&self, stage: Element<'_>, namespace: &Namespace) -> Option<Result<SharedStage>>;

    /// Where a change stream that begins now begins; none where there is no oplog.
    fn stream_beginning(&self) -> Option<StreamBeginning> {
        None
    }
}

/// Where a change stream begins.
#[derive(Clone, Copy, Debug)]
pub struct StreamBeginning {
    /// The newest entry of the oplog; the stream begins behind it.
    pub now: Timestamp,
    /// The version of its tokens.
    pub token_version: i32,
}

impl StreamBeginning {
    /// A stream with the tokens of these days.
    pub fn behind(now: Timestamp) -> StreamBeginning {
        StreamBeginning { now, token_version: change_stream::TOKEN_VERSION }
    }
}

/// What reading a pipeline needs to know.
#[derive(Clone)]
pub struct PipelineParser {
    /// The surroundings of expressions.
    pub context: ParseContext,
    /// The collection that it reads.
    pub namespace: Namespace,
    /// Stages of the layers above.
    pub provider: Option<Arc<dyn StageProvider>>,
    /// What a stage may take.
    pub resources: StageResources,
    /// What it stands in.
    pub within: Within,
    /// So many pipelines are around it.
    pub depth: u32,
    /// The collections that it may name; none if everything.
    pub seen: Option<Seen>,
}

/// Reading a stage is so many steps beside what is in it.
const STAGE_STEPS: u64 = 64;
/// No more pipelines may stand inside each other.
pub(super) const PIPELINES_DEPTH_MAX: u32 = 20;

impl PipelineParser {
    /// For a pipeline over another collection inside this one.
    pub(super) fn nested(&self, namespace: &Namespace, within: Within) -> Result<PipelineParser> {
        let depth = self.depth + 1;
        if depth > PIPELINES_DEPTH_MAX {
            return Err(too_deep());
        }
        self.seen.as_ref().map_or(Ok(()), |seen| seen.check(namespace))?;
        Ok(PipelineParser { within, depth, namespace: namespace.clone(), ..self.clone() })
    }
}

pub(super) fn too_deep() -> Error {
    let reason = format!("Maximum number of nested sub-pipelines exceeded. Limit is {PIPELINES_DEPTH_MAX}");
    Error::new(ErrorCode::MaxSubPipelineDepthExceeded, reason)
}

/// Reads a pipeline.
pub fn parse_pipeline(stages: &[Doc], parser: &PipelineParser) -> Result<Vec<SharedStage>> {
    let stages_max = parser.resources.stages_max;
    check_length(stages.len(), stages_max)?;
    let mut parsed: Vec<SharedStage> = Vec::with_capacity(stages.len());
    for stage in stages {
        operation::tick(STAGE_STEPS)?;
        parsed.extend(parse_stage(stage.view(), parser)?);
    }
    within::check(&parsed, parser.within)?;
    // Some stages are several.
    check_length(parsed.len(), stages_max)?;
    drop_nothing(&mut parsed);
    check_places(&parsed)?;
    unpack::expanded(parsed, parser)
}

/// Some stages stand first, some last.
fn check_places(stages: &[SharedStage]) -> Result<()> {
    for (place, stage) in stages.iter().enumerate() {
        let before = stages.get(..place).unwrap_or_default();
        if stage.must_be_first() && !before.is_empty() {
            check_first(stage, before)?;
        }
        if stage.output().is_some() && place + 1 < stages.len() {
            let reason = format!("{} can only be the final stage in the pipeline", stage.name());
            return Err(Error::location(40601, reason));
        }
        let searches = matches!(stage.pushdown(), Pushdown::Match(filter) if filter.has_text());
        if searches && before.iter().all(|stage| stage.unpacking().is_some()) && !before.is_empty() {
            let reason = "text index required for $text query";
            return Err(Error::new(ErrorCode::IndexNotFound, reason));
        }
        if searches && !before.is_empty() {
            let reason = "$match with $text is only allowed as the first pipeline stage";
            return Err(Error::location(17313, reason));
        }
    }
    Ok(())
}

/// Conditions that everything fulfils are dropped in front of a search by distance, which then is the first.
fn drop_nothing(stages: &mut Vec<SharedStage>) {
    let is_nothing =
        |stage: &SharedStage| matches!(stage.pushdown(), Pushdown::Match(filter) if filter.root().is_trivially_true());
    let before = stages.iter().take_while(|stage| is_nothing(stage)).count();
    if stages.get(before).is_some_and(|stage| matches!(stage.pushdown(), Pushdown::GeoNear(_))) {
        stages.drain(..before);
    }
}

fn check_first(stage: &SharedStage, before: &[SharedStage]) -> Result<()> {
    let name = stage.name();
    if !matches!(stage.pushdown(), Pushdown::GeoNear(_)) {
        return Err(Error::location(40602, format!("{name} is only valid as the first stage in a pipeline")));
    }
    // Measurements that are unpacked before are searched by their buckets.
    if before.last().is_some_and(|last| last.unpacking().is_some()) {
        return Ok(());
    }
    let reason = format!(
        "{name} was not the first stage in the pipeline after optimization. Is optimization disabled or inhibited?"
    );
    Err(Error::location(40603, reason))
}

fn check_length(length: usize, most: usize) -> Result<()> {
    ensure!(length <= most, ErrorCode::FailedToParse, "Pipeline length must be no longer than {most} stages");
    Ok(())
}

/// The one field that a stage has. None of its options stands there twice.
pub(super) fn single_field(stage: DocRef<'_>) -> Result<Element<'_>> {
    let only = stage.first().filter(|_| stage.field_count() == 1);
    let Some(element) = only else {
        let reason = "A pipeline stage specification object must contain exactly one field.";
        return Err(Error::location(40323, reason));
    };
    options::refuse_repeated(element).map(|()| element)
}

/// Reads one stage, which may become several.
pub(super) fn parse_stage(stage: DocRef<'_>, parser: &PipelineParser) -> Result<Vec<SharedStage>> {
    let element = single_field(stage)?;
    let context = &parser.context;
    let one = |stage: Result<SharedStage>| stage.map(|stage| vec![stage]);
    match &**element.name {
        b"$match" => one(match_stage::parse(element.value, context)),
        b"$project" => one(project::parse(element.value, context)),
        b"$addFields" => one(add_fields::parse("$addFields", element.value, context)),
        b"$set" => one(add_fields::parse("$set", element.value, context)),
        b"$unset" => one(unset::parse(element.value)),
        b"$group" => one(group::parse(element.value, parser)),
        b"$sort" => one(sort::parse(element.value, parser)),
        b"$limit" => one(limit::parse(element.value)),
        b"$skip" => one(skip::parse(element.value)),
        b"$unwind" => one(unwind::parse(element.value)),
        b"$count" => count::parse(element.value, parser),
        b"$sortByCount" => sort_by_count::parse(element.value, parser),
        b"$replaceRoot" => one(replace_root::parse_root(element.value, context)),
        b"$replaceWith" => one(replace_root::parse_with(element.value, context)),
        b"$lookup" => one(lookup::parse(element.value, parser)),
        b"$graphLookup" => one(graph_lookup::parse(element.value, parser)),
        b"$geoNear" => one(geo_near::parse(element.value, context)),
        b"$bucket" => bucket::parse(element.value, parser),
        b"$bucketAuto" => one(bucket_auto::parse(element.value, parser)),
        b"$setWindowFields" => window::parse(element.value, parser),
        b"$densify" => densify::parse(element.value, parser),
        b"$fill" => fill::parse(element.value, parser),
        b"$facet" => one(facet::parse(element.value, parser)),
        b"$sample" => one(sample::parse(element.value)),
        b"$unionWith" => one(union_with::parse(element.value, parser)),
        b"$changeStream" => change_stream::parse(element.value, parser),
        b"$changeStreamSplitLargeEvent" => one(change_stream::split::parse(element.value)),
        b"$documents" => one(documents::parse(element.value, context)),
        b"$redact" => one(redact::parse(element.value, context)),
        b"$_internalInhibitOptimization" => one(no_effect::parse_inhibit_optimization(element.value)),
        b"$_internalSplitPipeline" => one(no_effect::parse_split_pipeline(element.value)),
        b"$_internalShredDocuments" => one(no_effect::parse_shred_documents(element.value)),
        b"$_internalApplyOplogUpdate" => one(apply_oplog_update::parse(element)),
        b"$_internalDensify" => densify::parse_internal(element.value, parser),
        b"$_internalSetWindowFields" => window::parse_internal(element.value, parser),
        b"$search" | b"$searchMeta" | b"$vectorSearch" | b"$listSearchIndexes" => {
            let reason = format!("{} stage is only allowed on MongoDB Atlas", element.name);
            Err(Error::location(6047401, reason))
        }
        b"$_internalUnpackBucket" => one(unpack::parse(element.value, context, false)),
        b"$_internalBoundedSort" => one(bounded_sort::parse(element.value, parser)),
        b"$_internalConvertBucketIndexStats" => one(convert_index_stats::parse(element.value)),
        b"$_unpackBucket" => one(unpack::parse(element.value, context, true)),
        b"$out" => one(output::parse_out(element.value, parser)),
        b"$merge" => one(output::parse_merge(element.value, parser)),
        _ => match parser.provider.as_ref().and_then(|provider| provider.parse(element, &parser.namespace)) {
            Some(stage) => one(stage),
            None => {
                let reason = format!("Unrecognized pipeline stage name: '{}'", element.name);
                Err(Error::new(ErrorCode::location(40324), reason))
            }
        },
    }
}

/// Runs stages one after the other over a source.
pub(super) fn chain(stages: &[SharedStage], source: Box<dyn DocumentSource>) -> Result<Box<dyn DocumentSource>> {
    let mut source = source;
    let mut rest = stages.iter().peekable();
    while let Some(stage) = rest.next() {
        let limit = rest.peek().and_then(|next| match next.pushdown() {
            Pushdown::Limit(limit) => Some(limit),
            _ => None,
        });
        source = match limit.and_then(|limit| stage.with_limit(limit)) {
            Some(limited) => limited.start(source)?,
            None => stage.start(source)?,
        };
        source = Box::new(CountedSource::new(source));
    }
    Ok(source)
}
