//! A segment's file: its name, its header, its handle.
//!
//! A segment is created with its space reserved and its header synced before the first record can enter it; so a damaged
//! header with anything after it is damage, never a torn write. Segments are numbered from 1 without reuse, each with an
//! epoch of its own drawn at random, which every record repeats.
//!
//! The handle of a segment that is written stays open; the handle of a sealed one is opened when somebody reads, so that a
//! thousand segments do not need a thousand descriptors.

use crate::record::{ALIGNMENT, Header};
use crate::{LogError, LogPosition, Result};
use pando_env::{Disk, Env, File, OpenMode};
use parking_lot::Mutex;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Where the first record starts.
pub(crate) const FIRST_RECORD: u64 = 64;

const MAGIC: u64 = 0x676f_6c6f_646e_6150;
const VERSION: u32 = 1;
const SUFFIX: &str = ".log";
/// How much is searched for a record, or written again, at once.
const BLOCK_BYTES: u64 = 1 << 20;

/// One file of the log.
pub(crate) struct Segment {
    pub(crate) id: u32,
    pub(crate) epoch: u32,
    pub(crate) path: PathBuf,
    /// The space that was reserved for it when it was created.
    pub(crate) allocated_bytes: u64,
    disk: Arc<dyn Disk>,
    held: Mutex<Option<Arc<dyn File>>>,
}

/// What a file turned out to be.
pub(crate) enum Opened {
    /// A segment with a sound header.
    Segment(Segment),
    /// A segment whose creation did not finish; nothing was ever in it.
    Unfinished,
}

impl Segment {
    /// Creates a segment with its space and makes it durable, name and all. On failure nothing is left.
    pub(crate) fn create(env: &Env, directory: &Path, id: u32, bytes: u64) -> io::Result<Segment> {
        let path = segment_path(directory, id);
        let disk = env.disk();
        let file = disk.open(&path, OpenMode::CreateNew)?;
        let epoch = env.random().next_u64() as u32;
        let prepared = (|| {
            file.allocate(0, bytes)?;
            file.write_at(&encode_header(id, epoch, env.clock().wall_ms()), 0)?;
            file.sync()?;
            disk.sync_directory(directory)
        })();
        if let Err(error) = prepared {
            drop(file);
            let _ = disk.remove(&path);
            return Err(error);
        }
        Ok(Segment { id, epoch, path, allocated_bytes: bytes, disk: Arc::clone(disk), held: Mutex::new(Some(file)) })
    }

    /// Opens an existing file.
    pub(crate) fn open(disk: &Arc<dyn Disk>, path: &Path, id: u32) -> Result<Opened> {
        let file = disk.open(path, OpenMode::Read).map_err(|error| LogError::io(path, error))?;
        let length = file.length().map_err(|error| LogError::io(path, error))?;
        let mut header = vec![0; length.min(FIRST_RECORD) as usize];
        file.read_exact_at(&mut header, 0).map_err(|error| LogError::io(path, error))?;
        match decode_header(&header, id) {
            Some((VERSION, epoch)) => {
                let held = Mutex::new(None);
                let (path, disk) = (path.to_owned(), Arc::clone(disk));
                return Ok(Opened::Segment(Segment { id, epoch, path, allocated_bytes: length, disk, held }));
            }
            Some((format, _)) => {
                return Err(LogError::UnknownFormat { file: path.to_owned(), format, known: VERSION });
            }
            None => {}
        }
        let mut start = vec![0; (length - header.len() as u64).min(4096) as usize];
        file.read_exact_at(&mut start, header.len() as u64).map_err(|error| LogError::io(path, error))?;
        if start.iter().any(|byte| *byte != 0) {
            return Err(LogError::corruption(path, 0, "the segment header is damaged"));
        }
        Ok(Opened::Unfinished)
    }

    /// Opens a file whose header is damaged, with the epoch that its records carry; none if no sound record is found.
    pub(crate) fn open_damaged(disk: &Arc<dyn Disk>, path: &Path, id: u32) -> io::Result<Option<Segment>> {
        let file = disk.open(path, OpenMode::Read)?;
        let length = file.length()?;
        let mut bytes = vec![0; length.min(BLOCK_BYTES) as usize];
        file.read_exact_at(&mut bytes, 0)?;
        let mut offsets = (FIRST_RECORD as usize..bytes.len()).step_by(ALIGNMENT as usize);
        let found = offsets.find_map(|at| Header::decode(&bytes[at..], LogPosition::new(id, at as u32)));
        Ok(found.map(|header| Segment {
            id,
            epoch: header.epoch,
            path: path.to_owned(),
            allocated_bytes: length,
            disk: Arc::clone(disk),
            held: Mutex::new(None),
        }))
    }

    /// A segment that has no file: where a log that was opened for reading would go on.
    pub(crate) fn imaginary(disk: &Arc<dyn Disk>, directory: &Path, id: u32) -> Segment {
        let path = segment_path(directory, id);
        Segment { id, epoch: 0, path, allocated_bytes: 0, disk: Arc::clone(disk), held: Mutex::new(None) }
    }

    /// The file, for reading (and writing, while this life writes it).
    pub(crate) fn file(&self) -> io::Result<Arc<dyn File>> {
        match &*self.held.lock() {
            Some(file) => Ok(Arc::clone(file)),
            None => self.disk.open(&self.path, OpenMode::Read),
        }
    }

    /// Closes the handle once nothing will be written any more.
    pub(crate) fn release(&self) {
        *self.held.lock() = None;
    }

    /// Makes what an earlier life left in a range of the file durable. The range is written again with the same bytes: had
    /// a sync of that life failed, the system may hold them as clean pages that no later sync would write.
    pub(crate) fn make_durable(&self, range: Range<u64>) -> Result<()> {
        self.rewrite(range).map_err(|error| LogError::io(&self.path, error))
    }

    fn rewrite(&self, range: Range<u64>) -> io::Result<()> {
        let file = self.disk.open(&self.path, OpenMode::ReadWrite)?;
        let mut offset = range.start;
        while offset < range.end {
            let mut bytes = vec![0; (range.end - offset).min(BLOCK_BYTES) as usize];
            file.read_exact_at(&mut bytes, offset)?;
            file.write_at(&bytes, offset)?;
            offset += bytes.len() as u64;
        }
        file.sync()
    }

    /// Where the last of its whole blocks ends.
    pub(crate) fn whole_blocks_bytes(&self) -> u64 {
        self.allocated_bytes - self.allocated_bytes % pando_env::BLOCK_BYTES as u64
    }

    /// A place in this segment.
    pub(crate) fn at(&self, offset: u64) -> LogPosition {
        debug_assert!(u32::try_from(offset).is_ok());
        LogPosition::new(self.id, offset as u32)
    }
}

/// The file of a segment.
pub(crate) fn segment_path(directory: &Path, id: u32) -> PathBuf {
    directory.join(format!("{id:010}{SUFFIX}"))
}

/// The segment files of a directory, oldest first.
pub(crate) fn list_segments(disk: &Arc<dyn Disk>, directory: &Path) -> Result<Vec<(u32, PathBuf)>> {
    let paths = disk.list(directory).map_err(|error| LogError::io(directory, error))?;
    let mut segments: Vec<(u32, PathBuf)> =
        paths.into_iter().filter_map(|path| Some((segment_id(&path)?, path))).collect();
    segments.sort_unstable();
    Ok(segments)
}

fn segment_id(path: &Path) -> Option<u32> {
    let digits = path.file_name()?.to_str()?.strip_suffix(SUFFIX)?;
    (digits.len() == 10).then(|| digits.parse().ok().filter(|id| *id > 0))?
}

fn encode_header(id: u32, epoch: u32, wall_ms: u64) -> [u8; FIRST_RECORD as usize] {
    let mut bytes = [0; FIRST_RECORD as usize];
    bytes[0..8].copy_from_slice(&MAGIC.to_le_bytes());
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[12..16].copy_from_slice(&id.to_le_bytes());
    bytes[16..20].copy_from_slice(&epoch.to_le_bytes());
    bytes[24..32].copy_from_slice(&wall_ms.to_le_bytes());
    let hash = xxh3_64_with_seed(&bytes[..56], u64::from(id));
    bytes[56..64].copy_from_slice(&hash.to_le_bytes());
    bytes
}

/// The format and the epoch, if these bytes are the header of this segment. Its place and its checksum are the same in every format.
fn decode_header(bytes: &[u8], id: u32) -> Option<(u32, u32)> {
    let bytes: &[u8; FIRST_RECORD as usize] = bytes.try_into().ok()?;
    let hash = u64::from_le_bytes(bytes[56..64].try_into().ok()?);
    let magic = u64::from_le_bytes(bytes[0..8].try_into().ok()?);
    let version = u32::from_le_bytes(bytes[8..12].try_into().ok()?);
    let sound = hash == xxh3_64_with_seed(&bytes[..56], u64::from(id)) && magic == MAGIC;
    sound.then(|| (version, u32::from_le_bytes([bytes[16], bytes[17], bytes[18], bytes[19]])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_env::simulated::Simulation;

    #[test]
    fn u12_a_segment_of_another_format_is_told_as_what_it_is() {
        let env = Simulation::new(1).env();
        let directory = Path::new("log");
        env.disk().create_directory(directory).unwrap();
        let path = Segment::create(&env, directory, 1, 1 << 16).unwrap().path.clone();
        let mut header = encode_header(1, 7, 0);
        header[8..12].copy_from_slice(&2_u32.to_le_bytes());
        let write = |header: &[u8]| {
            let file = env.disk().open(&path, OpenMode::ReadWrite).unwrap();
            file.write_at(header, 0).unwrap();
        };
        // Changed without its checksum it is no header, and an empty segment is one that was not finished.
        write(&header);
        assert!(matches!(Segment::open(env.disk(), &path, 1), Ok(Opened::Unfinished)));
        let hash = xxh3_64_with_seed(&header[..56], 1);
        header[56..64].copy_from_slice(&hash.to_le_bytes());
        write(&header);
        let Err(error) = Segment::open(env.disk(), &path, 1) else { panic!("it was opened") };
        assert!(matches!(error, LogError::UnknownFormat { format: 2, known: 1, .. }), "{error}");
    }
}
