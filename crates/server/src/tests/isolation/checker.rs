//! Looks for what snapshot isolation does not allow, in the manner of Elle: lists tell the order of their writes, registers that
//! are read before they are written tell it too, and the orders of all keys together must have no cycle that snapshots exclude.
//!
//! Edges: `ww` from a write to the one that follows it, `wr` from a write to who reads it, `rw` from who reads a version to the
//! write that follows it. Under snapshot isolation every cycle has two `rw` edges in a row; so the graph of (ww or wr), followed
//! by at most one `rw`, has none.

use super::history::{History, Key, Outcome, Step, Transaction};
use std::collections::{BTreeMap, BTreeSet};

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Anomaly {
    /// A transaction does not see what it has done itself.
    Internal(usize),
    /// Somebody has read what was never committed (G1a).
    AbortedRead { reader: usize, value: i32 },
    /// Somebody has read what its writer replaced before it committed (G1b).
    IntermediateRead { reader: usize, value: i32 },
    /// Two reads of a list do not have one order.
    Incompatible(Key),
    /// A value is in a list twice.
    Duplicate { key: Key, value: i32 },
    /// What was acknowledged is not there.
    LostWrite { key: Key, value: i32 },
    /// Two transactions have replaced the same version of a register.
    LostUpdate { key: Key, value: i32 },
    /// Writes alone make a circle (G0).
    G0(Vec<usize>),
    /// Writes and reads of them do (G1c).
    G1c(Vec<usize>),
    /// So they do with one read of something older (G-single, read skew).
    GSingle(Vec<usize>),
}

/// Checks a history.
pub(super) fn check(history: &History) -> Result<(), Anomaly> {
    let writers = Writers::of(history);
    for (place, transaction) in history.transactions.iter().enumerate() {
        check_internal(place, transaction)?;
        if transaction.outcome != Outcome::Aborted {
            check_reads(history, &writers, place, transaction)?;
        }
    }
    let mut graph = Graph::new(history.transactions.len());
    check_lists(history, &writers, &mut graph)?;
    check_registers(history, &writers, &mut graph)?;
    graph.check()
}

/// Who has written which value, and which was the last of its transaction on its key.
struct Writers {
    of: BTreeMap<i32, usize>,
    intermediate: BTreeSet<i32>,
}

impl Writers {
    fn of(history: &History) -> Writers {
        let mut writers = Writers { of: BTreeMap::new(), intermediate: BTreeSet::new() };
        for (place, transaction) in history.transactions.iter().enumerate() {
            let mut last: BTreeMap<(bool, Key), i32> = BTreeMap::new();
            for step in &transaction.steps {
                let (slot, value) = match step {
                    Step::Append(key, value) => ((true, *key), *value),
                    Step::Write(key, value) => ((false, *key), *value),
                    _ => continue,
                };
                writers.of.insert(value, place);
                if let Some(before) = last.insert(slot, value) {
                    writers.intermediate.insert(before);
                }
            }
        }
        writers
    }
}

/// What a transaction reads agrees with what it has read and written before.
fn check_internal(place: usize, transaction: &Transaction) -> Result<(), Anomaly> {
    let mut lists: BTreeMap<Key, (Option<Vec<i32>>, Vec<i32>)> = BTreeMap::new();
    let mut registers: BTreeMap<Key, i32> = BTreeMap::new();
    for step in &transaction.steps {
        let holds = match step {
            Step::Append(key, value) => {
                lists.entry(*key).or_default().1.push(*value);
                true
            }
            Step::ReadList(key, found) => {
                let (base, own) = lists.entry(*key).or_default();
                let split = found.len().saturating_sub(own.len());
                let (before, after) = found.split_at(split);
                let agrees = after == own.as_slice() && base.as_ref().is_none_or(|base| base.as_slice() == before);
                *base = Some(before.to_vec());
                agrees
            }
            Step::Write(key, value) => {
                registers.insert(*key, *value);
                true
            }
            Step::Read(key, found) => registers.insert(*key, *found).is_none_or(|before| before == *found),
        };
        if !holds {
            return Err(Anomaly::Internal(place));
        }
    }
    Ok(())
}

fn check_reads(history: &History, writers: &Writers, place: usize, reader: &Transaction) -> Result<(), Anomaly> {
    let check_value = |value: i32, is_last: bool| match writers.of.get(&value) {
        Some(writer) if *writer == place => Ok(()),
        Some(writer) if history.transactions[*writer].outcome == Outcome::Aborted => {
            Err(Anomaly::AbortedRead { reader: place, value })
        }
        Some(_) if is_last && writers.intermediate.contains(&value) => {
            Err(Anomaly::IntermediateRead { reader: place, value })
        }
        Some(_) => Ok(()),
        None => Err(Anomaly::AbortedRead { reader: place, value }),
    };
    for step in &reader.steps {
        match step {
            Step::ReadList(_, found) => {
                for (at, value) in found.iter().enumerate() {
                    check_value(*value, at + 1 == found.len())?;
                }
            }
            Step::Read(_, value) if *value != 0 => check_value(*value, true)?,
            _ => {}
        }
    }
    Ok(())
}

fn check_lists(history: &History, writers: &Writers, graph: &mut Graph) -> Result<(), Anomaly> {
    for (key, order) in &history.lists {
        let mut seen = BTreeSet::new();
        if let Some(value) = order.iter().find(|value| !seen.insert(**value)) {
            return Err(Anomaly::Duplicate { key: *key, value: *value });
        }
        let writer = |place: usize| order.get(place).and_then(|value| writers.of.get(value)).copied();
        for place in 1..order.len() {
            if let (Some(from), Some(to)) = (writer(place - 1), writer(place)) {
                graph.add(Kind::WriteWrite, from, to);
            }
        }
        for (reader, transaction) in history.transactions.iter().enumerate() {
            if transaction.outcome == Outcome::Aborted {
                continue;
            }
            for step in &transaction.steps {
                match step {
                    Step::Append(own, value) if own == key && transaction.is_committed() && !seen.contains(value) => {
                        return Err(Anomaly::LostWrite { key: *key, value: *value });
                    }
                    Step::ReadList(own, found) if own == key && is_in_effect(transaction, &seen) => {
                        if order.get(..found.len()) != Some(found.as_slice()) {
                            return Err(Anomaly::Incompatible(*key));
                        }
                        if let Some(from) = found.len().checked_sub(1).and_then(writer) {
                            graph.add(Kind::WriteRead, from, reader);
                        }
                        if let Some(to) = writer(found.len()) {
                            graph.add(Kind::ReadWrite, reader, to);
                        }
                    }
                    _ => {}
                }
            }
        }
    }
    Ok(())
}

/// What a transaction has seen of its own writes counts only if it happened.
fn is_in_effect(transaction: &Transaction, seen: &BTreeSet<i32>) -> bool {
    let is_seen = |step: &Step| matches!(step, Step::Append(_, value) if seen.contains(value));
    let appends = |step: &Step| matches!(step, Step::Append(..) | Step::Write(..));
    transaction.is_committed() || transaction.steps.iter().any(is_seen) || !transaction.steps.iter().any(appends)
}

fn check_registers(history: &History, writers: &Writers, graph: &mut Graph) -> Result<(), Anomaly> {
    // The version that each value replaced, as its writer saw it.
    let mut next: BTreeMap<(Key, i32), i32> = BTreeMap::new();
    let happened = |transaction: &Transaction| transaction.is_committed();
    for transaction in history.transactions.iter().filter(|transaction| happened(transaction)) {
        let mut read: BTreeMap<Key, i32> = BTreeMap::new();
        let mut last: BTreeMap<Key, i32> = BTreeMap::new();
        for step in &transaction.steps {
            match step {
                Step::Read(key, value) if !last.contains_key(key) => drop(read.entry(*key).or_insert(*value)),
                Step::Write(key, value) => drop(last.insert(*key, *value)),
                _ => {}
            }
        }
        for (key, value) in last {
            let Some(before) = read.get(&key) else { continue };
            if next.insert((key, *before), value).is_some() {
                return Err(Anomaly::LostUpdate { key, value: *before });
            }
        }
    }
    for ((key, before), value) in &next {
        let writer = writers.of.get(value).copied();
        if let (Some(from), Some(to)) = (writers.of.get(before), writer) {
            graph.add(Kind::WriteWrite, *from, to);
        }
        let readers = history.transactions.iter().enumerate().filter(|(_, transaction)| happened(transaction));
        for (reader, _) in readers.filter(|(_, other)| other.steps.contains(&Step::Read(*key, *before))) {
            if let Some(to) = writer {
                graph.add(Kind::ReadWrite, reader, to);
            }
        }
    }
    for (reader, transaction) in history.transactions.iter().enumerate().filter(|(_, other)| happened(other)) {
        for step in &transaction.steps {
            if let Step::Read(_, value) = step
                && let Some(from) = writers.of.get(value)
            {
                graph.add(Kind::WriteRead, *from, reader);
            }
        }
    }
    // What nobody is known to have replaced is what is there, unless somebody is not known to have written.
    let is_certain = history.transactions.iter().all(|transaction| transaction.outcome != Outcome::Unknown);
    for (key, value) in history.registers.iter().filter(|_| is_certain) {
        if next.contains_key(&(*key, *value)) {
            return Err(Anomaly::LostWrite { key: *key, value: *value });
        }
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    WriteWrite,
    WriteRead,
    ReadWrite,
}

struct Graph {
    count: usize,
    edges: BTreeSet<(usize, usize, u8)>,
}

impl Graph {
    fn new(count: usize) -> Graph {
        Graph { count, edges: BTreeSet::new() }
    }

    fn add(&mut self, kind: Kind, from: usize, to: usize) {
        if from != to {
            self.edges.insert((from, to, kind as u8));
        }
    }

    fn of(&self, kinds: &[Kind]) -> Vec<Vec<usize>> {
        let mut next = vec![Vec::new(); self.count];
        for (from, to, kind) in &self.edges {
            if kinds.iter().any(|wanted| *wanted as u8 == *kind) {
                next[*from].push(*to);
            }
        }
        next
    }

    fn check(&self) -> Result<(), Anomaly> {
        let writes = self.of(&[Kind::WriteWrite]);
        if let Some(circle) = circle(&writes) {
            return Err(Anomaly::G0(circle));
        }
        let dependencies = self.of(&[Kind::WriteWrite, Kind::WriteRead]);
        if let Some(circle) = circle(&dependencies) {
            return Err(Anomaly::G1c(circle));
        }
        let older = self.of(&[Kind::ReadWrite]);
        let mut composed = dependencies.clone();
        for (from, next) in dependencies.iter().enumerate() {
            composed[from].extend(next.iter().flat_map(|middle| older[*middle].iter().copied()));
        }
        circle(&composed).map_or(Ok(()), |circle| Err(Anomaly::GSingle(circle)))
    }
}

/// A circle in the graph, if there is one.
fn circle(next: &[Vec<usize>]) -> Option<Vec<usize>> {
    let mut state = vec![0_u8; next.len()];
    for start in 0..next.len() {
        // Places on the way, each with how many of its edges were followed.
        let mut way: Vec<(usize, usize)> = Vec::new();
        if state[start] == 0 {
            state[start] = 1;
            way.push((start, 0));
        }
        while let Some((place, followed)) = way.last_mut() {
            let Some(to) = next[*place].get(*followed).copied() else {
                state[*place] = 2;
                way.pop();
                continue;
            };
            *followed += 1;
            match state[to] {
                0 => {
                    state[to] = 1;
                    way.push((to, 0));
                }
                1 => return Some(way.iter().map(|(place, _)| *place).skip_while(|place| *place != to).collect()),
                _ => {}
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use Step::{Append, Read, ReadList, Write};

    fn history(transactions: &[(&[Step], Outcome)], lists: &[(Key, &[i32])]) -> History {
        let made = |(steps, outcome): &(&[Step], Outcome)| Transaction { steps: steps.to_vec(), outcome: *outcome };
        History {
            transactions: transactions.iter().map(made).collect(),
            lists: lists.iter().map(|(key, list)| (*key, list.to_vec())).collect(),
            ..History::default()
        }
    }

    const DONE: Outcome = Outcome::Committed;

    #[test]
    fn r9_the_checker_finds_each_anomaly() {
        let cases: Vec<(&str, History)> = vec![
            ("Internal", history(&[(&[Append(1, 1), ReadList(1, vec![])], DONE)], &[(1, &[1])])),
            (
                "AbortedRead",
                history(&[(&[Append(1, 1)], Outcome::Aborted), (&[ReadList(1, vec![1])], DONE)], &[(1, &[1])]),
            ),
            (
                "IntermediateRead",
                history(&[(&[Append(1, 1), Append(1, 2)], DONE), (&[ReadList(1, vec![1])], DONE)], &[(1, &[1, 2])]),
            ),
            (
                "Incompatible",
                history(
                    &[(&[Append(1, 1)], DONE), (&[Append(1, 2)], DONE), (&[ReadList(1, vec![2])], DONE)],
                    &[(1, &[1, 2])],
                ),
            ),
            ("Duplicate", history(&[(&[Append(1, 1)], DONE)], &[(1, &[1, 1])])),
            ("LostWrite", history(&[(&[Append(1, 1)], DONE)], &[(1, &[])])),
            ("LostUpdate", history(&[(&[Read(1, 0), Write(1, 1)], DONE), (&[Read(1, 0), Write(1, 2)], DONE)], &[])),
            (
                "G0",
                history(
                    &[(&[Append(1, 1), Append(2, 2)], DONE), (&[Append(1, 3), Append(2, 4)], DONE)],
                    &[(1, &[1, 3]), (2, &[4, 2])],
                ),
            ),
            (
                "G1c",
                history(
                    &[(&[Append(1, 1), ReadList(2, vec![2])], DONE), (&[Append(2, 2), ReadList(1, vec![1])], DONE)],
                    &[(1, &[1]), (2, &[2])],
                ),
            ),
            (
                "GSingle",
                history(
                    &[(&[Append(1, 1), Append(2, 2)], DONE), (&[ReadList(1, vec![1]), ReadList(2, vec![])], DONE)],
                    &[(1, &[1]), (2, &[2])],
                ),
            ),
        ];
        for (name, history) in cases {
            let found = check(&history).expect_err(name);
            assert!(format!("{found:?}").starts_with(name), "{name}: {found:?}");
        }
    }

    #[test]
    fn r9_the_checker_allows_write_skew() {
        let skew = history(
            &[
                (&[ReadList(1, vec![]), Append(2, 1)], DONE),
                (&[ReadList(2, vec![]), Append(1, 2)], DONE),
                (&[Read(3, 0), Write(3, 5)], DONE),
                (&[Read(3, 5), ReadList(1, vec![2])], DONE),
            ],
            &[(1, &[2]), (2, &[1])],
        );
        assert_eq!(check(&skew), Ok(()));
    }
}
