//! One manifest file: its sectors, its reading and its appending.
//!
//! ```text
//! 0     header sector   magic, format, number, store identity, snapshot length, checksum
//! 512   slot A          known-synced length, counter, checksum
//! 1024  slot B          the same, written in turns with A
//! 1536  frames          one per record, in order
//! ```
//!
//! A record is acknowledged when its frame is synced, and the next frame is written only after that. Two facts follow:
//! a sound frame behind a damaged one proves that the damaged one had been synced; and the slots, written after each sync
//! (durable with the next one), name a length below which everything had been synced. So damage below the known-synced
//! length, or in front of a sound frame, is corruption and is named; anything else at the end is a torn tail: a record
//! that nobody was told about. At most one slot is unsynced at any time, so a crash can damage one of them, never both.
//!
//! This module must not know what the payloads mean.

use super::frame;
use crate::RunsError;
use pando_env::{Disk, File, OpenMode};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// What a sector that is rewritten alone measures.
const SECTOR_BYTES: usize = 512;
/// Where the frames begin.
pub(crate) const FRAMES_OFFSET: usize = 3 * SECTOR_BYTES;
const HEADER_MAGIC: [u8; 8] = *b"PANDOMAN";
const SLOT_MAGIC: [u8; 8] = *b"PANDOSYN";
/// Raised when older readers must not touch the file.
const FORMAT: u64 = 1;

/// The name of manifest `number`.
pub(crate) fn name(number: u64) -> String {
    format!("MANIFEST-{number:06}")
}

/// The number in a manifest's name.
pub(crate) fn number_of(name: &str) -> Option<u64> {
    name.strip_prefix("MANIFEST-")?.parse().ok()
}

/// What a manifest file contained.
#[derive(Debug)]
pub(crate) struct Contents {
    /// The store's identity.
    pub identity: u64,
    /// How long the file was when it was created.
    pub snapshot_bytes: u64,
    /// The records: offset of each frame and its payload.
    pub records: Vec<(u64, Vec<u8>)>,
    /// True if an unacknowledged record was cut off behind the last one.
    pub torn: bool,
    /// The end of the last sound frame.
    pub length: u64,
    synced: u64,
    slot_counter: u64,
}

impl Contents {
    /// True if it is not certain that exactly this is on disk: the tail is torn, or the last record may come from the page
    /// cache of a machine whose last process died before, or of, a failed sync.
    pub fn is_uncertain(&self) -> bool {
        self.torn || self.synced < self.length
    }
}

/// A manifest file that records can be appended to.
pub(crate) struct ManifestFile {
    path: PathBuf,
    file: Arc<dyn File>,
    number: u64,
    length: u64,
    records: u64,
    slot_counter: u64,
}

impl ManifestFile {
    /// Writes and syncs a new file with these records. The caller makes its name durable.
    pub fn create(
        disk: &dyn Disk,
        directory: &Path,
        number: u64,
        identity: u64,
        payloads: &[Vec<u8>],
    ) -> Result<ManifestFile, RunsError> {
        let path = directory.join(name(number));
        let image = image(number, identity, payloads);
        let file = disk.open(&path, OpenMode::CreateNew).map_err(|error| RunsError::io(&path, "create", error))?;
        file.write_at(&image, 0).map_err(|error| RunsError::io(&path, "write", error))?;
        file.sync().map_err(|error| super::sync_failed(&path, error))?;
        let (length, records) = (image.len() as u64, payloads.len() as u64);
        Ok(ManifestFile { path, file, number, length, records, slot_counter: 1 })
    }

    /// Opens an existing file for appending; its contents were read before and are all known to be synced.
    pub fn open(disk: &dyn Disk, path: &Path, number: u64, contents: &Contents) -> Result<ManifestFile, RunsError> {
        debug_assert!(!contents.is_uncertain(), "an uncertain manifest is replaced, not continued");
        ManifestFile::open_as(disk, path, number, contents, OpenMode::ReadWrite)
    }

    /// Opens an existing file that nothing will be appended to, certain or not.
    pub fn open_read_only(
        disk: &dyn Disk,
        path: &Path,
        number: u64,
        contents: &Contents,
    ) -> Result<ManifestFile, RunsError> {
        ManifestFile::open_as(disk, path, number, contents, OpenMode::Read)
    }

    fn open_as(
        disk: &dyn Disk,
        path: &Path,
        number: u64,
        contents: &Contents,
        mode: OpenMode,
    ) -> Result<ManifestFile, RunsError> {
        let file = disk.open(path, mode).map_err(|error| RunsError::io(path, "open", error))?;
        Ok(ManifestFile {
            path: path.to_owned(),
            file,
            number,
            length: contents.length,
            records: contents.records.len() as u64,
            slot_counter: contents.slot_counter,
        })
    }

    /// The file's number.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes up to the end of the last record.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Appends one record durably. After an error other than `Stopped` the record is not there and another may be tried.
    pub fn append(&mut self, payload: &[u8]) -> Result<(), RunsError> {
        let frame = frame::encode(self.number, self.length, self.records + 1, payload);
        if let Err(error) = self.file.write_at(&frame, self.length) {
            // Leaving the fragment would be harmless (it is a torn tail); the space may be wanted.
            let _ = self.file.set_length(self.length);
            return Err(RunsError::io(&self.path, "append", error));
        }
        self.file.sync().map_err(|error| super::sync_failed(&self.path, error))?;
        self.length += frame.len() as u64;
        self.records += 1;
        self.write_slot();
        Ok(())
    }

    /// Makes the known-synced length durable, so that damage of the last record is recognised as such after a clean end.
    pub fn seal(&mut self) -> Result<(), RunsError> {
        self.file.sync().map_err(|error| super::sync_failed(&self.path, error))
    }

    /// States the known-synced length, durably with the next sync. A failure costs only the statement; the same slot is
    /// tried again then, so that the other one stays sound.
    fn write_slot(&mut self) {
        let counter = self.slot_counter + 1;
        let index = (counter % 2) as usize;
        let sector = slot(self.number, index, self.length, counter);
        if self.file.write_at(&sector, slot_offset(index) as u64).is_ok() {
            self.slot_counter = counter;
        }
    }
}

/// The bytes of a manifest file with these records, all of them known to be synced.
pub(crate) fn image(number: u64, identity: u64, payloads: &[Vec<u8>]) -> Vec<u8> {
    let mut image = vec![0; FRAMES_OFFSET];
    for (index, payload) in payloads.iter().enumerate() {
        let frame = frame::encode(number, image.len() as u64, index as u64 + 1, payload);
        image.extend_from_slice(&frame);
    }
    let length = image.len() as u64;
    image[..SECTOR_BYTES].copy_from_slice(&header(number, identity, length));
    for index in 0..2 {
        let offset = slot_offset(index);
        image[offset..offset + SECTOR_BYTES].copy_from_slice(&slot(number, index, length, 1));
    }
    image
}

/// Reads a manifest file's bytes, telling a torn tail from corruption.
pub(crate) fn read(path: &Path, number: u64, bytes: &[u8]) -> Result<Contents, RunsError> {
    let corruption = |offset: usize, detail: &str| RunsError::corruption(path, offset as u64, detail);
    let (identity, snapshot_bytes) = match read_header(number, bytes).map_err(|detail| corruption(0, detail))? {
        (FORMAT, identity, snapshot_bytes) => (identity, snapshot_bytes),
        (format, ..) => return Err(RunsError::UnknownFormat { file: path.to_path_buf(), format, known: FORMAT }),
    };
    let slots = [read_slot(number, bytes, 0), read_slot(number, bytes, 1)];
    let Some((slot_counter, synced)) = slots.into_iter().flatten().max() else {
        return Err(corruption(SECTOR_BYTES, "neither record of the synced length passes its checksum"));
    };
    let mut records = Vec::new();
    let mut offset = FRAMES_OFFSET;
    while let Some(frame) = frame::decode(number, bytes, offset) {
        if frame.number != records.len() as u64 + 1 {
            return Err(corruption(offset, "a record is out of sequence"));
        }
        records.push((offset as u64, frame.payload.to_vec()));
        offset = frame.end as usize;
    }
    if (offset as u64) < synced {
        return Err(corruption(offset, "a synced record is damaged or missing"));
    }
    if let Some(later) = frame::find(number, bytes, offset) {
        return Err(corruption(offset, &format!("a record is damaged, but a later one at {later} is sound")));
    }
    let torn = offset < bytes.len();
    Ok(Contents { identity, snapshot_bytes, records, torn, length: offset as u64, synced, slot_counter })
}

/// What of a damaged manifest can still be read: every sound record, and where it lay.
pub(crate) fn read_what_is_sound(number: u64, bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let mut records = Vec::new();
    let mut from = FRAMES_OFFSET;
    while let Some(offset) = frame::find(number, bytes, from) {
        let Some(frame) = frame::decode(number, bytes, offset) else { break };
        records.push((offset as u64, frame.payload.to_vec()));
        from = frame.end as usize;
    }
    records
}

/// The slots whose checksum fails: one may after a crash, and a careful reader wants to know.
pub(crate) fn damaged_slots(number: u64, bytes: &[u8]) -> Vec<u64> {
    (0..2).filter(|index| read_slot(number, bytes, *index).is_none()).map(|index| slot_offset(index) as u64).collect()
}

fn slot_offset(index: usize) -> usize {
    SECTOR_BYTES * (1 + index)
}

fn header(number: u64, identity: u64, snapshot_bytes: u64) -> Vec<u8> {
    let mut sector = HEADER_MAGIC.to_vec();
    for field in [FORMAT, number, identity, snapshot_bytes] {
        sector.extend_from_slice(&field.to_le_bytes());
    }
    finish_sector(sector, number, 0)
}

fn slot(number: u64, index: usize, synced: u64, counter: u64) -> Vec<u8> {
    let mut sector = SLOT_MAGIC.to_vec();
    for field in [synced, counter] {
        sector.extend_from_slice(&field.to_le_bytes());
    }
    finish_sector(sector, number, slot_offset(index))
}

fn finish_sector(mut sector: Vec<u8>, number: u64, offset: usize) -> Vec<u8> {
    sector.resize(SECTOR_BYTES - 8, 0);
    let checksum = xxh3_64_with_seed(&sector, frame::seed(number, offset as u64));
    sector.extend_from_slice(&checksum.to_le_bytes());
    sector
}

/// The fields of the sector at `offset`, if its checksum holds.
fn read_sector(number: u64, bytes: &[u8], offset: usize, magic: [u8; 8]) -> Option<[u64; 4]> {
    let sector = bytes.get(offset..offset + SECTOR_BYTES)?;
    let (body, checksum) = sector.split_at(SECTOR_BYTES - 8);
    if xxh3_64_with_seed(body, frame::seed(number, offset as u64)).to_le_bytes() != checksum || body[..8] != magic {
        return None;
    }
    let field = |index: usize| Some(u64::from_le_bytes(*body[8 * (index + 1)..].first_chunk()?));
    Some([field(0)?, field(1)?, field(2)?, field(3)?])
}

/// The format, the identity and the length of the snapshot; the first is where it is in every format.
fn read_header(number: u64, bytes: &[u8]) -> Result<(u64, u64, u64), &'static str> {
    let [format, stated, identity, snapshot_bytes] =
        read_sector(number, bytes, 0, HEADER_MAGIC).ok_or("the manifest's header fails its checksum")?;
    if format == FORMAT && stated != number {
        return Err("the manifest's header names another manifest");
    }
    Ok((format, identity, snapshot_bytes))
}

/// (counter, synced length)
fn read_slot(number: u64, bytes: &[u8], index: usize) -> Option<(u64, u64)> {
    let [synced, counter, ..] = read_sector(number, bytes, slot_offset(index), SLOT_MAGIC)?;
    Some((counter, synced))
}
