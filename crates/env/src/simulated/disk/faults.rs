//! Planned faults: which calls fail, when, and how.

use crate::simulated::random::Sequence;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// A read fails (EIO).
    ReadFails,
    /// A read gives fewer bytes than were asked for, but at least one, as a read may.
    ReadFallsShort,
    /// A write fails (EIO) after some of it was done, or a change of length before any of it.
    WriteFails,
    /// A write, a reservation or the creation of a file fails for want of space (ENOSPC); of a write, some was done.
    SpaceRunsOut,
    /// A sync of a file fails (EIO). What it should have made durable may be dropped for good, although it can still be read.
    SyncFails,
    /// A sync of a directory fails (EIO); its names stay as uncertain as before.
    DirectorySyncFails,
    /// Any call fails (EIO) and does nothing.
    Outage,
}

/// What a call is, as far as faults are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallKind {
    Read,
    Write,
    SetLength,
    Allocate,
    Create,
    Sync,
    SyncDirectory,
    /// Opening, renaming, removing, listing and the like.
    Other,
}

impl FaultKind {
    fn concerns(self, call: CallKind) -> bool {
        match self {
            FaultKind::ReadFails | FaultKind::ReadFallsShort => call == CallKind::Read,
            FaultKind::WriteFails => matches!(call, CallKind::Write | CallKind::SetLength),
            FaultKind::SpaceRunsOut => matches!(call, CallKind::Write | CallKind::Allocate | CallKind::Create),
            FaultKind::SyncFails => call == CallKind::Sync,
            FaultKind::DirectorySyncFails => call == CallKind::SyncDirectory,
            FaultKind::Outage => true,
        }
    }
}

type PathPredicate = Arc<dyn Fn(&Path) -> bool + Send + Sync>;

/// A planned fault. Without further words it strikes every call that its kind concerns.
#[derive(Clone)]
pub struct Fault {
    kind: FaultKind,
    probability: f64,
    calls_to_spare: u64,
    strikes_left: u64,
    concerns_path: Option<PathPredicate>,
}

impl Fault {
    /// A fault that strikes always.
    pub fn new(kind: FaultKind) -> Fault {
        Fault { kind, probability: 1.0, calls_to_spare: 0, strikes_left: u64::MAX, concerns_path: None }
    }

    /// Strikes each call with this probability.
    pub fn with_probability(mut self, probability: f64) -> Fault {
        self.probability = probability;
        self
    }

    /// Spares the calls before the `number`-th (counted from 1, among those it concerns).
    pub fn from_call(mut self, number: u64) -> Fault {
        self.calls_to_spare = number.saturating_sub(1);
        self
    }

    /// Strikes no more than so many times, then is gone: once for a single failure, more for a short outage.
    pub fn times(mut self, times: u64) -> Fault {
        self.strikes_left = times;
        self
    }

    /// Concerns only the paths for which this is true.
    pub fn on_path(mut self, concerns_path: impl Fn(&Path) -> bool + Send + Sync + 'static) -> Fault {
        self.concerns_path = Some(Arc::new(concerns_path));
        self
    }

    fn strikes(&mut self, call: CallKind, path: &Path, random: &mut Sequence) -> bool {
        let concerned = self.kind.concerns(call) && self.concerns_path.as_ref().is_none_or(|concerns| concerns(path));
        if !concerned || self.strikes_left == 0 {
            return false;
        }
        if self.calls_to_spare > 0 {
            self.calls_to_spare -= 1;
            return false;
        }
        let strikes = random.chance(self.probability);
        self.strikes_left -= u64::from(strikes);
        strikes
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Fault")
            .field("kind", &self.kind)
            .field("probability", &self.probability)
            .field("calls_to_spare", &self.calls_to_spare)
            .field("strikes_left", &self.strikes_left)
            .finish_non_exhaustive()
    }
}

/// All faults that are planned.
#[derive(Clone, Default)]
pub(super) struct FaultPlan {
    faults: Vec<Fault>,
}

impl FaultPlan {
    pub(super) fn add(&mut self, fault: Fault) {
        self.faults.push(fault);
    }

    pub(super) fn clear(&mut self) {
        self.faults.clear();
    }

    /// What strikes this call, if anything: the first planned fault that does.
    pub(super) fn strike(&mut self, call: CallKind, path: &Path, random: &mut Sequence) -> Option<FaultKind> {
        let fault = self.faults.iter_mut().find_map(|fault| fault.strikes(call, path, random).then_some(fault.kind));
        self.faults.retain(|fault| fault.strikes_left > 0);
        fault
    }
}
