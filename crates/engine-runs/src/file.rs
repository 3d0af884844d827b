//! An immutable run file, opened when first read.
//!
//! Opening a store creates a [`RunFile`] for every file and touches none of them. Who holds the `Arc` pins the file: the store
//! removes it only when nobody else does.

use crate::block::compression::{ReadDictionary, decompress};
use crate::block::frame::{self, FRAME_HEADER_BYTES, FrameHeader, FrameKind};
use crate::{FileDescriptor, FileId, Result, RunsError, file_name};
use pando_env::{Env, File, OpenMode};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// What the first frame of every run file holds, before the file id.
pub(crate) const FILE_MAGIC: &[u8; 16] = b"pando run file 1";

/// Where a frame lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct FrameHandle {
    pub(crate) offset: u64,
    pub(crate) length: u32,
}

/// A file of the store.
pub struct RunFile {
    env: Env,
    descriptor: FileDescriptor,
    path: PathBuf,
    file: OnceLock<Arc<dyn File>>,
}

thread_local! {
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A read buffer of more than this is not kept for the next read.
const SCRATCH_BYTES_MAX: usize = 1 << 20;

impl RunFile {
    /// About what it takes in memory, with its path.
    pub(crate) const OWN_BYTES: usize = size_of::<RunFile>() + 64;

    /// A file of a directory; nothing is opened yet.
    pub fn new(env: &Env, directory: &Path, descriptor: FileDescriptor) -> Arc<RunFile> {
        let path = directory.join(file_name(descriptor.id));
        Arc::new(RunFile { env: env.clone(), descriptor, path, file: OnceLock::new() })
    }

    /// Its number.
    pub fn id(&self) -> FileId {
        self.descriptor.id
    }

    /// Its length as the writer left it.
    pub fn length_bytes(&self) -> u64 {
        self.descriptor.length_bytes
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// An error that names a place in this file.
    pub(crate) fn corruption(&self, offset: u64, detail: impl Into<String>) -> RunsError {
        RunsError::corruption(&self.path, offset, detail)
    }

    /// The open file.
    pub(crate) fn handle(&self) -> Result<&Arc<dyn File>> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let opened = self.env.disk().open(&self.path, OpenMode::Read);
        let opened = opened.map_err(|source| RunsError::io(&self.path, "open", source))?;
        Ok(self.file.get_or_init(|| opened))
    }

    /// Asks for a range to be read ahead.
    pub(crate) fn prefetch(&self, offset: u64, length: u64) {
        if let Ok(file) = self.handle() {
            file.prefetch(offset, length.min(self.length_bytes().saturating_sub(offset)));
        }
    }

    /// Fills a buffer from the file, and says so to the operation that the thread works for; beyond its end is damage, since the manifest knows the length.
    pub(crate) fn read(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        let end = offset.checked_add(buffer.len() as u64);
        if end.is_none_or(|end| end > self.length_bytes()) {
            return Err(self.corruption(offset, "a reference points beyond the end of the file"));
        }
        let file = self.handle()?;
        // Handing the worker over costs several times what the read does if the system has it in memory.
        let cached = file.read_cached_at(buffer, offset);
        let operation = pando_base::operation::current();
        let statistics = operation.as_ref().map(|operation| operation.statistics());
        statistics.inspect(|statistics| statistics.bytes_read.add(buffer.len() as u64));
        let rest = buffer.get_mut(cached..).unwrap_or_default();
        if rest.is_empty() {
            return Ok(());
        }
        let start_ns = self.env.clock().monotonic_ns();
        let mut outcome = Ok(());
        self.env.tasks().blocking(&mut || outcome = file.read_exact_at(rest, offset + cached as u64));
        let micros = self.env.clock().monotonic_ns().saturating_sub(start_ns) / 1000;
        statistics.inspect(|statistics| statistics.read_micros.add(micros));
        outcome.map_err(|source| match source.kind() {
            std::io::ErrorKind::UnexpectedEof => self.corruption(offset, "the file is shorter than the manifest says"),
            _ => RunsError::io(&self.path, "read", source),
        })
    }

    /// Reads and checks a frame and hands header and payload to `use_payload`, which returns `None` if the payload makes
    /// no sense.
    pub(crate) fn with_frame<T>(
        &self,
        handle: FrameHandle,
        kind: FrameKind,
        use_payload: impl FnOnce(&FrameHeader, &[u8]) -> Option<T>,
    ) -> Result<T> {
        let length = handle.length as usize;
        if length < FRAME_HEADER_BYTES || handle.length > frame::FRAME_BYTES_MAX {
            return Err(self.corruption(handle.offset, "a reference has an impossible length"));
        }
        let mut buffer = SCRATCH.take();
        if buffer.len() < length {
            buffer.resize(length, 0);
        }
        let result = self.read(&mut buffer[..length], handle.offset).and_then(|()| {
            let (header, payload) = frame::open(self.id(), handle.offset, &buffer[..length])
                .map_err(|detail| self.corruption(handle.offset, detail))?;
            if header.kind != kind {
                let detail = format!("expected a {kind:?} frame, found {:?}", header.kind);
                return Err(self.corruption(handle.offset, detail));
            }
            use_payload(&header, payload)
                .ok_or_else(|| self.corruption(handle.offset, format!("the {kind:?} frame cannot be decoded")))
        });
        if buffer.len() <= SCRATCH_BYTES_MAX {
            SCRATCH.set(buffer);
        }
        result
    }

    /// Reads, checks and decompresses a frame; the payload lies behind so many zeros for each entry.
    pub(crate) fn read_payload(
        &self,
        handle: FrameHandle,
        kind: FrameKind,
        dictionary: Option<&ReadDictionary>,
        zeros_per_entry: usize,
    ) -> Result<(FrameHeader, Vec<u8>)> {
        self.with_frame(handle, kind, |header, stored| {
            let zeros = usize::from(header.entries) * zeros_per_entry;
            let raw = decompress(header, dictionary, stored, zeros)?;
            Some((*header, raw))
        })
    }
}
