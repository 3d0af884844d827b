//! `$changeStreamSplitLargeEvent`: an event that is too large for one document becomes several.
//!
//! Fields go whole into one part or another, the smallest first; each part has a token of its own, and says which part it is.

use super::options::StreamOptions;
use super::state::StreamState;
use super::token::{ResumeStatus, ResumeToken};
use crate::pipeline::source::pass_on_to_source;
use crate::pipeline::{DocumentSource, PipelineContext, Pulled, SharedStage, StageSpec};
use pando_base::{ErrorCode, Result, bail, ensure};
use pando_doc::{Doc, DocBuilder, INTERNAL_SIZE_BYTES_MAX, RawElement, Value, doc};
use std::collections::VecDeque;
use std::sync::Arc;

/// Its name.
pub(super) const NAME: &str = "$changeStreamSplitLargeEvent";

/// What an event may take together with its token; a reply has more than one event.
const EVENT_BYTES_MAX: usize = INTERNAL_SIZE_BYTES_MAX - 8 * 1024;

/// The stage as it was read; its stream is known when the whole pipeline is.
#[derive(Debug)]
struct SplitSpec {
    stream: Option<(Arc<StreamOptions>, Arc<StreamState>)>,
}

/// Reads it.
pub(in crate::pipeline) fn parse(value: Value<'_>) -> Result<SharedStage> {
    let is_empty = value.as_document().is_some_and(|options| options.is_empty());
    ensure!(is_empty, ErrorCode::location(7182800), "{NAME} spec should be an empty object");
    Ok(Arc::new(SplitSpec { stream: None }))
}

/// The stage of a stream.
pub(super) fn stage(options: &Arc<StreamOptions>, state: &Arc<StreamState>) -> SharedStage {
    Arc::new(SplitSpec { stream: Some((Arc::clone(options), Arc::clone(state))) })
}

impl StageSpec for SplitSpec {
    fn name(&self) -> &'static str {
        NAME
    }

    fn start(&self, source: Box<dyn DocumentSource>) -> Result<Box<dyn DocumentSource>> {
        let Some((options, state)) = &self.stream else {
            bail!(ErrorCode::IllegalOperation, "{NAME} can only be used in a $changeStream pipeline");
        };
        let resume = Some(options.beginning.clone()).filter(|token| token.fragment.is_some());
        Ok(Box::new(SplitSource { source, state: Arc::clone(state), resume, parts: VecDeque::new() }))
    }

    fn to_doc(&self) -> Doc {
        doc! { "$changeStreamSplitLargeEvent": {} }
    }
}

struct SplitSource {
    source: Box<dyn DocumentSource>,
    state: Arc<StreamState>,
    /// The part that a client came back with.
    resume: Option<ResumeToken>,
    parts: VecDeque<Part>,
}

/// A part of an event.
struct Part {
    document: Doc,
    token: ResumeToken,
    token_document: Doc,
}

impl DocumentSource for SplitSource {
    fn next(&mut self, context: &mut PipelineContext<'_>) -> Result<Pulled> {
        if let Some(part) = self.parts.pop_front() {
            return Ok(self.give(part));
        }
        let document = match self.source.next(context)? {
            Pulled::Document(document) => document,
            other => return Ok(other),
        };
        let event = self.state.event()?;
        // The reply has the token once more.
        let token_bytes = event.token_document.size_bytes();
        let is_large = document.size_bytes() + token_bytes > EVENT_BYTES_MAX;
        let seen = self.seen_parts(&event.token, is_large)?;
        if !is_large {
            return Ok(Pulled::Document(document));
        }
        let mut parts = split(&document, &event.token, EVENT_BYTES_MAX.saturating_sub(token_bytes))?;
        ensure!(
            seen < parts.len(),
            ErrorCode::ChangeStreamFatalError,
            "Attempted to resume from a split event, but the resumed stream produced a different split. Ensure that the \
             pipeline used to resume is the same as the original"
        );
        context.engine.counters.event_split();
        parts.drain(..seen);
        self.parts = parts.into();
        match self.parts.pop_front() {
            Some(part) => Ok(self.give(part)),
            None => Ok(Pulled::Document(document)),
        }
    }

    pass_on_to_source!();
}

impl SplitSource {
    fn give(&self, part: Part) -> Pulled {
        self.state.sent_part(part.token_document, part.token);
        Pulled::Document(part.document)
    }

    /// How many parts of the first event the client has seen, the one that it came back with not counted.
    fn seen_parts(&mut self, token: &ResumeToken, is_large: bool) -> Result<usize> {
        let Some(resume) = self.resume.take() else { return Ok(0) };
        if token.against(&resume) != ResumeStatus::NeedsSplit {
            return Ok(0);
        }
        ensure!(
            is_large,
            ErrorCode::ChangeStreamFatalError,
            "Attempted to resume from a split event fragment, but the event in the resumed stream was not large enough \
             to be split"
        );
        Ok(resume.fragment.and_then(|fragment| usize::try_from(fragment).ok()).unwrap_or_default())
    }
}

/// What an element takes in a document.
fn size_bytes(element: &RawElement<'_>) -> usize {
    1 + element.name.len() + 1 + element.value_bytes.len()
}

fn split(event: &Doc, token: &ResumeToken, part_bytes_max: usize) -> Result<Vec<Part>> {
    let mut fields: Vec<RawElement<'_>> = event.view().raw_elements().filter(|field| field.name != "_id").collect();
    ensure!(
        !fields.is_empty(),
        ErrorCode::location(7182502),
        "Cannot split an empty event or an event containing solely '_id' field"
    );
    fields.sort_by(|left, right| size_bytes(left).cmp(&size_bytes(right)).then_with(|| left.name.cmp(right.name)));
    let groups = groups(&fields, token, part_bytes_max)?;
    let total = i32::try_from(groups.len()).unwrap_or(i32::MAX);
    groups
        .iter()
        .enumerate()
        .map(|(place, fields)| {
            let (token, token_document) = part_token(token, place)?;
            let mut builder = head(&token_document, place, total);
            fields.iter().for_each(|field| builder.append_raw(*field));
            Ok(Part { document: builder.finish(), token, token_document })
        })
        .collect()
}

fn part_token(token: &ResumeToken, place: usize) -> Result<(ResumeToken, Doc)> {
    let token = ResumeToken { fragment: Some(i32::try_from(place).unwrap_or(i32::MAX)), ..token.clone() };
    let document = token.to_doc()?;
    Ok((token, document))
}

/// What every part begins with.
fn head(token: &Doc, place: usize, total: i32) -> DocBuilder {
    let mut builder = DocBuilder::new();
    builder.append("_id", token);
    builder.append(
        "splitEvent",
        doc! { "fragment": i32::try_from(place).unwrap_or(i32::MAX).saturating_add(1), "of": total },
    );
    builder
}

/// Which fields go into which part.
fn groups<'a, 'b>(
    fields: &'b [RawElement<'a>],
    token: &ResumeToken,
    part_bytes_max: usize,
) -> Result<Vec<&'b [RawElement<'a>]>> {
    let mut groups = Vec::new();
    let mut start = 0;
    while start < fields.len() {
        let (_, token_document) = part_token(token, groups.len())?;
        let mut part_bytes = head(&token_document, groups.len(), 0).finish().size_bytes();
        let mut end = start;
        for field in fields.get(start..).unwrap_or_default() {
            if end > start && part_bytes + size_bytes(field) > part_bytes_max {
                break;
            }
            part_bytes += size_bytes(field);
            end += 1;
        }
        ensure!(
            part_bytes <= part_bytes_max,
            ErrorCode::location(7182500),
            "Splitting change event failed: fragment size {part_bytes} is greater than maximum allowed fragment size \
             {part_bytes_max}"
        );
        groups.push(fields.get(start..end).unwrap_or_default());
        start = end;
    }
    Ok(groups)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::stages::change_stream::token::TOKEN_VERSION;
    use pando_base::Timestamp;

    #[test]
    fn u13_parts_have_all_fields_and_their_numbers() {
        let token = ResumeToken::high_water_mark(Timestamp::new(5, 1), TOKEN_VERSION);
        let large = |letter: &str| letter.repeat(400);
        let event = doc! {
            "_id": 1, "operationType": "update", "fullDocument": { "x": (large("a").as_str()) },
            "before": (large("b").as_str()), "ns": { "db": "d" },
        };
        let parts = split(&event, &token, 700).unwrap();
        let names = |part: &Part| part.document.elements().map(|field| field.name.to_string()).collect::<Vec<_>>();
        assert_eq!(names(&parts[0]), ["_id", "splitEvent", "ns", "operationType", "before"]);
        assert_eq!(names(&parts[1]), ["_id", "splitEvent", "fullDocument"]);
        assert_eq!(
            parts[1].document.get("splitEvent").unwrap().as_document().unwrap(),
            doc! { "fragment": 2, "of": 2 }.view()
        );
        assert_ne!(parts[0].token_document, parts[1].token_document);
        assert_eq!(split(&event, &token, 300).err().unwrap().code().number(), 7182500);
    }
}
