//! What of a merge's inputs need not be rewritten.
//!
//! A part is taken over as it is if no other input says anything about its keys, if it is large enough not to fragment
//! the output, and if it is not full of dead versions. What lies between such parts is rewritten, one segment per gap.
//! Whether another run touches a part is asked of its data, not only of its bounds: a young run usually spans the whole
//! table and still leaves most of an old run alone when the writes have a focus.

use crate::{FileId, KeyBounds, Part, Result, Run, StreamOptions, UpperBound, VersionStream};
use bytes::{BufMut, Bytes, BytesMut};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A piece of the output, in key order.
#[derive(Clone)]
pub(crate) enum Segment {
    /// An input's part becomes a part of the output.
    Keep(Arc<Part>),
    /// The keys from `start` to before `end` are merged anew.
    Rewrite { start: Bytes, end: Option<Bytes> },
}

/// Cuts the key space into segments for a merge of these runs. `may_keep` says which parts are worth keeping as they are.
pub(crate) fn plan(runs: &[Arc<Run>], may_keep: impl Fn(&Part) -> bool) -> Result<Vec<Segment>> {
    let mut kept: Vec<Arc<Part>> = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        for part in run.parts().iter().filter(|part| may_keep(part)) {
            if !is_touched(runs, index, &part.descriptor().bounds)? {
                kept.push(part.clone());
            }
        }
    }
    kept.sort_by(|left, right| left.descriptor().bounds.first.cmp(&right.descriptor().bounds.first));
    Ok(cut(runs, &kept))
}

/// Where a part lies; unique in a store.
fn place(part: &Part) -> (FileId, u64) {
    (part.descriptor().file, part.descriptor().offset)
}

/// True if a run other than number `own` has a key or a range tombstone in the bounds.
fn is_touched(runs: &[Arc<Run>], own: usize, bounds: &KeyBounds) -> Result<bool> {
    for (index, run) in runs.iter().enumerate() {
        let near = index != own && run.parts().iter().any(|part| part.descriptor().bounds.overlaps(bounds));
        if near && says_anything(run, bounds)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn says_anything(run: &Arc<Run>, bounds: &KeyBounds) -> Result<bool> {
    let (start, end) = (Some(bounds.first.clone()), end_of(&bounds.last));
    let options = StreamOptions { start, end, ..Default::default() };
    let mut stream = VersionStream::new(std::slice::from_ref(run), options)?;
    Ok(stream.next()? || !stream.range_tombstones().is_empty())
}

fn cut(runs: &[Arc<Run>], kept: &[Arc<Part>]) -> Vec<Segment> {
    let places: BTreeSet<(FileId, u64)> = kept.iter().map(|part| place(part)).collect();
    let parts = runs.iter().flat_map(|run| run.parts());
    let rewritten: Vec<&Arc<Part>> = parts.filter(|part| !places.contains(&place(part))).collect();
    let mut segments = Vec::new();
    let mut start = Some(Bytes::new());
    for part in kept {
        let bounds = &part.descriptor().bounds;
        push_rewrite(&mut segments, &rewritten, start.take(), Some(bounds.first.clone()));
        segments.push(Segment::Keep(part.clone()));
        start = end_of(&bounds.last);
    }
    push_rewrite(&mut segments, &rewritten, start, None);
    segments
}

/// Adds the gap unless it is empty or no input has anything there.
fn push_rewrite(segments: &mut Vec<Segment>, rewritten: &[&Arc<Part>], start: Option<Bytes>, end: Option<Bytes>) {
    let Some(start) = start else { return };
    if end.as_ref().is_some_and(|end| *end <= start) {
        return;
    }
    let last = end.clone().map_or(UpperBound::Unbounded, UpperBound::Excluded);
    let gap = KeyBounds { first: start.clone(), last };
    if rewritten.iter().any(|part| part.descriptor().bounds.overlaps(&gap)) {
        segments.push(Segment::Rewrite { start, end });
    }
}

/// The first key beyond a bound; `None` if there is none.
fn end_of(bound: &UpperBound) -> Option<Bytes> {
    match bound {
        UpperBound::Included(last) => {
            let mut successor = BytesMut::with_capacity(last.len() + 1);
            successor.put_slice(last);
            successor.put_u8(0);
            Some(successor.freeze())
        }
        UpperBound::Excluded(end) => Some(end.clone()),
        UpperBound::Unbounded => None,
    }
}
