//! The ranges of one sorter: written one after the other, merged at the end.

use crate::block::BLOCK_BYTES;
use crate::collected::Collected;
use crate::file::SpillFile;
use crate::range::{Place, RangeDescription, RangeWriter, Written};
use crate::writing::Writing;
use crate::{Merged, Result, SorterError, SpillDirectory, SpillStatistics, Spilled};
use pando_env::Env;
use std::borrow::Borrow;
use std::sync::Arc;

/// More ranges than this are never merged at once, whatever the memory.
const FAN_IN_MAX: u64 = 1024;

/// Sorted ranges in a file.
pub struct SpilledRanges<V: Spilled> {
    directory: Arc<SpillDirectory>,
    purpose: &'static str,
    /// Before it writes, there has to be so much space.
    free_bytes_min: u64,
    file: Option<Arc<SpillFile>>,
    ranges: Vec<RangeDescription>,
    /// The range behind these, which another thread is writing.
    writing: Option<Writing<V>>,
    statistics: SpillStatistics,
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
            writing: None,
            statistics: SpillStatistics::default(),
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
    pub fn write(&mut self, sorted: impl IntoIterator<Item = (impl AsRef<[u8]>, impl Borrow<V>)>) -> Result<()> {
        self.settle()?;
        let place = self.place()?;
        let written = place.write::<V>(sorted)?;
        self.note(written);
        Ok(())
    }

    /// Sorts and writes; gives back the memory.
    pub(crate) fn write_collected(&mut self, mut collected: Collected<V>) -> Result<Collected<V>> {
        collected.sort()?;
        self.write(collected.iter())?;
        collected.clear();
        Ok(collected)
    }

    /// Has another thread sort and write, once the last such range is written; gives back the memory of that one.
    pub(crate) fn write_meanwhile(&mut self, collected: Collected<V>, env: &Env) -> Result<Collected<V>> {
        let free = self.settle()?;
        self.writing = Some(Writing::start(self.place()?, collected, env));
        Ok(free.unwrap_or_else(Collected::new))
    }

    /// Waits for the range that is being written; gives back its memory.
    fn settle(&mut self) -> Result<Option<Collected<V>>> {
        let Some(writing) = self.writing.take() else { return Ok(None) };
        let (collected, written) = writing.end()?;
        self.note(written);
        Ok(Some(collected))
    }

    /// Where the next range goes.
    fn place(&mut self) -> Result<Place> {
        self.directory.require_space(self.free_bytes_min)?;
        let file = match &self.file {
            Some(file) => Arc::clone(file),
            None => Arc::clone(self.file.insert(Arc::new(self.directory.create(self.purpose)?))),
        };
        Ok(Place { file, start_offset: self.ranges.last().map_or(0, |range| range.end_offset) })
    }

    fn note(&mut self, Written { range, memory_bytes }: Written) {
        self.ranges.push(range);
        self.statistics.spills += 1;
        self.statistics.spilled_entries += range.entries;
        self.statistics.spilled_memory_bytes += memory_bytes;
        self.statistics.spilled_storage_bytes += range.end_offset - range.start_offset;
    }

    /// True if nothing was written.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty() && self.writing.is_none()
    }

    /// What was done so far.
    pub fn statistics(&self) -> SpillStatistics {
        self.statistics
    }

    /// All entries in order, of equal keys those of the earliest range first; with a limit only so many. Reading takes no more memory
    /// than this, or two blocks.
    pub fn merge(&mut self, memory_bytes_max: u64, limit: Option<u64>) -> Result<Merged<V>> {
        self.settle()?;
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
                writer.push(key, &value)?;
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
    pub(crate) fn persist(mut self) -> Result<Option<(String, Vec<RangeDescription>)>> {
        self.settle()?;
        let Some(file) = self.file else { return Ok(None) };
        file.keep()?;
        self.directory.sync()?;
        Ok(Some((file.name(), self.ranges)))
    }
}
