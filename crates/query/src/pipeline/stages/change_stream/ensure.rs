//! The last stage of a stream that a client came back to with an event's token: it sees to it that the event is there.
//!
//! The event itself is swallowed. If what comes out is behind it and it was not seen, then the client's token belongs to another
//! stream, or a filter left the event out.

use super::options::StreamOptions;
use super::state::StreamState;
use super::token::ResumeStatus;
use crate::pipeline::source::pass_on_to_source;
use crate::pipeline::{DocumentSource, PipelineContext, Pulled, SharedStage, StageSpec};
use pando_base::{ErrorCode, Result, ensure};
use pando_doc::{Doc, doc};
use std::sync::Arc;

#[derive(Debug)]
struct EnsureSpec {
    options: Arc<StreamOptions>,
    state: Arc<StreamState>,
}

/// The stage.
pub(super) fn stage(options: &Arc<StreamOptions>, state: &Arc<StreamState>) -> SharedStage {
    Arc::new(EnsureSpec { options: Arc::clone(options), state: Arc::clone(state) })
}

impl StageSpec for EnsureSpec {
    fn name(&self) -> &'static str {
        "$changeStream"
    }

    fn start(&self, source: Box<dyn DocumentSource>) -> Result<Box<dyn DocumentSource>> {
        let (options, state) = (Arc::clone(&self.options), Arc::clone(&self.state));
        Ok(Box::new(EnsureSource { source, options, state, is_past: false }))
    }

    fn to_doc(&self) -> Doc {
        let token = self.state.beginning();
        doc! { "$changeStream": { "stage": "$_internalChangeStreamEnsureResumeTokenPresent", "resumeToken": token } }
    }
}

struct EnsureSource {
    source: Box<dyn DocumentSource>,
    options: Arc<StreamOptions>,
    state: Arc<StreamState>,
    is_past: bool,
}

impl DocumentSource for EnsureSource {
    fn next(&mut self, context: &mut PipelineContext<'_>) -> Result<Pulled> {
        loop {
            let document = match self.source.next(context)? {
                Pulled::Document(document) if !self.is_past => document,
                other => return Ok(other),
            };
            let event = self.state.event()?;
            match event.token.against(&self.options.beginning) {
                ResumeStatus::Found => self.state.found_beginning(),
                ResumeStatus::Before | ResumeStatus::NeedsSplit => {}
                ResumeStatus::Surpassed => {
                    ensure!(
                        self.state.has_found_beginning(),
                        ErrorCode::ChangeStreamFatalError,
                        "cannot resume stream; the resume token was not found. {}",
                        event.token_document
                    );
                    self.is_past = true;
                    return Ok(Pulled::Document(document));
                }
            }
        }
    }

    pass_on_to_source!();
}
