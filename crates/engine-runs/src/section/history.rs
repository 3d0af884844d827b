//! Reading the older versions of a key.

use crate::ReadPoint;
use crate::Result;
use crate::block::entries::{Block, Entry};
use crate::section::core::{SectionCore, Side};
use crate::section::index::IndexPartition;
use std::sync::Arc;

/// Steps through the versions of one key in a section's history, newest first, from the first that may be visible on.
pub(crate) struct HistoryWalk {
    core: Arc<SectionCore>,
    partition: Option<Arc<IndexPartition>>,
    partition_position: usize,
    block_position: usize,
    block: Option<Block>,
    entry_position: usize,
    admit: bool,
}

impl HistoryWalk {
    /// Stands before the first version that `point` may show; everything newer is skipped unseen. Without `admit`, blocks that
    /// have to be read do not stay in the cache.
    pub(crate) fn start(core: &Arc<SectionCore>, key: &[u8], point: &ReadPoint, admit: bool) -> Result<HistoryWalk> {
        let root = core.root()?;
        let partition_position = root.history.directory.first_for(key, point);
        let partition = core.partition(root, Side::History, partition_position)?;
        let block_position = partition.as_ref().map_or(0, |partition| partition.directory.first_for(key, point));
        let mut walk = HistoryWalk {
            core: core.clone(),
            partition,
            partition_position,
            block_position,
            block: None,
            entry_position: 0,
            admit,
        };
        walk.load_block()?;
        if let Some(block) = &walk.block {
            walk.entry_position = block.search(key).0;
        }
        Ok(walk)
    }

    /// The next version of `key`, which must be the key of the start.
    pub(crate) fn next(&mut self, key: &[u8]) -> Result<Option<(Block, Entry)>> {
        loop {
            let Some(block) = &self.block else { return Ok(None) };
            if self.entry_position < block.count() {
                let entry = block.entry(self.entry_position);
                if key.strip_prefix(block.prefix()) != Some(block.suffix(&entry)) {
                    return Ok(None);
                }
                self.entry_position += 1;
                return Ok(Some((block.clone(), entry)));
            }
            self.block_position += 1;
            self.load_block()?;
            self.entry_position = 0;
        }
    }

    /// Loads the block at the position, going on to the next partition where this one ends.
    fn load_block(&mut self) -> Result<()> {
        self.block = None;
        while let Some(partition) = &self.partition {
            if self.block_position < partition.len() {
                self.block = match self.admit {
                    true => self.core.block(Side::History, partition, self.block_position)?,
                    false => self.core.block_in_passing(Side::History, partition, self.block_position, false)?,
                };
                return Ok(());
            }
            self.partition_position += 1;
            self.block_position = 0;
            self.partition = self.core.partition(self.core.root()?, Side::History, self.partition_position)?;
        }
        Ok(())
    }
}
