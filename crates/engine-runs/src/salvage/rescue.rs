//! What can be read of a damaged file.
//!
//! A walk over the file lists every frame whose checksum holds, whatever its index says. Data and history blocks carry
//! whole keys, so a section is put together again from them alone, in the order in which they lie: data blocks ascend, and
//! so do history blocks beside them. Indexes, filters and the root are not needed; the dictionary is, where blocks were
//! compressed with one.

use super::Lost;
use crate::block::compression::ReadDictionary;
use crate::block::entries::{Block, Entry, SLOT_BYTES};
use crate::block::frame::FrameKind;
use crate::file::FrameHandle;
use crate::section::filter::FilterPrefix;
use crate::section::root::RootRecord;
use crate::section::tombstones::Tombstones;
use crate::walk::{FileWalk, FrameInfo};
use crate::{PartDescriptor, RangeTombstone, Result, RunFile, RunWriter, RunsError, TableWriteOptions, Version};
use bytes::Bytes;
use std::sync::Arc;

/// All intact frames of a file, and the gaps between them.
pub(super) struct Inventory {
    file: Arc<RunFile>,
    frames: Vec<FrameInfo>,
    gaps: Vec<Gap>,
}

/// Bytes that belong to no intact frame.
#[derive(Clone, Debug)]
struct Gap {
    offset: u64,
    length_bytes: u64,
    detail: String,
}

/// What was copied of a part, and what could not be.
#[derive(Default)]
pub(super) struct Rescued {
    pub keys: u64,
    pub tombstones: u64,
    pub lost: Vec<Lost>,
}

impl Inventory {
    /// Walks over the file.
    pub fn take(file: Arc<RunFile>) -> Result<Inventory> {
        let (mut frames, mut gaps) = (Vec::new(), Vec::new());
        let mut walk = FileWalk::new(&file);
        loop {
            match walk.next_frame() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(RunsError::Corruption { offset, detail, .. }) => {
                    let length_bytes = walk.skip_damage()?;
                    gaps.push(Gap { offset, length_bytes, detail });
                }
                Err(error) => return Err(error),
            }
        }
        drop(walk);
        Ok(Inventory { file, frames, gaps })
    }

    /// The sections as their roots delimit them, for a file without a directory: offset and length of each. What follows
    /// the last root is a section whose root is lost.
    pub fn sections(&self) -> Vec<(u64, u64)> {
        let mut sections = Vec::new();
        let mut start = None;
        for frame in &self.frames {
            let end = frame.offset + frame.header.frame_length();
            match frame.header.kind {
                FrameKind::FileHeader | FrameKind::Directory | FrameKind::FileTail => {}
                FrameKind::Root => sections.push((start.take().unwrap_or(frame.offset), end)),
                _ => drop(start.get_or_insert(frame.offset)),
            }
        }
        sections.extend(start.map(|start| (start, self.file.length_bytes())));
        sections.into_iter().map(|(start, end)| (start, end - start)).collect()
    }

    /// The file.
    pub fn file(&self) -> &Arc<RunFile> {
        &self.file
    }

    /// Copies everything intact of a part under a label of the writer.
    pub fn rescue(&self, part: &PartDescriptor, writer: &mut RunWriter, label: u64, ident: String) -> Result<Rescued> {
        let end = part.offset.saturating_add(part.length_bytes);
        let inside = |offset: u64| offset >= part.offset && offset < end;
        let frames: Vec<FrameInfo> = self.frames.iter().filter(|frame| inside(frame.offset)).copied().collect();
        let section = Section::new(&self.file, &frames);
        let mut rescued = Rescued::default();
        for gap in self.gaps.iter().filter(|gap| gap.offset < end && gap.offset + gap.length_bytes > part.offset) {
            rescued.lost.push(self.lost(gap.offset, format!("{} bytes: {}", gap.length_bytes, gap.detail)));
        }
        if end > self.file.length_bytes() {
            rescued.lost.push(self.lost(self.file.length_bytes(), "the end of the file is missing".into()));
        }
        writer.begin_table(label, TableWriteOptions { filter_prefix: section.filter_prefix, ident })?;
        for tombstone in &section.tombstones {
            writer.add_range_tombstone(tombstone.clone())?;
            rescued.tombstones += 1;
        }
        self.copy(&section, writer, &mut rescued)?;
        writer.finish_table()?;
        Ok(rescued)
    }

    /// Copies keys with all their versions. A key whose newest version cannot be read is left out whole: an older one must
    /// not pass for the newest.
    fn copy(&self, section: &Section<'_>, writer: &mut RunWriter, rescued: &mut Rescued) -> Result<()> {
        let mut data = Entries::new(section, FrameKind::Data);
        let mut history = Entries::new(section, FrameKind::History);
        let mut older = history.next(&mut rescued.lost);
        let mut previous: Option<Bytes> = None;
        let mut gap_from = rescued.lost.len();
        while let Some(newest) = data.next(&mut rescued.lost) {
            let is_next = previous.as_ref().is_none_or(|previous| newest.key > *previous);
            let value = if is_next { section.value(&newest) } else { None };
            bound_losses(&mut rescued.lost[gap_from..], previous.as_ref(), Some(&newest.key));
            let Some(value) = value else {
                let mut lost = self.lost(newest.offset, "a value cannot be read".into());
                (lost.after, lost.before) = (Some(newest.key.clone()), Some(newest.key.clone()));
                rescued.lost.push(lost);
                gap_from = rescued.lost.len();
                continue;
            };
            gap_from = rescued.lost.len();
            writer.add_version(&newest.key, Version { stamp: newest.entry.stamp, value: value.as_deref() })?;
            rescued.keys += 1;
            while let Some(version) = older.take_if(|version| version.key <= newest.key) {
                if version.key == newest.key
                    && let Some(value) = section.value(&version)
                {
                    writer
                        .add_version(&version.key, Version { stamp: version.entry.stamp, value: value.as_deref() })?;
                }
                older = history.next(&mut rescued.lost);
            }
            previous = Some(newest.key);
        }
        bound_losses(&mut rescued.lost[gap_from..], previous.as_ref(), None);
        Ok(())
    }

    fn lost(&self, offset: u64, detail: String) -> Lost {
        let file = self.file.path().to_owned();
        Lost { table: None, ident: None, file, offset, detail, after: None, before: None }
    }
}

/// What was lost between two keys that were read.
fn bound_losses(lost: &mut [Lost], after: Option<&Bytes>, before: Option<&Bytes>) {
    for lost in lost {
        lost.after = after.cloned();
        lost.before = before.cloned();
    }
}

/// The intact frames of one section, and what is needed to read them.
struct Section<'a> {
    file: &'a Arc<RunFile>,
    frames: &'a [FrameInfo],
    dictionary: Option<ReadDictionary>,
    tombstones: Vec<RangeTombstone>,
    filter_prefix: FilterPrefix,
}

impl<'a> Section<'a> {
    fn new(file: &'a Arc<RunFile>, frames: &'a [FrameInfo]) -> Section<'a> {
        let payload = |kind: FrameKind| {
            let frame = frames.iter().find(|frame| frame.header.kind == kind)?;
            Some(file.read_payload(frame.handle(), kind, None, 0).ok()?.1)
        };
        let tombstones = payload(FrameKind::RangeTombstones).and_then(|payload| Tombstones::decode(&payload));
        let root = payload(FrameKind::Root).and_then(|payload| RootRecord::decode(&payload));
        Section {
            file,
            frames,
            dictionary: payload(FrameKind::Dictionary).and_then(|content| ReadDictionary::new(&content)),
            tombstones: tombstones.map(|tombstones| tombstones.iter().collect()).unwrap_or_default(),
            filter_prefix: root.map(|root| root.filter_prefix).unwrap_or_default(),
        }
    }

    fn block(&self, frame: &FrameInfo) -> Option<Block> {
        let kind = frame.header.kind;
        let (header, buffer) =
            self.file.read_payload(frame.handle(), kind, self.dictionary.as_ref(), SLOT_BYTES).ok()?;
        Block::decode(buffer, header.entries)
    }

    /// The value of a version, `Some(None)` for a deletion, `None` if it cannot be read.
    fn value(&self, version: &Found) -> Option<Option<Bytes>> {
        if version.entry.is_deleted() {
            return Some(None);
        }
        if !version.entry.is_out_of_line() {
            return Some(Some(version.block.clone().into_value(&version.entry)));
        }
        let reference = version.block.reference(&version.entry)?;
        let handle = FrameHandle { offset: reference.offset, length: reference.frame_length };
        let (_, value) = self.file.read_payload(handle, FrameKind::Value, self.dictionary.as_ref(), 0).ok()?;
        (value.len() == reference.raw_length as usize).then(|| Some(Bytes::from(value)))
    }
}

/// One version in a block.
struct Found {
    key: Bytes,
    block: Block,
    entry: Entry,
    offset: u64,
}

/// The entries of all readable blocks of one kind, in file order.
struct Entries<'a> {
    section: &'a Section<'a>,
    frames: Box<dyn Iterator<Item = &'a FrameInfo> + 'a>,
    block: Option<(Block, u64)>,
    position: usize,
}

impl<'a> Entries<'a> {
    fn new(section: &'a Section<'a>, kind: FrameKind) -> Entries<'a> {
        let frames = Box::new(section.frames.iter().filter(move |frame| frame.header.kind == kind));
        Entries { section, frames, block: None, position: 0 }
    }

    /// The next version; blocks that are sound but cannot be read (for want of their dictionary) are reported.
    fn next(&mut self, lost: &mut Vec<Lost>) -> Option<Found> {
        loop {
            if let Some((block, offset)) = &self.block
                && self.position < block.count()
            {
                let entry = block.entry(self.position);
                self.position += 1;
                let key = Bytes::from([block.prefix(), block.suffix(&entry)].concat());
                return Some(Found { key, block: block.clone(), entry, offset: *offset });
            }
            let frame = self.frames.next()?;
            self.position = 0;
            self.block = self.section.block(frame).map(|block| (block, frame.offset));
            if self.block.is_none() {
                lost.push(Lost {
                    table: None,
                    ident: None,
                    file: self.section.file.path().to_owned(),
                    offset: frame.offset,
                    detail: format!("a sound block of {} entries cannot be decompressed", frame.header.entries),
                    after: None,
                    before: None,
                });
            }
        }
    }
}
