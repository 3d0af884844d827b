//! `$sample`: some documents by chance.

use crate::pipeline::source::pass_on_to_source;
use crate::pipeline::{DocumentSource, Needs, PipelineContext, Pulled, ShardSplit, SharedStage, StageSpec};
use pando_base::{Error, Result};
use pando_doc::{Doc, Value, doc};
use std::sync::Arc;

#[derive(Debug)]
struct SampleSpec(u64);

/// Reads it.
pub(in crate::pipeline) fn parse(value: Value<'_>) -> Result<SharedStage> {
    let Value::Document(options) = value else {
        return Err(Error::location(28745, "the $sample stage specification must be an object"));
    };
    let mut size = None;
    for option in options.elements() {
        if option.name != "size" {
            return Err(Error::location(28748, format!("unrecognized option to $sample: {}", option.name)));
        }
        if !option.value.is_number() {
            return Err(Error::location(28746, "size argument to $sample must be a number"));
        }
        size = Some(option.value.to_i64_or_zero());
    }
    let size = size.ok_or_else(|| Error::location(28749, "$sample stage must specify a size"))?;
    let size =
        u64::try_from(size).map_err(|_| Error::location(28747, "size argument to $sample must not be negative"))?;
    Ok(Arc::new(SampleSpec(size)))
}

struct SampleSource {
    source: Box<dyn DocumentSource>,
    size: u64,
    seen: u64,
    chosen: Vec<Doc>,
    is_over: bool,
}

impl SampleSource {
    /// Every document has the same chance to stay.
    fn take_in(&mut self, document: Doc, context: &PipelineContext<'_>) {
        let random = context.operation.env.random();
        self.seen += 1;
        if (self.chosen.len() as u64) < self.size {
            let place = random.below(self.chosen.len() as u64 + 1) as usize;
            self.chosen.push(document);
            let last = self.chosen.len() - 1;
            self.chosen.swap(place, last);
            return;
        }
        let place = random.below(self.seen);
        if let Some(slot) = usize::try_from(place).ok().and_then(|place| self.chosen.get_mut(place)) {
            *slot = document;
        }
    }
}

impl DocumentSource for SampleSource {
    fn next(&mut self, context: &mut PipelineContext<'_>) -> Result<Pulled> {
        while !self.is_over {
            match self.source.next(context)? {
                Pulled::Document(document) => self.take_in(document, context),
                Pulled::Exhausted => self.is_over = true,
                Pulled::Yield(cause) => return Ok(Pulled::Yield(cause)),
            }
        }
        Ok(self.chosen.pop().map_or(Pulled::Exhausted, Pulled::Document))
    }

    pass_on_to_source!();
}

impl StageSpec for SampleSpec {
    fn name(&self) -> &'static str {
        "$sample"
    }

    fn start(&self, source: Box<dyn DocumentSource>) -> Result<Box<dyn DocumentSource>> {
        Ok(Box::new(SampleSource { source, size: self.0, seen: 0, chosen: Vec::new(), is_over: false }))
    }

    fn to_doc(&self) -> Doc {
        doc! { "$sample": { "size": i64::try_from(self.0).unwrap_or(i64::MAX) } }
    }

    fn needs(&self) -> Needs {
        Needs::These(Vec::new())
    }

    fn split(&self) -> ShardSplit {
        ShardSplit::Both
    }
}
