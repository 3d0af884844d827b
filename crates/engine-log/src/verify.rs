//! Reading every record of every segment and telling what is damaged.

use crate::chain::Digest;
use crate::control::{self, LINK_BYTES, Link, Summary};
use crate::index::{Row, Rows, SegmentRows};
use crate::record::Class;
use crate::scan::Frame;
use crate::segment::{FIRST_RECORD, Segment};
use crate::walk::{Damage, Item, Stop, Walk, stops};
use crate::{Log, LogPosition, Result, TornTail};
use pando_base::Timestamp;
use pando_env::Env;
use std::path::Path;
use std::sync::Arc;

/// What a verification found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// Files that were read.
    pub segments: u64,
    /// Sound commits.
    pub records: u64,
    /// Bytes of sound records of all kinds.
    pub bytes: u64,
    /// Everything that is damaged.
    pub damages: Vec<Damage>,
    /// A tail that a crash tore; no damage.
    pub torn: Option<TornTail>,
}

impl VerifyReport {
    /// True if nothing is damaged.
    pub fn is_sound(&self) -> bool {
        self.damages.is_empty()
    }
}

/// Verifies the log of a directory that nobody has open.
pub fn verify(env: &Env, directory: &Path) -> Result<VerifyReport> {
    let (stops, damages) = stops(env, directory)?;
    let mut report = VerifyReport { damages, ..VerifyReport::default() };
    check_chain(&stops, &mut report);
    for stop in &stops {
        report.check(&stop.segment, stop.limit)?;
        if stop.torn {
            report.torn = Some(TornTail { file: stop.segment.path.clone(), offset: stop.limit });
        }
    }
    Ok(report)
}

impl Log {
    /// Verifies everything that is durable, while the log is in use.
    pub fn verify(&self) -> Result<VerifyReport> {
        let inner = &self.inner;
        // Nothing is dropped meanwhile.
        let _no_drops = inner.truncating.lock();
        let durable = inner.durable.load();
        let segments: Vec<Reached> = {
            let index = inner.index.read();
            let entries = index.segments.iter().zip(index.segments.iter().skip(1).map(Some).chain([None]));
            let reached = entries.filter(|(entry, _)| entry.segment.id <= durable.segment);
            reached.map(|(entry, next)| Reached::new(entry, next, durable)).collect()
        };
        let mut report = VerifyReport::default();
        for reached in segments {
            report.check(&reached.segment, reached.end)?;
            if reached.lacks_seal {
                report.damage(&reached.segment, reached.end, "the index or the seal is damaged; the records hold");
            }
        }
        Ok(report)
    }
}

/// A segment of an open log, as far as it is durable.
struct Reached {
    segment: Arc<Segment>,
    end: u64,
    /// The next one was begun behind its seal, but there is none.
    lacks_seal: bool,
}

impl Reached {
    fn new(entry: &SegmentRows, next: Option<&SegmentRows>, durable: LogPosition) -> Reached {
        let segment = Arc::clone(&entry.segment);
        if segment.id == durable.segment {
            return Reached { segment, end: u64::from(durable.offset), lacks_seal: false };
        }
        // Where a crash left no seal, the next segment has the index right behind its link; or a second crash left nothing
        // behind that link either.
        let went_on = next.is_some_and(|next| {
            next.segment.id < durable.segment && u64::from(next.end_offset) > FIRST_RECORD + LINK_BYTES
        });
        let lacks_seal = went_on && entry.sealed_bytes.is_none() && !matches!(entry.rows, Rows::OnDisk { .. });
        Reached { segment, end: entry.sealed_bytes.unwrap_or(u64::from(entry.end_offset)), lacks_seal }
    }
}

/// Every segment but the first must follow one that is there.
fn check_chain(stops: &[Stop], report: &mut VerifyReport) {
    for stop in stops.iter().skip(1) {
        let Some(link) = stop.link else { continue };
        if !stops.iter().any(|other| other.segment.id == link.previous_end.segment) {
            report.damages.push(Damage {
                file: stop.segment.path.clone(),
                offset: crate::segment::FIRST_RECORD,
                bytes: 0,
                detail: format!("it follows segment {}, which is missing", link.previous_end.segment),
            });
        }
    }
}

impl VerifyReport {
    fn check(&mut self, segment: &Arc<Segment>, limit: u64) -> Result<()> {
        self.segments += 1;
        let mut walk = Walk::new(segment, limit)?;
        let nothing = LogPosition::START;
        let link = Link { previous_end: nothing, known_synced: nothing, no_holes: Timestamp::NONE, wall_ms: 0 };
        let mut digest = Digest::new(segment.id, &link);
        let mut index: Option<(u64, Summary, Vec<Row>)> = None;
        let before = self.damages.len();
        while let Some(item) = walk.step()? {
            match item {
                Item::Damage(damage) => self.damages.push(damage),
                Item::Sound(frame) => self.take(&frame, segment, &mut digest, &mut index)?,
            }
        }
        if limit != u64::MAX && u64::from(digest.summary.end_offset) < limit && self.damages.len() == before {
            let offset = u64::from(digest.summary.end_offset);
            self.damage(segment, offset, "the records end too early");
        }
        if let Some((offset, summary, rows)) = index
            && self.damages.len() == before
        {
            let (gathered, own_rows) = digest.finish();
            if own_rows != rows || (gathered.count, gathered.bytes) != (summary.count, summary.bytes) {
                self.damage(segment, offset, "the index does not match the records");
            }
        }
        Ok(())
    }

    fn take(
        &mut self,
        frame: &Frame,
        segment: &Arc<Segment>,
        digest: &mut Digest,
        index: &mut Option<(u64, Summary, Vec<Row>)>,
    ) -> Result<()> {
        let offset = u64::from(frame.at.offset);
        self.bytes += frame.header.record_bytes();
        match frame.header.class {
            Class::Commit => self.records += 1,
            Class::Index => match control::decode_index(&frame.header, &frame.body) {
                Some((summary, rows)) if summary.segment == segment.id => *index = Some((offset, summary, rows)),
                Some(_) => {}
                None => self.damage(segment, offset, "the index is malformed"),
            },
            _ => {}
        }
        digest.add(frame, segment)
    }

    fn damage(&mut self, segment: &Segment, offset: u64, detail: &str) {
        self.damages.push(Damage { file: segment.path.clone(), offset, bytes: 0, detail: detail.to_owned() });
    }
}
