//! The ranges of one sorter: written one after the other, merged at the end.

use crate::block::BLOCK_BYTES;
use crate::file::SpillFile;
use crate::range::{RangeDescription, RangeWriter};
use crate::{Merged, Result, SorterError, SpillDirectory, SpillStatistics, Spilled};
use std::marker::PhantomData;
use std::sync::Arc;

/// More ranges than this are never merged at once, whatever the memory.
const FAN_IN_MAX: u64 = 1024;

/// Sorted ranges in a file.
pub struct SpilledRanges<V> {
    directory: Arc<SpillDirectory>,
    purpose: &'static str,
    /// Before it writes, there has to be so much space.
    free_bytes_min: u64,
    file: Option<Arc<SpillFile>>,
    ranges: Vec<RangeDescription>,
    statistics: SpillStatistics,
    values: PhantomData<fn() -> V>,
}

impl<V: Spilled> SpilledRanges<V> {
    /// No ranges yet; the file is made with the first. Its name tells the purpose.
    pub fn new(directory: Arc<SpillDirectory>, purpose: &'static str, free_bytes_min: u64) -> SpilledRanges<V> {
        SpilledRanges {
            directory,
            purpose,
            free_bytes_min,
            file: None,
            ranges: Vec::new(),
            statistics: SpillStatistics::default(),
            values: PhantomData,
        }
    }

    /// Ranges that were kept.
    pub(crate) fn reopen(self, file_name: &str, ranges: &[RangeDescription]) -> Result<SpilledRanges<V>> {
        let file = self.directory.reopen(file_name)?;
        let end = ranges.iter().map(|range| range.end_offset).max().unwrap_or(0);
        if file.length()? < end {
            // It is not ours to remove.
            file.keep()?;
            return Err(SorterError::TooShort { path: file.path().to_owned() });
        }
        Ok(SpilledRanges { file: Some(Arc::new(file)), ranges: ranges.to_vec(), ..self })
    }

    /// Writes a range. The keys must be in order.
    pub fn write<K: AsRef<[u8]>>(&mut self, sorted: impl IntoIterator<Item = (K, V)>) -> Result<()> {
        self.directory.require_space(self.free_bytes_min)?;
        let file = match &self.file {
            Some(file) => Arc::clone(file),
            None => Arc::clone(self.file.insert(Arc::new(self.directory.create(self.purpose)?))),
        };
        let start = self.ranges.last().map_or(0, |range| range.end_offset);
        let mut writer = RangeWriter::new(&file, start);
        let mut memory_bytes = 0;
        for (key, value) in sorted {
            memory_bytes += key.as_ref().len() + value.memory_bytes();
            writer.push(key.as_ref(), &value)?;
        }
        let range = writer.finish()?;
        self.ranges.push(range);
        self.statistics.spills += 1;
        self.statistics.spilled_entries += range.entries;
        self.statistics.spilled_memory_bytes += memory_bytes as u64;
        self.statistics.spilled_storage_bytes += range.end_offset - range.start_offset;
        Ok(())
    }

    /// True if nothing was written.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// What was done so far.
    pub fn statistics(&self) -> SpillStatistics {
        self.statistics
    }

    /// All entries in order, of equal keys those of the earliest range first; with a limit only so many. Reading takes no more memory
    /// than this, or two blocks.
    pub fn merge(&mut self, memory_bytes_max: u64, limit: Option<u64>) -> Result<Merged<V>> {
        let fan_in = (memory_bytes_max / BLOCK_BYTES as u64).clamp(2, FAN_IN_MAX) as usize;
        while self.ranges.len() > fan_in {
            self.merge_pass(fan_in, limit)?;
        }
        match &self.file {
            Some(file) => Merged::new(file, &self.ranges, limit),
            None => Ok(Merged::empty()),
        }
    }

    /// Merges neighbours, so that there are fewer ranges, into another file.
    fn merge_pass(&mut self, fan_in: usize, limit: Option<u64>) -> Result<()> {
        let Some(old) = self.file.clone() else { return Ok(()) };
        let new = Arc::new(self.directory.create(self.purpose)?);
        let mut merged = Vec::with_capacity(self.ranges.len().div_ceil(fan_in));
        let mut offset = 0;
        for neighbours in self.ranges.chunks(fan_in) {
            let mut entries: Merged<V> = Merged::new(&old, neighbours, limit)?;
            let mut writer = RangeWriter::new(&new, offset);
            while let Some((key, value)) = entries.next_entry()? {
                writer.push(&key, &value)?;
            }
            let range = writer.finish()?;
            offset = range.end_offset;
            merged.push(range);
        }
        self.statistics.spilled_storage_bytes += offset;
        (self.file, self.ranges) = (Some(new), merged);
        Ok(())
    }

    /// Makes the ranges durable and keeps their file: its name and where they lie. None if there are none.
    pub(crate) fn persist(self) -> Result<Option<(String, Vec<RangeDescription>)>> {
        let Some(file) = self.file else { return Ok(None) };
        file.keep()?;
        self.directory.sync()?;
        Ok(Some((file.name(), self.ranges)))
    }
}
