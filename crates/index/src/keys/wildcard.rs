//! Keys of wildcard indexes: one for each value that lies below the wildcard, with the path to it in front.
//!
//! A key has the values of the fields before the wildcard, the path as text, the value, and the values of the fields behind
//! it. Arrays do not show in paths: each of their values has a key of its own under the array's path; but an array inside
//! of an array is a value. Documents have no keys of their own, unless they are empty. Fields whose names have dots cannot
//! be asked for and are left out.
//!
//! The fields beside the wildcard must not be arrays. A document that has some of them and nothing below the wildcard has
//! one key, with the least of all values for path and value, so that queries on these fields alone find it.

use super::{KeySet, SharedCollator};
use bstr::{BStr, BString, ByteSlice};
use pando_base::{Error, ErrorCode, Result, bail};
use pando_catalog::is_wildcard_path;
use pando_doc::{Doc, DocBuilder, DocRef, FieldPath, Value};
use pando_keystring::KeyOrdering;

/// The name of the component that holds the path.
pub const WILDCARD_PATH_FIELD: &str = "$_path";

/// A key pattern as the keys have it: the path in front of the value, which goes by this name; and the place of the value.
pub fn wildcard_key_pattern(pattern: DocRef<'_>, name: &BStr) -> (Doc, usize) {
    let mut expanded = DocBuilder::new();
    let mut place = 0;
    for (index, field) in pattern.elements().enumerate() {
        if is_wildcard_path(field.name) {
            expanded.append(WILDCARD_PATH_FIELD, 1_i32);
            expanded.append(name, field.value);
            place = index + 1;
        } else {
            expanded.append_element(field);
        }
    }
    (expanded.finish(), place)
}

/// Which fields a wildcard takes in.
#[derive(Clone, Debug, PartialEq)]
pub struct WildcardFields {
    root: Choice,
    /// What is named is taken in; otherwise it is left out.
    is_inclusion: bool,
}

/// What becomes of a field and of what lies below.
#[derive(Clone, Debug, PartialEq)]
enum Choice {
    /// The field is named as a whole.
    Whole,
    /// Some of the fields below are named.
    Below(Vec<(BString, Choice)>),
}

impl Choice {
    fn insert<'p>(&mut self, mut parts: impl Iterator<Item = &'p BStr>) {
        let Choice::Below(fields) = self else { return };
        let Some(part) = parts.next() else {
            *self = Choice::Whole;
            return;
        };
        let place = fields.iter().position(|(name, _)| name == part).unwrap_or_else(|| {
            fields.push((part.to_owned(), Choice::Below(Vec::new())));
            fields.len() - 1
        });
        if let Some((_, below)) = fields.get_mut(place) {
            below.insert(parts);
        }
    }

    fn find(&self, name: &[u8]) -> Option<&Choice> {
        match self {
            Choice::Whole => None,
            Choice::Below(fields) => fields.iter().find(|(known, _)| known == name).map(|(_, choice)| choice),
        }
    }
}

/// What is taken in below a place in a document.
#[derive(Clone, Copy)]
enum Scope<'s> {
    /// Everything.
    All,
    /// What is named.
    Only(&'s Choice),
    /// All but what is named.
    Except(&'s Choice),
}

impl<'s> Scope<'s> {
    /// What is taken in below a field; none if the field is left out.
    fn below(self, name: &[u8]) -> Option<Scope<'s>> {
        match self {
            Scope::All => Some(Scope::All),
            Scope::Only(choice) => choice.find(name).map(|below| match below {
                Choice::Whole => Scope::All,
                below => Scope::Only(below),
            }),
            Scope::Except(choice) => match choice.find(name) {
                None => Some(Scope::All),
                Some(Choice::Whole) => None,
                Some(below) => Some(Scope::Except(below)),
            },
        }
    }

    /// True if a value that is neither a document nor an array has nothing that could be named.
    fn drops_scalars(self) -> bool {
        matches!(self, Scope::Only(_))
    }
}

impl WildcardFields {
    /// Reads what an index takes in from its key pattern and its projection.
    pub fn parse(pattern: DocRef<'_>, projection: Option<DocRef<'_>>) -> Result<WildcardFields> {
        let wildcard = pattern.elements().map(|field| field.name).find(|name| is_wildcard_path(name));
        let Some(wildcard) = wildcard else {
            bail!(ErrorCode::location(7246102), "the wildcard keyPattern {pattern} is invalid")
        };
        let mut root = Choice::Below(Vec::new());
        if let Some(subtree) = wildcard.strip_suffix(b".$**") {
            root.insert(subtree.split_str(".").map(BStr::new));
            return Ok(WildcardFields { root, is_inclusion: true });
        }
        let Some(projection) = projection.filter(|projection| !projection.is_empty()) else {
            root.insert([BStr::new("_id")].into_iter());
            return Ok(WildcardFields { root, is_inclusion: false });
        };
        let mut named = Vec::new();
        collect_named(projection, &BString::default(), &mut named);
        let id = named.iter().find(|(path, _)| path == "_id").map(|(_, on)| *on);
        let others = || named.iter().filter(|(path, _)| path != "_id");
        let is_inclusion = others().next().map_or(id == Some(true), |(_, on)| *on);
        // `_id` is taken in only where it is asked for.
        let takes_id = id.unwrap_or(false);
        for (path, _) in others() {
            root.insert(path.split_str(".").map(BStr::new));
        }
        if takes_id == is_inclusion {
            root.insert([BStr::new("_id")].into_iter());
        }
        Ok(WildcardFields { root, is_inclusion })
    }

    fn scope(&self) -> Scope<'_> {
        if self.is_inclusion { Scope::Only(&self.root) } else { Scope::Except(&self.root) }
    }

    /// True if values at this path have keys.
    pub fn takes(&self, path: &FieldPath) -> bool {
        let mut scope = self.scope();
        for part in path.parts() {
            match scope.below(part) {
                Some(below) => scope = below,
                None => return false,
            }
        }
        matches!(scope, Scope::All)
    }

    /// True if a part of this path that leads through an array by its place is named by the projection itself: then the
    /// keys do not tell what lies there.
    pub fn names_part(&self, path: &FieldPath, place: usize) -> bool {
        let mut scope = self.scope();
        for part in path.parts().take(place + 1) {
            match (scope, scope.below(part)) {
                (Scope::All, _) | (_, None) => return false,
                (_, Some(below)) => scope = below,
            }
        }
        true
    }
}

/// The paths of a projection, whose documents may lie inside of each other, with what is said of them.
fn collect_named(projection: DocRef<'_>, prefix: &BString, named: &mut Vec<(BString, bool)>) {
    for field in projection.elements() {
        let mut path = prefix.clone();
        if !path.is_empty() {
            path.push(b'.');
        }
        path.extend_from_slice(field.name);
        match field.value {
            Value::Document(below) => collect_named(below, &path, named),
            value => named.push((path, value.is_true())),
        }
    }
}

/// Makes the keys of one index.
#[derive(Clone)]
pub(super) struct WildcardKeys {
    before: Box<[FieldPath]>,
    after: Box<[FieldPath]>,
    fields: WildcardFields,
    pub(super) ordering: KeyOrdering,
    collator: Option<SharedCollator>,
}

impl WildcardKeys {
    pub(super) fn new(
        pattern: DocRef<'_>,
        projection: Option<DocRef<'_>>,
        collator: Option<SharedCollator>,
    ) -> Result<WildcardKeys> {
        let (mut before, mut after, mut is_behind) = (Vec::new(), Vec::new(), false);
        for field in pattern.elements() {
            if is_wildcard_path(field.name) {
                is_behind = true;
                continue;
            }
            let path = FieldPath::lenient(field.name)?;
            if is_behind { after.push(path) } else { before.push(path) }
        }
        let (expanded, _) = wildcard_key_pattern(pattern, BStr::new("$**"));
        Ok(WildcardKeys {
            before: before.into(),
            after: after.into(),
            fields: WildcardFields::parse(pattern, projection)?,
            ordering: KeyOrdering::from_pattern(expanded.view())?,
            collator,
        })
    }

    pub(super) fn keys(&self, document: DocRef<'_>, keys: &mut KeySet) -> Result<()> {
        let values = |paths: &[FieldPath]| {
            paths.iter().map(|path| plain_value(document, path)).collect::<Result<Vec<Option<Value<'_>>>>>()
        };
        let mut walk = Walk {
            generator: self,
            before: &values(&self.before)?,
            after: &values(&self.after)?,
            path: BString::default(),
            keys,
        };
        walk.keys.keep_multikey_aside();
        walk.document(document, self.fields.scope())?;
        let has_fields = walk.before.iter().chain(walk.after).any(Option::is_some);
        if walk.keys.is_empty() && has_fields {
            walk.key(Value::MinKey, Value::MinKey)?;
        }
        keys.sort();
        Ok(())
    }
}

/// A walk over a document.
struct Walk<'w> {
    generator: &'w WildcardKeys,
    before: &'w [Option<Value<'w>>],
    after: &'w [Option<Value<'w>>],
    path: BString,
    keys: &'w mut KeySet,
}

impl Walk<'_> {
    fn document(&mut self, document: DocRef<'_>, scope: Scope<'_>) -> Result<()> {
        for field in document.elements().filter(|field| !field.name.contains(&b'.')) {
            let Some(below) = scope.below(field.name) else { continue };
            if below.drops_scalars() && !matches!(field.value, Value::Document(_) | Value::Array(_)) {
                continue;
            }
            let length = self.path.len();
            if !self.path.is_empty() {
                self.path.push(b'.');
            }
            self.path.extend_from_slice(field.name);
            let outcome = self.value(field.value, below);
            self.path.truncate(length);
            outcome?;
        }
        Ok(())
    }

    fn value(&mut self, value: Value<'_>, scope: Scope<'_>) -> Result<()> {
        match value {
            Value::Document(below) if has_some(below, scope) => self.document(below, scope),
            Value::Document(_) => self.path_key(Value::Document(DocRef::EMPTY)),
            Value::Array(array) => {
                self.keys.note_array();
                let mut has_values = false;
                for value in array.values() {
                    if scope.drops_scalars() && !matches!(value, Value::Document(_) | Value::Array(_)) {
                        continue;
                    }
                    has_values = true;
                    match value {
                        Value::Array(_) => self.path_key(value)?,
                        value => self.value(value, scope)?,
                    }
                }
                if has_values { Ok(()) } else { self.path_key(Value::Undefined) }
            }
            value => self.path_key(value),
        }
    }

    fn path_key(&mut self, value: Value<'_>) -> Result<()> {
        let path = std::mem::take(&mut self.path);
        let outcome = self.key(Value::String(path.as_bstr()), value);
        self.path = path;
        outcome
    }

    fn key(&mut self, path: Value<'_>, value: Value<'_>) -> Result<()> {
        let collator = self.generator.collator.as_deref().map(|collator| collator as &dyn pando_doc::Collator);
        self.keys.begin(self.generator.ordering);
        for value in self.before {
            self.keys.append(value.unwrap_or(Value::Null), collator)?;
        }
        self.keys.append(path, None)?;
        self.keys.append(value, collator)?;
        for value in self.after {
            self.keys.append(value.unwrap_or(Value::Null), collator)?;
        }
        self.keys.end();
        Ok(())
    }
}

/// True if something of a document is taken in.
fn has_some(document: DocRef<'_>, scope: Scope<'_>) -> bool {
    document.elements().any(|field| {
        scope
            .below(field.name)
            .is_some_and(|below| !below.drops_scalars() || matches!(field.value, Value::Document(_) | Value::Array(_)))
    })
}

/// The value at a path that leads through no array.
fn plain_value<'d>(document: DocRef<'d>, path: &FieldPath) -> Result<Option<Value<'d>>> {
    let mut value = Value::Document(document);
    for (place, part) in path.parts().enumerate() {
        let Value::Document(nested) = value else { return Ok(None) };
        let Some(found) = nested.get(part) else { return Ok(None) };
        value = found;
        if matches!(value, Value::Array(_)) {
            let rest = path.parts().skip(place).map(|part| part.to_string()).collect::<Vec<_>>().join(".");
            let reason = format!("field {rest} cannot be indexed as an array (multikey)");
            return Err(Error::new(ErrorCode::location(7246301), reason));
        }
    }
    Ok(Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::doc;
    use pando_keystring::{Version, to_values};

    fn shown(pattern: Doc, projection: Option<Doc>, document: Doc) -> Vec<String> {
        let projection = projection.as_ref().map(Doc::view);
        let generator = WildcardKeys::new(pattern.view(), projection, None).unwrap();
        let mut keys = KeySet::new();
        generator.keys(document.view(), &mut keys).unwrap();
        let text = |key: super::super::Key<'_>| {
            let values = to_values(key.bytes, generator.ordering, key.type_bits, Version::V1).unwrap();
            values.iter().map(|value| value.view().to_string()).collect::<Vec<_>>().join(" ")
        };
        keys.iter().map(text).collect()
    }

    #[test]
    fn u7_wildcards_have_a_key_for_each_value_below_them() {
        let all = || doc! { "$**": 1 };
        let document = doc! { "_id": 1, "a": { "b": 1, "c": {} }, "d": [1, { "e": 2 }, [3]], "f": [], "g.h": 1 };
        let expected = ["\"a.b\" 1", "\"a.c\" {}", "\"d\" 1", "\"d\" [ 3 ]", "\"d.e\" 2", "\"f\" undefined"];
        assert_eq!(shown(all(), None, document.clone()), expected);
        assert_eq!(shown(doc! { "a.$**": 1 }, None, document.clone()), expected[..2]);
        assert_eq!(shown(all(), Some(doc! { "a.b": 1 }), document.clone()), expected[..1]);
        assert_eq!(shown(all(), Some(doc! { "a": 0, "d": 0 }), document.clone()), expected[5..]);
        assert_eq!(shown(all(), Some(doc! { "_id": 1, "a": 1 }), document)[0], "\"_id\" 1");
        assert_eq!(shown(all(), Some(doc! { "a": { "b": 1 } }), doc! { "a": 5 }), [""; 0]);
        assert_eq!(shown(all(), Some(doc! { "a.b": 1 }), doc! { "a": { "c": 1 } }), ["\"a\" {}"]);
    }

    #[test]
    fn u7_wildcards_among_other_fields() {
        let pattern = || doc! { "x": 1, "a.$**": -1, "y": 1 };
        let document = doc! { "x": 5, "a": { "b": 1, "c": 2 } };
        assert_eq!(shown(pattern(), None, document), ["5 \"a.b\" 1 null", "5 \"a.c\" 2 null"]);
        assert_eq!(shown(pattern(), None, doc! { "y": 5 }), ["null MinKey MinKey 5"]);
        assert_eq!(shown(pattern(), None, doc! { "z": 5 }), [""; 0]);
        let generator = WildcardKeys::new(pattern().view(), None, None).unwrap();
        let refused = generator.keys(doc! { "x": [1], "a": { "b": 1 } }.view(), &mut KeySet::new());
        assert_eq!(refused.unwrap_err().code(), ErrorCode::location(7246301));
    }

    #[test]
    fn u7_wildcards_know_which_paths_they_take_in() {
        let path = |text: &str| FieldPath::lenient(BStr::new(text)).unwrap();
        let fields = |pattern: Doc, projection: Option<Doc>| {
            WildcardFields::parse(pattern.view(), projection.as_ref().map(Doc::view)).unwrap()
        };
        let subtree = fields(doc! { "a.b.$**": 1 }, None);
        assert!(subtree.takes(&path("a.b")) && subtree.takes(&path("a.b.c")) && !subtree.takes(&path("a")));
        let all = fields(doc! { "$**": 1 }, None);
        assert!(all.takes(&path("a")) && !all.takes(&path("_id")) && !all.takes(&path("_id.x")));
        let without = fields(doc! { "$**": 1 }, Some(doc! { "a.b": 0 }));
        assert!(without.takes(&path("a.c")) && !without.takes(&path("a.b.c")) && !without.takes(&path("a")));
    }
}
