//! Saving what is intact from a damaged log, and showing a log to a human.

use crate::control::{self, Link, Mark, Summary};
use crate::record::Class;
use crate::recovery::decode_commit;
use crate::scan::Frame;
use crate::walk::{Damage, Item, Walk, stops};
use crate::{Log, LogError, LogOptions, PreparedRecord, Result};
use pando_base::Timestamp;
use pando_env::Env;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a salvage saved and what it could not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SalvageReport {
    /// Commits that were copied.
    pub records: u64,
    /// What was skipped.
    pub skipped: Vec<Damage>,
}

/// Copies every intact commit and truncation of a log into a new log in another directory, in order, and closes it; also
/// what lies behind a torn tail, which is then told like damage. The damaged log is not touched. Positions change; sequences
/// do not.
pub fn salvage(env: &Env, directory: &Path, target: &Path, options: LogOptions) -> Result<SalvageReport> {
    let point = Arc::new(AtomicU64::new(0));
    let told = Arc::clone(&point);
    let (log, recovery) =
        Log::open(env, target, options, None, Arc::new(move || Timestamp(told.load(Ordering::Acquire))))?;
    if recovery.last_sequence() != 0 {
        return Err(LogError::corruption(target, 0, "the directory for the salvaged log is not empty"));
    }
    let (stops, skipped) = stops(env, directory)?;
    let mut report = SalvageReport { records: 0, skipped };
    let mut last_sequence = 0;
    for stop in stops {
        // What lies behind a torn place may have been acknowledged: a flipped bit in the last flush looks the same.
        let limit = if stop.torn { u64::MAX } else { stop.limit };
        let mut walk = Walk::new(&stop.segment, limit)?;
        while let Some(item) = walk.step()? {
            match item {
                Item::Damage(damage) => report.skipped.push(damage),
                Item::Sound(frame) => copy(&log, &frame, &point, &mut last_sequence, &mut report)?,
            }
        }
    }
    log.close()?;
    Ok(report)
}

fn copy(
    log: &Log,
    frame: &Frame,
    point: &AtomicU64,
    last_sequence: &mut u64,
    report: &mut SalvageReport,
) -> Result<()> {
    match frame.header.class {
        Class::Commit if frame.header.sequence > *last_sequence => {
            let Some(record) = decode_commit(frame) else { return Ok(()) };
            let prepared = PreparedRecord::new(record.kind, &record.entries, &record.payload)?;
            let _room = log.reserve(prepared.reserved_bytes())?;
            log.lock().append(&prepared, record.sequence);
            *last_sequence = record.sequence;
            report.records += 1;
        }
        Class::TruncateAfter => {
            if let Some(timestamp) = control::decode_truncation(&frame.body) {
                log.truncate_oplog_after(timestamp, false)?;
                point.fetch_min(timestamp.0, Ordering::AcqRel);
            }
        }
        Class::Mark => {
            if let Some(mark) = Mark::decode(&frame.body) {
                point.store(mark.no_holes.0, Ordering::Release);
            }
        }
        // What the old end lost it lost with its segments.
        _ => {}
    }
    Ok(())
}

/// Writes a log in words, with each record if wanted.
pub fn describe(env: &Env, directory: &Path, with_records: bool, out: &mut dyn Write) -> Result<()> {
    let (stops, damages) = stops(env, directory)?;
    let mut text = String::new();
    for damage in &damages {
        describe_damage(&mut text, damage);
    }
    for stop in &stops {
        let _ = writeln!(
            text,
            "segment {} epoch {:08x} {}",
            stop.segment.id,
            stop.segment.epoch,
            stop.segment.path.display()
        );
        let mut walk = Walk::new(&stop.segment, stop.limit)?;
        let (mut commits, mut entries, mut bytes) = (0u64, 0u64, 0u64);
        while let Some(item) = walk.step()? {
            match item {
                Item::Damage(damage) => describe_damage(&mut text, &damage),
                Item::Sound(frame) => {
                    commits += u64::from(frame.header.class == Class::Commit);
                    entries += u64::from(frame.header.entries);
                    bytes += frame.header.record_bytes();
                    if with_records {
                        describe_frame(&mut text, &frame);
                    }
                }
            }
        }
        let _ = writeln!(text, "  {commits} commits, {entries} oplog entries, {bytes} bytes");
        if stop.torn {
            let _ = writeln!(text, "  torn tail at {}", stop.limit);
        }
    }
    out.write_str(&text).map_err(|error| LogError::io(directory, std::io::Error::other(error)))
}

fn describe_damage(text: &mut String, damage: &Damage) {
    let Damage { file, offset, bytes, detail } = damage;
    let _ = writeln!(text, "  DAMAGE {} at {offset}, {bytes} bytes: {detail}", file.display());
}

fn describe_frame(text: &mut String, frame: &Frame) {
    let detail = match frame.header.class {
        Class::Commit => decode_commit(frame).map(|record| {
            let timestamps: Vec<String> = record.entries.iter().map(|(timestamp, _)| timestamp.to_string()).collect();
            format!("kind {} redo {} bytes {}", record.kind, record.payload.len(), timestamps.join(" "))
        }),
        Class::Mark => Mark::decode(&frame.body).map(|mark| format!("{mark:?}")),
        Class::Link => Link::decode(&frame.body).map(|link| format!("{link:?}")),
        Class::TruncateAfter | Class::TruncateOld => {
            control::decode_truncation(&frame.body).map(|timestamp| timestamp.to_string())
        }
        Class::Index => Summary::decode(&frame.body).map(|summary| format!("{summary:?}")),
        Class::Seal => control::decode_seal(&frame.body).map(|(offset, _)| format!("index at {offset}")),
    };
    let class = frame.header.class;
    let detail = detail.unwrap_or_else(|| "malformed".to_owned());
    let _ = writeln!(text, "  {:>10} {class:?} #{} {detail}", frame.at.offset, frame.header.sequence);
}
