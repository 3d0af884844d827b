//! Indexes over the engine under test. Keys end with a full stop, so that none is a prefix of another.

use super::factory::EngineFactoryMaker;
use super::support::*;
use crate::*;
use pando_base::RecordId;
use pando_env::Random;
use std::collections::BTreeSet;

const FORMATS: [IndexFormat; 3] = [IndexFormat::Id, IndexFormat::Standard, IndexFormat::Unique];
const KINDS: [RecordIdKind; 2] = [RecordIdKind::Long, RecordIdKind::Bytes];

fn make(store: &Store, format: IndexFormat, kind: RecordIdKind) -> SortedData {
    let options = SortedData::table_options(format, kind, true);
    let ident = format!("index-{format:?}-{kind:?}");
    SortedData::new(store.engine().clone(), store.create_table(&ident, &options).unwrap(), format, kind)
}

/// The number as an id of the kind; both kinds sort alike.
fn id(kind: RecordIdKind, number: u8) -> RecordId {
    match kind {
        RecordIdKind::Long => RecordId::Long(i64::from(number) - 3),
        RecordIdKind::Bytes => RecordId::Bytes(vec![0; usize::from(number)].into()),
    }
}

fn number_of(id: &RecordId) -> i64 {
    match id {
        RecordId::Long(number) => number + 3,
        RecordId::Bytes(bytes) => bytes.len() as i64,
    }
}

fn shown_index(entry: Option<IndexEntry<'_>>) -> String {
    entry.map_or_else(
        || "none".to_owned(),
        |entry| format!("{}{}{}", text(entry.key), number_of(&entry.record_id), text(entry.type_bits)),
    )
}

fn all(store: &Store, index: &SortedData, direction: Direction) -> String {
    let (mut unit, mut words) = (store.recovery_unit(), Vec::new());
    let mut cursor = index.cursor(direction);
    while let Some(entry) = cursor.next(&mut unit).unwrap() {
        words.push(shown_index(Some(entry)));
    }
    words.join(" ")
}

fn in_unit<T>(store: &Store, call: impl FnOnce(&mut RecoveryUnit) -> Result<T>) -> T {
    let mut unit = store.recovery_unit();
    let mut work = WriteUnitOfWork::begin(&mut unit);
    let value = call(&mut work).unwrap();
    work.commit().unwrap();
    value
}

fn insert(store: &Store, index: &SortedData, key: &str, id: &RecordId, duplicates_allowed: bool) -> Insertion {
    in_unit(store, |unit| index.insert(unit, key.as_bytes(), id, b"", duplicates_allowed))
}

pub(super) fn x13_every_format_keeps_entries_in_order(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    for (format, kind) in FORMATS.into_iter().flat_map(|format| KINDS.map(|kind| (format, kind))) {
        let index = make(&store, format, kind);
        assert!(index.is_empty(&mut store.recovery_unit()).unwrap());
        for (key, number, type_bits) in [("c.", 1, "!"), ("a.", 9, ""), ("ab.", 5, "?"), ("b.", 0, "")] {
            let done = in_unit(&store, |unit| {
                index.insert(unit, key.as_bytes(), &id(kind, number), type_bits.as_bytes(), false)
            });
            assert_eq!(done, Insertion::Done);
        }
        assert_eq!(all(&store, &index, Direction::Forward), "a.9 ab.5? b.0 c.1!", "{format:?} {kind:?}");
        assert_eq!(all(&store, &index, Direction::Reverse), "c.1! b.0 ab.5? a.9");
        assert!(!index.is_empty(&mut store.recovery_unit()).unwrap());
        in_unit(&store, |unit| index.unindex(unit, b"b.", &id(kind, 0)));
        // Another record's entry stays.
        in_unit(&store, |unit| index.unindex(unit, b"a.", &id(kind, 1)));
        in_unit(&store, |unit| index.unindex(unit, b"absent.", &id(kind, 1)));
        assert_eq!(all(&store, &index, Direction::Forward), "a.9 ab.5? c.1!");
        let mut unit = store.recovery_unit();
        assert_eq!(index.find_key(&mut unit, b"c.").unwrap(), Some(id(kind, 1)));
        assert_eq!(index.find_key(&mut unit, b"b.").unwrap(), None);
        assert_eq!(index.find_key(&mut unit, b"zz.").unwrap(), None);
        let wrong = if kind == RecordIdKind::Long { RecordIdKind::Bytes } else { RecordIdKind::Long };
        let mut work = WriteUnitOfWork::begin(&mut unit);
        fails!(index.insert(&mut work, b"k.", &id(wrong, 1), b"", true), IllegalOperation);
        fails!(index.unindex(&mut work, b"k.", &id(wrong, 1)), IllegalOperation);
    }
}

pub(super) fn x13_duplicates_are_told_with_their_record(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    for (format, kind) in FORMATS.into_iter().flat_map(|format| KINDS.map(|kind| (format, kind))) {
        let index = make(&store, format, kind);
        assert_eq!(insert(&store, &index, "a.", &id(kind, 1), false), Insertion::Done);
        assert_eq!(insert(&store, &index, "a.", &id(kind, 1), false), Insertion::Present);
        assert_eq!(insert(&store, &index, "a.", &id(kind, 2), false), Insertion::Duplicate(id(kind, 1)));
        assert_eq!(insert(&store, &index, "aa.", &id(kind, 2), false), Insertion::Done);
        assert_eq!(all(&store, &index, Direction::Forward), "a.1 aa.2", "{format:?} {kind:?}");
        // Within one unit too, and free again after an unindex.
        in_unit(&store, |unit| {
            index.insert(unit, b"b.", &id(kind, 3), b"", false)?;
            assert_eq!(index.insert(unit, b"b.", &id(kind, 4), b"", false)?, Insertion::Duplicate(id(kind, 3)));
            index.unindex(unit, b"a.", &id(kind, 1))?;
            assert_eq!(index.insert(unit, b"a.", &id(kind, 5), b"", false)?, Insertion::Done);
            Ok(())
        });
        assert_eq!(all(&store, &index, Direction::Forward), "a.5 aa.2 b.3");
        let mut unit = store.recovery_unit();
        fails!(index.insert(&mut unit, b"x.", &id(kind, 1), b"", false), IllegalOperation);
        fails!(index.insert(&mut unit, b"x.", &id(kind, 1), b"", true), IllegalOperation);
    }
}

pub(super) fn x13_duplicates_may_be_allowed_for_a_while(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    for (format, kind) in [IndexFormat::Standard, IndexFormat::Unique].into_iter().flat_map(|f| KINDS.map(|k| (f, k))) {
        let index = make(&store, format, kind);
        for number in [3, 1, 2] {
            assert_eq!(insert(&store, &index, "a.", &id(kind, number), true), Insertion::Done);
        }
        insert(&store, &index, "b.", &id(kind, 9), true);
        assert_eq!(all(&store, &index, Direction::Forward), "a.1 a.2 a.3 b.9", "{format:?} {kind:?}");
        let mut unit = store.recovery_unit();
        assert_eq!(index.find_key(&mut unit, b"a.").unwrap(), Some(id(kind, 1)));
        assert_eq!(index.dup_key_check(&mut unit, b"a.").unwrap(), Some(id(kind, 2)));
        assert_eq!(index.dup_key_check(&mut unit, b"b.").unwrap(), None);
        assert_eq!(index.dup_key_check(&mut unit, b"absent.").unwrap(), None);
        in_unit(&store, |unit| index.unindex(unit, b"a.", &id(kind, 2)));
        assert_eq!(all(&store, &index, Direction::Forward), "a.1 a.3 b.9");
    }
    let index = make(&store, IndexFormat::Id, RecordIdKind::Long);
    insert(&store, &index, "a.", &id(RecordIdKind::Long, 1), true);
    let duplicate = insert(&store, &index, "a.", &id(RecordIdKind::Long, 2), true);
    assert_eq!(duplicate, Insertion::Duplicate(id(RecordIdKind::Long, 1)));
    assert_eq!(index.dup_key_check(&mut store.recovery_unit(), b"a.").unwrap(), None);
}

pub(super) fn x13_concurrent_inserts_of_a_unique_key_conflict(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    for (format, kind) in FORMATS.into_iter().flat_map(|format| KINDS.map(|kind| (format, kind))) {
        let index = make(&store, format, kind);
        let (mut first, mut second, mut third) = (store.recovery_unit(), store.recovery_unit(), store.recovery_unit());
        third.preallocate_snapshot().unwrap();
        let mut winner = WriteUnitOfWork::begin(&mut first);
        assert_eq!(index.insert(&mut winner, b"a.", &id(kind, 1), b"", false).unwrap(), Insertion::Done);
        let mut loser = WriteUnitOfWork::begin(&mut second);
        fails!(index.insert(&mut loser, b"a.", &id(kind, 2), b"", false), WriteConflict);
        drop(loser);
        // Another key is free.
        let mut other = WriteUnitOfWork::begin(&mut second);
        assert_eq!(index.insert(&mut other, b"b.", &id(kind, 2), b"", false).unwrap(), Insertion::Done);
        other.commit().unwrap();
        winner.commit().unwrap();
        // A snapshot from before the winner's commit.
        let mut late = WriteUnitOfWork::begin(&mut third);
        fails!(index.insert(&mut late, b"a.", &id(kind, 3), b"", false), WriteConflict);
        drop(late);
        assert_eq!(insert(&store, &index, "a.", &id(kind, 3), false), Insertion::Duplicate(id(kind, 1)));
        // A rolled-back insert leaves the key free.
        let mut work = WriteUnitOfWork::begin(&mut first);
        index.insert(&mut work, b"c.", &id(kind, 1), b"", false).unwrap();
        drop(work);
        assert_eq!(insert(&store, &index, "c.", &id(kind, 2), false), Insertion::Done);
    }
}

pub(super) fn x13_index_cursors_seek_both_ways(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    for (format, kind) in FORMATS.into_iter().flat_map(|format| KINDS.map(|kind| (format, kind))) {
        let index = make(&store, format, kind);
        for (key, number) in [("b.", 1), ("b.", 2), ("d.", 3), ("f.", 4)] {
            insert(&store, &index, key, &id(kind, number), true);
        }
        let last_of_b = if format == IndexFormat::Id { "b.1" } else { "b.2" };
        let mut unit = store.recovery_unit();
        let mut forward = index.cursor(Direction::Forward);
        let mut reverse = index.cursor(Direction::Reverse);
        let cases = [
            ("a.", ["b.1", "b.1", "none", "none"]),
            ("b.", ["b.1", "d.3", last_of_b, "none"]),
            ("c.", ["d.3", "d.3", last_of_b, last_of_b]),
            ("d.", ["d.3", "f.4", "d.3", last_of_b]),
            ("f.", ["f.4", "none", "f.4", "d.3"]),
            ("g.", ["none", "none", "f.4", "f.4"]),
        ];
        for (key, [from, after, back_from, before]) in cases {
            let key = key.as_bytes();
            assert_eq!(shown_index(forward.seek_key(&mut unit, key, true).unwrap()), from, "{format:?} {kind:?}");
            assert_eq!(shown_index(forward.seek_key(&mut unit, key, false).unwrap()), after);
            assert_eq!(shown_index(reverse.seek_key(&mut unit, key, true).unwrap()), back_from);
            assert_eq!(shown_index(reverse.seek_key(&mut unit, key, false).unwrap()), before);
        }
        assert_eq!(shown_index(forward.seek_exact(&mut unit, b"d.").unwrap()), "d.3");
        assert_eq!(shown_index(forward.next(&mut unit).unwrap()), "f.4");
        assert_eq!(shown_index(forward.previous(&mut unit).unwrap()), "d.3");
        assert_eq!(shown_index(reverse.seek_exact(&mut unit, b"b.").unwrap()), last_of_b);
        assert_eq!(shown_index(reverse.seek_exact(&mut unit, b"c.").unwrap()), "none");
        // By bytes that are no whole key.
        assert_eq!(shown_index(forward.seek(&mut unit, b"c").unwrap()), "d.3");
        assert_eq!(shown_index(reverse.seek(&mut unit, b"c").unwrap()), last_of_b);
        // Over a yield, with the entry stood on gone.
        forward.seek_exact(&mut unit, b"d.").unwrap();
        forward.save();
        unit.abandon_snapshot().unwrap();
        in_unit(&store, |unit| index.unindex(unit, b"d.", &id(kind, 3)));
        forward.restore(&mut unit).unwrap();
        assert_eq!(shown_index(forward.next(&mut unit).unwrap()), "f.4");
    }
}

pub(super) fn x13_keys_of_ones_have_no_successor(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let index = make(&store, IndexFormat::Standard, RecordIdKind::Long);
    let ones = [255_u8; 3];
    for number in [1, 2] {
        in_unit(&store, |unit| index.insert(unit, &ones, &id(RecordIdKind::Long, number), b"", true));
    }
    let mut unit = store.recovery_unit();
    let (mut forward, mut reverse) = (index.cursor(Direction::Forward), index.cursor(Direction::Reverse));
    assert!(forward.seek_key(&mut unit, &ones, false).unwrap().is_none());
    let entry = reverse.seek_key(&mut unit, &ones, true).unwrap().unwrap();
    assert_eq!(entry.record_id, id(RecordIdKind::Long, 2));
    assert!(reverse.seek_key(&mut unit, &ones, false).unwrap().is_none());
}

pub(super) fn x13_indexes_are_built_in_bulk(maker: &dyn EngineFactoryMaker) {
    let mut store = Store::replica_set(maker);
    for (format, kind) in FORMATS.into_iter().flat_map(|format| KINDS.map(|kind| (format, kind))) {
        let index = make(&store, format, kind);
        let mut loader = index.bulk_load(false).unwrap();
        assert_eq!(loader.add(b"a.", &id(kind, 1), b"!").unwrap(), Insertion::Done);
        assert_eq!(loader.add(b"a.", &id(kind, 1), b"!").unwrap(), Insertion::Present);
        assert_eq!(loader.add(b"a.", &id(kind, 2), b"").unwrap(), Insertion::Duplicate(id(kind, 1)));
        assert_eq!(loader.add(b"b.", &id(kind, 0), b"").unwrap(), Insertion::Done);
        assert!(loader.add(b"a.", &id(kind, 5), b"").is_err(), "keys ascend");
        drop(loader);
        let mut loader = index.bulk_load(true).unwrap();
        let expected = match format {
            IndexFormat::Id => Insertion::Duplicate(id(kind, 1)),
            _ => Insertion::Done,
        };
        loader.add(b"a.", &id(kind, 1), b"!").unwrap();
        assert_eq!(loader.add(b"a.", &id(kind, 2), b"").unwrap(), expected);
        loader.add(b"b.", &id(kind, 0), b"").unwrap();
        loader.finish().unwrap();
    }
    store.crash();
    for (format, kind) in FORMATS.into_iter().flat_map(|format| KINDS.map(|kind| (format, kind))) {
        let table = store.open_table(&format!("index-{format:?}-{kind:?}")).unwrap();
        let index = SortedData::new(store.engine().clone(), table, format, kind);
        let expected = if format == IndexFormat::Id { "a.1! b.0" } else { "a.1! a.2 b.0" };
        assert_eq!(all(&store, &index, Direction::Forward), expected);
        assert_eq!(insert(&store, &index, "b.", &id(kind, 7), false), Insertion::Duplicate(id(kind, 0)));
        assert_eq!(insert(&store, &index, "c.", &id(kind, 7), false), Insertion::Done);
    }
}

pub(super) fn x13_a_random_index_agrees_with_a_set(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    for kind in KINDS {
        let index = make(&store, IndexFormat::Standard, kind);
        let (dice, mut expected) = (Dice::new(13), BTreeSet::new());
        for round in 0..400 {
            let key = format!("{}.", "xyz".repeat(dice.below(3) as usize) + &dice.below(5).to_string());
            let record = id(kind, dice.below(6) as u8);
            if dice.below(3) == 0 {
                in_unit(&store, |unit| index.unindex(unit, key.as_bytes(), &record));
                expected.remove(&(key, record));
            } else {
                insert(&store, &index, &key, &record, true);
                expected.insert((key, record));
            }
            if round % 150 == 149 {
                store.checkpoint(CheckpointKind::Full).unwrap();
                store.settle();
            }
        }
        let words: Vec<String> = expected.iter().map(|(key, id)| format!("{key}{}", number_of(id))).collect();
        assert_eq!(all(&store, &index, Direction::Forward), words.join(" "));
        let words: Vec<String> = words.into_iter().rev().collect();
        assert_eq!(all(&store, &index, Direction::Reverse), words.join(" "));
    }
}
