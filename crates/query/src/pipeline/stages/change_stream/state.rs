//! What the stages of one stream know together: the event that is on its way to the client, and how far the oplog was read.
//!
//! Every stage of a stream gives at most one document for each that it takes, or parts of one before it takes the next. So
//! whatever comes out at the end belongs to the event that the source gave last.
//!
//! The lock is held for a few instructions, by one operation at a time.

use super::event::EventFacts;
use super::prefilter::Prefilter;
use super::token::ResumeToken;
use pando_base::{Error, ErrorCode, Result, Timestamp, ensure};
use pando_doc::{Doc, DocBuilder, Value, compare};
use parking_lot::Mutex;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// Shared by the stages and by whoever pulls from them.
pub struct StreamState {
    inner: Mutex<Inner>,
    token_version: i32,
    beginning: Doc,
    prefilter: OnceLock<Prefilter>,
}

struct Inner {
    /// The event on its way.
    event: Option<Arc<EventFacts>>,
    /// Its token, or that of the part of it that is on its way.
    token: Doc,
    /// The newest entry that was read.
    place: Timestamp,
    /// The newest time that a token was given for.
    told: Timestamp,
    /// The place that the client came back to was found, whatever filters leave of it.
    has_found_beginning: bool,
    /// The stream is over, since this event.
    ended_by: Option<Doc>,
}

impl fmt::Debug for StreamState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamState").field("beginning", &self.beginning).finish_non_exhaustive()
    }
}

impl StreamState {
    pub(super) fn new(beginning: &ResumeToken, token_version: i32) -> Result<Arc<StreamState>> {
        let token = beginning.to_doc()?;
        let inner = Inner {
            event: None,
            token: token.clone(),
            place: beginning.cluster_time,
            told: beginning.cluster_time,
            has_found_beginning: false,
            ended_by: None,
        };
        let prefilter = OnceLock::new();
        Ok(Arc::new(StreamState { inner: Mutex::new(inner), token_version, beginning: token, prefilter }))
    }

    /// Events that these filters leave out need not be made. What was said first counts.
    pub(super) fn prefer(&self, prefilter: Prefilter) {
        self.prefilter.get_or_init(|| prefilter);
    }

    /// The filters behind the stream, as far as they can be tried early.
    pub(super) fn prefilter(&self) -> Option<&Prefilter> {
        self.prefilter.get()
    }

    /// The token that it begins with.
    pub fn beginning(&self) -> &Doc {
        &self.beginning
    }

    /// This entry was read.
    pub(super) fn read(&self, time: Timestamp) {
        let mut inner = self.inner.lock();
        inner.place = inner.place.max(time);
    }

    /// This event is on its way.
    pub(super) fn sent(&self, facts: EventFacts) {
        let mut inner = self.inner.lock();
        inner.token = facts.token_document.clone();
        inner.event = Some(Arc::new(facts));
    }

    /// A part of the event is on its way.
    pub(super) fn sent_part(&self, token: Doc, parsed: ResumeToken) {
        let mut inner = self.inner.lock();
        if let Some(event) = &inner.event {
            let facts = EventFacts { token: parsed, token_document: token.clone(), ..(**event).clone() };
            inner.event = Some(Arc::new(facts));
        }
        inner.token = token;
    }

    /// The event on its way.
    pub(super) fn event(&self) -> Result<Arc<EventFacts>> {
        let event = self.inner.lock().event.clone();
        event.ok_or_else(|| Error::internal("a change stream gave a document without an event"))
    }

    pub(super) fn found_beginning(&self) {
        self.inner.lock().has_found_beginning = true;
    }

    pub(super) fn has_found_beginning(&self) -> bool {
        self.inner.lock().has_found_beginning
    }

    pub(super) fn ended(&self) {
        let mut inner = self.inner.lock();
        inner.ended_by = inner.event.as_ref().map(|event| event.token_document.clone());
    }

    /// The token of the event that has ended the stream.
    pub fn ended_by(&self) -> Option<Doc> {
        self.inner.lock().ended_by.clone()
    }

    /// The token of a document that came out. Refuses one whose `_id` is another: nobody could go on from there.
    pub fn token_of(&self, document: &Doc) -> Result<Doc> {
        let mut inner = self.inner.lock();
        let token = inner.token.clone();
        let id = document.get("_id");
        let is_unchanged = id.is_some_and(|id| compare(id, Value::Document(token.view())).is_eq());
        ensure!(
            is_unchanged,
            ErrorCode::ChangeStreamFatalError,
            "Encountered an event whose _id field, which contains the resume token, was modified by the pipeline. \
             Modifying the _id field of an event makes it impossible to resume the stream from that point. Only \
             transformations that retain the unmodified _id field are allowed. Expected: {} but found: {}",
            id_document(Some(Value::Document(token.view()))),
            id_document(id)
        );
        inner.told = inner.place;
        Ok(token)
    }

    /// The token of the present moment, if entries were read since the last event that made none.
    pub fn high_water_mark(&self) -> Result<Option<Doc>> {
        let mut inner = self.inner.lock();
        if inner.place <= inner.told {
            return Ok(None);
        }
        inner.told = inner.place;
        ResumeToken::high_water_mark(inner.place, self.token_version).to_doc().map(Some)
    }
}

fn id_document(id: Option<Value<'_>>) -> Doc {
    let mut builder = DocBuilder::new();
    builder.append_some("_id", id);
    builder.finish()
}
