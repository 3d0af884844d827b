//! What can go to disk and come back.

/// A value that a sorter can write and read, on another thread if need be.
pub trait Spilled: Sized + Send + 'static {
    /// About how much memory it takes.
    fn memory_bytes(&self) -> usize;

    /// Appends its bytes.
    fn write(&self, out: &mut Vec<u8>);

    /// Reads what `write` has written; none if it is something else. The bytes are those that were written: their checksum
    /// was right.
    fn read(bytes: &[u8]) -> Option<Self>;
}

/// Keys alone.
impl Spilled for () {
    fn memory_bytes(&self) -> usize {
        0
    }

    fn write(&self, _out: &mut Vec<u8>) {}

    fn read(bytes: &[u8]) -> Option<()> {
        bytes.is_empty().then_some(())
    }
}

/// Bytes, e.g. the type bits of an index key.
impl Spilled for Box<[u8]> {
    fn memory_bytes(&self) -> usize {
        self.len() + size_of::<Self>()
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        Some(Box::from(bytes))
    }
}
