//! What an operation takes of storage, measured for those who account for it.
//!
//! A [`ResourceMeter`] is given to an operation when it begins, if the server is told to measure; the operation's recovery unit
//! carries it, and record stores and indexes tell it of every document and key that they read or write. Without a meter they
//! look at one empty field and do nothing else.
//!
//! A *unit* is a size that small things are rounded up to: documents count in units of 128 bytes, index entries of 16. For
//! writes a document and the index entries that belong to it are also rounded together: entries follow the document before
//! them, or, where there is none, go with the next one.
//!
//! What was tried counts, also if it was rolled back. The meter's lock is a leaf.

use parking_lot::Mutex;

/// How many bytes make a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitSizes {
    /// Of documents.
    pub document_bytes: u64,
    /// Of index entries.
    pub index_entry_bytes: u64,
    /// Of what is written for one document, its index entries included.
    pub total_write_bytes: u64,
}

impl Default for UnitSizes {
    fn default() -> UnitSizes {
        UnitSizes { document_bytes: 128, index_entry_bytes: 16, total_write_bytes: 128 }
    }
}

/// Bytes, and the units that they make when each thing is rounded up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Units {
    /// As they are.
    pub bytes: u64,
    /// Rounded up.
    pub units: u64,
}

impl Units {
    fn observe(&mut self, size_bytes: u64, unit_bytes: u64) {
        self.bytes = self.bytes.saturating_add(size_bytes);
        self.units = self.units.saturating_add(size_bytes.div_ceil(unit_bytes.max(1)));
    }

    fn add(&mut self, other: Units) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.units = self.units.saturating_add(other.units);
    }
}

/// What was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadResources {
    /// Documents.
    pub documents: Units,
    /// Index entries.
    pub index_entries: Units,
    /// Documents that went to the client.
    pub returned: Units,
    /// Entries that were sorted.
    pub keys_sorted: u64,
    /// How often a sort went to disk.
    pub sorter_spills: u64,
    /// Look-ups that found something.
    pub cursor_seeks: u64,
}

impl ReadResources {
    /// Adds another's.
    pub fn add(&mut self, other: &ReadResources) {
        self.documents.add(other.documents);
        self.index_entries.add(other.index_entries);
        self.returned.add(other.returned);
        self.keys_sorted = self.keys_sorted.saturating_add(other.keys_sorted);
        self.sorter_spills = self.sorter_spills.saturating_add(other.sorter_spills);
        self.cursor_seeks = self.cursor_seeks.saturating_add(other.cursor_seeks);
    }
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteResources {
    /// Documents.
    pub documents: Units,
    /// Index entries.
    pub index_entries: Units,
    /// Units of documents together with their index entries.
    pub total_units: u64,
}

impl WriteResources {
    /// Adds another's.
    pub fn add(&mut self, other: &WriteResources) {
        self.documents.add(other.documents);
        self.index_entries.add(other.index_entries);
        self.total_units = self.total_units.saturating_add(other.total_units);
    }
}

/// What an operation took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceUse {
    /// What it read.
    pub read: ReadResources,
    /// What it wrote.
    pub written: WriteResources,
}

/// What is written and not rounded up yet.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    document_bytes: u64,
    index_bytes: u64,
}

impl Pending {
    /// A document is written; gives the units of what is complete with it.
    fn document(&mut self, size_bytes: u64, unit_bytes: u64) -> u64 {
        let Pending { document_bytes, index_bytes } = *self;
        let rounded = |size_bytes: u64| size_bytes.div_ceil(unit_bytes.max(1));
        if document_bytes > 0 {
            *self = Pending { document_bytes: size_bytes, index_bytes: 0 };
            return rounded(document_bytes.saturating_add(index_bytes));
        }
        if index_bytes > 0 {
            *self = Pending::default();
            return rounded(index_bytes.saturating_add(size_bytes));
        }
        self.document_bytes = size_bytes;
        0
    }
}

#[derive(Debug, Default)]
struct Counted {
    used: ResourceUse,
    pending: Pending,
}

/// Measures one operation.
#[derive(Debug, Default)]
pub struct ResourceMeter {
    sizes: UnitSizes,
    counted: Mutex<Counted>,
}

impl ResourceMeter {
    /// Counts in these units.
    pub fn new(sizes: UnitSizes) -> ResourceMeter {
        ResourceMeter { sizes, counted: Mutex::default() }
    }

    /// A document was read.
    pub fn document_read(&self, size_bytes: usize) {
        self.counted.lock().used.read.documents.observe(size_bytes as u64, self.sizes.document_bytes);
    }

    /// An index entry was read.
    pub fn index_entry_read(&self, size_bytes: usize) {
        self.counted.lock().used.read.index_entries.observe(size_bytes as u64, self.sizes.index_entry_bytes);
    }

    /// A look-up has found something.
    pub fn cursor_sought(&self) {
        self.counted.lock().used.read.cursor_seeks += 1;
    }

    /// A document goes to the client.
    pub fn document_returned(&self, size_bytes: usize) {
        self.counted.lock().used.read.returned.observe(size_bytes as u64, self.sizes.document_bytes);
    }

    /// A sort is over.
    pub fn sorted(&self, keys: u64, spills: u64) {
        let read = &mut self.counted.lock().used.read;
        read.keys_sorted = read.keys_sorted.saturating_add(keys);
        read.sorter_spills = read.sorter_spills.saturating_add(spills);
    }

    /// A document was written, replaced or removed.
    pub fn document_written(&self, size_bytes: usize) {
        let mut counted = self.counted.lock();
        let Counted { used, pending } = &mut *counted;
        used.written.documents.observe(size_bytes as u64, self.sizes.document_bytes);
        used.written.total_units += pending.document(size_bytes as u64, self.sizes.total_write_bytes);
    }

    /// An index entry was written or removed.
    pub fn index_entry_written(&self, size_bytes: usize) {
        let mut counted = self.counted.lock();
        counted.used.written.index_entries.observe(size_bytes as u64, self.sizes.index_entry_bytes);
        counted.pending.index_bytes = counted.pending.index_bytes.saturating_add(size_bytes as u64);
    }

    /// What it took so far; what is written last counts as complete.
    pub fn used(&self) -> ResourceUse {
        let counted = self.counted.lock();
        let (mut used, mut pending) = (counted.used, counted.pending);
        used.written.total_units += pending.document(0, self.sizes.total_write_bytes);
        used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x27_each_thing_is_rounded_up_to_units() {
        let meter = ResourceMeter::default();
        meter.document_read(1);
        meter.document_read(128);
        meter.document_read(129);
        meter.index_entry_read(16);
        meter.index_entry_read(17);
        meter.document_returned(300);
        let read = meter.used().read;
        assert_eq!(read.documents, Units { bytes: 258, units: 4 });
        assert_eq!(read.index_entries, Units { bytes: 33, units: 3 });
        assert_eq!(read.returned, Units { bytes: 300, units: 3 });
    }

    #[test]
    fn x27_index_entries_are_rounded_with_their_document() {
        // Behind their document.
        let meter = ResourceMeter::default();
        for _ in 0..2 {
            meter.document_written(100);
            meter.index_entry_written(10);
            meter.index_entry_written(18);
        }
        let written = meter.used().written;
        assert_eq!((written.documents.units, written.index_entries.units, written.total_units), (2, 6, 2));
        // Before it: as deletes do.
        let meter = ResourceMeter::default();
        meter.index_entry_written(28);
        meter.document_written(101);
        assert_eq!(meter.used().written.total_units, 2);
        // Alone.
        let meter = ResourceMeter::default();
        meter.index_entry_written(129);
        assert_eq!(meter.used().written.total_units, 2);
        assert_eq!(ResourceMeter::default().used(), ResourceUse::default());
    }
}
