//! The language of the manifest: what one edit, or one chunk of a snapshot, says.
//!
//! A record of the manifest is a list of changes that take effect together. A snapshot uses the same language: it is the
//! shortest list of changes that leads from nothing to the state.

use super::record::{CheckpointMark, TableRecord};
use crate::lineage::Ages;
use crate::wire::{Reader, put_varint};
use crate::{FileDescriptor, RunDescriptor, TableId};
use pando_base::Timestamp;

/// The number of a run; never reused within a store.
pub(crate) type RunId = u64;

/// One step from a state to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Numbers below these are taken: files and runs.
    Numbers { next_file: u64, next_run: u64 },
    /// All versions in present parts that are durable only after this are dead.
    Fence(Timestamp),
    /// A new table without runs.
    Create(TableRecord),
    /// Another record for an existing table.
    Update(TableRecord),
    /// The table and its runs go.
    Drop(TableId),
    /// A file that the following runs lie in. It goes by itself with the last part in it.
    File(FileDescriptor),
    /// A run that is newer than all the table's others.
    Run { table: TableId, id: RunId, ages: Ages, run: RunDescriptor },
    /// Neighbouring runs are replaced by one, or by none if nothing was left of them.
    Replace { table: TableId, removed: Vec<RunId>, id: RunId, run: Option<RunDescriptor> },
    /// The checkpoint that the runs now hold.
    Mark(CheckpointMark),
}

const NUMBERS: u8 = 1;
const FENCE: u8 = 2;
const CREATE: u8 = 3;
const UPDATE: u8 = 4;
const DROP: u8 = 5;
const FILE: u8 = 6;
const RUN: u8 = 7;
const REPLACE: u8 = 8;
const MARK: u8 = 9;

impl Change {
    /// Appends the stored form.
    pub fn encode(&self, buffer: &mut Vec<u8>) {
        match self {
            Change::Numbers { next_file, next_run } => put(buffer, NUMBERS, &[*next_file, *next_run]),
            Change::Fence(fence) => put(buffer, FENCE, &[fence.0]),
            Change::Create(table) => {
                buffer.push(CREATE);
                table.encode(buffer);
            }
            Change::Update(table) => {
                buffer.push(UPDATE);
                table.encode(buffer);
            }
            Change::Drop(table) => put(buffer, DROP, &[*table]),
            Change::File(file) => put(buffer, FILE, &[file.id, file.length_bytes]),
            Change::Run { table, id, ages, run } => {
                put(buffer, RUN, &[*table, *id, ages.first, ages.last]);
                run.encode(buffer);
            }
            Change::Replace { table, removed, id, run } => {
                put(buffer, REPLACE, &[*table, *id, removed.len() as u64]);
                removed.iter().for_each(|run| put_varint(buffer, *run));
                buffer.push(u8::from(run.is_some()));
                run.iter().for_each(|run| run.encode(buffer));
            }
            Change::Mark(mark) => {
                buffer.push(MARK);
                mark.encode(buffer);
            }
        }
    }

    /// All changes of a record; `None` if the bytes are not a list of changes.
    pub fn decode_all(bytes: &[u8]) -> Option<Vec<Change>> {
        let mut reader = Reader::new(bytes);
        let mut changes = Vec::new();
        while !reader.is_empty() {
            changes.push(Change::decode(&mut reader)?);
        }
        Some(changes)
    }

    fn decode(reader: &mut Reader<'_>) -> Option<Change> {
        Some(match reader.u8()? {
            NUMBERS => Change::Numbers { next_file: reader.varint()?, next_run: reader.varint()? },
            FENCE => Change::Fence(Timestamp(reader.varint()?)),
            CREATE => Change::Create(TableRecord::decode(reader)?),
            UPDATE => Change::Update(TableRecord::decode(reader)?),
            DROP => Change::Drop(reader.varint()?),
            FILE => Change::File(FileDescriptor { id: reader.varint()?, length_bytes: reader.varint()? }),
            RUN => Change::Run {
                table: reader.varint()?,
                id: reader.varint()?,
                ages: Ages { first: reader.varint()?, last: reader.varint()? },
                run: decode_run(reader)?,
            },
            REPLACE => decode_replace(reader)?,
            MARK => Change::Mark(CheckpointMark::decode(reader)?),
            _ => return None,
        })
    }
}

fn put(buffer: &mut Vec<u8>, tag: u8, numbers: &[u64]) {
    buffer.push(tag);
    numbers.iter().for_each(|number| put_varint(buffer, *number));
}

fn decode_run(reader: &mut Reader<'_>) -> Option<RunDescriptor> {
    let mut ahead = *reader;
    let (run, rest) = RunDescriptor::decode(ahead.take(ahead.remaining())?)?;
    reader.take(reader.remaining() - rest.len())?;
    Some(run)
}

fn decode_replace(reader: &mut Reader<'_>) -> Option<Change> {
    let (table, id, count) = (reader.varint()?, reader.varint()?, reader.length()?);
    let mut removed = Vec::new();
    for _ in 0..count {
        removed.push(reader.varint()?);
    }
    let run = match reader.u8()? {
        0 => None,
        1 => Some(decode_run(reader)?),
        _ => return None,
    };
    Some(Change::Replace { table, removed, id, run })
}
