//! Batches: how many documents a reply may have, and how many bytes.

use pando_base::ResourceMeter;
use pando_doc::{Doc, DocBuilder, Open};
use std::sync::Arc;

/// The most bytes of documents in one reply; the first document is taken in any case.
pub const BATCH_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How many documents a first batch has if the client does not say.
pub const FIRST_BATCH_COUNT: u64 = 101;

/// Takes documents.
pub trait DocumentSink {
    /// Takes a document, unless it does not fit any more.
    fn offer(&mut self, document: &Doc) -> bool;

    /// Keeps so many bytes for what will stand beside the documents.
    fn reserve(&mut self, _size_bytes: usize) {}

    /// True if no document is wanted any more.
    fn is_full(&self) -> bool;
}

/// How large a batch may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchLimits {
    /// Documents; none for as many as fit.
    pub count: Option<u64>,
    /// Bytes.
    pub size_bytes: usize,
}

impl BatchLimits {
    /// Of the reply to the command that makes a cursor: what the client wants, or a little.
    pub fn first(batch_size: Option<i64>) -> BatchLimits {
        let count = batch_size.map_or(FIRST_BATCH_COUNT, |count| u64::try_from(count).unwrap_or(0));
        BatchLimits { count: Some(count), size_bytes: BATCH_BYTES_MAX }
    }

    /// Of the reply to a getMore: what the client wants, or as much as fits.
    pub fn further(batch_size: Option<i64>) -> BatchLimits {
        let count = batch_size.filter(|count| *count > 0).and_then(|count| u64::try_from(count).ok());
        BatchLimits { count, size_bytes: BATCH_BYTES_MAX }
    }

    /// As many documents as there are.
    pub const EVERYTHING: BatchLimits = BatchLimits { count: None, size_bytes: usize::MAX };
}

/// Appends documents to an array of a reply that is being built.
pub struct BatchSink<'b> {
    builder: &'b mut DocBuilder,
    open: Option<Open>,
    limits: BatchLimits,
    count: u32,
    size_bytes: usize,
    reserved_bytes: usize,
    /// Who accounts for what goes to the client.
    meter: Option<Arc<ResourceMeter>>,
}

impl<'b> BatchSink<'b> {
    /// Begins the array, e.g. `firstBatch`.
    pub fn begin(builder: &'b mut DocBuilder, name: &str, limits: BatchLimits) -> BatchSink<'b> {
        let open = builder.begin_array(name);
        BatchSink { builder, open: Some(open), limits, count: 0, size_bytes: 0, reserved_bytes: 0, meter: None }
    }

    /// Has the documents accounted for.
    #[must_use]
    pub fn measured_by(mut self, meter: Option<&Arc<ResourceMeter>>) -> BatchSink<'b> {
        self.meter = meter.cloned();
        self
    }

    /// How many documents it has.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Ends the array.
    pub fn end(mut self) -> u32 {
        if let Some(open) = self.open.take() {
            self.builder.end(open);
        }
        self.count
    }
}

impl DocumentSink for BatchSink<'_> {
    fn offer(&mut self, document: &Doc) -> bool {
        // Its type and its place, as digits with a zero behind, are in the reply as well: of small documents that is a good part.
        let place_bytes = self.count.checked_ilog10().unwrap_or(0) as usize + 3;
        let size_bytes = self.size_bytes.saturating_add(document.size_bytes() + place_bytes);
        if self.count > 0 && size_bytes.saturating_add(self.reserved_bytes) > self.limits.size_bytes {
            return false;
        }
        if let Some(meter) = &self.meter {
            meter.document_returned(document.size_bytes());
        }
        self.builder.append_indexed(self.count, document);
        self.count += 1;
        self.size_bytes = size_bytes;
        true
    }

    fn reserve(&mut self, size_bytes: usize) {
        self.reserved_bytes = size_bytes;
    }

    fn is_full(&self) -> bool {
        self.limits.count.is_some_and(|count| u64::from(self.count) >= count)
    }
}

/// A list takes everything.
impl DocumentSink for Vec<Doc> {
    fn offer(&mut self, document: &Doc) -> bool {
        self.push(document.clone());
        true
    }

    fn is_full(&self) -> bool {
        false
    }
}

/// Counts what it is offered.
#[derive(Debug, Default)]
pub struct CountingSink(pub u64);

impl DocumentSink for CountingSink {
    fn offer(&mut self, _document: &Doc) -> bool {
        self.0 += 1;
        true
    }

    fn is_full(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::doc;

    #[test]
    fn u3_batches_end_by_count_or_by_size() {
        let mut builder = DocBuilder::new();
        let mut sink = BatchSink::begin(&mut builder, "firstBatch", BatchLimits { count: Some(5), size_bytes: 36 });
        let document = doc! { "a": 1_i32 };
        assert!(sink.offer(&document) && sink.offer(&document) && !sink.offer(&document) && !sink.is_full());
        assert_eq!(sink.end(), 2);
        assert_eq!(builder.finish(), doc! { "firstBatch": [{ "a": 1_i32 }, { "a": 1_i32 }] });
        // What a batch may have is what its array takes.
        let mut builder = DocBuilder::new();
        let limits = BatchLimits { count: None, size_bytes: 10_000 };
        let mut sink = BatchSink::begin(&mut builder, "b", limits);
        while sink.offer(&document) {}
        sink.end();
        let array_bytes = builder.finish().view().get("b").unwrap().as_array().unwrap().as_doc().size_bytes();
        assert!((9_900..=10_005).contains(&array_bytes), "{array_bytes}");
        assert_eq!(BatchLimits::first(None).count, Some(101));
        assert_eq!(BatchLimits::first(Some(0)).count, Some(0));
        assert_eq!(BatchLimits::further(Some(0)).count, None);
    }
}
