//! What the kernel counts for this process.

use std::ops::Sub;

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
    of_machine("MemTotal:")
}

/// What of it nobody uses, not even for copies of files.
pub fn free_bytes() -> Result<u64, crate::Error> {
    of_machine("MemFree:")
}

fn of_machine(name: &str) -> Result<u64, crate::Error> {
    let text = std::fs::read_to_string("/proc/meminfo")?;
    let kilobytes = field(&text, name).ok_or_else(|| format!("no {name} in /proc/meminfo"))?;
    Ok(kilobytes * 1024)
}

fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
