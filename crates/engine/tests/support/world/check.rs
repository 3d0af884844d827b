//! After a crash: opening the store again, and what it must have.

use super::life::Life;
use super::model::{self, Checkpoint, Event, Model, Write};
use super::observe::{self, Sight};
use super::{Chance, open};
use pando_base::Timestamp;
use pando_engine::{DurableEngine, EngineOptions};
use pando_env::simulated::Simulation;
use pando_storage::{Maintenance, OplogSource, ReadAt, TableRegistry, TimestampControl};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the crashed life had under way.
#[derive(Default)]
pub struct Pending {
    /// Oplog entries of open transactions: holes.
    pub holes: Vec<Timestamp>,
    /// The oplog's old end may have moved.
    pub dropping_old: bool,
}

impl Pending {
    pub fn of(life: &Life<'_>) -> Pending {
        let entries = life.open.iter().flat_map(|open| open.oplog.iter().map(|(timestamp, _)| *timestamp));
        Pending { holes: entries.collect(), dropping_old: life.dropping_old }
    }
}

/// Opens the store, with more power losses on the way if chance wants it.
pub fn reopen(simulation: &Simulation, options: &EngineOptions, chance: &mut Chance) -> Arc<DurableEngine> {
    let mut interruptions = if chance.one_in(2) { chance.below(4) } else { 0 };
    loop {
        if interruptions > 0 {
            simulation.disk().crash_after(chance.below(25));
        }
        match open(simulation, options) {
            Ok(engine) if interruptions == 0 => return engine,
            // The power did not go during recovery: it goes now.
            Ok(engine) => drop(engine),
            Err(error) => assert!(simulation.disk().has_lost_power(), "the store does not open: {error}"),
        }
        super::lose_power(simulation, chance);
        interruptions -= 1;
    }
}

/// Compares what was found with what may be, and makes the model follow.
pub fn check(engine: &DurableEngine, model: &mut Model, pending: &Pending, chance: &mut Chance) {
    let sight = observe::see(engine).unwrap_or_else(|error| panic!("reading everything: {error}"));
    let mut objections = Vec::new();
    let found = (model.acknowledged..=model.events.len()).find_map(|count| {
        let judged = judge(engine, model, pending, &sight, count);
        judged.map_err(|objection| objections.push(format!("  after {count} events: {objection}"))).ok()
    });
    let Some((count, checkpoint)) = found else {
        let (acknowledged, all) = (model.acknowledged, model.events.len());
        let events: Vec<String> =
            model.events.iter().enumerate().skip(acknowledged.saturating_sub(12)).map(tell).collect();
        panic!(
            "no prefix of {all} events ({acknowledged} acknowledged) explains the store:\n{}\n{}",
            events.join("\n"),
            objections.join("\n")
        );
    };
    check_history(engine, model, count, &checkpoint, chance);
    let report = engine.verify().expect("verification");
    assert!(report.damage.is_empty(), "damage: {:?}", report.damage);
    note_start(model, &sight, count);
    model.adopt(count, sight.oplog.keys().next_back().copied().unwrap_or_default(), checkpoint);
}

/// What a running engine shows must be everything that was committed, durable or not.
pub fn check_live(engine: &DurableEngine, model: &Model) {
    let count = model.events.len();
    let (logged, replicated) = (model.logged_writes(count), model.replicated.iter().collect::<Vec<_>>());
    for (ident, info) in model.tables(count) {
        let writes = if info.replicated { &replicated } else { &logged };
        let rows = observe::rows_of(engine, &ident, ReadAt::Latest).expect("reads go on");
        let expected = model::rows(writes.iter().copied(), info.uid, Timestamp::MAX);
        if let Some(difference) = difference(&rows, &expected) {
            panic!("the running engine: {ident} {difference}");
        }
        let table = engine.open_table(&ident).expect("a table");
        assert_eq!(
            engine.table_size(&table).expect("a size"),
            model::size(writes.iter().copied(), info.uid),
            "{ident}"
        );
    }
}

/// One line for whoever looks into a failing seed.
fn tell((place, event): (usize, &Event)) -> String {
    match event {
        Event::Commit { writes, oplog } => {
            let entries: Vec<_> = oplog.iter().map(|(timestamp, _)| *timestamp).collect();
            let stamps: Vec<_> = writes.iter().map(|write| (write.table, write.commit, write.durable)).collect();
            format!("  {place}: commit of {stamps:?} with entries {entries:?}")
        }
        other => format!("  {place}: {other:?}"),
    }
}

fn note_start(model: &mut Model, sight: &Sight, count: usize) {
    let Some(first) = sight.oplog.keys().next() else { return };
    if let Some((dropped, _)) = model.oplog(count).range(..first).next_back() {
        model.oplog_start = dropped.next();
    }
}

fn judge(
    engine: &DurableEngine,
    model: &Model,
    pending: &Pending,
    sight: &Sight,
    count: usize,
) -> Result<(usize, Checkpoint), String> {
    let tables = model.tables(count);
    if !tables.keys().eq(sight.tables.keys()) {
        return Err(format!("tables {:?} instead of {:?}", sight.tables.keys(), tables.keys()));
    }
    let logged = model.logged_writes(count);
    for (ident, info) in tables.iter().filter(|(_, info)| !info.replicated) {
        compare(sight, ident, info.uid, &logged)?;
    }
    judge_oplog(engine, model, pending, sight, count)?;
    let mut objections = Vec::new();
    for checkpoint in model.checkpoints.iter().rev() {
        match judge_checkpoint(engine, sight, &tables, checkpoint) {
            Ok(()) if checkpoint.events <= count => return Ok((count, checkpoint.clone())),
            Ok(()) => objections.push("the log ends before the checkpoint".to_owned()),
            Err(objection) => objections.push(format!("checkpoint at {}: {objection}", checkpoint.stable)),
        }
    }
    Err(objections.join("; "))
}

fn judge_checkpoint(
    engine: &DurableEngine,
    sight: &Sight,
    tables: &BTreeMap<String, model::TableInfo>,
    checkpoint: &Checkpoint,
) -> Result<(), String> {
    let now = engine.timestamps();
    let expected = (checkpoint.stable, checkpoint.stable, checkpoint.oldest);
    if (now.recovery, now.stable, now.oldest) != expected {
        return Err(format!("timestamps {now:?}"));
    }
    let writes: Vec<&Write> = checkpoint.writes.iter().collect();
    for (ident, info) in tables.iter().filter(|(_, info)| info.replicated) {
        compare(sight, ident, info.uid, &writes)?;
    }
    Ok(())
}

fn compare(sight: &Sight, ident: &str, uid: model::Uid, writes: &[&Write]) -> Result<(), String> {
    let (rows, size) = &sight.tables[ident];
    let expected = model::rows(writes.iter().copied(), uid, Timestamp::MAX);
    if let Some(difference) = difference(rows, &expected) {
        return Err(format!("{ident} {difference}"));
    }
    let counted = model::size(writes.iter().copied(), uid);
    if *size != counted {
        return Err(format!("{ident} has size {size:?} instead of {counted:?}"));
    }
    Ok(())
}

fn difference(rows: &model::Rows, expected: &model::Rows) -> Option<String> {
    let keys: std::collections::BTreeSet<_> = rows.keys().chain(expected.keys()).collect();
    keys.into_iter().find(|key| rows.get(*key) != expected.get(*key)).map(|key| {
        let show = |value: Option<&Vec<u8>>| {
            value.map(|value| String::from_utf8_lossy(&value[..value.len().min(24)]).into_owned())
        };
        let key_text = String::from_utf8_lossy(key);
        format!("has {key_text} = {:?} instead of {:?}", show(rows.get(key)), show(expected.get(key)))
    })
}

fn judge_oplog(
    engine: &DurableEngine,
    model: &Model,
    pending: &Pending,
    sight: &Sight,
    count: usize,
) -> Result<(), String> {
    let mut expected = model.oplog(count);
    let last = sight.oplog.keys().next_back().copied().unwrap_or_default();
    if let (true, Some(first)) = (pending.dropping_old, sight.oplog.keys().next()) {
        let kept = expected.split_off(first);
        let needed = model.checkpoints.iter().map(|checkpoint| checkpoint.stable).max().unwrap_or_default();
        if let Some(dropped) = expected.keys().find(|timestamp| **timestamp > needed) {
            return Err(format!("oplog entry {dropped} was dropped, but the checkpoint is at {needed}"));
        }
        expected = kept;
    }
    let above = expected.split_off(&last.next());
    if let Some(lost) = above.keys().find(|timestamp| **timestamp <= model.no_holes) {
        return Err(format!("acknowledged oplog entry {lost} is lost; the last is {last}"));
    }
    if expected != sight.oplog {
        let (has, wants): (Vec<_>, Vec<_>) = (sight.oplog.keys().collect(), expected.keys().collect());
        return Err(format!("oplog has {has:?} instead of {wants:?}"));
    }
    if let Some(hole) = holes(model, pending, count).into_iter().find(|hole| *hole < last) {
        return Err(format!("the oplog reaches {last} past the hole at {hole}"));
    }
    let size = engine.oplog().map(|oplog| oplog.size());
    let bytes: usize = expected.values().map(|entry| entry.len()).sum();
    match size {
        Some(size) if (size.records, size.bytes) != (expected.len() as i64, bytes as i64) => {
            Err(format!("the oplog has size {size:?} instead of {} entries, {bytes} bytes", expected.len()))
        }
        _ => Ok(()),
    }
}

/// Entries that were not in the log when it ended there.
fn holes(model: &Model, pending: &Pending, count: usize) -> Vec<Timestamp> {
    let mut holes = Vec::new();
    for event in &model.events[count..] {
        match event {
            Event::Commit { oplog, .. } => holes.extend(oplog.iter().map(|(timestamp, _)| *timestamp)),
            // What came after used timestamps again.
            Event::Cut(_) => return holes,
            Event::Create { .. } | Event::Drop { .. } => {}
        }
    }
    holes.extend(&pending.holes);
    holes
}

/// Reads in the past give the past.
fn check_history(engine: &DurableEngine, model: &Model, count: usize, checkpoint: &Checkpoint, chance: &mut Chance) {
    let oldest = checkpoint.oldest.0.max(1);
    let at = Timestamp(oldest + chance.below(checkpoint.stable.0.saturating_sub(oldest) + 5));
    let logged = model.logged_writes(count);
    for (ident, info) in model.tables(count) {
        let rows = observe::rows_of(engine, &ident, ReadAt::Timestamp(at)).expect("a read in the past");
        let expected = match info.replicated {
            true => model::rows(&checkpoint.writes, info.uid, at),
            false => model::rows(logged.iter().copied(), info.uid, at),
        };
        if let Some(difference) = difference(&rows, &expected) {
            let all: Vec<&Write> = if info.replicated { checkpoint.writes.iter().collect() } else { logged.clone() };
            let stamps: Vec<_> =
                all.iter().filter(|write| write.table == info.uid).map(|write| (write.commit, write.durable)).collect();
            panic!(
                "{ident} (replicated: {}) at {at} (oldest {}) {difference}; stamps {stamps:?}",
                info.replicated, checkpoint.oldest
            );
        }
    }
}
