//! Power loss at random and at every step, against a model.
//!
//! The model keeps what was appended, in order, and how much of it was acknowledged. After a crash the log must hold a
//! prefix that has everything acknowledged; its oplog must be what the prefix makes of it, cut at a no-holes point below
//! which no slot was open or lost.

use super::*;
use pando_env::Random;
use pando_env::simulated::{Fault, FaultKind, Loss, SimulatedRandom, Simulation};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone)]
enum Event {
    Commit { sequence: u64, timestamps: Vec<u64>, payload: Vec<u8> },
    TruncateAfter(u64),
    TruncateOld(u64),
}

impl std::fmt::Debug for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Event::Commit { sequence, timestamps, .. } => write!(f, "#{sequence}{timestamps:?}"),
            Event::TruncateAfter(timestamp) => write!(f, "after {timestamp}"),
            Event::TruncateOld(timestamp) => write!(f, "old {timestamp}"),
        }
    }
}

/// What should be there.
#[derive(Clone)]
struct Model {
    events: Vec<Event>,
    acknowledged: usize,
    acknowledged_no_holes: u64,
    /// Timestamps that were handed out and neither committed nor given up.
    open: BTreeSet<u64>,
    next_timestamp: u64,
    /// The highest that was committed and not truncated since.
    highest: u64,
    next_sequence: u64,
    /// The checkpoint: its position and how many events it covers.
    checkpoint: Option<(LogPosition, usize)>,
}

impl Model {
    fn new() -> Model {
        Model {
            events: Vec::new(),
            acknowledged: 0,
            acknowledged_no_holes: 0,
            open: BTreeSet::new(),
            next_timestamp: 1,
            highest: 0,
            next_sequence: 1,
            checkpoint: None,
        }
    }

    fn no_holes(&self) -> u64 {
        self.open.first().map_or(self.next_timestamp - 1, |first| first - 1)
    }

    fn acknowledge(&mut self) {
        self.acknowledged = self.events.len();
        self.acknowledged_no_holes = self.no_holes().min(self.highest);
    }

    /// The oplog after so many events.
    fn oplog(&self, events: usize) -> BTreeMap<u64, u64> {
        let mut live = BTreeMap::new();
        for event in &self.events[..events] {
            match event {
                Event::Commit { timestamps, .. } => {
                    live.extend(timestamps.iter().map(|timestamp| (*timestamp, entry(*timestamp).len() as u64)));
                }
                Event::TruncateAfter(timestamp) => live.retain(|at, _| at <= timestamp),
                Event::TruncateOld(timestamp) => live.retain(|at, _| at > timestamp),
            }
        }
        live
    }

    /// Timestamps that may not lie below a recovered no-holes point: lost with the tail, or never committed.
    fn unsafe_timestamps(&self, kept: usize) -> BTreeSet<u64> {
        let mut timestamps = BTreeSet::new();
        for event in &self.events[kept..] {
            match event {
                Event::Commit { timestamps: lost, .. } => timestamps.extend(lost),
                // What follows happened in another timeline.
                Event::TruncateAfter(_) => return timestamps,
                Event::TruncateOld(_) => {}
            }
        }
        timestamps.extend(&self.open);
        timestamps
    }

    /// Checks what came back and goes on from there.
    fn recovered(&mut self, log: &Log, recovery: Recovery, context: &str) {
        let no_holes = recovery.no_holes().0;
        let covered = self.checkpoint.map_or(0, |(_, events)| events);
        let mut kept = covered;
        for record in recovery {
            let record = record.unwrap_or_else(|error| panic!("{context}: {error}"));
            while !matches!(self.events.get(kept), Some(Event::Commit { .. }) | None) {
                kept += 1;
            }
            let Some(Event::Commit { sequence, timestamps, payload }) = self.events.get(kept) else {
                panic!("{context}: a record that nobody wrote: {record:?}");
            };
            assert_eq!((record.sequence, &record.payload[..]), (*sequence, &payload[..]), "{context}");
            let entries: Vec<(Timestamp, Bytes)> =
                timestamps.iter().map(|timestamp| (Timestamp(*timestamp), entry(*timestamp))).collect();
            assert_eq!(record.entries, entries, "{context}");
            kept += 1;
        }
        // Control records after the last commit may or may not be there.
        let mut candidates = vec![kept];
        while let Some(Event::TruncateAfter(_) | Event::TruncateOld(_)) = self.events.get(kept) {
            kept += 1;
            candidates.push(kept);
        }
        candidates.retain(|kept| *kept >= self.acknowledged);
        assert!(!candidates.is_empty(), "{context}: acknowledged {} but only {kept} came back", self.acknowledged);
        let view: BTreeMap<u64, u64> = forward_unbounded(log);
        let matching = candidates.iter().rev().find(|kept| {
            let mut expected = self.oplog(**kept);
            expected.retain(|timestamp, _| *timestamp <= no_holes);
            expected == view
        });
        let Some(kept) = matching.copied() else {
            let recent = &self.events[self.events.len().saturating_sub(60)..];
            panic!("{context}: no-holes {no_holes}, oplog {view:?}, candidates {candidates:?} of {recent:?}");
        };
        assert_eq!(log.oplog().count(), view.len() as u64, "{context}");
        assert_eq!(log.oplog().size_bytes(), view.values().sum::<u64>(), "{context}");
        let truncated = |event: &Event| matches!(event, Event::TruncateAfter(_));
        if !self.events[self.acknowledged.min(kept)..kept].iter().any(truncated) {
            // A recovery that was cut short may have lowered the point to the last entry below it.
            let acknowledged = self.oplog(kept).into_keys().filter(|at| *at <= self.acknowledged_no_holes).max();
            assert!(Some(no_holes) >= acknowledged, "{context}: {no_holes} < {acknowledged:?}");
        }
        if let Some(hole) = self.unsafe_timestamps(kept).first() {
            assert!(*hole > no_holes, "{context}: a hole at {hole} below {no_holes}");
        }
        self.events.truncate(kept);
        self.events.push(Event::TruncateAfter(no_holes));
        self.open.clear();
        self.next_timestamp = no_holes + 1;
        self.highest = view.last_key_value().map_or(0, |last| *last.0);
        let commits = self.events.iter().filter_map(|event| match event {
            Event::Commit { sequence, .. } => Some(*sequence),
            _ => None,
        });
        self.next_sequence = commits.max().unwrap_or(0) + 1;
        self.acknowledge();
    }
}

/// The oplog through a backward reader, which does not stop at holes, checked against the forward order.
fn forward_unbounded(log: &Log) -> BTreeMap<u64, u64> {
    let descending = backward(log);
    assert!(descending.is_sorted_by(|left, right| left > right));
    descending.into_iter().map(|timestamp| (timestamp, entry(timestamp).len() as u64)).collect()
}

/// One life of random work; ends when the power goes or the work is done.
struct Worker<'a> {
    log: &'a Log,
    model: &'a mut Model,
    point: &'a Point,
    random: &'a SimulatedRandom,
}

impl Worker<'_> {
    fn step(&mut self) -> Result<()> {
        match self.random.below(100) {
            0..40 => self.commit_open(),
            40..65 => self.commit_new(),
            65..70 => self.commit_redo(),
            70..74 => {
                self.model.open.pop_first();
                self.told();
                Ok(())
            }
            74..86 => self.flush(),
            86..90 => self.log.write_back(),
            90..93 => self.truncate_after(),
            93..97 => self.checkpoint(),
            _ => self.truncate_old(),
        }
    }

    fn told(&mut self) {
        self.point.set(self.model.no_holes());
        self.log.no_holes_advanced();
    }

    fn commit_new(&mut self) -> Result<()> {
        for _ in 0..self.random.below(4) {
            self.model.open.insert(self.model.next_timestamp);
            self.model.next_timestamp += 1;
        }
        self.commit_open()
    }

    /// Commits some of the open slots in any order.
    fn commit_open(&mut self) -> Result<()> {
        let wanted = self.random.below(3) as usize + 1;
        let mut timestamps = Vec::new();
        for _ in 0..wanted {
            let at = self.random.below(self.model.open.len() as u64) as usize;
            if let Some(timestamp) = self.model.open.iter().nth(at).copied()
                && !timestamps.contains(&timestamp)
            {
                timestamps.push(timestamp);
            }
        }
        self.append(timestamps)
    }

    fn commit_redo(&mut self) -> Result<()> {
        self.append(Vec::new())
    }

    fn append(&mut self, timestamps: Vec<u64>) -> Result<()> {
        let mut payload = vec![0; self.random.below(if self.random.below(20) == 0 { 6000 } else { 120 }) as usize];
        self.random.fill(&mut payload);
        let sequence = self.model.next_sequence;
        commit(self.log, sequence, &timestamps, &payload)?;
        self.model.next_sequence += 1;
        self.model.highest = self.model.highest.max(timestamps.iter().copied().max().unwrap_or(0));
        timestamps.iter().for_each(|timestamp| assert!(self.model.open.remove(timestamp)));
        self.model.events.push(Event::Commit { sequence, timestamps, payload });
        self.told();
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.log.flush()?;
        self.model.acknowledge();
        Ok(())
    }

    fn truncate_after(&mut self) -> Result<()> {
        let kept = self.model.next_timestamp.saturating_sub(self.random.below(12));
        let kept = if self.random.below(15) == 0 { 0 } else { kept };
        let kept = kept.max(1) - 1;
        self.model.open.clear();
        self.log.truncate_oplog_after(Timestamp(kept), false)?;
        self.model.events.push(Event::TruncateAfter(kept));
        let last = self.model.oplog(self.model.events.len()).last_key_value().map_or(0, |last| *last.0);
        self.model.highest = self.model.highest.min(last);
        // Timestamps behind the last entry may be used again, whether or not the truncation reached them.
        let kept = if self.random.below(2) == 0 { kept } else { kept.min(last) };
        self.model.next_timestamp = self.model.next_timestamp.min(kept + 1);
        self.told();
        Ok(())
    }

    fn checkpoint(&mut self) -> Result<()> {
        self.flush()?;
        let covered = self.model.events.len();
        let position = self.log.position();
        self.model.checkpoint = Some((position, covered));
        self.log.checkpointed(position)
    }

    fn truncate_old(&mut self) -> Result<()> {
        let before = self.model.oplog(self.model.events.len());
        let result = self.log.truncate_oplog_old();
        // Also when it failed half-way: what left memory was recorded first.
        let oplog = self.log.oplog();
        if oplog.count() < before.len() as u64 {
            let through = oplog.first().map_or_else(|| *before.last_key_value().unwrap().0, |first| first.0 - 1);
            self.model.events.push(Event::TruncateOld(through));
            if result.is_ok() {
                self.model.acknowledge();
            }
        }
        result.map(|_| ())
    }
}

fn options(random: &SimulatedRandom) -> LogOptions {
    LogOptions {
        segment_bytes: 4096 + random.below(3) * 2048,
        oplog_max_bytes: 2000 + random.below(20_000),
        buffer_bytes_max: 2000,
        tail_cache_bytes: random.below(6000),
        index_cache_bytes: random.below(2000),
        oplog: true,
        ..LogOptions::default()
    }
}

/// Names the run that failed.
struct Note(u64);

impl Drop for Note {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("failed in seed {}", self.0);
        }
    }
}

/// How many runs: as many as usual, or what the environment asks for.
fn seeds(usual: u64) -> u64 {
    std::env::var("PANDO_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(usual)
}

/// Several lives with crashes between them.
fn run(seed: u64) {
    let _note = Note(seed);
    let machine = Simulation::new(seed);
    let random = SimulatedRandom::new(seed ^ 0x5eed);
    let mut model = Model::new();
    let point = Point::default();
    for life in 0..6 {
        let env = machine.env();
        let context = format!("seed {seed} life {life}");
        // Sometimes the power goes while the log is being opened.
        if random.below(4) == 0 {
            machine.disk().crash_after(random.below(12));
        }
        let from = model.checkpoint.map(|(position, _)| position);
        let opened = Log::open(&env, &directory(), options(&random), from, point.function());
        let (log, recovery) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                assert!(machine.disk().has_lost_power(), "{context}: {error}");
                machine.crash();
                continue;
            }
        };
        if machine.disk().has_lost_power() {
            drop((log, recovery));
            machine.crash();
            continue;
        }
        model.recovered(&log, recovery, &context);
        point.set(model.no_holes());
        machine.disk().crash_after(random.below(150));
        let faulty = random.below(5) == 0;
        if faulty {
            let kind = [FaultKind::SyncFails, FaultKind::WriteFails, FaultKind::SpaceRunsOut][random.below(3) as usize];
            machine.disk().inject(Fault::new(kind).from_call(random.below(25)).times(1));
        }
        let mut worker = Worker { log: &log, model: &mut model, point: &point, random: &random };
        let result = (0..400).try_for_each(|_| worker.step());
        match result {
            Err(error) => assert!(faulty || machine.disk().has_lost_power(), "{context}: {error}"),
            Ok(()) => check_alive(&log, &model, &context),
        }
        machine.disk().clear_faults();
        if random.below(4) == 0 && log.close().is_ok() {
            model.acknowledge();
        }
        drop(log);
        match random.below(4) {
            0 => machine.kill(),
            1 => machine.crash_with(Loss::Everything),
            _ => machine.crash(),
        };
    }
}

/// While it lives, the log shows the model's oplog: backward all of it, forward up to the first hole.
fn check_alive(log: &Log, model: &Model, context: &str) {
    let expected = model.oplog(model.events.len());
    assert_eq!(forward_unbounded(log), expected, "{context}");
    let visible: Vec<u64> = expected.keys().copied().filter(|timestamp| *timestamp <= model.no_holes()).collect();
    assert_eq!(forward(log), visible, "{context}");
    assert_eq!(log.oplog().count(), expected.len() as u64, "{context}");
    assert_eq!(log.oplog().size_bytes(), expected.values().sum::<u64>(), "{context}");
}

/// Without an oplog: redo only, segments dropped at checkpoints.
fn run_alone(seed: u64) {
    let _note = Note(seed);
    let machine = Simulation::new(seed);
    let random = SimulatedRandom::new(seed ^ 0xa10e);
    let mut model = Model::new();
    let point = Point::default();
    for life in 0..5 {
        let from = model.checkpoint.map(|(position, _)| position);
        let options = LogOptions { oplog: false, ..options(&random) };
        let (log, recovery) = Log::open(&machine.env(), &directory(), options, from, point.function()).unwrap();
        model.recovered(&log, recovery, &format!("seed {seed} life {life}"));
        machine.disk().crash_after(random.below(100));
        let mut worker = Worker { log: &log, model: &mut model, point: &point, random: &random };
        let result = (0..200).try_for_each(|_| match random.below(20) {
            0..14 => worker.commit_redo(),
            14..18 => worker.flush(),
            18 => worker.log.write_back(),
            _ => worker.checkpoint(),
        });
        assert!(result.is_ok() || machine.disk().has_lost_power());
        if let (Some((position, _)), Ok(())) = (model.checkpoint, result) {
            let first = log.truncate_markers()[0].segment;
            assert_eq!(first, position.segment, "seed {seed}: dropped at the checkpoint");
        }
        machine.crash();
    }
}

#[test]
fn x21_power_loss_at_random_without_an_oplog() {
    (0..seeds(500)).for_each(run_alone);
}

#[test]
fn x21_x26_power_loss_at_random() {
    (0..seeds(1500)).for_each(run);
}

/// The power goes at each step in turn of a fixed piece of work: rolls, seals, truncations of both ends, closing.
#[test]
fn x21_x25_power_loss_at_every_step() {
    let mut step = 0;
    loop {
        let machine = Simulation::new(step);
        let random = SimulatedRandom::new(77);
        let mut model = Model::new();
        let point = Point::default();
        machine.disk().crash_after(step);
        let finished = fixed_work(&machine, &random, &mut model, &point);
        for loss in [Loss::Everything, Loss::Random, Loss::Nothing] {
            let fork = machine.fork(step ^ 0xf0);
            let env = fork.crash_with(loss);
            let from = model.checkpoint.map(|(position, _)| position);
            let context = format!("step {step} {loss:?}");
            let opened = Log::open(&env, &directory(), small(true), from, point.function());
            let (log, recovery) = opened.unwrap_or_else(|error| panic!("{context}: {error}"));
            let mut copy = model.clone();
            copy.recovered(&log, recovery, &context);
            drop(log);
            let report = crate::verify(&fork.kill(), &directory()).unwrap();
            assert!(report.is_sound(), "{context}: {report:?}");
        }
        if finished {
            break;
        }
        step += 1;
    }
    assert!(step > 60, "{step}");
}

fn fixed_work(machine: &Simulation, random: &SimulatedRandom, model: &mut Model, point: &Point) -> bool {
    let options = LogOptions { oplog_max_bytes: 4000, ..small(true) };
    let Ok((log, recovery)) = Log::open(&machine.env(), &directory(), options, None, point.function()) else {
        return false;
    };
    drop(recovery);
    let mut worker = Worker { log: &log, model, point, random };
    let work = |worker: &mut Worker<'_>| -> Result<()> {
        for round in 0..160 {
            worker.commit_new()?;
            match round % 40 {
                7 | 17 | 27 => worker.flush()?,
                22 => worker.truncate_after()?,
                35 => worker.checkpoint()?,
                36 => worker.truncate_old()?,
                _ => {}
            }
        }
        worker.flush()?;
        worker.log.close()?;
        worker.model.acknowledge();
        Ok(())
    };
    work(&mut worker).is_ok() && !machine.disk().has_lost_power()
}
