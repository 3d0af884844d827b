//! Samples packed together: the first as it is, of the others only by how much each number differs from the one before.
//!
//! The numbers of a document are taken in its order, those of documents and arrays inside included; texts and the like are
//! not numbers. Samples whose fields differ do not go together. Packed, the numbers of one field stand side by side, runs
//! of zeros as their length, and all of it is compressed.

use flate2::Compression;
use flate2::write::ZlibEncoder;
use pando_doc::{ArrayRef, Doc, DocBuilder, DocRef, Value};
use std::io::{self, Write};

/// A document that tells of the server, not of a moment.
const METADATA: i32 = 0;
/// Packed samples.
const METRICS: i32 = 1;

/// The numbers of a sample, and the fields that they are of.
#[derive(Debug, Default, PartialEq)]
struct Numbers {
    values: Vec<u64>,
    /// A mark for each field: samples with other marks have other fields.
    fields: Vec<u64>,
}

impl Numbers {
    fn of(document: DocRef<'_>) -> Numbers {
        let mut numbers = Numbers::default();
        numbers.take_document(document);
        numbers
    }

    fn take_document(&mut self, document: DocRef<'_>) {
        document.elements().for_each(|element| self.take(element.name, element.value));
    }

    fn take_array(&mut self, array: ArrayRef<'_>) {
        array.values().for_each(|value| self.take(b"", value));
    }

    fn take(&mut self, name: &[u8], value: Value<'_>) {
        let number = match value {
            Value::Document(inner) => return self.take_document(inner),
            Value::Array(array) => return self.take_array(array),
            Value::Double(number) => number as i64 as u64,
            Value::Int32(number) => i64::from(number) as u64,
            Value::Int64(number) | Value::DateTime(number) => number as u64,
            Value::Bool(truth) => u64::from(truth),
            Value::Timestamp(time) => {
                self.push(name, u64::from(time.seconds()));
                return self.push(name, u64::from(time.increment()));
            }
            _ => return,
        };
        self.push(name, number);
    }

    fn push(&mut self, name: &[u8], number: u64) {
        self.values.push(number);
        self.fields.push(mark(name));
    }
}

/// FNV-1a: names that differ should have marks that differ, nothing more.
fn mark(name: &[u8]) -> u64 {
    name.iter().fold(0xcbf2_9ce4_8422_2325, |mark, byte| (mark ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Samples that wait to be packed.
#[derive(Debug)]
pub(super) struct ChunkBuilder {
    first: Doc,
    first_ms: i64,
    fields: Vec<u64>,
    last: Vec<u64>,
    /// By sample, then by field.
    differences: Vec<Vec<u64>>,
}

impl ChunkBuilder {
    /// Begins with a sample.
    pub(super) fn new(sample: Doc, now_ms: i64) -> ChunkBuilder {
        let Numbers { values, fields } = Numbers::of(sample.view());
        ChunkBuilder { first: sample, first_ms: now_ms, fields, last: values, differences: Vec::new() }
    }

    /// Adds a sample; false if its fields differ from those before, and it has to begin a chunk of its own.
    pub(super) fn add(&mut self, sample: DocRef<'_>) -> bool {
        let numbers = Numbers::of(sample);
        if numbers.fields != self.fields {
            return false;
        }
        let pairs = numbers.values.iter().zip(&self.last);
        self.differences.push(pairs.map(|(now, before)| now.wrapping_sub(*before)).collect());
        self.last = numbers.values;
        true
    }

    /// How many samples there are.
    pub(super) fn count(&self) -> usize {
        self.differences.len() + 1
    }

    /// The document that goes into the archive.
    pub(super) fn pack(&self) -> io::Result<Doc> {
        let mut plain = self.first.bytes().to_vec();
        plain.extend_from_slice(&(self.fields.len() as u32).to_le_bytes());
        plain.extend_from_slice(&(self.differences.len() as u32).to_le_bytes());
        self.append_differences(&mut plain);
        let mut packed = (plain.len() as u32).to_le_bytes().to_vec();
        let mut encoder = ZlibEncoder::new(&mut packed, Compression::default());
        encoder.write_all(&plain)?;
        encoder.finish()?;
        let mut out = DocBuilder::new();
        out.append("_id", Value::DateTime(self.first_ms));
        out.append("type", METRICS);
        out.append("data", Value::Binary { subtype: 0, bytes: &packed });
        Ok(out.finish())
    }

    /// Field by field; a zero is followed by how many more of them there are.
    fn append_differences(&self, out: &mut Vec<u8>) {
        let mut zeros: u64 = 0;
        for field in 0..self.fields.len() {
            for sample in &self.differences {
                match sample.get(field).copied().unwrap_or(0) {
                    0 => zeros += 1,
                    difference => {
                        append_zeros(&mut zeros, out);
                        append_number(difference, out);
                    }
                }
            }
        }
        append_zeros(&mut zeros, out);
    }
}

fn append_zeros(zeros: &mut u64, out: &mut Vec<u8>) {
    if *zeros > 0 {
        out.push(0);
        append_number(*zeros - 1, out);
        *zeros = 0;
    }
}

/// Seven bits to a byte, the lowest first; the top bit says that more follow.
fn append_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// The document that opens a file: what does not change.
pub(super) fn metadata(document: DocRef<'_>, now_ms: i64) -> Doc {
    let mut out = DocBuilder::new();
    out.append("_id", Value::DateTime(now_ms));
    out.append("type", METADATA);
    out.append("doc", document);
    out.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::doc;
    use std::io::Read;

    fn read_number(bytes: &mut &[u8]) -> u64 {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            number |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                return number;
            }
        }
    }

    /// The samples' numbers, as a reader of the archive finds them.
    fn unpacked(chunk: &Doc) -> Vec<Vec<u64>> {
        let Some(Value::Binary { bytes, .. }) = chunk.get("data") else { panic!("{chunk}") };
        let mut plain = Vec::new();
        flate2::read::ZlibDecoder::new(&bytes[4..]).read_to_end(&mut plain).unwrap();
        assert_eq!(plain.len() as u32, u32::from_le_bytes(bytes[..4].try_into().unwrap()));
        let first_bytes = u32::from_le_bytes(plain[..4].try_into().unwrap()) as usize;
        let first = Doc::parse(plain[..first_bytes].to_vec()).unwrap();
        let word = |place: usize| u32::from_le_bytes(plain[place..place + 4].try_into().unwrap()) as usize;
        let (fields, samples) = (word(first_bytes), word(first_bytes + 4));
        let mut rest = &plain[first_bytes + 8..];
        let mut differences = Vec::new();
        while differences.len() < fields * samples {
            match read_number(&mut rest) {
                0 => (0..=read_number(&mut rest)).for_each(|_| differences.push(0)),
                number => differences.push(number),
            }
        }
        assert!(rest.is_empty());
        let mut found = vec![Numbers::of(first.view()).values];
        for sample in 0..samples {
            let before = found.last().unwrap().clone();
            let now = before
                .iter()
                .enumerate()
                .map(|(field, number)| number.wrapping_add(differences[field * samples + sample]));
            found.push(now.collect());
        }
        found
    }

    #[test]
    fn u15_packed_samples_can_be_read_back() {
        let sample = |number: i64| {
            doc! { "start": number, "text": "x", "inner": { "same": 7_i32, "grows": 1000 * number, "list": [true, 1.5] }, "falls": -number }
        };
        let mut chunk = ChunkBuilder::new(sample(0), 5);
        (1..50).for_each(|number| assert!(chunk.add(sample(number).view())));
        assert_eq!(chunk.count(), 50);
        let found = unpacked(&chunk.pack().unwrap());
        let expected: Vec<Vec<u64>> = (0..50).map(|number| Numbers::of(sample(number).view()).values).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn u15_samples_with_other_fields_do_not_go_together() {
        let mut chunk = ChunkBuilder::new(doc! { "a": 1 }, 0);
        assert!(!chunk.add(doc! { "b": 1 }.view()) && !chunk.add(doc! { "a": 1, "b": 1 }.view()));
        assert!(chunk.add(doc! { "a": 2_i64, "text": "is no number" }.view()));
    }
}
