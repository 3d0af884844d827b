//! `$changeStream`: what happens to a collection, a database or all of them, as it happens.
//!
//! The stage becomes several: a [source](source) that reads the oplog and gives events, unless the [filters](prefilter) of the client
//! leave them out; the [documents before and after](images)
//! a change, where they are wanted; a filter for those who know the classic events only; and, at the very end behind the stages
//! of the client, a [check](ensure) that the event with which a client came back is there. Between them lies what the client may
//! put there: stages that give one document for one, or none, and `$changeStreamSplitLargeEvent`.
//!
//! Invariants: every event has a [token](token), its `_id`, from which a stream goes on right behind it; tokens ascend in a
//! stream; every event that is read was on a majority's disks.

mod ensure;
mod event;
mod images;
mod options;
mod prefilter;
mod scope;
mod source;
pub(in crate::pipeline) mod split;
mod state;
mod token;
mod transaction;

pub use options::StreamOptions;
pub(in crate::pipeline) use options::watched;
pub use scope::Watched;
pub use state::StreamState;
pub(in crate::pipeline) use token::TOKEN_VERSION;

use super::match_stage;
use crate::pipeline::{DocumentSource, PipelineParser, SharedStage, StageSpec};
use pando_base::{Error, ErrorCode, Result, ensure};
use pando_doc::{ArrayBuilder, Doc, Value, doc};
use pando_expr::MatchExpression;
use prefilter::Prefilter;
use source::EventSource;
use std::sync::Arc;

/// Its name.
const NAME: &str = "$changeStream";

/// The events that all clients know.
const CLASSIC: [&str; 8] = ["update", "delete", "replace", "insert", "drop", "rename", "dropDatabase", "invalidate"];

/// What may stand behind it.
const ALLOWED: [&str; 10] = [
    NAME,
    split::NAME,
    "$match",
    "$project",
    "$addFields",
    "$set",
    "$unset",
    "$replaceRoot",
    "$replaceWith",
    "$redact",
];

#[derive(Debug)]
struct ChangeStreamSpec {
    written: Doc,
    options: Arc<StreamOptions>,
    state: Arc<StreamState>,
}

/// Reads it.
pub(in crate::pipeline) fn parse(value: Value<'_>, parser: &PipelineParser) -> Result<Vec<SharedStage>> {
    let written = options::written(value)?;
    let beginning = parser.provider.as_ref().and_then(|provider| provider.stream_beginning());
    let options = Arc::new(StreamOptions::parse(written, &parser.namespace, beginning)?);
    let state = StreamState::new(&options.beginning, options.token_version)?;
    let mut stages: Vec<SharedStage> = vec![Arc::new(ChangeStreamSpec {
        written: written.to_doc(),
        options: Arc::clone(&options),
        state: Arc::clone(&state),
    })];
    stages.extend(images::stages(&options, &state));
    if !options.shows_expanded {
        let mut classic = ArrayBuilder::new();
        CLASSIC.iter().for_each(|name| classic.push(*name));
        let filter = doc! { "operationType": { "$in": (classic.finish()) } };
        let filter = MatchExpression::parse(filter.view(), &parser.context)?;
        stages.push(match_stage::of(Arc::new(filter)));
    }
    Ok(stages)
}

/// Checks that a pipeline of a stream has nothing that a stream cannot have, and gives it its end. Other pipelines stay as they
/// are.
pub(in crate::pipeline) fn completed(mut stages: Vec<SharedStage>) -> Result<Vec<SharedStage>> {
    let split_count = stages.iter().filter(|stage| stage.name() == split::NAME).count();
    let Some((options, state)) = stages.first().and_then(|first| first.stream()) else {
        ensure!(
            split_count == 0,
            ErrorCode::IllegalOperation,
            "{} can only be used in a $changeStream pipeline",
            split::NAME
        );
        return Ok(stages);
    };
    let refused =
        stages.iter().find(|stage| !ALLOWED.contains(&stage.name()) && !stage.name().starts_with("$_internal"));
    if let Some(stage) = refused {
        let reason = format!("{} is not permitted in a $changeStream pipeline", stage.name());
        return Err(Error::new(ErrorCode::IllegalOperation, reason));
    }
    state.prefer(Prefilter::of(&stages));
    let is_last = stages.last().is_some_and(|last| last.name() == split::NAME);
    ensure!(
        split_count == 0 || (split_count == 1 && is_last),
        ErrorCode::location(7182802),
        "{} must be the last stage in the pipeline",
        split::NAME
    );
    ensure!(
        split_count == 1 || options.beginning.fragment.is_none(),
        ErrorCode::ChangeStreamFatalError,
        "To resume from a split event, the $changeStream pipeline must include a $changeStreamSplitLargeEvent stage"
    );
    if split_count == 1 {
        stages.pop();
        stages.push(split::stage(&options, &state));
    }
    if !options.beginning.is_high_water_mark() {
        stages.push(ensure::stage(&options, &state));
    }
    Ok(stages)
}

/// A stream that a stage begins.
pub type Stream = (Arc<StreamOptions>, Arc<StreamState>);

impl StageSpec for ChangeStreamSpec {
    fn name(&self) -> &'static str {
        NAME
    }

    fn start(&self, _source: Box<dyn DocumentSource>) -> Result<Box<dyn DocumentSource>> {
        Ok(Box::new(EventSource::new(&self.options, &self.state)))
    }

    fn to_doc(&self) -> Doc {
        doc! { "$changeStream": (&self.written) }
    }

    fn is_initial(&self) -> bool {
        true
    }

    fn stream(&self) -> Option<Stream> {
        Some((Arc::clone(&self.options), Arc::clone(&self.state)))
    }
}
