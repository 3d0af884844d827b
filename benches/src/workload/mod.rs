//! What is stored: documents under ascending 8-byte keys, and one index with random 16-byte keys.
//!
//! Everything is a function of the document's number and version: the bytes of the document and its index key. A
//! [`Workload`] remembers only the version of each document, so that a rewrite knows which index key to remove.
//! What is written in a timed phase is generated before it.

mod document;
mod random;
mod ratios;

pub use document::{DOCUMENT_BYTES, document_number, write_document};
pub use random::Random;
pub use ratios::reference_ratios;

/// The key of a document.
pub type DocumentKey = [u8; 8];
/// A key of the index.
pub type IndexKey = [u8; 16];

/// Sorted input of the bulk load.
pub struct BulkInput {
    /// Document `n` lies at `n * DOCUMENT_BYTES`.
    documents: Vec<u8>,
    /// Index entries in the order of their keys.
    index: Vec<(IndexKey, DocumentKey)>,
}

impl BulkInput {
    /// Documents with their keys, ascending.
    pub fn documents(&self) -> impl ExactSizeIterator<Item = (DocumentKey, &[u8])> {
        let numbered = self.documents.chunks_exact(DOCUMENT_BYTES).enumerate();
        numbered.map(|(number, document)| (document_key(number as u64), document))
    }

    /// Index entries, ascending.
    pub fn index(&self) -> &[(IndexKey, DocumentKey)] {
        &self.index
    }
}

/// A document's rewrite with what it does to the index: one small transaction.
pub struct Rewrite {
    /// Which document.
    pub key: DocumentKey,
    /// Its new content.
    pub document: Vec<u8>,
    /// The index key that goes.
    pub index_removed: IndexKey,
    /// The index key that comes.
    pub index_added: IndexKey,
}

/// The state of the stored data.
pub struct Workload {
    versions: Vec<u8>,
    rounds: u64,
}

impl Workload {
    /// Bytes of one index entry.
    pub const INDEX_ENTRY_BYTES: u64 = 24;

    /// So many documents, none of them rewritten yet.
    pub fn new(documents: u64) -> Workload {
        Workload { versions: vec![0; documents as usize], rounds: 0 }
    }

    /// How many documents.
    pub fn documents(&self) -> u64 {
        self.versions.len() as u64
    }

    /// What is loaded at first.
    pub fn bulk_input(&self) -> BulkInput {
        let mut documents = Vec::with_capacity(self.versions.len() * DOCUMENT_BYTES);
        let mut index = Vec::with_capacity(self.versions.len());
        for number in 0..self.documents() {
            write_document(number, 0, &mut documents);
            index.push((index_key(number, 0), document_key(number)));
        }
        index.sort_unstable();
        BulkInput { documents, index }
    }

    /// Rewrites of `count` different documents, in random order; counted as done.
    pub fn rewrites(&mut self, count: u64) -> Vec<Rewrite> {
        self.rounds += 1;
        let mut random = Random::stream(0x4e77_0000, self.rounds);
        let mut chosen = vec![false; self.versions.len()];
        let mut rewrites = Vec::with_capacity(count as usize);
        while (rewrites.len() as u64) < count.min(self.documents()) {
            let number = random.below(self.documents());
            if !std::mem::replace(&mut chosen[number as usize], true) {
                rewrites.push(self.rewrite(number));
            }
        }
        rewrites
    }

    fn rewrite(&mut self, number: u64) -> Rewrite {
        let version = &mut self.versions[number as usize];
        let old = u64::from(*version);
        // A byte is plenty: a run rewrites a document a handful of times.
        *version = version.wrapping_add(1);
        let new = u64::from(*version);
        let mut document = Vec::with_capacity(DOCUMENT_BYTES);
        write_document(number, new, &mut document);
        Rewrite {
            key: document_key(number),
            document,
            index_removed: index_key(number, old),
            index_added: index_key(number, new),
        }
    }
}

/// Documents with their keys: what sizes are compared with.
pub fn raw_bytes(documents: u64) -> u64 {
    documents * (DOCUMENT_BYTES as u64 + 8)
}

/// The key of the document with this number.
pub fn document_key(number: u64) -> DocumentKey {
    number.to_be_bytes()
}

/// The index key of a document at a version: random.
pub fn index_key(number: u64, version: u64) -> IndexKey {
    let mut random = Random::stream(0x17de_0000 + version, number);
    let mut key = [0; 16];
    key[..8].copy_from_slice(&random.bits().to_be_bytes());
    key[8..].copy_from_slice(&random.bits().to_be_bytes());
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn rewrites_take_out_what_is_in_the_index() {
        let mut workload = Workload::new(100);
        let mut index: BTreeSet<IndexKey> = workload.bulk_input().index().iter().map(|entry| entry.0).collect();
        for _ in 0..5 {
            for rewrite in workload.rewrites(30) {
                assert!(index.remove(&rewrite.index_removed));
                assert!(index.insert(rewrite.index_added));
            }
        }
        assert_eq!(index.len(), 100);
    }
}
