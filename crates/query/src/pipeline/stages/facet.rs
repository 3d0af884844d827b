//! `$facet`: several pipelines over the same documents, their results side by side in one document.

use crate::memory::{Account, Held};
use crate::pipeline::dependencies;
use crate::pipeline::parse::chain;
use crate::pipeline::source::pass_on_to_source;
use crate::pipeline::{
    DocumentSource, ListSource, Needs, PipelineContext, PipelineParser, Pulled, ShardSplit, SharedStage, StageSpec,
    parse_pipeline,
};
use bstr::BStr;
use pando_base::{Error, ErrorCode, Result};
use pando_doc::{ArrayBuilder, Doc, DocBuilder, DocRef, Element, Value, check_field_name, doc};
use pando_expr::check_value;
use pando_expr::metadata::without_metadata;
use std::fmt::{Debug, Formatter};
use std::sync::Arc;

#[derive(Clone)]
struct FacetSpec {
    facets: Arc<Vec<(String, Vec<SharedStage>)>>,
    memory_bytes_max: u64,
    account: Arc<Account>,
}

/// Stages that are refused before they are read; what others are is known when they have been.
const NEVER_INSIDE: [&str; 11] = [
    "$out",
    "$merge",
    "$changeStream",
    "$changeStreamSplitLargeEvent",
    "$currentOp",
    "$listLocalSessions",
    "$listSampledQueries",
    "$listSearchIndexes",
    "$search",
    "$searchBeta",
    "$searchMeta",
];

/// The pipelines as they are written, by name.
pub(in crate::pipeline) fn read(value: Value<'_>) -> Result<Vec<(&BStr, Vec<DocRef<'_>>)>> {
    let refused = || Error::location(40169, "the $facet specification must be a non-empty object");
    let facets = value.as_document().filter(|facets| !facets.is_empty()).ok_or_else(refused)?;
    facets.elements().map(read_facet).collect()
}

fn read_facet(facet: Element<'_>) -> Result<(&BStr, Vec<DocRef<'_>>)> {
    let Value::Array(stages) = facet.value else {
        let reason = format!("arguments to $facet must be arrays, {} is type {}", facet.name, facet.value.value_type());
        return Err(Error::location(40170, reason));
    };
    let no_stage = || {
        let reason = format!("elements of arrays in $facet spec must be non-empty objects, {} is not", facet.name);
        Error::location(40171, reason)
    };
    let stages = stages.values().map(|stage| stage.as_document().ok_or_else(no_stage));
    Ok((facet.name, stages.collect::<Result<_>>()?))
}

/// Reads it.
pub(in crate::pipeline) fn parse(value: Value<'_>, parser: &PipelineParser) -> Result<SharedStage> {
    let nested = PipelineParser { is_nested: true, ..parser.clone() };
    let mut parsed = Vec::new();
    for (name, stages) in read(value)? {
        check_field_name(name)?;
        let stages: Vec<Doc> = stages.into_iter().map(DocRef::to_doc).collect();
        let is_refused = |stage: &&Doc| {
            stage.view().first().is_some_and(|first| NEVER_INSIDE.iter().any(|name| first.name == *name))
        };
        if let Some(stage) = stages.iter().find(is_refused) {
            let reason = format!("specified stage is not allowed to be used within a $facet stage: {stage}");
            return Err(Error::location(40600, reason));
        }
        let stages = parse_pipeline(&stages, &nested)?;
        if let Some(stage) = stages.iter().find(|stage| stage.must_be_first() || stage.name() == "$facet") {
            let reason = format!("{} is not allowed to be used within a $facet stage", stage.name());
            return Err(Error::location(40600, reason));
        }
        parsed.push((name.to_string(), stages));
    }
    let resources = &parser.resources;
    let (memory_bytes_max, account) = (resources.group_memory_bytes_max, Arc::clone(&resources.account));
    Ok(Arc::new(FacetSpec { facets: Arc::new(parsed), memory_bytes_max, account }))
}

impl Debug for FacetSpec {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        self.facets.fmt(f)
    }
}

struct FacetSource {
    source: Box<dyn DocumentSource>,
    spec: FacetSpec,
    documents: Vec<Doc>,
    size_bytes: u64,
    held: Held,
    is_over: bool,
}

impl FacetSource {
    fn take_in(&mut self, document: Doc) -> Result<()> {
        self.size_bytes += document.size_bytes() as u64;
        self.documents.push(document);
        self.held.set(self.size_bytes)?;
        if self.size_bytes > self.spec.memory_bytes_max {
            let reason = "document constructed by $facet exceeds the memory limit";
            return Err(Error::new(ErrorCode::location(4031700), reason));
        }
        Ok(())
    }

    fn results(&self, context: &mut PipelineContext<'_>) -> Result<Pulled> {
        let mut builder = DocBuilder::new();
        for (name, stages) in self.spec.facets.iter() {
            let input = ListSource(self.documents.iter().cloned().collect());
            let mut source = chain(stages, Box::new(input))?;
            let mut results = ArrayBuilder::new();
            loop {
                match source.next(context)? {
                    Pulled::Document(document) => {
                        results.push(without_metadata(document.view()).unwrap_or(document));
                        check_value(results.size_bytes())?;
                    }
                    Pulled::Exhausted => break,
                    Pulled::Yield(cause) => return Ok(Pulled::Yield(cause)),
                }
            }
            builder.append(name, results.finish());
            check_value(builder.size_bytes())?;
        }
        Ok(Pulled::Document(builder.finish()))
    }
}

impl DocumentSource for FacetSource {
    fn next(&mut self, context: &mut PipelineContext<'_>) -> Result<Pulled> {
        if self.is_over {
            return Ok(Pulled::Exhausted);
        }
        loop {
            match self.source.next(context)? {
                Pulled::Document(document) => self.take_in(document)?,
                Pulled::Exhausted => break,
                Pulled::Yield(cause) => return Ok(Pulled::Yield(cause)),
            }
        }
        let results = self.results(context)?;
        self.is_over = matches!(results, Pulled::Document(_));
        Ok(results)
    }

    pass_on_to_source!();
}

impl StageSpec for FacetSpec {
    fn name(&self) -> &'static str {
        "$facet"
    }

    fn start(&self, source: Box<dyn DocumentSource>) -> Result<Box<dyn DocumentSource>> {
        let (documents, spec, held) = (Vec::new(), self.clone(), self.account.held());
        Ok(Box::new(FacetSource { source, spec, documents, size_bytes: 0, held, is_over: false }))
    }

    fn to_doc(&self) -> Doc {
        let mut builder = DocBuilder::new();
        for (name, stages) in self.facets.iter() {
            builder.array(name, |array| stages.iter().for_each(|stage| array.push(stage.to_doc())));
        }
        doc! { "$facet": builder.finish() }
    }

    fn needs(&self) -> Needs {
        let mut all = Vec::new();
        for (_, stages) in self.facets.iter() {
            match dependencies::of_stages(stages) {
                Some(paths) => all.extend(paths),
                None => return Needs::Everything,
            }
        }
        Needs::Only(all)
    }

    fn split(&self) -> ShardSplit {
        ShardSplit::OnMerger
    }
}
