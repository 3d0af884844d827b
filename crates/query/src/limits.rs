//! How much one query may take: of memory in its expressions, of alternatives in its plans, of
//! stages in its pipeline.

use pando_base::{AnyParameter, Parameter, ParameterSet, Settable};
use pando_expr::ExpressionLimits;

const MEGABYTE: i32 = 1024 * 1024;

/// How much a `$range` may take.
static RANGE_BYTES_MAX: Parameter<i32> = Parameter::new(
    "internalQueryMaxRangeBytes",
    100 * MEGABYTE,
    "How many bytes the numbers of a $range may take, at 16 bytes each.",
)
.at_least(1);

/// How much a `$push` may take.
static PUSH_BYTES_MAX: Parameter<i32> = Parameter::new(
    "internalQueryMaxPushBytes",
    100 * MEGABYTE,
    "How many bytes the values of a $push may take in a group.",
)
.at_least(1);

/// How much an `$addToSet` may take.
static SET_BYTES_MAX: Parameter<i64> = Parameter::new(
    "internalQueryMaxAddToSetBytes",
    100 * MEGABYTE as i64,
    "How many bytes the values of an $addToSet may take in a group.",
)
.at_least(1);

/// How much the stages of a request may hold.
pub(crate) static HELD_BYTES_MAX: Parameter<i64> = Parameter::new(
    "operationMemoryLimitBytes",
    1024 * MEGABYTE as i64,
    "How many bytes the stages of one operation may hold in memory together.",
)
.at_least(1);

/// How many plans are tried.
static PLANS_MAX: Parameter<i32> = Parameter::new(
    "internalQueryPlannerMaxIndexedSolutions",
    64,
    "How many plans with indexes the planner makes of a query.",
)
.at_least(0);

/// How many choices of indexes an `$or` has.
static OR_PLANS_MAX: Parameter<i32> = Parameter::new(
    "internalQueryEnumerationMaxOrSolutions",
    10,
    "How many combinations of indexes the planner makes of an $or.",
)
.at_least(0);

/// How many scans may be merged for an order.
static EXPLODED_SCANS_MAX: Parameter<i32> = Parameter::new(
    "internalQueryMaxScansToExplode",
    200,
    "How many scans of an index the planner may merge to have an order.",
)
.at_least(0);

/// How long a pipeline may be.
pub(crate) static STAGES_MAX: Parameter<i32> =
    Parameter::new("internalPipelineLengthLimit", 1000, "How many stages a pipeline may have.")
        .at_least(1)
        .settable(Settable::AtStartup);

/// How many keys a document may have where nobody says.
pub(crate) const GENERATED_KEYS_DEFAULT: usize = 100_000;

/// How many keys a document may have.
static GENERATED_KEYS_MAX: Parameter<i32> = Parameter::new(
    "indexMaxNumGeneratedKeysPerDocument",
    GENERATED_KEYS_DEFAULT as i32,
    "How many keys a document may have in a 2dsphere index.",
)
.at_least(200)
.settable(Settable::AtStartup);

/// Keywords of `$jsonSchema` that nobody knows mean nothing.
pub static UNKNOWN_KEYWORDS_ARE_IGNORED: Parameter<bool> = Parameter::new(
    "internalQueryIgnoreUnknownJSONSchemaKeywords",
    false,
    "Passes over keywords of $jsonSchema that are not known, rather than refusing them.",
)
.settable(Settable::AtStartup);

/// `$$USER_ROLES` may be read.
pub(crate) static USER_ROLES_ARE_SHOWN: Parameter<bool> = Parameter::new(
    "enableAccessToUserRoles",
    true,
    "Lets queries read the roles of the client's user by $$USER_ROLES.",
);

/// All of them.
pub static PARAMETERS: &[&dyn AnyParameter] = &[
    &UNKNOWN_KEYWORDS_ARE_IGNORED,
    &USER_ROLES_ARE_SHOWN,
    &RANGE_BYTES_MAX,
    &PUSH_BYTES_MAX,
    &SET_BYTES_MAX,
    &PLANS_MAX,
    &OR_PLANS_MAX,
    &EXPLODED_SCANS_MAX,
    &STAGES_MAX,
    &HELD_BYTES_MAX,
    &GENERATED_KEYS_MAX,
];

/// What expressions may take.
pub(crate) fn expression_limits(parameters: &ParameterSet) -> ExpressionLimits {
    let bytes = |given: i64| usize::try_from(given).unwrap_or(0);
    ExpressionLimits {
        range_bytes_max: i64::from(parameters.get(&RANGE_BYTES_MAX)),
        push_bytes_max: bytes(parameters.get(&PUSH_BYTES_MAX).into()),
        set_bytes_max: bytes(parameters.get(&SET_BYTES_MAX)),
    }
}

/// How many keys a document may have in an index of places.
pub(crate) fn generated_keys_max(parameters: &ParameterSet) -> usize {
    usize::try_from(parameters.get(&GENERATED_KEYS_MAX)).unwrap_or(0)
}

/// How much the planner may try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannerLimits {
    /// As many plans are worth trying.
    pub plans_max: usize,
    /// As many combinations of the plans of alternatives.
    pub or_plans_max: usize,
    /// As many scans may be merged for an order.
    pub exploded_scans_max: usize,
}

impl PlannerLimits {
    /// As the parameters say.
    pub fn of(parameters: &ParameterSet) -> PlannerLimits {
        let count = |parameter: &'static Parameter<i32>| usize::try_from(parameters.get(parameter)).unwrap_or(0);
        PlannerLimits {
            plans_max: count(&PLANS_MAX),
            or_plans_max: count(&OR_PLANS_MAX),
            exploded_scans_max: count(&EXPLODED_SCANS_MAX),
        }
    }
}

impl Default for PlannerLimits {
    fn default() -> PlannerLimits {
        PlannerLimits { plans_max: 64, or_plans_max: 10, exploded_scans_max: 200 }
    }
}
