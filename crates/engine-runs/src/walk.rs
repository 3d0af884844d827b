//! Walks a run file frame by frame, without any index: what a check after writing, verify and salvage have in common.
//!
//! Frames tile the file, from the header frame to the tail frame; a byte that belongs to none does not exist.

use crate::block::frame::{self, FRAME_HEADER_BYTES, FrameHeader, FrameKind};
use crate::file::{FILE_MAGIC, FrameHandle, RunFile};
use crate::wire::Reader;
use crate::{PartDescriptor, Result, RunDescriptor};

const WINDOW_BYTES: usize = 1 << 20;

/// A frame whose checksum holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameInfo {
    /// Where it begins.
    pub offset: u64,
    /// What its header says.
    pub header: FrameHeader,
}

impl FrameInfo {
    pub(crate) fn handle(&self) -> FrameHandle {
        FrameHandle { offset: self.offset, length: self.header.stored_length + FRAME_HEADER_BYTES as u32 }
    }
}

/// Steps through the frames of a file in order.
pub struct FileWalk<'a> {
    file: &'a RunFile,
    offset: u64,
    window: Vec<u8>,
    window_offset: u64,
}

impl<'a> FileWalk<'a> {
    /// Stands before the first frame.
    pub fn new(file: &'a RunFile) -> FileWalk<'a> {
        FileWalk { file, offset: 0, window: Vec::new(), window_offset: 0 }
    }

    /// Where the next frame begins.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The next frame; `None` at the end of the file. After an error the position stays: [`FileWalk::skip_damage`] goes on.
    pub fn next_frame(&mut self) -> Result<Option<FrameInfo>> {
        if self.offset >= self.file.length_bytes() {
            return Ok(None);
        }
        let info = self.frame_at(self.offset)?;
        self.offset += info.header.frame_length();
        Ok(Some(info))
    }

    /// Moves to the next offset at which an intact frame begins, or to the end; returns how many bytes were skipped.
    pub fn skip_damage(&mut self) -> Result<u64> {
        let start = self.offset;
        while self.offset < self.file.length_bytes() {
            self.offset += 1;
            match self.frame_at(self.offset) {
                Ok(_) => break,
                Err(error) if error.is_corruption() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.offset - start)
    }

    fn frame_at(&mut self, offset: u64) -> Result<FrameInfo> {
        let left = self.file.length_bytes() - offset;
        if left < FRAME_HEADER_BYTES as u64 {
            return Err(self.file.corruption(offset, "the file ends within a frame"));
        }
        let file = self.file;
        let damaged = |detail| file.corruption(offset, detail);
        let header = FrameHeader::decode(self.bytes(offset, FRAME_HEADER_BYTES)?).map_err(damaged)?;
        if header.frame_length() > left {
            return Err(damaged("the frame is longer than the file"));
        }
        let frame = self.bytes(offset, FRAME_HEADER_BYTES + header.stored_length as usize)?;
        let (header, _) = frame::open(file.id(), offset, frame).map_err(damaged)?;
        Ok(FrameInfo { offset, header })
    }

    /// Bytes of the file, which the caller knows to exist.
    fn bytes(&mut self, offset: u64, length: usize) -> Result<&[u8]> {
        let inside =
            offset >= self.window_offset && offset + length as u64 <= self.window_offset + self.window.len() as u64;
        if !inside {
            let left = self.file.length_bytes() - offset;
            let wanted = (length.max(WINDOW_BYTES) as u64).min(left) as usize;
            self.window.resize(wanted, 0);
            self.window_offset = offset;
            if let Err(error) = self.file.read(&mut self.window, offset) {
                self.window.clear();
                return Err(error);
            }
        }
        let start = (offset - self.window_offset) as usize;
        Ok(self.window.get(start..start + length).unwrap_or_default())
    }
}

/// Checks that a file is nothing but intact frames from header to tail. Returns how many there are.
pub fn check_file(file: &RunFile) -> Result<u64> {
    let mut walk = FileWalk::new(file);
    let (mut count, mut last) = (0, None);
    while let Some(info) = walk.next_frame()? {
        if (count == 0) != (info.header.kind == FrameKind::FileHeader) {
            return Err(file.corruption(info.offset, "the file header is missing or misplaced"));
        }
        if info.header.kind == FrameKind::FileHeader {
            check_file_header(file, &info)?;
        }
        count += 1;
        last = Some(info.header.kind);
    }
    if last != Some(FrameKind::FileTail) {
        return Err(file.corruption(file.length_bytes(), "the file's tail is missing"));
    }
    let actual = file.handle()?.length().map_err(|source| crate::RunsError::io(file.path(), "measure", source))?;
    if actual != file.length_bytes() {
        let detail = format!("the file has {actual} bytes instead of {}", file.length_bytes());
        return Err(file.corruption(actual.min(file.length_bytes()), detail));
    }
    Ok(count)
}

fn check_file_header(file: &RunFile, info: &FrameInfo) -> Result<()> {
    file.with_frame(info.handle(), FrameKind::FileHeader, |_, payload| {
        let mut reader = Reader::new(payload);
        (reader.take(FILE_MAGIC.len())? == FILE_MAGIC && reader.u64()? == file.id() && reader.is_empty()).then_some(())
    })
}

/// The sections of a file, with the names of their tables, as the file itself knows them. For salvage and import, where no
/// manifest says so.
pub fn read_file_directory(file: &RunFile) -> Result<Vec<(String, PartDescriptor)>> {
    let tail_length = FRAME_HEADER_BYTES as u64 + 12;
    let Some(offset) = file.length_bytes().checked_sub(tail_length) else {
        return Err(file.corruption(0, "the file is too short"));
    };
    let tail = FrameHandle { offset, length: tail_length as u32 };
    let directory = file.with_frame(tail, FrameKind::FileTail, |_, payload| {
        let mut reader = Reader::new(payload);
        Some(FrameHandle { offset: reader.u64()?, length: reader.u32()? })
    })?;
    file.with_frame(directory, FrameKind::Directory, |_, payload| {
        let mut reader = Reader::new(payload);
        let mut sections = Vec::new();
        for _ in 0..reader.length()? {
            let ident = String::from_utf8_lossy(reader.bytes()?).into_owned();
            let mut encoded = vec![1];
            encoded.extend_from_slice(reader.bytes()?);
            let (run, _) = RunDescriptor::decode(&encoded)?;
            sections.push((ident, run.parts.into_iter().next()?));
        }
        Some(sections)
    })
}
