//! Measures the run level alone: size, build rate, point reads and scans, on one run and on five.
//!
//! `cargo run --release -p pando-engine-runs --example measure_engine_runs -- DIRECTORY [documents] [block bytes] [level] [dictionary bytes] [repeats]`
//!
//! Single-threaded figures are per second of processor time of the measuring thread, so that a busy machine does not blur
//! them (what a busy neighbour does to the caches remains); building is per second on the clock.

use pando_engine_runs::{
    BlockCache, FilterPrefix, Lookup, NewRuns, Part, ReadPoint, Run, RunFile, RunWriter, Stamp, TableRuns,
    TableWriteOptions, Version, WriterOptions,
};
use pando_env::{Env, OpenMode};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// A small generator of numbers: the same for the same seed.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// Letters with about the frequencies of English.
    fn letters(&mut self, count: usize, out: &mut Vec<u8>) {
        const COMMON: &[u8; 64] = b"eeeeeeeettttttaaaaaooooiiiinnnnsssshhhhrrrrddlllccuummwwffgyypbv";
        (0..count).for_each(|_| out.push(COMMON[self.below(64) as usize]));
    }

    fn digits(&mut self, count: usize, out: &mut Vec<u8>) {
        (0..count).for_each(|_| out.push(b'0' + self.below(10) as u8));
    }
}

const DOCUMENT_BYTES: usize = 500;

/// 500 bytes laid out like BSON: field names repeat, values never do.
fn document(number: u64, version: u64, out: &mut Vec<u8>) {
    let mut numbers = Numbers(number.wrapping_mul(0x1234_5677).wrapping_add(version << 50));
    out.clear();
    out.extend_from_slice(&(DOCUMENT_BYTES as u32).to_le_bytes());
    out.extend_from_slice(b"\x12_id\0");
    out.extend_from_slice(&number.to_le_bytes());
    for name in ["customerFullName", "emailAddress", "streetAndNumber", "cityOrTown", "tags.0", "tags.1"] {
        text(name, out, |out| {
            let length = 5 + numbers.below(9) as usize;
            numbers.letters(length, out);
        });
    }
    for (name, count) in [("telephoneNumber", 9), ("postalCode", 5), ("sessionIdentifier", 10)] {
        text(name, out, |out| numbers.digits(count, out));
    }
    for name in ["createdAt", "lastModifiedAt", "averageScore", "accountBalanceCents"] {
        out.push(9);
        out.extend_from_slice(name.as_bytes());
        out.push(0);
        out.extend_from_slice(&(1_420_070_400_000 + numbers.below(300_000_000_000)).to_le_bytes());
    }
    out.extend_from_slice(b"\x05contentDigest\0\x20\0\0\0\0");
    (0..4).for_each(|_| out.extend_from_slice(&numbers.next().to_le_bytes()));
    out.extend_from_slice(b"\x02note\0");
    let rest = DOCUMENT_BYTES.saturating_sub(out.len() + 1);
    (0..rest / 6).for_each(|_| {
        numbers.letters(5, out);
        out.push(b' ');
    });
    out.resize(DOCUMENT_BYTES, 0);
}

fn text(name: &str, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(2);
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(&[0; 5]);
    write(out);
    out.push(0);
}

struct Bench {
    env: Env,
    directory: PathBuf,
    numbers: Arc<AtomicU64>,
    options: WriterOptions,
    documents: u64,
}

impl Bench {
    /// Nanoseconds that this thread has run.
    fn processor_ns(&self) -> u64 {
        let mut buffer = [0; 64];
        let schedstat = self.env.disk().open(Path::new("/proc/thread-self/schedstat"), OpenMode::Read);
        let length = schedstat.and_then(|file| file.read_at(&mut buffer, 0)).unwrap_or(0);
        let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
        let ran = text.split(' ').next().and_then(|number| number.parse().ok());
        ran.unwrap_or_else(|| self.env.clock().monotonic_ns())
    }

    fn rate(&self, name: &str, count: u64, work: impl FnOnce() -> Outcome<()>) -> Outcome<()> {
        let (wall, start) = (self.env.clock().monotonic_ns(), self.processor_ns());
        work()?;
        let (spent, wall) = (self.processor_ns() - start, self.env.clock().monotonic_ns() - wall);
        let per_second = |ns: u64| count as f64 * 1e6 / ns.max(1) as f64;
        println!("{name:<42} {:>9.1} k/s   ({:.1} k/s on the clock)", per_second(spent), per_second(wall));
        Ok(())
    }

    fn build(&self, numbers: impl Iterator<Item = u64>, version: u64) -> Outcome<NewRuns> {
        let mut writer = RunWriter::new(&self.env, &self.directory, self.numbers.clone(), self.options.clone());
        writer.begin_table(1, TableWriteOptions { filter_prefix: FilterPrefix::Whole, ident: "documents".into() })?;
        let mut value = Vec::new();
        let stamp = Stamp::SETTLED;
        for number in numbers {
            document(number, version, &mut value);
            writer.add_version(&number.to_be_bytes(), Version { stamp, value: Some(&value) })?;
        }
        Ok(writer.finish()?)
    }

    fn open(&self, new: NewRuns, cache: &Arc<BlockCache>) -> Vec<Arc<Run>> {
        let (files, tables) = new.keep();
        let files: Vec<Arc<RunFile>> =
            files.into_iter().map(|file| RunFile::new(&self.env, &self.directory, file)).collect();
        let part = |descriptor: &pando_engine_runs::PartDescriptor| {
            let file = files.iter().find(|file| file.id() == descriptor.file)?;
            Some(Part::new(file.clone(), descriptor.clone(), cache.clone()))
        };
        tables.iter().map(|(_, run)| Run::new(run.parts.iter().filter_map(part).collect())).collect()
    }

    fn gets(&self, name: &str, table: &TableRuns, count: u64) -> Outcome<()> {
        let mut numbers = Numbers(7);
        self.rate(name, count, || {
            let mut bytes = 0;
            for _ in 0..count {
                let key = numbers.below(self.documents).to_be_bytes();
                match table.get(&key, &ReadPoint::LATEST)? {
                    Lookup::Found { value, .. } => bytes += value.len() + usize::from(value[20]),
                    other => return Err(format!("{other:?}").into()),
                }
            }
            assert!(bytes as u64 >= count * DOCUMENT_BYTES as u64);
            Ok(())
        })
    }

    fn scans(&self, name: &str, table: &Arc<TableRuns>) -> Outcome<()> {
        let mut cursor = table.cursor(ReadPoint::LATEST);
        self.rate(&format!("{name}, forward"), self.documents, || {
            let (mut count, mut bytes) = (0, 0u64);
            while cursor.next()? {
                let value = cursor.value_slice()?;
                bytes += value.len() as u64 + u64::from(value[20]) + u64::from(cursor.key()[7]);
                count += 1;
            }
            assert!(count == self.documents && bytes > count);
            Ok(())
        })?;
        self.rate(&format!("{name}, backward"), self.documents, || {
            let (mut count, mut bytes) = (0, 0u64);
            while cursor.prev()? {
                let value = cursor.value_slice()?;
                bytes += value.len() as u64 + u64::from(value[20]) + u64::from(cursor.key()[7]);
                count += 1;
            }
            assert!(count == self.documents && bytes > count);
            Ok(())
        })
    }
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |at: usize, default: u64| arguments.get(at).and_then(|text| text.parse().ok()).unwrap_or(default);
    let defaults = WriterOptions::default();
    let options = WriterOptions {
        block_bytes: number(3, defaults.block_bytes as u64) as usize,
        level: arguments.get(4).and_then(|text| text.parse().ok()).unwrap_or(defaults.level),
        dictionary_bytes: number(5, defaults.dictionary_bytes as u64) as usize,
        ..defaults
    };
    let env = Env::real();
    let directory = PathBuf::from(arguments.get(1).ok_or("which directory?")?);
    env.disk().create_directory(&directory)?;
    let documents = number(2, 1_000_000);
    println!(
        "blocks {} B, level {}, dictionary {} B, {documents} documents",
        options.block_bytes, options.level, options.dictionary_bytes
    );
    let bench = Bench { env, directory, numbers: Arc::new(AtomicU64::new(1)), options, documents };
    let mut value = Vec::new();
    bench.rate("making the documents", documents, || {
        (0..documents).for_each(|number| document(number, 0, &mut value));
        Ok(())
    })?;
    let mut built = None;
    bench.rate("building (caller's processor time)", documents, || {
        built = Some(bench.build(0..documents, 0)?);
        Ok(())
    })?;
    let built = built.ok_or("nothing built")?;
    let raw = documents * (DOCUMENT_BYTES as u64 + 8);
    let size: u64 = built.files().iter().map(|file| file.length_bytes).sum();
    println!("size {:.1} MB, {:.3} of raw, {} files", size as f64 / 1e6, size as f64 / raw as f64, built.files().len());
    let cache = BlockCache::new(4 << 30);
    let base = bench.open(built, &cache);
    let table = Arc::new(TableRuns::new(base.clone()));
    bench.scans("scan, 1 run, cold", &table)?;
    bench.gets("get, 1 run, cached", &table, documents)?;
    bench.gets("get, 1 run, cached", &table, documents)?;
    bench.scans("scan, 1 run, cached", &table)?;
    bench.scans("scan, 1 run, cached", &table)?;
    println!("cache {:.1} MB", cache.used_bytes() as f64 / 1e6);
    let mut runs = base;
    for version in 1..5 {
        let mut numbers = Numbers(version);
        let mut chosen: Vec<u64> = (0..documents / 10).map(|_| numbers.below(documents)).collect();
        chosen.sort_unstable();
        chosen.dedup();
        let new = bench.build(chosen.into_iter(), version)?;
        runs.splice(0..0, bench.open(new, &cache));
    }
    let table = Arc::new(TableRuns::new(runs));
    bench.scans("scan, 5 runs, warming", &table)?;
    for _ in 0..number(6, 1) {
        bench.scans("scan, 5 runs, cached", &table)?;
    }
    bench.gets("get, 5 runs, warming", &table, documents)?;
    bench.gets("get, 5 runs, cached", &table, documents)?;
    cache.set_capacity_bytes((raw / 20) as usize);
    bench.gets("get, 5 runs, cache of 5 %", &table, documents / 2)?;
    let table = Arc::new(TableRuns::new(table.runs()[4..].to_vec()));
    bench.gets("get, 1 run, cache of 5 %", &table, documents / 2)?;
    bench.scans("scan, 1 run, cache of 5 %", &table)?;
    println!("{:?}", cache.statistics());
    for path in bench.env.disk().list(&bench.directory)? {
        bench.env.disk().remove(&path)?;
    }
    Ok(())
}
