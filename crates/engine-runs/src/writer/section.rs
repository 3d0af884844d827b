//! The section under construction: cuts blocks, keeps index, filters and counts, and ends with the root.
//!
//! The first blocks of a table are held back until there is enough to make its dictionary from. All parts of a table share
//! that dictionary, each with its own copy.

use super::dictionary;
use super::output::Output;
use super::pipeline::{FinishedBlock, Job, Pipeline};
use super::{TableWriteOptions, WriterOptions, keys_must_ascend};
use crate::block::builder::{StagedBlock, shared_length};
use crate::block::compression::WriteDictionary;
use crate::block::entries::{FLAG_DELETED, FLAG_HISTORY, FLAG_OUT_OF_LINE, ValueReference};
use crate::block::frame::FrameKind;
use crate::section::filter::{Filter, filter_hash};
use crate::section::index::{HistoryMark, IndexBuilder, PARTITION_BLOCKS};
use crate::section::root::{PartitionRecord, RootRecord};
use crate::section::tombstones::Tombstones;
use crate::{FilterPrefix, KeyBounds, PartDescriptor, RangeTombstone, Result, RunsError, Stamp, UpperBound, Version};
use bytes::Bytes;
use pando_base::Timestamp;
use std::cmp::Ordering;
use std::sync::Arc;

/// No history block becomes so many times as large as it should be, however few versions it has.
const LARGE_HISTORY_FACTOR: usize = 8;

enum DictionaryState {
    /// Blocks wait here until there are enough.
    Sampling {
        held: Vec<Job>,
        held_bytes: usize,
    },
    Decided(Option<Arc<WriteDictionary>>),
}

/// Counts of one part.
#[derive(Default)]
struct Counts {
    keys: u64,
    deleted_keys: u64,
    versions: u64,
    unsettled: u64,
    raw_bytes: u64,
    /// What history blocks and their index take in the file.
    history_bytes: u64,
    max_sequence: u64,
    max_durable: Timestamp,
}

/// Writes one table's run, part by part.
pub(crate) struct SectionWriter {
    options: TableWriteOptions,
    dictionary: DictionaryState,
    tombstones: Tombstones,
    pending_tombstones: Vec<RangeTombstone>,
    parts: Vec<PartDescriptor>,
    // Of the whole table.
    has_key: bool,
    last_key: Vec<u8>,
    last_stamp: Stamp,
    // Of the current part.
    start_offset: Option<u64>,
    first_key: Option<Bytes>,
    part_start: Option<Bytes>,
    data: Job,
    history: Job,
    /// The mark of the last key that has history.
    mark: HistoryMark,
    /// True once the current key has history.
    has_history: bool,
    data_index: IndexBuilder,
    history_index: IndexBuilder,
    partition_hashes: Vec<u64>,
    root: RootRecord,
    counts: Counts,
}

impl SectionWriter {
    pub(crate) fn new(options: TableWriteOptions) -> SectionWriter {
        SectionWriter {
            options,
            dictionary: DictionaryState::Sampling { held: Vec::new(), held_bytes: 0 },
            tombstones: Tombstones::default(),
            pending_tombstones: Vec::new(),
            parts: Vec::new(),
            has_key: false,
            last_key: Vec::new(),
            last_stamp: Stamp::SETTLED,
            start_offset: None,
            first_key: None,
            part_start: None,
            data: Job::default(),
            history: Job::default(),
            mark: HistoryMark::default(),
            has_history: false,
            data_index: IndexBuilder::default(),
            history_index: IndexBuilder::default(),
            partition_hashes: Vec::new(),
            root: RootRecord::default(),
            counts: Counts::default(),
        }
    }

    /// True if there is nothing to write.
    pub(crate) fn is_blank(&self) -> bool {
        !self.has_key && self.pending_tombstones.is_empty()
    }

    /// True if something of this table lies in the current file.
    pub(crate) fn part_has_keys(&self) -> bool {
        self.first_key.is_some()
    }

    /// The finished parts.
    pub(crate) fn into_parts(self) -> Vec<PartDescriptor> {
        self.parts
    }

    /// True if this is a new key, false if it is the last one again; an error if it is out of order.
    pub(crate) fn is_next_key(&self, key: &[u8]) -> Result<bool> {
        if !self.has_key {
            return Ok(true);
        }
        match key.cmp(&self.last_key) {
            Ordering::Greater => Ok(true),
            Ordering::Equal => Ok(false),
            Ordering::Less => Err(keys_must_ascend()),
        }
    }

    pub(crate) fn is_block_full(&self, options: &WriterOptions) -> bool {
        self.data.staged.size_bytes() >= options.block_bytes || self.data.staged.is_full()
    }

    fn is_history_block_full(&self, options: &WriterOptions) -> bool {
        let staged = &self.history.staged;
        let bytes = staged.size_bytes();
        let is_large = bytes >= options.history_block_bytes.saturating_mul(LARGE_HISTORY_FACTOR);
        let is_enough = bytes >= options.history_block_bytes && staged.count() >= options.history_versions_min;
        is_enough || is_large || staged.is_full()
    }

    pub(crate) fn add_range_tombstone(&mut self, tombstone: RangeTombstone) -> Result<()> {
        if self.has_key {
            return Err(RunsError::Invalid("range tombstones come before the table's keys".into()));
        }
        if tombstone.end.as_ref().is_none_or(|end| tombstone.start < *end) {
            self.pending_tombstones.push(tombstone);
        }
        Ok(())
    }

    /// Adds a version. `is_new` is what [`SectionWriter::is_next_key`] said of its key.
    pub(crate) fn add(
        &mut self,
        key: &[u8],
        is_new: bool,
        version: Version<'_>,
        options: &WriterOptions,
        output: &mut Output,
        pipeline: &mut Pipeline,
    ) -> Result<()> {
        self.begin_part(output);
        if is_new {
            self.begin_key(key, &version);
        } else if version.stamp.sequence > self.last_stamp.sequence && self.last_stamp.sequence != 0 {
            // A settled version may stand above one that was written earlier and never settled.
            return Err(RunsError::Invalid("versions of a key come newest first".into()));
        }
        let reference;
        let (flags, value) = match version.value {
            None => (FLAG_DELETED, [].as_slice()),
            Some(value) if value.len() > options.inline_value_bytes_max => {
                reference = write_value(value, output, pipeline)?;
                (FLAG_OUT_OF_LINE, reference.as_slice())
            }
            Some(value) => (0, value),
        };
        self.count_version(key, &version);
        if is_new {
            self.data.staged.push(key, flags, &version.stamp, value);
            return Ok(());
        }
        self.data.staged.flag_last(FLAG_HISTORY);
        let earlier = std::mem::replace(&mut self.has_history, true);
        self.mark = if earlier { self.mark.and(&version.stamp) } else { HistoryMark::of(&version.stamp) };
        self.history.staged.push(key, flags, &version.stamp, value);
        if self.is_history_block_full(options) {
            self.cut_history_block(pipeline);
            self.place_finished(options, output, pipeline)?;
        }
        Ok(())
    }

    fn begin_part(&mut self, output: &Output) {
        if self.start_offset.is_none() {
            self.start_offset = Some(output.offset());
        }
    }

    fn begin_key(&mut self, key: &[u8], version: &Version<'_>) {
        self.has_key = true;
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        self.has_history = false;
        if self.first_key.is_none() {
            self.first_key = Some(Bytes::copy_from_slice(key));
        }
        if self.options.filter_prefix != FilterPrefix::None {
            self.data.hashes.push(filter_hash(self.options.filter_prefix.of(key)));
        }
        self.counts.keys += 1;
        self.counts.deleted_keys += u64::from(version.value.is_none());
    }

    fn count_version(&mut self, key: &[u8], version: &Version<'_>) {
        self.last_stamp = version.stamp;
        let counts = &mut self.counts;
        counts.versions += 1;
        counts.unsettled += u64::from(!version.stamp.is_settled());
        counts.raw_bytes += (key.len() + version.value.map_or(0, <[u8]>::len)) as u64;
        counts.max_sequence = counts.max_sequence.max(version.stamp.sequence);
        counts.max_durable = counts.max_durable.max(version.stamp.durable);
    }

    /// Closes the data block. The index gets the shortest key between its last and the next.
    pub(crate) fn cut_data_block(&mut self, next_key: Option<&[u8]>, pipeline: &mut Pipeline) {
        let Some(last) = self.data.staged.last_key() else { return };
        let index_key = match next_key {
            Some(next) => separator(last, next),
            None => last,
        };
        let index_key = index_key.to_vec();
        let blank = pipeline.blank();
        let job = std::mem::replace(&mut self.data, blank);
        self.submit(Job { index_key, ..job }, pipeline);
    }

    fn cut_history_block(&mut self, pipeline: &mut Pipeline) {
        let Some(last) = self.history.staged.last_key() else { return };
        let index_key = last.to_vec();
        let blank = pipeline.blank();
        let job = std::mem::replace(&mut self.history, blank);
        self.submit(Job { index_key, is_history: true, mark: Some(self.mark), ..job }, pipeline);
    }

    fn submit(&mut self, mut job: Job, pipeline: &mut Pipeline) {
        match &mut self.dictionary {
            DictionaryState::Decided(dictionary) => {
                job.dictionary = dictionary.clone();
                pipeline.submit(job);
            }
            DictionaryState::Sampling { held, held_bytes } => {
                *held_bytes += job.staged.size_bytes();
                held.push(job);
            }
        }
    }

    /// Makes the dictionary when enough is held, or at once when there will be no more.
    fn decide_dictionary(&mut self, options: &WriterOptions, pipeline: &mut Pipeline, at_once: bool) {
        let DictionaryState::Sampling { held, held_bytes } = &mut self.dictionary else { return };
        if !at_once && *held_bytes < options.dictionary_bytes * dictionary::SAMPLE_RATIO {
            return;
        }
        let blocks: Vec<&StagedBlock> = held.iter().map(|job| &job.staged).collect();
        let dictionary = dictionary::make(&blocks, options).map(Arc::new);
        let held = std::mem::take(held);
        self.dictionary = DictionaryState::Decided(dictionary);
        held.into_iter().for_each(|job| self.submit(job, pipeline));
    }

    /// Puts what is compressed into the file.
    pub(crate) fn place_finished(
        &mut self,
        options: &WriterOptions,
        output: &mut Output,
        pipeline: &mut Pipeline,
    ) -> Result<()> {
        self.decide_dictionary(options, pipeline, false);
        self.begin_part(output);
        while let Some(finished) = pipeline.poll() {
            self.place(finished, output, pipeline)?;
        }
        Ok(())
    }

    fn place(&mut self, mut finished: FinishedBlock, output: &mut Output, pipeline: &mut Pipeline) -> Result<()> {
        let handle = output.append(&finished.header, finished.payload())?;
        let entries = finished.header.entries;
        let job = &mut finished.job;
        let is_history = job.is_history;
        let index = if is_history { &mut self.history_index } else { &mut self.data_index };
        index.push(&job.index_key, handle, entries, job.mark);
        self.counts.history_bytes += if is_history { u64::from(handle.length) } else { 0 };
        let is_full = index.count() >= PARTITION_BLOCKS;
        self.partition_hashes.append(&mut job.hashes);
        pipeline.recycle(finished);
        if is_full { self.end_partition(is_history, output, pipeline) } else { Ok(()) }
    }

    fn end_partition(&mut self, is_history: bool, output: &mut Output, pipeline: &mut Pipeline) -> Result<()> {
        let (index, list, kind) = match is_history {
            true => (&mut self.history_index, &mut self.root.history, FrameKind::HistoryIndex),
            false => (&mut self.data_index, &mut self.root.data, FrameKind::Index),
        };
        if index.count() == 0 {
            return Ok(());
        }
        let (key, entries, mark) = (Bytes::copy_from_slice(index.last_key()), index.entries(), index.last_mark());
        let handle = output.append_compressed(kind, &index.finish(), pipeline.compressor())?;
        self.counts.history_bytes += if is_history { u64::from(handle.length) } else { 0 };
        let mut filter = None;
        if !is_history && self.options.filter_prefix != FilterPrefix::None {
            filter = Some(output.append_plain(FrameKind::Filter, &Filter::build(&self.partition_hashes))?);
            self.partition_hashes.clear();
        }
        list.push(PartitionRecord { key, index: handle, filter, entries, mark });
        Ok(())
    }

    /// Writes all that is still open, and the root. `next_key` begins the next part.
    pub(crate) fn end_part(
        &mut self,
        next_key: Option<&[u8]>,
        options: &WriterOptions,
        output: &mut Output,
        pipeline: &mut Pipeline,
    ) -> Result<()> {
        self.begin_part(output);
        self.cut_data_block(next_key, pipeline);
        self.cut_history_block(pipeline);
        self.decide_dictionary(options, pipeline, true);
        while let Some(finished) = pipeline.wait() {
            self.place(finished, output, pipeline)?;
        }
        self.end_partition(false, output, pipeline)?;
        self.end_partition(true, output, pipeline)?;
        let next = next_key.map(Bytes::copy_from_slice);
        let tombstones = self.take_tombstones(next.as_ref());
        self.write_root(&tombstones, output, pipeline)?;
        self.part_start = next;
        Ok(())
    }

    /// The tombstones of the current part.
    fn take_tombstones(&mut self, next: Option<&Bytes>) -> Tombstones {
        if !self.pending_tombstones.is_empty() {
            self.tombstones = Tombstones::new(&std::mem::take(&mut self.pending_tombstones));
        }
        self.tombstones.clipped(self.part_start.as_ref(), next)
    }

    fn write_root(&mut self, tombstones: &Tombstones, output: &mut Output, pipeline: &mut Pipeline) -> Result<()> {
        let bounds = self.bounds(tombstones);
        for stamp in tombstones.fragments().iter().flat_map(|fragment| &fragment.stamps) {
            self.counts.max_sequence = self.counts.max_sequence.max(stamp.sequence);
            self.counts.max_durable = self.counts.max_durable.max(stamp.durable);
        }
        let mut root = std::mem::take(&mut self.root);
        root.filter_prefix = self.options.filter_prefix;
        if !tombstones.is_empty() {
            root.tombstones = Some(output.append_plain(FrameKind::RangeTombstones, &tombstones.encode())?);
        }
        if let DictionaryState::Decided(Some(dictionary)) = &self.dictionary {
            let content = dictionary.content();
            root.dictionary = Some(output.append_compressed(FrameKind::Dictionary, content, pipeline.compressor())?);
            // A second copy, for salvage: without its dictionary no block of the section could be read.
            output.append_compressed(FrameKind::Dictionary, content, pipeline.compressor())?;
        }
        let handle = output.append_compressed(FrameKind::Root, &root.encode(), pipeline.compressor())?;
        let counts = std::mem::take(&mut self.counts);
        let offset = self.start_offset.take().unwrap_or_default();
        let part = PartDescriptor {
            file: output.id(),
            offset,
            length_bytes: output.offset() - offset,
            history_bytes: counts.history_bytes,
            root_length_bytes: handle.length,
            bounds,
            keys: counts.keys,
            deleted_keys: counts.deleted_keys,
            versions: counts.versions,
            unsettled: counts.unsettled,
            raw_bytes: counts.raw_bytes,
            range_tombstones: tombstones.count(),
            max_sequence: counts.max_sequence,
            max_durable: counts.max_durable,
            fence: Timestamp::MAX,
        };
        output.note_section(&self.options.ident, &part);
        self.parts.push(part);
        Ok(())
    }

    fn bounds(&mut self, tombstones: &Tombstones) -> KeyBounds {
        let keys = self
            .first_key
            .take()
            .map(|first| KeyBounds { first, last: UpperBound::Included(Bytes::copy_from_slice(&self.last_key)) });
        let fragments = tombstones.fragments().iter().map(|fragment| KeyBounds {
            first: fragment.start.clone(),
            last: fragment.end.clone().map_or(UpperBound::Unbounded, UpperBound::Excluded),
        });
        let all = keys.into_iter().chain(fragments).reduce(|mut bounds, more| {
            bounds.extend(&more);
            bounds
        });
        debug_assert!(all.is_some(), "a part has keys or tombstones");
        all.unwrap_or(KeyBounds { first: Bytes::new(), last: UpperBound::Included(Bytes::new()) })
    }
}

fn write_value(
    value: &[u8],
    output: &mut Output,
    pipeline: &mut Pipeline,
) -> Result<[u8; ValueReference::ENCODED_BYTES]> {
    let handle = output.append_compressed(FrameKind::Value, value, pipeline.compressor())?;
    let raw_length = u32::try_from(value.len()).map_err(|_| RunsError::Invalid("the value is too large".into()))?;
    Ok(ValueReference { offset: handle.offset, frame_length: handle.length, raw_length }.encode())
}

/// The shortest key that is not below `last` but below `next`.
fn separator<'a>(last: &'a [u8], next: &'a [u8]) -> &'a [u8] {
    debug_assert!(last < next);
    let length = shared_length(last, next) + 1;
    if length < last.len() && length < next.len() { &next[..length] } else { last }
}

#[cfg(test)]
mod tests {
    use super::separator;

    #[test]
    fn separators_lie_between() {
        for (last, next, expected) in [
            (b"abcdef".as_slice(), b"abzzzz".as_slice(), b"abz".as_slice()),
            (b"a", b"b", b"a"),
            (b"abc", b"abcd", b"abc"),
            (b"abcxyz", b"abd", b"abcxyz"),
            (b"", b"zzz", b""),
        ] {
            let found = separator(last, next);
            assert_eq!(found, expected);
            assert!(last <= found && found < next);
        }
    }
}
