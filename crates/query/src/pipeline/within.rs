//! Where stages may stand: which of them are kept out of the pipelines of `$facet`, `$lookup` and `$unionWith`.
//!
//! A stage with pipelines of its own may stand where all of the stages in them may.

use super::SharedStage;
use pando_base::{Error, Result};

/// What a pipeline stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Within {
    /// Nothing: it is what was asked for.
    Nothing,
    /// A `$facet`.
    Facet,
    /// A `$lookup`.
    Lookup,
    /// A `$unionWith`.
    Union,
    /// The server's own doing, as below a view.
    Server,
}

/// The pipelines that a stage may stand in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permits {
    facet: bool,
    lookup: bool,
    union: bool,
}

/// Stages that are nowhere but in a pipeline of their own.
const ALONE: &[&str] =
    &["$_internalApplyOplogUpdate", "$changeStream", "$changeStreamSplitLargeEvent", "$merge", "$out"];
/// Stages that tell of the node to nobody's documents.
const NOT_IN_UNIONS: &[&str] = &["$listCachedAndActiveUsers", "$listLocalSessions"];
/// Stages that have the documents of a `$facet` to themselves, beside those that must be first.
const NOT_IN_FACETS: &[&str] = &["$_internalConvertBucketIndexStats", "$_internalUnpackBucket", "$facet"];

impl Permits {
    const EVERYWHERE: Permits = Permits { facet: true, lookup: true, union: true };

    /// Those of a stage without pipelines in it.
    pub(super) fn of(name: &str, must_be_first: bool) -> Permits {
        if ALONE.contains(&name) {
            return Permits { facet: false, lookup: false, union: false };
        }
        let facet = !must_be_first && !NOT_IN_FACETS.contains(&name);
        Permits { facet, union: !NOT_IN_UNIONS.contains(&name), ..Permits::EVERYWHERE }
    }

    /// Those of a stage with this pipeline in it.
    pub(super) fn of_stages(stages: &[SharedStage]) -> Permits {
        stages.iter().fold(Permits::EVERYWHERE, |all, stage| {
            let one = stage.permits();
            Permits { facet: all.facet && one.facet, lookup: all.lookup && one.lookup, union: all.union && one.union }
        })
    }
}

/// Refuses a pipeline with a stage that may not stand where the pipeline does.
pub(super) fn check(stages: &[SharedStage], within: Within) -> Result<()> {
    stages.iter().try_for_each(|stage| {
        let (permits, name) = (stage.permits(), stage.name());
        match within {
            Within::Facet if !permits.facet => {
                Err(Error::location(40600, format!("{name} is not allowed to be used within a $facet stage")))
            }
            Within::Lookup if !permits.lookup => {
                Err(Error::location(51047, format!("{name} is not allowed within a $lookup's sub-pipeline")))
            }
            Within::Union if !permits.union => {
                Err(Error::location(31441, format!("{name} is not allowed within a $unionWith's sub-pipeline")))
            }
            _ => Ok(()),
        }
    })
}
