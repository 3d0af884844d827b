//! What the kernel counts for this process.

use std::ops::Sub;

/// No page is smaller.
const PAGE_BYTES: usize = 4096;

/// Bytes written since the process began.
///
/// `passed` is what went through write calls (`wchar`): every byte of log, run and merge, also of files that were deleted
/// before the page cache wrote them back, and whatever the size of the pieces. It is the figure that systems are
/// compared by. `dirtied` is the pages that those calls made dirty (`write_bytes`): closer to what the device sees, because a
/// small append costs a whole page each time it is synced, but blind to a page that is written twice before it goes out.
/// Only files are counted by it, so a store on a memory file system shows zero.
#[derive(Clone, Copy, Debug, Default)]
pub struct WrittenBytes {
    /// Through write calls.
    pub passed: u64,
    /// Made dirty.
    pub dirtied: u64,
}

impl Sub for WrittenBytes {
    type Output = WrittenBytes;

    fn sub(self, earlier: WrittenBytes) -> WrittenBytes {
        WrittenBytes { passed: self.passed - earlier.passed, dirtied: self.dirtied - earlier.dirtied }
    }
}

/// So far.
pub fn written_bytes() -> Result<WrittenBytes, crate::Error> {
    let text = std::fs::read_to_string("/proc/self/io")?;
    let field = |name| field(&text, name).ok_or_else(|| format!("no {name} in /proc/self/io"));
    Ok(WrittenBytes { passed: field("wchar:")?, dirtied: field("write_bytes:")? })
}

/// Has the machine provide so much memory, at most a quarter of what it has, and gives it back. A virtual machine waits long for
/// pages that its host does not back yet, and else whoever runs first would wait for all that come after.
pub fn touch_memory(bytes: u64) -> Result<(), crate::Error> {
    let mut memory = vec![0u8; bytes.min(machine_bytes()? / 4) as usize];
    let (start, length) = (memory.as_mut_ptr(), memory.len());
    let (start, length) = (start.wrapping_add(start.align_offset(PAGE_BYTES)), length.saturating_sub(PAGE_BYTES));
    // SAFETY: the advice changes how the pages of the vector are backed, never what they contain. Where it is not taken, this takes longer.
    _ = unsafe { libc::madvise(start.cast(), length, libc::MADV_HUGEPAGE) };
    memory.chunks_mut(PAGE_BYTES).for_each(|page| page[0] = 1);
    std::hint::black_box(&memory);
    Ok(())
}

/// Waits until everything that anybody has written is on the disk, so that nobody's phase waits for what others left behind.
pub fn quiet_disk() {
    // SAFETY: the call takes nothing and cannot fail.
    unsafe { libc::sync() }
}

/// Physical memory in use.
pub fn resident_bytes() -> Result<u64, crate::Error> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let kilobytes = field(&text, "VmRSS:").ok_or("no VmRSS in /proc/self/status")?;
    Ok(kilobytes * 1024)
}

/// Physical memory of the machine.
pub fn machine_bytes() -> Result<u64, crate::Error> {
    let text = std::fs::read_to_string("/proc/meminfo")?;
    let kilobytes = field(&text, "MemTotal:").ok_or("no MemTotal in /proc/meminfo")?;
    Ok(kilobytes * 1024)
}

fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
