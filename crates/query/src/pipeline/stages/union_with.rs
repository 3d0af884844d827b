//! `$unionWith`: the documents of another collection behind those of this one.

use super::options;
use crate::executor::Collections;
use crate::pipeline::{
    DocumentSource, Needs, Permits, PipelineContext, PipelineParser, Pulled, ShardSplit, SharedStage, StageSpec,
    Within, parse_pipeline,
};
use bstr::BStr;
use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_doc::{ArrayBuilder, Doc, DocRef, SharedCollator, Value, doc};
use pando_operation::Operation;
use std::sync::Arc;

#[derive(Clone)]
struct UnionWithSpec {
    namespace: Namespace,
    stages: Arc<Vec<SharedStage>>,
    stage_documents: Arc<Vec<Doc>>,
    collator: Option<SharedCollator>,
}

impl std::fmt::Debug for UnionWithSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?}", self.namespace, self.stage_documents)
    }
}

/// Reads it.
pub(in crate::pipeline) fn parse(value: Value<'_>, parser: &PipelineParser) -> Result<SharedStage> {
    let options = Options::read(value)?;
    let namespace = options.collection(&parser.namespace)?;
    let stages: Vec<Doc> = options.stages.into_iter().map(DocRef::to_doc).collect();
    let nested = parser.nested(&namespace, Within::Union)?;
    let parsed = parse_pipeline(&stages, &nested)?;
    let collator = parser.context.collator.clone();
    Ok(Arc::new(UnionWithSpec { namespace, stages: Arc::new(parsed), stage_documents: Arc::new(stages), collator }))
}

/// The options as they are written.
pub(in crate::pipeline) struct Options<'a> {
    collection: Option<&'a BStr>,
    pub(in crate::pipeline) stages: Vec<DocRef<'a>>,
}

impl<'a> Options<'a> {
    pub(in crate::pipeline) fn read(value: Value<'a>) -> Result<Options<'a>> {
        match value {
            Value::String(name) => Ok(Options { collection: Some(name), stages: Vec::new() }),
            Value::Document(options) => Options::read_document(options),
            other => {
                let reason = format!(
                    "the $unionWith stage specification must be an object or string, but found {}",
                    other.value_type()
                );
                Err(Error::new(ErrorCode::FailedToParse, reason))
            }
        }
    }

    fn read_document(document: DocRef<'a>) -> Result<Options<'a>> {
        let mut read = Options { collection: None, stages: Vec::new() };
        for option in document.elements() {
            match (&**option.name, option.value) {
                (b"coll", Value::String(name)) => read.collection = Some(name),
                (b"pipeline", Value::Array(array)) => {
                    read.stages = array.values().filter_map(|stage| stage.as_document()).collect();
                }
                // Null is as good as nothing.
                (b"coll" | b"pipeline", Value::Null | Value::Undefined) => {}
                (b"coll", _) => return Err(options::wrong_type("$unionWith", option, "type 'string'")),
                (b"pipeline", _) => return Err(options::wrong_type("$unionWith", option, "type 'array'")),
                _ => return Err(options::unknown("$unionWith", option)),
            }
        }
        Ok(read)
    }

    /// The other collection, for a pipeline on this one.
    pub(in crate::pipeline) fn collection(&self, namespace: &Namespace) -> Result<Namespace> {
        match self.collection {
            Some(collection) => namespace.sibling(&collection.to_string()),
            // Documents of the stage's own need no collection.
            None if super::documents::begin(self.stages.first().copied()) => Ok(namespace.clone()),
            None => {
                let reason =
                    "$unionWith stage without explicit collection must have a pipeline with $documents as first stage";
                Err(Error::new(ErrorCode::FailedToParse, reason))
            }
        }
    }
}

struct UnionWithSource {
    source: Box<dyn DocumentSource>,
    spec: UnionWithSpec,
    /// The other collection's documents, once it is their turn.
    other: Option<Box<dyn DocumentSource>>,
}

impl DocumentSource for UnionWithSource {
    fn next(&mut self, context: &mut PipelineContext<'_>) -> Result<Pulled> {
        if self.other.is_none() {
            match self.source.next(context)? {
                Pulled::Exhausted => {}
                other => return Ok(other),
            }
            let (engine, spec) = (context.engine, &self.spec);
            let opened = engine.pipeline_source(context.operation, &spec.namespace, &spec.stages, &spec.collator)?;
            self.other = Some(opened);
        }
        match &mut self.other {
            Some(other) => other.next(context),
            None => Ok(Pulled::Exhausted),
        }
    }

    fn save(&mut self) {
        self.source.save();
        if let Some(other) = &mut self.other {
            other.save();
        }
    }

    fn restore(&mut self, operation: &mut Operation, collections: &dyn Collections) -> Result<()> {
        match &mut self.other {
            Some(other) => other.restore(operation, collections),
            None => self.source.restore(operation, collections),
        }
    }

    fn before(&self) -> Option<&dyn DocumentSource> {
        Some(&*self.source)
    }
}

impl StageSpec for UnionWithSpec {
    fn name(&self) -> &'static str {
        "$unionWith"
    }

    fn start(&self, source: Box<dyn DocumentSource>) -> Result<Box<dyn DocumentSource>> {
        Ok(Box::new(UnionWithSource { source, spec: self.clone(), other: None }))
    }

    fn permits(&self) -> Permits {
        Permits::of_stages(&self.stages)
    }

    fn to_doc(&self) -> Doc {
        let mut stages = ArrayBuilder::new();
        self.stage_documents.iter().for_each(|stage| stages.push(stage));
        doc! { "$unionWith": { "coll": self.namespace.collection(), "pipeline": stages.finish() } }
    }

    fn needs(&self) -> Needs {
        Needs::These(Vec::new())
    }

    fn split(&self) -> ShardSplit {
        ShardSplit::OnMerger
    }
}
