//! Going through the files of a log however damaged they are: for verifying, salvaging and describing.
//!
//! Unlike recovery, which stops at the first damage, a walk skips to the next sound header and goes on. It knows how far
//! the records of a segment count: up to where the next segment links, or, in the last one, up to the first damage that
//! nothing vouches for (a torn tail).

use crate::control::{self, Link, Mark, Summary};
use crate::record::Class;
use crate::scan::{Frame, Scanner, Step, step_at};
use crate::segment::{FIRST_RECORD, Opened, Segment, list_segments};
use crate::{LogError, LogPosition, Result};
use pando_env::Env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes that should be a record and are not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub file: PathBuf,
    /// Where the damage starts.
    pub offset: u64,
    /// How many bytes are skipped to the next sound record.
    pub bytes: u64,
    /// What is wrong.
    pub detail: String,
}

/// What a walk meets.
pub(crate) enum Item {
    Sound(Frame),
    Damage(Damage),
}

/// A walk through one segment.
pub(crate) struct Walk {
    scanner: Scanner,
}

impl Walk {
    pub(crate) fn new(segment: &Arc<Segment>, limit: u64) -> Result<Walk> {
        Ok(Walk { scanner: Scanner::new(segment, FIRST_RECORD, limit)? })
    }

    /// The next record or damage; none at the end.
    pub(crate) fn step(&mut self) -> Result<Option<Item>> {
        let offset = self.scanner.offset();
        let (what, blank) = match self.scanner.step()? {
            Step::Frame(frame) => return Ok(Some(Item::Sound(frame))),
            Step::Blank if offset >= self.scanner.limit() => return Ok(None),
            Step::Blank => ("zeros where a record should be", true),
            Step::Damaged(what) => (what, false),
        };
        let found = self.scanner.resync()?;
        if blank && !found {
            return Ok(None);
        }
        let end = self.scanner.offset();
        let file = self.scanner.segment().path.clone();
        Ok(Some(Item::Damage(Damage { file, offset, bytes: end - offset, detail: what.to_owned() })))
    }
}

/// One file of the log.
pub(crate) struct Stop {
    pub(crate) segment: Arc<Segment>,
    pub(crate) link: Option<Link>,
    /// How far its records count.
    pub(crate) limit: u64,
    /// A tail that does not count was found behind the limit.
    pub(crate) torn: bool,
}

/// All files, oldest first, and damage to their headers.
pub(crate) fn stops(env: &Env, directory: &Path) -> Result<(Vec<Stop>, Vec<Damage>)> {
    let mut stops: Vec<Stop> = Vec::new();
    let mut damages = Vec::new();
    for (id, path) in list_segments(env.disk(), directory)? {
        let segment = match Segment::open(env.disk(), &path, id) {
            Ok(Opened::Segment(segment)) => Some(segment),
            Ok(Opened::Unfinished) => None,
            Err(LogError::Corruption { file, offset, detail }) => {
                damages.push(Damage { file, offset, bytes: FIRST_RECORD, detail });
                Segment::open_damaged(env.disk(), &path, id).map_err(|error| LogError::io(&path, error))?
            }
            Err(error) => return Err(error),
        };
        if let Some(segment) = segment.map(Arc::new) {
            let link = first_link(&segment)?;
            stops.push(Stop { segment, link, limit: u64::MAX, torn: false });
        }
    }
    set_limits(&mut stops)?;
    Ok((stops, damages))
}

fn first_link(segment: &Arc<Segment>) -> Result<Option<Link>> {
    Ok(match step_at(segment, FIRST_RECORD)? {
        Step::Frame(frame) if frame.header.class == Class::Link => Link::decode(&frame.body),
        _ => None,
    })
}

fn set_limits(stops: &mut Vec<Stop>) -> Result<()> {
    let ends: Vec<LogPosition> = stops.iter().filter_map(|stop| Some(stop.link?.previous_end)).collect();
    for stop in stops.iter_mut() {
        let linked = ends.iter().find(|end| end.segment == stop.segment.id);
        match linked {
            Some(end) => (stop.limit, stop.torn) = (u64::from(end.offset), false),
            None => (stop.limit, stop.torn) = last_limit(&stop.segment)?,
        }
    }
    // A file that nobody links to, before one that is linked otherwise, was never used with success.
    let newest = stops.iter().rposition(|stop| stop.link.is_some());
    let mut at = 0;
    stops.retain(|stop| {
        let linked = ends.iter().any(|end| end.segment == stop.segment.id);
        let keep = linked || newest.is_none_or(|newest| at >= newest) || stop.link.is_some();
        at += 1;
        keep
    });
    Ok(())
}

/// How far the records of a segment without a successor count, and whether something follows.
fn last_limit(segment: &Arc<Segment>) -> Result<(u64, bool)> {
    let mut walk = Walk::new(segment, u64::MAX)?;
    let mut synced = LogPosition::START;
    let mut damages = Vec::new();
    while let Some(item) = walk.step()? {
        match item {
            Item::Sound(frame) => synced = synced.max(vouched(&frame).unwrap_or_default()),
            Item::Damage(damage) => damages.push(damage.offset),
        }
    }
    let torn = damages.into_iter().find(|offset| segment.at(*offset) >= synced);
    Ok((torn.unwrap_or(u64::MAX), torn.is_some()))
}

/// What a record states as synced.
pub(crate) fn vouched(frame: &Frame) -> Option<LogPosition> {
    match frame.header.class {
        Class::Mark => Mark::decode(&frame.body).map(|mark| mark.known_synced),
        Class::Index => Summary::decode(&frame.body).map(|summary| summary.known_synced),
        Class::Seal => control::decode_seal(&frame.body).map(|(_, summary)| summary.known_synced),
        _ => None,
    }
}
