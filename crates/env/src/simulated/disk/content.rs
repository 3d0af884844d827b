//! One file's content: what readers see, what would survive a power loss, and the changes in between.
//!
//! Three parts: `current`, the page cache as every reader sees it; `durable`, what the last sync left on the medium; and
//! `pending`, in order, what happened since. A pending write keeps the sectors it touched *as they were after it*, because a
//! sector goes to the medium whole: if a later write of a sector survives, so does every earlier one of the same sector.
//!
//! What a power loss may do, all within POSIX: any sector of any pending write may be lost or kept, each for itself, so
//! writes tear and change order; the length takes one of the values it passed through (metadata is journalled in order), so a
//! file may be long with zeros where the data should be, or short although the data was written. A sector is never torn
//! inside. A sync that succeeded is never undone.
//!
//! A failed sync does what Linux does: the pages may be marked clean although they were not written. Readers go on seeing
//! them, a later sync succeeds without them, and the power loss after it shows the gap.

use super::image::Image;
use crate::simulated::random::Sequence;
use std::ops::Range;

/// What the medium writes as a whole.
pub(super) const SECTOR_BYTES: u64 = 512;

/// How likely a power loss spares what was not synced.
#[derive(Clone, Copy, Debug)]
pub(super) struct Survival {
    /// That a write is kept whole.
    pub(super) kept: f64,
    /// That a write which was not kept whole is torn rather than lost.
    pub(super) torn: f64,
}

#[derive(Clone)]
enum Change {
    /// The sectors from `first_byte` on, as they were after the write.
    Write {
        range: Range<u64>,
        first_byte: u64,
        sectors: Vec<u8>,
    },
    SetLength {
        range: Range<u64>,
        length: u64,
    },
    Reserve {
        range: Range<u64>,
    },
}

impl Change {
    /// The bytes whose pages the change made dirty.
    fn range(&self) -> &Range<u64> {
        match self {
            Change::Write { range, .. } | Change::SetLength { range, .. } | Change::Reserve { range } => range,
        }
    }

    /// The length of the file after the change, if it was `before`.
    fn length_after(&self, before: u64) -> u64 {
        match self {
            Change::Write { range, .. } | Change::Reserve { range } => before.max(range.end),
            Change::SetLength { length, .. } => *length,
        }
    }
}

#[derive(Clone, Default)]
pub(super) struct Content {
    current: Image,
    durable: Image,
    pending: Vec<Change>,
    /// A sync failed and dropped something: `current` differs from `durable` by more than `pending`.
    diverged: bool,
}

impl Content {
    /// A file that is durable from the start.
    pub(super) fn planted(bytes: &[u8]) -> Content {
        let mut image = Image::default();
        image.write(bytes, 0);
        Content { current: image.clone(), durable: image, ..Content::default() }
    }

    pub(super) fn current(&self) -> &Image {
        &self.current
    }

    pub(super) fn durable(&self) -> &Image {
        &self.durable
    }

    pub(super) fn write(&mut self, bytes: &[u8], offset: u64) {
        if bytes.is_empty() {
            return;
        }
        let range = offset..offset + bytes.len() as u64;
        self.current.write(bytes, offset);
        let first_byte = offset - offset % SECTOR_BYTES;
        let sectors = self.current.bytes(first_byte..range.end.next_multiple_of(SECTOR_BYTES));
        self.pending.push(Change::Write { range, first_byte, sectors });
    }

    pub(super) fn set_length(&mut self, length: u64) {
        let before = self.current.length();
        if length != before {
            self.current.set_length(length);
            self.pending.push(Change::SetLength { range: length.min(before)..length.max(before), length });
        }
    }

    pub(super) fn reserve(&mut self, range: Range<u64>) {
        self.current.reserve(range.clone());
        self.pending.push(Change::Reserve { range });
    }

    /// Makes everything durable.
    pub(super) fn sync(&mut self) {
        for change in self.pending.drain(..) {
            self.durable.take_pages(&self.current, change.range());
        }
        self.durable.set_length(self.current.length());
    }

    /// A sync that failed: some of it reached the medium, and the rest may never be tried again.
    pub(super) fn fail_sync(&mut self, survival: Survival, random: &mut Sequence) {
        if random.chance(0.25) {
            return;
        }
        self.durable = self.survivors(survival, random);
        self.pending.clear();
        self.diverged = true;
    }

    /// Power loss: `current` becomes what survived.
    pub(super) fn crash(&mut self, survival: Survival, random: &mut Sequence) {
        if self.pending.is_empty() && !self.diverged {
            return;
        }
        self.durable = self.survivors(survival, random);
        self.current = self.durable.clone();
        self.pending.clear();
        self.diverged = false;
    }

    /// The medium turns a byte, for readers and for the time after a power loss alike.
    pub(super) fn flip(&mut self, offset: u64, mask: u8) {
        self.current.flip(offset, mask);
        if offset < self.durable.length() {
            self.durable.flip(offset, mask);
        }
    }

    fn survivors(&self, survival: Survival, random: &mut Sequence) -> Image {
        let (changes_in_length, length) = self.surviving_length(survival, random);
        let mut image = self.durable.clone();
        for (position, change) in self.pending.iter().enumerate() {
            let metadata_survives = position < changes_in_length;
            match change {
                Change::Write { first_byte, sectors, .. } => {
                    for kept in surviving_sectors(sectors.len(), survival, random) {
                        image.write(&sectors[kept.clone()], first_byte + kept.start as u64);
                    }
                }
                Change::SetLength { length, .. } if metadata_survives => image.set_length(*length),
                Change::Reserve { range } if metadata_survives => image.reserve(range.clone()),
                Change::SetLength { .. } | Change::Reserve { .. } => {}
            }
        }
        image.set_length(length);
        image
    }

    /// How many of the pending changes the journal of the file system has seen, and the length that follows. Where the next
    /// one is a write past the end, the length may also have stopped on the way.
    fn surviving_length(&self, survival: Survival, random: &mut Sequence) -> (usize, u64) {
        let count = self.pending.len();
        let seen = match random.chance(survival.kept) {
            true => count,
            false => random.below(count as u64 + 1) as usize,
        };
        let seen = if survival.kept == 0.0 && survival.torn == 0.0 { 0 } else { seen };
        let length =
            self.pending[..seen].iter().fold(self.durable.length(), |length, change| change.length_after(length));
        match self.pending.get(seen) {
            Some(Change::Write { range, .. }) if range.end > length && random.chance(survival.torn) => {
                let sectors_on = random.below((range.end - length).div_ceil(SECTOR_BYTES));
                (seen, length + sectors_on * SECTOR_BYTES)
            }
            _ => (seen, length),
        }
    }
}

/// Byte ranges, in whole sectors, of what remains of one write of `length` bytes.
fn surviving_sectors(length: usize, survival: Survival, random: &mut Sequence) -> Vec<Range<usize>> {
    const SECTOR: usize = SECTOR_BYTES as usize;
    let count = length / SECTOR;
    if random.chance(survival.kept) {
        return std::iter::once(0..length).collect();
    }
    if !random.chance(survival.torn) {
        return Vec::new();
    }
    let cut = random.below(count as u64 + 1) as usize * SECTOR;
    match random.below(3) {
        0 => std::iter::once(0..cut).collect(),
        1 => std::iter::once(cut..length).collect(),
        _ => (0..count).filter(|_| random.chance(0.5)).map(|sector| sector * SECTOR..(sector + 1) * SECTOR).collect(),
    }
}
