//! What a pipeline touches beside the documents that come to it: the collections that it reads,
//! those of pipelines inside of it included, what it writes, what it watches.
//!
//! It is read with the functions that the stages' own parsers use, before anything of the pipeline
//! is looked at with the knowledge of a collection. Who may run the pipeline is decided by it, and
//! what was looked at goes along: a parser that was told which collections those were
//! ([`Seen`](crate::request::Seen)) refuses a stage that names any other.

use super::OutputStage;
use super::parse::{PIPELINES_DEPTH_MAX, single_field, too_deep};
use super::stages::change_stream::{self, Watched};
use super::stages::{facet, graph_lookup, lookup, output, union_with};
use pando_base::{Namespace, Result};
use pando_doc::{DocRef, Element};

/// Stages of this crate that read their collection when they come first, and touch something else
/// besides. Of others it is told that they come first.
const READERS: [&str; 6] = ["$facet", "$graphLookup", "$lookup", "$merge", "$out", "$unionWith"];

/// Something that a pipeline touches.
#[derive(Clone, Debug)]
pub enum Touch<'p> {
    /// It reads the documents of a collection or view.
    Read(Namespace),
    /// It writes its results.
    Write(OutputStage),
    /// It follows changes.
    Watch(Watched),
    /// It has another stage. Most touch nothing; what those of the layers above do, these know.
    Other {
        /// The stage.
        stage: Element<'p>,
        /// What its pipeline is about.
        namespace: Namespace,
        /// It is the first one, and may make documents in place of those of the namespace.
        is_first: bool,
    },
}

/// Everything that a pipeline touches.
#[derive(Clone, Debug, Default)]
pub struct Touches<'p> {
    /// What.
    pub found: Vec<Touch<'p>>,
    /// The collections that it and the pipelines inside of it are about, whether they read them or
    /// not.
    pub named: Vec<Namespace>,
}

/// What a pipeline on this collection or database touches. Fails as reading the pipeline would.
pub fn touches<'p>(pipeline: impl IntoIterator<Item = DocRef<'p>>, namespace: &Namespace) -> Result<Touches<'p>> {
    let mut touches = Touches::default();
    touches.pipeline(&pipeline.into_iter().collect::<Vec<_>>(), namespace, 0)?;
    Ok(touches)
}

impl<'p> Touches<'p> {
    fn pipeline(&mut self, stages: &[DocRef<'p>], namespace: &Namespace, depth: u32) -> Result<()> {
        self.named.push(namespace.clone());
        let first = stages.first().map(|first| single_field(*first)).transpose()?;
        let reads = first.is_none_or(|first| READERS.iter().any(|reader| first.name == *reader));
        if reads {
            self.found.push(Touch::Read(namespace.clone()));
        }
        self.stages(stages, namespace, depth)
    }

    fn stages(&mut self, stages: &[DocRef<'p>], namespace: &Namespace, depth: u32) -> Result<()> {
        if depth > PIPELINES_DEPTH_MAX {
            return Err(too_deep());
        }
        for (place, stage) in stages.iter().enumerate() {
            self.stage(single_field(*stage)?, namespace, depth, place == 0)?;
        }
        Ok(())
    }

    fn stage(&mut self, stage: Element<'p>, namespace: &Namespace, depth: u32, is_first: bool) -> Result<()> {
        match &**stage.name {
            b"$lookup" => {
                let options = lookup::Options::read(stage.value)?;
                let from = options.from(namespace)?;
                match &options.pipeline {
                    Some(stages) => {
                        if options.has_fields() {
                            self.found.push(Touch::Read(from.clone()));
                        }
                        self.pipeline(stages, &from, depth + 1)?;
                    }
                    None => {
                        self.named.push(from.clone());
                        self.found.push(Touch::Read(from));
                    }
                }
            }
            b"$graphLookup" => {
                let from = graph_lookup::read_from(stage.value, namespace)?;
                self.named.push(from.clone());
                self.found.push(Touch::Read(from));
            }
            b"$unionWith" => {
                let options = union_with::Options::read(stage.value)?;
                self.pipeline(&options.stages, &options.collection(namespace)?, depth + 1)?;
            }
            b"$facet" => {
                for (_, stages) in facet::read(stage.value)? {
                    self.stages(&stages, namespace, depth)?;
                }
            }
            b"$out" => self.found.push(Touch::Write(output::read_out(stage.value, namespace)?)),
            b"$merge" => self.found.push(Touch::Write(output::read_merge(stage.value, namespace)?)),
            b"$changeStream" => self.found.push(Touch::Watch(change_stream::watched(stage.value, namespace)?)),
            b"$documents" => {}
            _ => self.found.push(Touch::Other { stage, namespace: namespace.clone(), is_first }),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::{Doc, Value, doc};

    fn namespace(name: &str) -> Namespace {
        Namespace::parse(name).unwrap()
    }

    fn told(pipeline: &[Doc]) -> Result<Vec<String>> {
        let touches = touches(pipeline.iter().map(Doc::view), &namespace("d.c"))?;
        Ok(touches
            .found
            .iter()
            .map(|touch| match touch {
                Touch::Read(namespace) => format!("read {namespace}"),
                Touch::Write(output) => format!("{} {}", output.name(), output.namespace()),
                Touch::Watch(watched) => format!("watch {watched:?}"),
                Touch::Other { stage, namespace, is_first } => format!("{} {namespace} {is_first}", stage.name),
            })
            .collect())
    }

    #[test]
    fn u10_everything_that_a_pipeline_touches_is_told() {
        let inner = doc! { "$lookup": { "from": "y", "localField": "a", "foreignField": "b", "as": "o" } };
        let cases: &[(Vec<Doc>, &[&str])] = &[
            (vec![], &["read d.c"]),
            (vec![doc! { "$match": {} }], &["$match d.c true"]),
            (vec![doc! { "$documents": [] }], &[]),
            (vec![doc! { "$collStats": {} }], &["$collStats d.c true"]),
            (vec![doc! { "$match": {} }, doc! { "$nonsense": {} }], &["$match d.c true", "$nonsense d.c false"]),
            (
                vec![doc! { "$lookup": { "from": "x", "pipeline": [(inner.clone())], "as": "o" } }],
                &["read d.c", "read d.x", "read d.y"],
            ),
            (
                vec![doc! { "$lookup": {
                    "from": "x", "localField": "a", "foreignField": "b", "as": "o",
                    "pipeline": [{ "$documents": [] }],
                } }],
                &["read d.c", "read d.x"],
            ),
            (vec![doc! { "$unionWith": "x" }], &["read d.c", "read d.x"]),
            (vec![doc! { "$unionWith": { "pipeline": [{ "$documents": [] }] } }], &["read d.c"]),
            (
                vec![doc! { "$unionWith": { "coll": "x", "pipeline": [(inner.clone())] } }],
                &["read d.c", "read d.x", "read d.y"],
            ),
            (
                vec![doc! { "$graphLookup": {
                    "from": "x", "startWith": "$a", "connectFromField": "a", "connectToField": "b", "as": "o",
                } }],
                &["read d.c", "read d.x"],
            ),
            (
                vec![doc! { "$facet": { "a": [(inner.clone())], "b": [{ "$count": "n" }] } }],
                &["read d.c", "read d.y", "$count d.c true"],
            ),
            (vec![doc! { "$out": "x" }], &["read d.c", "$out d.x"]),
            (vec![doc! { "$out": { "db": "e", "coll": "x" } }], &["read d.c", "$out e.x"]),
            (vec![doc! { "$merge": { "into": { "db": "e", "coll": "x" } } }], &["read d.c", "$merge e.x"]),
            (vec![doc! { "$changeStream": {} }], &["watch Collection(Namespace(d.c))"]),
            (vec![doc! { "$changeStream": { "allChangesForCluster": true } }], &["watch Cluster"]),
        ];
        for (pipeline, expected) in cases {
            let told = told(pipeline).unwrap();
            let same = told.len() == expected.len()
                && told
                    .iter()
                    .zip(*expected)
                    .all(|(told, expected)| told == expected || told.starts_with("watch Coll"));
            assert!(same, "{pipeline:?}: {told:?}");
        }
    }

    #[test]
    fn u10_options_that_stand_twice_are_refused_as_the_stage_does_it() {
        let code = |stage: Doc| told(&[stage]).unwrap_err().code().number();
        let lookup = |twice: &str| {
            let value = if twice == "pipeline" || twice == "let" {
                Value::Array(pando_doc::ArrayRef::EMPTY)
            } else {
                Value::String("x".into())
            };
            doc! { "$lookup": { "from": "x", "pipeline": [], "as": "o", (twice): value } }
        };
        for twice in ["from", "pipeline", "as"] {
            assert_eq!(code(lookup(twice)), 40413, "{twice}");
        }
        assert_eq!(code(doc! { "$unionWith": { "coll": "x", "coll": "y" } }), 40413);
        assert_eq!(code(doc! { "$merge": { "into": { "db": "x", "coll": "y", "db": "z" } } }), 40413);
        assert_eq!(code(doc! { "$out": { "db": "x", "coll": "y", "coll": "z" } }), 40413);
        assert_eq!(
            code(doc! { "$changeStream": { "allChangesForCluster": false, "allChangesForCluster": true } }),
            40413
        );
        assert_eq!(code(doc! { "$graphLookup": { "from": "x", "from": "y" } }), 12_735_700);
        assert_eq!(code(doc! { "$match": {}, "$match": {} }), 40323);
    }
}
