//! Reading what the system has in its cache, and only that (`RWF_NOWAIT`).
//!
//! Such a read takes a few microseconds, so whoever must not wait for the disk can do it on the spot. Where a system or a file system does not
//! have it, nothing is read here, and the caller goes the other way.

use std::fs;

/// Reads from a place on as far as the cache has it; how much that was.
#[cfg(not(target_os = "linux"))]
pub(super) fn read(_file: &fs::File, _buffer: &mut [u8], _offset: u64) -> usize {
    0
}

/// Reads from a place on as far as the cache has it; how much that was.
#[cfg(target_os = "linux")]
pub(super) fn read(file: &fs::File, buffer: &mut [u8], offset: u64) -> usize {
    use rustix::io::{Errno, ReadWriteFlags, preadv2};
    let mut read = 0;
    while let Some(rest) = buffer.get_mut(read..).filter(|rest| !rest.is_empty()) {
        let rest = std::io::IoSliceMut::new(rest);
        match preadv2(file, &mut [rest], offset.saturating_add(read as u64), ReadWriteFlags::NOWAIT) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(Errno::INTR) => {}
            // It is not there, or cannot be read this way, or at all: who reads it in the usual way will hear of it.
            Err(_) => break,
        }
    }
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_just_written_is_read_from_the_cache_up_to_the_end() {
        let path = std::env::temp_dir().join(format!("pando-cached-{}", std::process::id()));
        fs::write(&path, b"0123456789").unwrap();
        let file = fs::File::open(&path).unwrap();
        let mut buffer = [0; 6];
        let read = read(&file, &mut buffer, 2);
        let beyond = super::read(&file, &mut [0; 6], 8);
        let _ = fs::remove_file(&path);
        // A file system may not have it; then nothing was read.
        assert!(read == 6 && buffer == *b"234567" || read == 0);
        assert!(beyond == 2 || beyond == 0, "there are no more");
    }
}
