//! One document: 500 bytes that are laid out as BSON.
//!
//! The field names are the same in every document, as in a real collection; every value is drawn afresh, not from a pool:
//! digits, hexadecimal ids, dates, random bytes, and words whose letters come with their natural frequencies. So a
//! compressor can win on the structure and on the letters' statistics but never by finding an earlier value again.
//! The mix is calibrated against what the engines' own compressors made of the data behind the design's table: see
//! [`ratios`](super::ratios) for the figures, which every run prints.

use super::Random;

/// The length of every document.
pub const DOCUMENT_BYTES: usize = 500;

/// Where the `_id` number lies in every document, little-endian.
const ID_OFFSET: usize = 4 + 1 + 4;

/// 256 letters, each as often as its share of English text; picked by a random byte.
static LETTERS: [u8; 256] = letters();

const fn letters() -> [u8; 256] {
    const SHARES: [(u8, usize); 26] = [
        (b'e', 33),
        (b't', 23),
        (b'a', 21),
        (b'o', 19),
        (b'i', 18),
        (b'n', 17),
        (b's', 16),
        (b'h', 16),
        (b'r', 15),
        (b'd', 11),
        (b'l', 10),
        (b'c', 7),
        (b'u', 7),
        (b'm', 6),
        (b'w', 6),
        (b'f', 6),
        (b'g', 5),
        (b'y', 5),
        (b'p', 5),
        (b'b', 4),
        (b'v', 2),
        (b'k', 1),
        (b'j', 1),
        (b'x', 1),
        (b'q', 1),
        (b'z', 0),
    ];
    let mut table = [b'e'; 256];
    let (mut filled, mut index) = (0, 0);
    while index < SHARES.len() {
        let mut times = 0;
        while times < SHARES[index].1 {
            table[filled] = SHARES[index].0;
            filled += 1;
            times += 1;
        }
        index += 1;
    }
    assert!(filled == 256);
    table
}

/// Writes the document with this number as it is at this version; versions share nothing but the number.
pub fn write_document(number: u64, version: u64, out: &mut Vec<u8>) {
    let mut composer = Composer { start: out.len(), out, random: Random::stream(0xd0c0_0000 + version, number) };
    composer.out.extend_from_slice(&(DOCUMENT_BYTES as i32).to_le_bytes());
    composer.name(0x12, "_id");
    composer.out.extend_from_slice(&number.to_le_bytes());
    composer.string("customerFullName", |composer| composer.words(2));
    composer.string("emailAddress", |composer| {
        composer.words(1);
        composer.out.extend_from_slice(b"@mail.example.com");
    });
    composer.string("telephoneNumber", |composer| composer.digits(9));
    composer.string("sessionIdentifier", |composer| composer.hex(4));
    composer.address();
    composer.date("createdAt");
    composer.date("lastModifiedAt");
    composer.name(0x01, "averageScore");
    let score = composer.random.below(1 << 40) as f64 / 1000.0;
    composer.out.extend_from_slice(&score.to_le_bytes());
    composer.name(0x12, "accountBalanceCents");
    let balance = composer.random.below(100_000_000);
    composer.out.extend_from_slice(&balance.to_le_bytes());
    composer.binary("contentDigest", DIGEST_BYTES);
    composer.tags();
    composer.note();
    debug_assert_eq!(out.len() % DOCUMENT_BYTES, 0);
}

/// The length of the random bytes in every document: what no compressor can win anything on.
const DIGEST_BYTES: usize = 32;

/// The `_id` of a document, to see that a system gave back the right one; none if it is no document of ours.
pub fn document_number(document: &[u8]) -> Option<u64> {
    let number = document.get(ID_OFFSET..ID_OFFSET + 8)?;
    (document.len() == DOCUMENT_BYTES).then(|| u64::from_le_bytes(number.try_into().unwrap_or_default()))
}

struct Composer<'a> {
    start: usize,
    out: &'a mut Vec<u8>,
    random: Random,
}

impl Composer<'_> {
    fn name(&mut self, kind: u8, name: &str) {
        self.out.push(kind);
        self.out.extend_from_slice(name.as_bytes());
        self.out.push(0);
    }

    /// A string element, its length filled in after its text.
    fn string(&mut self, name: &str, write: impl FnOnce(&mut Self)) {
        self.name(0x02, name);
        let length_at = self.out.len();
        self.out.extend_from_slice(&[0; 4]);
        write(self);
        self.out.push(0);
        let length = (self.out.len() - length_at - 4) as u32;
        self.out[length_at..length_at + 4].copy_from_slice(&length.to_le_bytes());
    }

    /// A document or array element, its length filled in after its content.
    fn nested(&mut self, kind: u8, name: &str, write: impl FnOnce(&mut Self)) {
        self.name(kind, name);
        let length_at = self.out.len();
        self.out.extend_from_slice(&[0; 4]);
        write(self);
        self.out.push(0);
        let length = (self.out.len() - length_at) as u32;
        self.out[length_at..length_at + 4].copy_from_slice(&length.to_le_bytes());
    }

    fn address(&mut self) {
        self.nested(0x03, "deliveryAddress", |composer| {
            composer.string("streetAndNumber", |composer| {
                composer.words(1);
                composer.out.extend_from_slice(b" Street ");
                composer.digits(3);
            });
            composer.string("postalCode", |composer| composer.digits(5));
            composer.string("cityOrTown", |composer| composer.words(1));
        });
    }

    fn tags(&mut self) {
        self.nested(0x04, "tags", |composer| {
            composer.string("0", |composer| composer.words(1));
            composer.string("1", |composer| composer.words(1));
        });
    }

    /// A moment within ten years, to the millisecond.
    fn date(&mut self, name: &str) {
        self.name(0x09, name);
        let milliseconds = 1_420_070_400_000 + self.random.below(10 * 365 * 86_400_000);
        self.out.extend_from_slice(&milliseconds.to_le_bytes());
    }

    fn binary(&mut self, name: &str, length: usize) {
        self.name(0x05, name);
        self.out.extend_from_slice(&(length as u32).to_le_bytes());
        self.out.push(0);
        for _ in 0..length / 8 {
            let bits = self.random.bits();
            self.out.extend_from_slice(&bits.to_le_bytes());
        }
    }

    fn letters(&mut self, length: usize) {
        let mut bits = 0;
        for position in 0..length {
            if position % 8 == 0 {
                bits = self.random.bits();
            }
            self.out.push(LETTERS[(bits & 0xff) as usize]);
            bits >>= 8;
        }
    }

    fn words(&mut self, count: usize) {
        for index in 0..count {
            if index > 0 {
                self.out.push(b' ');
            }
            let length = 4 + self.random.below(6) as usize;
            self.letters(length);
        }
    }

    fn digits(&mut self, count: usize) {
        let mut number = self.random.below(10_u64.pow(count as u32));
        for _ in 0..count {
            self.out.push(b'0' + (number % 10) as u8);
            number /= 10;
        }
    }

    /// Twice as many hexadecimal digits as random bytes.
    fn hex(&mut self, bytes: usize) {
        let mut bits = self.random.bits();
        for _ in 0..bytes * 2 {
            self.out.push(b"0123456789abcdef"[(bits & 0xf) as usize]);
            bits >>= 4;
        }
    }

    /// Words up to the document's length, and the closing byte.
    fn note(&mut self) {
        self.string("note", |composer| {
            let end = composer.start + DOCUMENT_BYTES - 2;
            while composer.out.len() + 6 < end {
                let length = (3 + composer.random.below(7) as usize).min(end - composer.out.len() - 1);
                composer.letters(length);
                composer.out.push(b' ');
            }
            let rest = end - composer.out.len();
            composer.letters(rest);
        });
        self.out.push(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_have_their_length_and_number() {
        for number in 0..2000 {
            let mut document = Vec::new();
            write_document(number, number % 3, &mut document);
            assert_eq!(document.len(), DOCUMENT_BYTES);
            assert_eq!(document_number(&document), Some(number));
        }
    }
}
