//! A list whose old items are on disk: appended at the end, read by number, forgotten from the front.
//!
//! For windows over partitions that do not fit into memory. Items that were written stay readable; a block that was read is kept until
//! another one is needed, since neighbours are asked for one after the other.

use crate::block::{self, BLOCK_BYTES, Compressor, put_length, take_bytes};
use crate::file::SpillFile;
use crate::{Result, SorterError, SpillDirectory, SpillStatistics, Spilled};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;

/// Items by number.
pub struct SpilledList<V> {
    directory: Option<Arc<SpillDirectory>>,
    purpose: &'static str,
    memory_bytes_max: u64,
    free_bytes_min: u64,
    /// The items that are not on disk: those from this number on.
    recent: VecDeque<V>,
    recent_first: usize,
    recent_bytes: u64,
    file: Option<Arc<SpillFile>>,
    end_offset: u64,
    /// The number of the first item of each block, and where it begins.
    blocks: Vec<(usize, u64)>,
    read: Mutex<Option<(usize, Vec<V>)>>,
    compressor: Compressor,
    statistics: SpillStatistics,
}

impl<V: Spilled + Clone> SpilledList<V> {
    /// An empty list.
    pub fn new(
        directory: Option<Arc<SpillDirectory>>,
        purpose: &'static str,
        memory_bytes_max: u64,
        free_bytes_min: u64,
    ) -> SpilledList<V> {
        SpilledList {
            directory,
            purpose,
            memory_bytes_max,
            free_bytes_min,
            recent: VecDeque::new(),
            recent_first: 0,
            recent_bytes: 0,
            file: None,
            end_offset: 0,
            blocks: Vec::new(),
            read: Mutex::new(None),
            compressor: Compressor::new(),
            statistics: SpillStatistics::default(),
        }
    }

    /// Appends an item.
    pub fn push(&mut self, item: V) -> Result<()> {
        let memory_bytes = item.memory_bytes() as u64;
        self.recent_bytes += memory_bytes;
        self.statistics.entries += 1;
        self.statistics.data_bytes += memory_bytes;
        self.recent.push_back(item);
        if self.recent_bytes > self.memory_bytes_max { self.spill() } else { Ok(()) }
    }

    /// How many items there are.
    pub fn len(&self) -> usize {
        self.recent_first + self.recent.len()
    }

    /// True without items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The item of this number.
    pub fn get(&self, number: usize) -> Result<Option<V>> {
        if let Some(place) = number.checked_sub(self.recent_first) {
            return Ok(self.recent.get(place).cloned());
        }
        let block = self.blocks.partition_point(|(first, _)| *first <= number).saturating_sub(1);
        let mut read = self.read.lock();
        let Some((first, offset)) = self.blocks.get(block).copied() else { return Ok(None) };
        if let Some((known, items)) = &*read
            && *known == block
        {
            return Ok(items.get(number - first).cloned());
        }
        let items = self.load(offset)?;
        let item = items.get(number - first).cloned();
        *read = Some((block, items));
        Ok(item)
    }

    fn load(&self, offset: u64) -> Result<Vec<V>> {
        let Some(file) = &self.file else { return Ok(Vec::new()) };
        let (mut raw, mut stored) = (Vec::new(), Vec::new());
        block::read(file, offset, &mut raw, &mut stored)?;
        let mut rest = &raw[..];
        let mut items = Vec::new();
        while !rest.is_empty() {
            let item = take_bytes(&mut rest).and_then(V::read).ok_or_else(|| file.damaged(offset))?;
            items.push(item);
        }
        Ok(items)
    }

    /// Writes what is in memory.
    fn spill(&mut self) -> Result<()> {
        let Some(directory) = &self.directory else {
            return Err(SorterError::MemoryExceeded { memory_bytes_max: self.memory_bytes_max });
        };
        directory.require_space(self.free_bytes_min)?;
        let file = match &self.file {
            Some(file) => Arc::clone(file),
            None => Arc::clone(self.file.insert(Arc::new(directory.create(self.purpose)?))),
        };
        let (mut raw, mut value) = (Vec::with_capacity(BLOCK_BYTES * 2), Vec::new());
        let mut first = self.recent_first;
        for (place, item) in self.recent.iter().enumerate() {
            value.clear();
            item.write(&mut value);
            put_length(&mut raw, value.len());
            raw.extend_from_slice(&value);
            let is_last = place + 1 == self.recent.len();
            if raw.len() >= BLOCK_BYTES || is_last {
                self.blocks.push((first, self.end_offset));
                let (end, _) = block::write(&file, self.end_offset, &raw, &mut self.compressor)?;
                self.statistics.spilled_storage_bytes += end - self.end_offset;
                self.end_offset = end;
                first = self.recent_first + place + 1;
                raw.clear();
            }
        }
        self.statistics.spills += 1;
        self.statistics.spilled_entries += self.recent.len() as u64;
        self.statistics.spilled_memory_bytes += self.recent_bytes;
        self.recent_first += self.recent.len();
        self.recent.clear();
        self.recent_bytes = 0;
        Ok(())
    }

    /// What was done so far.
    pub fn statistics(&self) -> SpillStatistics {
        self.statistics
    }
}
