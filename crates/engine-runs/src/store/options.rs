//! How a store is opened.

use crate::merge::MergePolicy;

/// Options of a store; the defaults suit a server.
#[derive(Clone, Debug)]
pub struct RunsOptions {
    /// Capacity of the block cache; can be changed at run time.
    pub cache_bytes: u64,
    /// Space that is kept in reserve for drops and merges on a full disk; zero for none.
    pub ballast_bytes: u64,
    /// The manifest is rewritten when its edits outweigh a snapshot by this.
    pub manifest_rotate_bytes: u64,
    /// When runs are merged.
    pub policy: MergePolicy,
}

impl Default for RunsOptions {
    fn default() -> RunsOptions {
        RunsOptions {
            cache_bytes: 256 << 20,
            ballast_bytes: 8 << 20,
            manifest_rotate_bytes: 1 << 20,
            policy: MergePolicy::default(),
        }
    }
}
