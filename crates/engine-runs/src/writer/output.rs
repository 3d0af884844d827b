//! The file under construction: frames are appended through one buffer.

use crate::block::compression::Compressor;
use crate::block::frame::{self, Compression, FrameHeader, FrameKind};
use crate::file::{FILE_MAGIC, FrameHandle};
use crate::wire::{put_bytes, put_varint};
use crate::{FileDescriptor, FileId, PartDescriptor, Result, RunsError};
use pando_env::{Env, File, OpenMode};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const BUFFER_BYTES: usize = 1 << 20;
/// After so many bytes the disk is set to work, so that the sync at the end does not wait for the whole file.
const WRITE_BACK_BYTES: u64 = 4 << 20;

/// A run file being written.
pub(crate) struct Output {
    id: FileId,
    path: PathBuf,
    file: Arc<dyn File>,
    buffer: Vec<u8>,
    buffer_offset: u64,
    /// Up to here the disk was asked to write.
    write_back_offset: u64,
    sections: Vec<u8>,
    sections_count: u64,
}

impl Output {
    /// Creates the file and writes its header.
    pub(crate) fn create(env: &Env, path: &Path, id: FileId) -> Result<Output> {
        let file = env.disk().open(path, OpenMode::CreateNew);
        let file = file.map_err(|source| RunsError::io(path, "create", source))?;
        let mut output = Output {
            id,
            path: path.to_path_buf(),
            file,
            buffer: Vec::with_capacity(BUFFER_BYTES + (64 << 10)),
            buffer_offset: 0,
            write_back_offset: 0,
            sections: Vec::new(),
            sections_count: 0,
        };
        let mut header = FILE_MAGIC.to_vec();
        header.extend_from_slice(&id.to_le_bytes());
        output.append_plain(FrameKind::FileHeader, &header)?;
        Ok(output)
    }

    /// The file's number.
    pub(crate) fn id(&self) -> FileId {
        self.id
    }

    /// Where the next frame will lie.
    pub(crate) fn offset(&self) -> u64 {
        self.buffer_offset + self.buffer.len() as u64
    }

    /// Appends a frame whose payload is ready.
    pub(crate) fn append(&mut self, header: &FrameHeader, payload: &[u8]) -> Result<FrameHandle> {
        let offset = self.offset();
        frame::seal(&mut self.buffer, self.id, offset, header, payload);
        if self.buffer.len() >= BUFFER_BYTES {
            self.flush()?;
        }
        let length = u32::try_from(header.frame_length()).map_err(|_| too_large())?;
        Ok(FrameHandle { offset, length })
    }

    /// Appends a payload as it is.
    pub(crate) fn append_plain(&mut self, kind: FrameKind, payload: &[u8]) -> Result<FrameHandle> {
        let length = payload_length(payload)?;
        let compression = Compression::None;
        self.append(&FrameHeader { stored_length: length, raw_length: length, kind, compression, entries: 0 }, payload)
    }

    /// Appends a payload compressed, if that makes it smaller.
    pub(crate) fn append_compressed(
        &mut self,
        kind: FrameKind,
        payload: &[u8],
        compressor: &mut Compressor,
    ) -> Result<FrameHandle> {
        let mut compressed = Vec::new();
        let compression = compressor.compress(payload, &mut compressed);
        if compression == Compression::None {
            return self.append_plain(kind, payload);
        }
        let (stored_length, raw_length) = (payload_length(&compressed)?, payload_length(payload)?);
        self.append(&FrameHeader { stored_length, raw_length, kind, compression, entries: 0 }, &compressed)
    }

    /// Notes a finished section for the file's directory.
    pub(crate) fn note_section(&mut self, ident: &str, part: &PartDescriptor) {
        put_bytes(&mut self.sections, ident.as_bytes());
        let mut encoded = Vec::new();
        part.encode(&mut encoded);
        put_bytes(&mut self.sections, &encoded);
        self.sections_count += 1;
    }

    /// Writes directory and tail and syncs the file.
    pub(crate) fn finish(mut self) -> Result<FileDescriptor> {
        let mut directory = Vec::new();
        put_varint(&mut directory, self.sections_count);
        directory.append(&mut self.sections);
        let handle = self.append_plain(FrameKind::Directory, &directory)?;
        let mut tail = handle.offset.to_le_bytes().to_vec();
        tail.extend_from_slice(&handle.length.to_le_bytes());
        self.append_plain(FrameKind::FileTail, &tail)?;
        self.flush()?;
        self.file.sync().map_err(|source| RunsError::io(&self.path, "sync", source))?;
        Ok(FileDescriptor { id: self.id, length_bytes: self.buffer_offset })
    }

    fn flush(&mut self) -> Result<()> {
        let written = self.file.write_at(&self.buffer, self.buffer_offset);
        written.map_err(|source| RunsError::io(&self.path, "write", source))?;
        self.buffer_offset += self.buffer.len() as u64;
        self.buffer.clear();
        let waiting = self.buffer_offset - self.write_back_offset;
        if waiting >= WRITE_BACK_BYTES {
            self.file.write_back(self.write_back_offset, waiting);
            self.write_back_offset = self.buffer_offset;
        }
        Ok(())
    }
}

fn payload_length(payload: &[u8]) -> Result<u32> {
    u32::try_from(payload.len()).ok().filter(|length| *length <= frame::FRAME_BYTES_MAX).ok_or_else(too_large)
}

fn too_large() -> RunsError {
    RunsError::Invalid("a key or value is too large for a frame".into())
}
