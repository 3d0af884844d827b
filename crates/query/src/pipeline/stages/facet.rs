//! `$facet`: several pipelines over the same documents, their results side by side in one document.
//!
//! The input is taken in by pieces, and each pipeline looks at a piece before the next one is taken in: what is kept in memory is a piece
//! and the results, however large the input is. Pipelines that have seen enough are given no more.

use crate::executor::{Collections, YieldCause};
use crate::memory::{Account, Held};
use crate::pipeline::dependencies;
use crate::pipeline::parse::chain;
use crate::pipeline::{
    DocumentSource, Needs, PipelineContext, PipelineParser, Pulled, ShardSplit, SharedStage, StageSpec, Within,
    parse_pipeline,
};
use bstr::BStr;
use pando_base::{Error, ErrorCode, Result};
use pando_doc::{ArrayBuilder, Doc, DocBuilder, DocRef, Element, Value, check_field_name, doc};
use pando_expr::metadata::without_metadata;
use pando_operation::Operation;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::fmt::{Debug, Formatter};
use std::sync::Arc;

#[derive(Clone)]
struct FacetSpec {
    facets: Arc<Vec<(String, Vec<SharedStage>)>>,
    /// So much of the input is taken in at a time.
    buffer_bytes: u64,
    /// So large its document may be.
    output_bytes_max: u64,
    account: Arc<Account>,
}

impl Debug for FacetSpec {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        self.facets.fmt(f)
    }
}

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
    let nested = PipelineParser { within: Within::Facet, ..parser.clone() };
    let mut parsed = Vec::new();
    for (name, stages) in read(value)? {
        check_field_name(name)?;
        let stages: Vec<Doc> = stages.into_iter().map(DocRef::to_doc).collect();
        let stages = parse_pipeline(&stages, &nested)?;
        parsed.push((name.to_string(), stages));
    }
    let resources = &parser.resources;
    Ok(Arc::new(FacetSpec {
        facets: Arc::new(parsed),
        buffer_bytes: resources.facet_buffer_bytes,
        output_bytes_max: resources.facet_output_bytes_max,
        account: Arc::clone(&resources.account),
    }))
}

/// What one pipeline of a `$facet` still has to look at.
#[derive(Default)]
struct Queue {
    documents: VecDeque<Doc>,
    is_over: bool,
    /// It was asked for more than there was.
    is_starved: bool,
}

/// The input of one pipeline. When there is nothing yet it has the pipeline stand back, as for others, until there is more.
struct QueueSource(Arc<Mutex<Queue>>);

impl DocumentSource for QueueSource {
    fn next(&mut self, _context: &mut PipelineContext<'_>) -> Result<Pulled> {
        let mut queue = self.0.lock();
        if let Some(document) = queue.documents.pop_front() {
            return Ok(Pulled::Document(document));
        }
        if queue.is_over {
            return Ok(Pulled::Exhausted);
        }
        queue.is_starved = true;
        Ok(Pulled::Yield(YieldCause::Time))
    }

    fn save(&mut self) {}

    fn restore(&mut self, _operation: &mut Operation, _collections: &dyn Collections) -> Result<()> {
        Ok(())
    }
}

/// One pipeline of a `$facet` while it runs.
struct Facet {
    name: String,
    queue: Arc<Mutex<Queue>>,
    source: Box<dyn DocumentSource>,
    results: ArrayBuilder,
    is_done: bool,
}

/// What a pipeline did with what it had.
enum Turn {
    /// It wants more, or has all it wants.
    Over,
    /// Others are to run first.
    Yield(YieldCause),
}

struct FacetSource {
    source: Box<dyn DocumentSource>,
    spec: FacetSpec,
    facets: Vec<Facet>,
    results_bytes: u64,
    /// A piece of the input and the results.
    held: Held,
    is_input_over: bool,
    is_over: bool,
}

impl FacetSource {
    fn new(source: Box<dyn DocumentSource>, spec: FacetSpec) -> Result<FacetSource> {
        let mut facets = Vec::with_capacity(spec.facets.len());
        for (name, stages) in spec.facets.iter() {
            let queue = Arc::new(Mutex::new(Queue::default()));
            let source = chain(stages, Box::new(QueueSource(Arc::clone(&queue))))?;
            facets.push(Facet { name: name.clone(), queue, source, results: ArrayBuilder::new(), is_done: false });
        }
        let held = spec.account.held();
        Ok(FacetSource { source, spec, facets, results_bytes: 0, held, is_input_over: false, is_over: false })
    }

    /// Takes in some more documents for all pipelines that still want any. None when that is done.
    fn take_in(&mut self, context: &mut PipelineContext<'_>) -> Result<Option<YieldCause>> {
        let mut size_bytes = 0;
        while size_bytes < self.spec.buffer_bytes {
            match self.source.next(context)? {
                Pulled::Document(document) => {
                    size_bytes += document.size_bytes() as u64;
                    self.held.set(self.results_bytes + size_bytes)?;
                    for facet in self.facets.iter().filter(|facet| !facet.is_done) {
                        facet.queue.lock().documents.push_back(document.clone());
                    }
                }
                Pulled::Exhausted => {
                    self.is_input_over = true;
                    self.facets.iter().for_each(|facet| facet.queue.lock().is_over = true);
                    break;
                }
                Pulled::Yield(cause) => return Ok(Some(cause)),
            }
        }
        Ok(None)
    }

    /// Has one pipeline look at what there is.
    fn advance(&mut self, place: usize, context: &mut PipelineContext<'_>) -> Result<Turn> {
        let limit_bytes = self.spec.output_bytes_max;
        let Some(facet) = self.facets.get_mut(place) else { return Ok(Turn::Over) };
        while !facet.is_done {
            facet.queue.lock().is_starved = false;
            match facet.source.next(context)? {
                Pulled::Document(document) => {
                    self.results_bytes += document.size_bytes() as u64;
                    if self.results_bytes > limit_bytes {
                        let reason = format!(
                            "document constructed by $facet is {} bytes, which exceeds the limit of {limit_bytes} bytes",
                            self.results_bytes
                        );
                        return Err(Error::new(ErrorCode::location(4_031_700), reason));
                    }
                    self.held.set(self.held.bytes().max(self.results_bytes))?;
                    facet.results.push(without_metadata(document.view()).unwrap_or(document));
                }
                Pulled::Exhausted => {
                    facet.is_done = true;
                    facet.queue.lock().documents.clear();
                }
                Pulled::Yield(_) if facet.queue.lock().is_starved => break,
                Pulled::Yield(cause) => return Ok(Turn::Yield(cause)),
            }
        }
        Ok(Turn::Over)
    }

    fn result(&mut self) -> Doc {
        let mut builder = DocBuilder::new();
        for facet in &mut self.facets {
            builder.append(&facet.name, std::mem::replace(&mut facet.results, ArrayBuilder::new()).finish());
        }
        builder.finish()
    }
}

impl DocumentSource for FacetSource {
    fn next(&mut self, context: &mut PipelineContext<'_>) -> Result<Pulled> {
        if self.is_over {
            return Ok(Pulled::Exhausted);
        }
        loop {
            for place in 0..self.facets.len() {
                if let Turn::Yield(cause) = self.advance(place, context)? {
                    return Ok(Pulled::Yield(cause));
                }
            }
            if self.is_input_over || self.facets.iter().all(|facet| facet.is_done) {
                self.is_over = true;
                return Ok(Pulled::Document(self.result()));
            }
            if let Some(cause) = self.take_in(context)? {
                return Ok(Pulled::Yield(cause));
            }
        }
    }

    fn save(&mut self) {
        self.source.save();
        self.facets.iter_mut().for_each(|facet| facet.source.save());
    }

    fn restore(&mut self, operation: &mut Operation, collections: &dyn Collections) -> Result<()> {
        self.source.restore(operation, collections)?;
        self.facets.iter_mut().try_for_each(|facet| facet.source.restore(operation, collections))
    }

    fn before(&self) -> Option<&dyn DocumentSource> {
        Some(&*self.source)
    }

    fn before_mut(&mut self) -> Option<&mut dyn DocumentSource> {
        Some(&mut *self.source)
    }
}

impl StageSpec for FacetSpec {
    fn name(&self) -> &'static str {
        "$facet"
    }

    fn start(&self, source: Box<dyn DocumentSource>) -> Result<Box<dyn DocumentSource>> {
        Ok(Box::new(FacetSource::new(source, self.clone())?))
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
