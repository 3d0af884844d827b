//! The space that a store takes: blocks that the file system gave out, not lengths, because several systems make their
//! files longer than what is in them.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Allocated bytes below a directory.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiskUse {
    /// Everything but logs.
    pub data_bytes: u64,
    /// Log or journal files, which come and go whatever the data is.
    pub log_bytes: u64,
}

/// Adds up a directory, told which files are logs.
pub fn disk_use(directory: &Path, is_log: &dyn Fn(&Path) -> bool) -> Result<DiskUse, crate::Error> {
    let mut sum = DiskUse::default();
    let mut directories = vec![directory.to_path_buf()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory)? {
            let path = entry?.path();
            // A background thread may delete a file between the listing and this look at it.
            let Ok(metadata) = std::fs::symlink_metadata(&path) else { continue };
            let bytes = metadata.blocks() * 512;
            match (metadata.is_dir(), is_log(&path)) {
                (true, _) => directories.push(path),
                (false, true) => sum.log_bytes += bytes,
                (false, false) => sum.data_bytes += bytes,
            }
        }
    }
    Ok(sum)
}
