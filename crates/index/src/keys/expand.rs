//! Keys of a document with arrays on the indexed paths: one key for each value of the array.
//!
//! The paths are walked together, each up to its end or to the first array. All that stop at an array must stop at the same
//! one, or there would be a key for each pair of values: "cannot index parallel arrays". Then the walk goes on below each of
//! the array's values. A few rules that are not obvious:
//!
//! * A number in a path (`a.1.b`) means the array's value at that place if there is one, else a field of that name in the
//!   array's documents. If it could be either, the document is refused.
//! * A path that ends at an array takes each of its values, but values that are arrays themselves are taken whole. Where
//!   such an inner array was chosen by place, the path takes it whole too.
//! * An empty array has the key undefined, so that it can be told from a missing field.
//!
//! The depth of the recursion is bounded by the length of the paths: each level uses up a part of the paths that stopped,
//! or all of them are at their ends.

use super::KeySet;
use super::btree::BtreeKeys;
use bstr::BStr;
use pando_base::{Error, ErrorCode, Result};
use pando_doc::{ArrayRef, DocRef, FieldPath, Value};
use smallvec::SmallVec;

/// The text of an array in a message is cut in the middle from this length on.
const SHOWN_LENGTH_MAX: usize = 1024;

/// How far the walk along one path has come.
#[derive(Clone, Copy)]
struct Field<'a> {
    /// The next part to look for; at the end of the path there is none.
    next: usize,
    /// What the key gets, once the path is at its end.
    value: Value<'a>,
}

/// A value that a path chose by its place in an array, with the walk below it done in advance.
#[derive(Clone, Copy)]
struct Chosen<'a> {
    array: ArrayRef<'a>,
    /// The value at that place is an array itself.
    is_array: bool,
    /// Where the walk below it stopped, and what is there.
    next: usize,
    found: Option<Value<'a>>,
}

type Fields<'a> = SmallVec<[Field<'a>; 3]>;
type Choices<'a> = SmallVec<[Option<Chosen<'a>>; 3]>;

/// The array at which the walk stopped.
struct Stop<'a> {
    array: ArrayRef<'a>,
    /// The array's name, for the message about parallel arrays.
    name: &'a BStr,
    /// The fields that stopped there, as bits: a key has at most 32 fields.
    fields: u32,
    /// Its values get keys of their own.
    expands: bool,
}

impl Stop<'_> {
    fn has(&self, field: usize) -> bool {
        self.fields >> field & 1 == 1
    }
}

/// Makes the keys of documents with arrays.
pub(super) struct Expansion<'g> {
    generator: &'g BtreeKeys,
}

impl<'g> Expansion<'g> {
    pub(super) fn new(generator: &'g BtreeKeys) -> Expansion<'g> {
        Expansion { generator }
    }

    pub(super) fn run(&self, doc: DocRef<'_>, keys: &mut KeySet) -> Result<()> {
        let fields = self.paths().iter().map(|_| Field { next: 0, value: Value::Null }).collect();
        self.document(doc, fields, &self.nothing_chosen(), 0, keys)
    }

    fn paths(&self) -> &'g [FieldPath] {
        &self.generator.paths
    }

    fn nothing_chosen<'a>(&self) -> Choices<'a> {
        SmallVec::from_elem(None, self.paths().len())
    }

    /// Goes on below a document; `missing` fields are known to lead nowhere.
    fn document<'a>(
        &self,
        doc: DocRef<'a>,
        mut fields: Fields<'a>,
        choices: &Choices<'a>,
        mut missing: usize,
        keys: &mut KeySet,
    ) -> Result<()>
    where
        'g: 'a,
    {
        let Some(stop) = self.walk(doc, &mut fields, choices, &mut missing)? else {
            if self.generator.sparse && missing == fields.len() {
                return Ok(());
            }
            return self.generator.key_of(fields.iter().map(|field| field.value), keys);
        };
        if stop.array.is_empty() {
            self.note_empty(&stop, &fields, keys);
            let below = self.value_fields(&stop, &fields, Value::Undefined);
            return self.document(DocRef::EMPTY, below, &self.nothing_chosen(), missing, keys);
        }
        let choices = self.choose(&stop, &fields, keys);
        for value in stop.array.values() {
            let taken = if stop.expands { value } else { Value::Array(stop.array) };
            let below = self.value_fields(&stop, &fields, taken);
            self.document(value.as_document().unwrap_or(DocRef::EMPTY), below, &choices, missing, keys)?;
        }
        Ok(())
    }

    /// Walks every path that is not at its end, up to its end or to an array.
    fn walk<'a>(
        &self,
        doc: DocRef<'a>,
        fields: &mut Fields<'a>,
        choices: &Choices<'a>,
        missing: &mut usize,
    ) -> Result<Option<Stop<'a>>>
    where
        'g: 'a,
    {
        let mut stop: Option<Stop<'a>> = None;
        for (index, ((path, field), chosen)) in self.paths().iter().zip(fields.iter_mut()).zip(choices).enumerate() {
            if field.next >= path.part_count() {
                continue;
            }
            let (found, whole) = step(doc, path, &mut field.next, chosen.as_ref())?;
            match found {
                None => {
                    *field = Field { next: path.part_count(), value: Value::Null };
                    *missing += 1;
                }
                Some(Value::Array(array)) => {
                    let name = path.part(field.next.saturating_sub(1));
                    let stop = stop.get_or_insert(Stop { array, name, fields: 0, expands: true });
                    if !std::ptr::eq(stop.array.bytes(), array.bytes()) {
                        return Err(parallel_arrays(name, stop.name));
                    }
                    stop.fields |= 1_u32.checked_shl(index as u32).unwrap_or(0);
                    stop.expands &= !whole;
                }
                Some(value) => *field = Field { next: path.part_count(), value },
            }
        }
        Ok(stop)
    }

    /// The fields for one of the array's values: paths that ended at the array take it.
    fn value_fields<'a>(&self, stop: &Stop<'a>, fields: &Fields<'a>, value: Value<'a>) -> Fields<'a> {
        let mut below = fields.clone();
        for (index, (path, field)) in self.paths().iter().zip(below.iter_mut()).enumerate() {
            if stop.has(index) && field.next >= path.part_count() {
                field.value = value;
            }
        }
        below
    }

    /// Every path that met the empty array has an array there.
    fn note_empty(&self, stop: &Stop<'_>, fields: &Fields<'_>, keys: &mut KeySet) {
        if !stop.expands {
            return;
        }
        for (index, field) in fields.iter().enumerate().filter(|(index, _)| stop.has(*index)) {
            keys.add_array(index, field.next.saturating_sub(1));
        }
    }

    /// For each path that goes on below the array: does it choose one value by place? Those that do not have an array
    /// there.
    fn choose<'a>(&self, stop: &Stop<'a>, fields: &Fields<'a>, keys: &mut KeySet) -> Choices<'a> {
        let mut choices = self.nothing_chosen();
        for (index, (path, field)) in self.paths().iter().zip(fields).enumerate() {
            if !stop.has(index) {
                continue;
            }
            let array_part = field.next.saturating_sub(1);
            if field.next >= path.part_count() {
                if stop.expands {
                    keys.add_array(index, array_part);
                }
                continue;
            }
            let chosen = choose_by_place(stop.array, path, field.next);
            if chosen.is_none() {
                keys.add_array(index, array_part);
            }
            if let Some(choice) = choices.get_mut(index) {
                *choice = chosen;
            }
        }
        choices
    }
}

/// The value of the array whose place is the path's next part, and what is below it.
fn choose_by_place<'a>(array: ArrayRef<'a>, path: &FieldPath, mut next: usize) -> Option<Chosen<'a>> {
    let value = array.as_doc().get(path.part(next))?;
    let found = walk_to_array(array.as_doc(), path, &mut next);
    Some(Chosen { array, is_array: matches!(value, Value::Array(_)), next, found })
}

/// What the path leads to from here; true if an array found there was inside another and is to be taken whole.
fn step<'a>(
    doc: DocRef<'a>,
    path: &FieldPath,
    next: &mut usize,
    chosen: Option<&Chosen<'a>>,
) -> Result<(Option<Value<'a>>, bool)> {
    let part = path.part(*next);
    match (doc.contains(part), chosen) {
        (true, Some(chosen)) => Err(ambiguous(part, chosen.array)),
        (true, None) => Ok((walk_to_array(doc, path, next), false)),
        (false, Some(chosen)) => {
            *next = chosen.next;
            Ok((chosen.found, chosen.is_array))
        }
        (false, None) => Ok((None, false)),
    }
}

/// Follows the path to its end or to the first array; `next` is then the part behind it.
fn walk_to_array<'a>(doc: DocRef<'a>, path: &FieldPath, next: &mut usize) -> Option<Value<'a>> {
    let mut current = doc;
    loop {
        let value = current.get(path.part(*next))?;
        *next += 1;
        match value {
            Value::Array(_) => return Some(value),
            _ if *next >= path.part_count() => return Some(value),
            Value::Document(nested) => current = nested,
            _ => return None,
        }
    }
}

fn parallel_arrays(name: &BStr, other: &BStr) -> Error {
    Error::new(ErrorCode::CannotIndexParallelArrays, format!("cannot index parallel arrays [{name}] [{other}]"))
}

fn ambiguous(part: &BStr, array: ArrayRef<'_>) -> Error {
    let shown = cut_in_the_middle(array.as_doc().to_string());
    let reason = format!(
        "Ambiguous field name found in array (do not use numeric field names in embedded elements in an array), \
         field: '{part}' for array: {shown}"
    );
    Error::location(16746, reason)
}

fn cut_in_the_middle(text: String) -> String {
    if text.len() < SHOWN_LENGTH_MAX {
        return text;
    }
    let third = SHOWN_LENGTH_MAX / 3;
    let start = text.floor_char_boundary(third);
    let end = text.ceil_char_boundary(text.len() - third);
    format!("{} .......... {}", &text[..start], &text[end..])
}
