//! Stages that look at one document at a time and give one or none.

use crate::pipeline::source::pass_on_to_source;
use crate::pipeline::{DocumentSource, PipelineContext, Pulled};
use pando_base::Result;
use pando_doc::Doc;

/// What becomes of a document; none if it is left out.
pub(in crate::pipeline) type Transformation = Box<dyn FnMut(Doc) -> Result<Option<Doc>> + Send>;

/// Applies a transformation to every document.
pub(in crate::pipeline) struct TransformSource {
    pub(in crate::pipeline) source: Box<dyn DocumentSource>,
    pub(in crate::pipeline) transformation: Transformation,
}

/// A source that applies a transformation.
pub(in crate::pipeline) fn transformed(
    source: Box<dyn DocumentSource>,
    transformation: impl FnMut(Doc) -> Result<Option<Doc>> + Send + 'static,
) -> Box<dyn DocumentSource> {
    Box::new(TransformSource { source, transformation: Box::new(transformation) })
}

impl DocumentSource for TransformSource {
    fn next(&mut self, context: &mut PipelineContext<'_>) -> Result<Pulled> {
        loop {
            match self.source.next(context)? {
                Pulled::Document(document) => {
                    if let Some(document) = (self.transformation)(document)? {
                        return Ok(Pulled::Document(document));
                    }
                }
                other => return Ok(other),
            }
        }
    }

    pass_on_to_source!();
}
