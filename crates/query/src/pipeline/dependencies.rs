//! Which fields of a collection's documents a pipeline looks at.
//!
//! Each stage says what it needs ([`Needs`]). A stage after which nothing else of the document is left, such as `$group`, ends the search; if
//! none does, the client gets the documents and needs all of them. What is found goes to the query as a projection: so an
//! index can cover it.

use super::SharedStage;
use pando_doc::{Doc, DocBuilder, FieldPath};

/// What a stage needs of the documents that come to it.
#[derive(Clone, Debug, PartialEq)]
pub enum Needs {
    /// All of it, or nobody knows.
    Everything,
    /// These paths, and what the stages behind it need.
    These(Vec<FieldPath>),
    /// These paths and nothing else.
    Only(Vec<FieldPath>),
}

impl Needs {
    /// These and what comes behind; everything if they are not known.
    pub(super) fn these(paths: Option<Vec<FieldPath>>) -> Needs {
        paths.map_or(Needs::Everything, Needs::These)
    }

    /// Only these; everything if they are not known.
    pub(super) fn only(paths: Option<Vec<FieldPath>>) -> Needs {
        paths.map_or(Needs::Everything, Needs::Only)
    }
}

/// What stages need, one after the other; none if that is the whole document.
pub(super) fn of_stages(stages: &[SharedStage]) -> Option<Vec<FieldPath>> {
    let mut all = Vec::new();
    for stage in stages {
        match stage.needs() {
            Needs::Everything => return None,
            Needs::These(paths) => all.extend(paths),
            Needs::Only(paths) => {
                all.extend(paths);
                return Some(all);
            }
        }
    }
    None
}

/// The projection that keeps these paths, in order and without those below others.
pub(super) fn projection(paths: &[FieldPath]) -> Doc {
    let mut texts: Vec<String> = paths.iter().map(kept).collect();
    texts.sort_unstable();
    texts.dedup();
    let is_below = |text: &str| {
        text.match_indices('.').any(|(dot, _)| texts.binary_search_by(|other| other.as_str().cmp(&text[..dot])).is_ok())
    };
    let mut out = DocBuilder::new();
    for text in texts.iter().filter(|text| !is_below(text)) {
        out.append(text.as_str(), true);
    }
    if texts.binary_search_by(|text| text.as_str().cmp("_id")).is_err() {
        out.append("_id", false);
    }
    out.finish()
}

/// What of a path can be kept by name: of `_id` all.
fn kept(path: &FieldPath) -> String {
    match path.parts().next() {
        Some(first) if first == "_id" => first.to_string(),
        _ => path.text().to_string(),
    }
}

/// The path up to a number, where that may be a place in an array.
pub(super) fn without_places(path: &FieldPath) -> FieldPath {
    let is_number = |part: &&bstr::BStr| part.iter().all(u8::is_ascii_digit);
    let mut parts = path.parts();
    let first = parts.next().unwrap_or_default().to_string();
    let text = parts.take_while(|part| !is_number(part)).fold(first, |kept, part| format!("{kept}.{part}"));
    FieldPath::lenient(text).unwrap_or_else(|_| path.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::doc;

    #[test]
    fn u6_projections_of_dependencies() {
        let of = |texts: &[&str]| {
            projection(&texts.iter().map(|text| FieldPath::lenient(text).unwrap()).collect::<Vec<_>>())
        };
        assert_eq!(of(&["b", "a.c", "a", "_id.x"]), doc! { "_id": true, "a": true, "b": true });
        assert_eq!(of(&["b.c", "b.cd"]), doc! { "b.c": true, "b.cd": true, "_id": false });
        let path = |text: &str| FieldPath::lenient(text).unwrap();
        assert_eq!(without_places(&path("a.b.0.c")), path("a.b"));
        assert_eq!(without_places(&path("0.a")), path("0.a"));
    }
}
