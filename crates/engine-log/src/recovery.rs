//! Opening a log: what an earlier life left, and going on behind it.
//!
//! Nothing is overwritten but with the same bytes. What the last life left is read (only what has no index), made durable,
//! and a fresh segment is begun that links to its end. If oplog entries lie above the last recorded no-holes point, a truncation is the first
//! thing the new segment records, so that they stay gone when their timestamps are used again. The new segment is durable
//! before the log is handed out.
//!
//! The redo is not kept: [`Recovery`] reads it record by record from the checkpoint's position on.

use crate::chain::{Chain, Contents, end_of, read_chain};
use crate::control::{ControlRecord, Link};
use crate::index::{OplogIndex, Rows, SegmentRows};
use crate::log::{Inner, NoHoles, Start, allocation_for};
use crate::record::{Class, CommitBody};
use crate::rows::Loaded;
use crate::scan::{Frame, Scanner, Step};
use crate::segment::{FIRST_RECORD, Segment};
use crate::{Log, LogError, LogOptions, LogPosition, Result};
use bytes::Bytes;
use pando_base::Timestamp;
use pando_env::Env;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A commit as it was found.
#[derive(Clone, Debug)]
pub struct RecoveredRecord {
    /// Where it starts.
    pub position: LogPosition,
    /// What the core called it.
    pub kind: u8,
    /// Its sequence.
    pub sequence: u64,
    /// The core's redo.
    pub payload: Bytes,
    /// Its oplog entries, also those that have been truncated since.
    pub entries: Vec<(Timestamp, Bytes)>,
}

impl RecoveredRecord {
    /// The highest timestamp of its oplog entries, or none.
    pub fn highest_timestamp(&self) -> Timestamp {
        self.entries.iter().map(|(timestamp, _)| *timestamp).max().unwrap_or_default()
    }
}

/// A tail that was cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TornTail {
    /// The file.
    pub file: PathBuf,
    /// Where the sound records end.
    pub offset: u64,
}

/// What an earlier life left to be applied again, in order.
pub struct Recovery {
    /// Segments still to be read, with where to start and where their records end.
    pending: VecDeque<(Arc<Segment>, u64, u64)>,
    scanner: Option<Scanner>,
    no_holes: Timestamp,
    torn: Option<TornTail>,
    clean: bool,
    last_sequence: u64,
    end: LogPosition,
}

impl Recovery {
    /// The next commit.
    pub fn next_record(&mut self) -> Result<Option<RecoveredRecord>> {
        loop {
            let Some(scanner) = &mut self.scanner else {
                let Some((segment, from, end)) = self.pending.pop_front() else { return Ok(None) };
                self.scanner = Some(Scanner::new(&segment, from, end)?);
                continue;
            };
            let (offset, path) = (scanner.offset(), scanner.segment().path.clone());
            match scanner.step()? {
                Step::Frame(frame) if frame.header.class == Class::Commit => {
                    let record = decode_commit(&frame);
                    return record.map(Some).ok_or_else(|| LogError::corruption(&path, offset, "a malformed record"));
                }
                Step::Frame(_) => {}
                Step::Blank if offset >= scanner.limit() => self.scanner = None,
                Step::Blank => return Err(LogError::corruption(&path, offset, "the records end too early")),
                Step::Damaged(what) => return Err(LogError::corruption(&path, offset, what)),
            }
        }
    }

    /// The no-holes point that was on disk: the oplog was cut there.
    pub fn no_holes(&self) -> Timestamp {
        self.no_holes
    }

    /// Where a tail was torn, if one was.
    pub fn torn_tail(&self) -> Option<&TornTail> {
        self.torn.as_ref()
    }

    /// True if the last life ended in good order (or there was none).
    pub fn was_clean(&self) -> bool {
        self.clean
    }

    /// The sequence of the newest commit in the log, or zero.
    pub fn last_sequence(&self) -> u64 {
        self.last_sequence
    }

    /// Where the last life's records ended.
    pub fn end(&self) -> LogPosition {
        self.end
    }
}

impl Iterator for Recovery {
    type Item = Result<RecoveredRecord>;

    fn next(&mut self) -> Option<Result<RecoveredRecord>> {
        self.next_record().transpose()
    }
}

/// Takes a commit's frame apart.
pub(crate) fn decode_commit(frame: &Frame) -> Option<RecoveredRecord> {
    let body = CommitBody::decode(&frame.header, &frame.body)?;
    let mut at = 0;
    let mut entries = Vec::with_capacity(body.places.len());
    for place in &body.places {
        let end = at + place.length as usize;
        entries.push((place.timestamp, frame.body.slice(at..end)));
        at = end;
    }
    Some(RecoveredRecord {
        position: frame.at,
        kind: frame.header.kind,
        sequence: frame.header.sequence,
        payload: frame.body.slice(body.payload),
        entries,
    })
}

/// Everything that is known before the new segment is begun.
struct Found {
    chain: Chain,
    contents: Vec<Contents>,
    index: OplogIndex,
    no_holes: Timestamp,
    /// Entries may lie above the no-holes point.
    cut: bool,
}

impl Log {
    /// Opens the log of a directory, creating it if there is none. `from` is the last checkpoint's position: recovery
    /// reads from there, or everything. `no_holes` is not called before this returns.
    pub fn open(
        env: &Env,
        directory: &Path,
        options: LogOptions,
        from: Option<LogPosition>,
        no_holes: NoHoles,
    ) -> Result<(Log, Recovery)> {
        let disk = env.disk();
        disk.create_directory(directory).map_err(|error| LogError::io(directory, error))?;
        let found = examine(env, directory)?;
        let recovery = recovery(&found, from)?;
        for path in &found.chain.blank {
            disk.remove(path).map_err(|error| LogError::io(path, error))?;
        }
        if let (Some(last), Some(contents)) = (found.chain.segments.last(), found.contents.last())
            && !contents.sealed
        {
            last.segment.make_durable(uncertain_range(contents))?;
        }
        let inner = begin(env, directory, options, no_holes, found, &recovery)?;
        inner.retention.lock().checkpoint = from.unwrap_or_default();
        Ok((Log { inner: Arc::new(inner) }, recovery))
    }

    /// Opens the log of a directory without changing anything there. The log can be read and verified; everything else is
    /// refused, as after a stop.
    pub fn open_read_only(
        env: &Env,
        directory: &Path,
        options: LogOptions,
        from: Option<LogPosition>,
        no_holes: NoHoles,
    ) -> Result<(Log, Recovery)> {
        let found = examine(env, directory)?;
        let recovery = recovery(&found, from)?;
        let segment = Segment::imaginary(env.disk(), directory, found.chain.id_max.saturating_add(1));
        let start = Start {
            segment: Arc::new(segment),
            previous_end: recovery.end,
            no_holes: found.no_holes,
            highest: found.index.last().unwrap_or_default(),
            last_sequence: recovery.last_sequence,
        };
        let inner = Inner::new(env, directory.to_owned(), options, no_holes, found.index, start);
        inner.appended.store(recovery.end);
        inner.stop("it was opened for reading only".to_owned());
        Ok((Log { inner: Arc::new(inner) }, recovery))
    }
}

/// What of the last segment nothing says to be durable.
fn uncertain_range(contents: &Contents) -> std::ops::Range<u64> {
    let summary = &contents.summary;
    let synced = if summary.known_synced.segment == summary.segment { summary.known_synced.offset } else { 0 };
    u64::from(synced).max(FIRST_RECORD)..u64::from(summary.end_offset)
}

/// Reads what there is.
fn examine(env: &Env, directory: &Path) -> Result<Found> {
    let chain = read_chain(env, directory)?;
    let contents: Vec<Contents> = (0..chain.segments.len()).map(|at| chain.contents(at)).collect::<Result<_>>()?;
    let no_holes = contents.last().map_or(Timestamp::NONE, |contents| contents.summary.no_holes);
    let mut index = OplogIndex::default();
    // From the newest to the oldest, gathering what the newer ones truncated from the older.
    let (mut lower, mut upper) = (Timestamp::NONE, no_holes);
    for (found, contents) in chain.segments.iter().zip(&contents).rev() {
        let rows = match (&contents.rows, &contents.index) {
            (Some(rows), _) => Rows::Shared(Arc::new(rows.clone())),
            (None, Some((holder, offset))) => Rows::OnDisk { holder: Arc::clone(holder), offset: *offset },
            (None, None) => Rows::Shared(Arc::default()),
        };
        let mut entry = SegmentRows::closed(Arc::clone(&found.segment), rows, &contents.summary);
        entry.sealed_bytes = contents.sealed.then_some(found.segment.allocated_bytes);
        let mut one = OplogIndex { segments: vec![entry], ..OplogIndex::default() };
        apply_bounds(&mut one, lower, upper)?;
        index.segments.append(&mut one.segments);
        lower = lower.max(contents.summary.cut_below);
        upper = upper.min(contents.summary.cut_above);
    }
    index.segments.reverse();
    index.recount();
    let cut = contents.iter().any(|contents| contents.summary.last > no_holes);
    Ok(Found { chain, contents, index, no_holes, cut })
}

fn apply_bounds(index: &mut OplogIndex, lower: Timestamp, upper: Timestamp) -> Result<()> {
    let mut loaded = Loaded::uncached();
    loop {
        match index.cut(lower, upper, &loaded) {
            Ok(_) => return Ok(()),
            Err(missing) => {
                let Some(entry) = index.segments.iter().find(|entry| entry.segment.id == missing.segment) else {
                    return Ok(());
                };
                loaded.load(&missing, &entry.segment, entry.end_offset)?;
            }
        }
    }
}

fn recovery(found: &Found, from: Option<LogPosition>) -> Result<Recovery> {
    let from = from.unwrap_or_default();
    let end = found.contents.last().map(end_of).unwrap_or_default();
    let mut pending = VecDeque::new();
    for (segment, contents) in found.chain.segments.iter().zip(&found.contents) {
        let segment_end = u64::from(contents.summary.end_offset);
        if segment.segment.id >= from.segment {
            let start = if segment.segment.id == from.segment { u64::from(from.offset) } else { 0 };
            pending.push_back((Arc::clone(&segment.segment), start, segment_end));
        }
    }
    if from != LogPosition::START && (from > end || pending.front().is_none_or(|first| first.0.id != from.segment)) {
        let path = found.chain.segments.last().map_or_else(PathBuf::new, |last| last.segment.path.clone());
        let detail = format!("the log ends at {end} and does not have the checkpoint's position {from}");
        return Err(LogError::corruption(&path, u64::from(end.offset), detail));
    }
    let last = found.chain.segments.last().zip(found.contents.last());
    let torn = last
        .and_then(|(last, contents)| contents.torn.map(|offset| TornTail { file: last.segment.path.clone(), offset }));
    Ok(Recovery {
        pending,
        scanner: None,
        no_holes: found.no_holes,
        torn,
        clean: found.contents.last().is_none_or(|contents| contents.sealed),
        last_sequence: found.contents.iter().map(|contents| contents.summary.last_sequence).max().unwrap_or(0),
        end,
    })
}

/// Begins the new segment and makes it durable.
fn begin(
    env: &Env,
    directory: &Path,
    options: LogOptions,
    no_holes: NoHoles,
    found: Found,
    recovery: &Recovery,
) -> Result<Inner> {
    let index_record = found.contents.last().and_then(|contents| {
        let rows = contents.rows.as_ref()?;
        Some(ControlRecord::index(&contents.summary, rows))
    });
    let id = found.chain.id_max + 1;
    let extra_bytes = index_record.as_ref().map_or(0, ControlRecord::record_bytes);
    let least = allocation_for(extra_bytes + 1024);
    let wanted = least.max(options.segment_bytes_under(options.oplog_max_bytes) + extra_bytes);
    let create = |id, bytes| Segment::create(env, directory, id, bytes);
    let created = match create(id, wanted) {
        Err(error) if crate::error::is_out_of_space(&error) => create(id + 1, least),
        other => other,
    };
    let segment = match created {
        Ok(segment) => Arc::new(segment),
        Err(error) if crate::error::is_out_of_space(&error) => {
            return Err(LogError::OutOfSpace { needed_bytes: least });
        }
        Err(error) => return Err(LogError::io(directory, error)),
    };
    let highest = found.index.last().unwrap_or_default();
    // Slots right behind the last entry may be given out again: only up to there is it known that no hole will open.
    let (end, point) = (recovery.end, found.no_holes.min(highest));
    let last_sequence = recovery.last_sequence;
    let start = Start { segment, previous_end: end, no_holes: point, highest, last_sequence };
    let inner = Inner::new(env, directory.to_owned(), options, Arc::new(move || point), found.index, start);
    write_start(&inner, end, point, index_record, found.cut)?;
    Ok(Inner { no_holes, ..inner })
}

/// Link, index of a segment that was not sealed, truncation, mark.
fn write_start(
    inner: &Inner,
    previous_end: LogPosition,
    no_holes: Timestamp,
    index_record: Option<ControlRecord>,
    cut: bool,
) -> Result<()> {
    {
        let mut tail = inner.tail.lock();
        let wall_ms = inner.env.clock().wall_ms();
        let link = Link { previous_end, known_synced: previous_end, no_holes, wall_ms };
        inner.push_control(&mut tail, &ControlRecord::link(link), true);
        if let Some(record) = index_record {
            let at = inner.push_control(&mut tail, &record, true);
            let holder = Arc::clone(&tail.segment);
            let mut index = inner.index.write();
            if let Some(entry) = index.segments.iter_mut().find(|entry| entry.segment.id == previous_end.segment) {
                entry.rows = Rows::OnDisk { holder, offset: at.offset };
            }
        }
        if cut {
            inner.push_control(&mut tail, &ControlRecord::truncate_after(no_holes), false);
            if let Some(entry) = inner.index.write().segments.last_mut() {
                entry.cut_above = no_holes;
            }
        }
    }
    inner.write_out(true).map(drop)
}
