//! The parameters of index builds.

use pando_base::{AnyParameter, Parameter, Settable};

/// How much memory the sorters of a build may take.
pub static MAX_MEMORY_MEGABYTES: Parameter<i32> = Parameter::new(
    "maxIndexBuildMemoryUsageMegabytes",
    200,
    "How many megabytes of memory one index build may take; further keys go to disk.",
)
.at_least(50);

/// How many builds of clients run at once.
pub static MAX_ACTIVE_BUILDS: Parameter<i32> = Parameter::new(
    "maxNumActiveUserIndexBuilds",
    3,
    "How many index builds that clients have asked for run at once; others wait.",
)
.at_least(0);

/// How much space has to be left.
pub static MIN_DISK_SPACE_MEGABYTES: Parameter<i64> = Parameter::new(
    "indexBuildMinAvailableDiskSpaceMB",
    500,
    "How many megabytes of disk space have to be free for an index build to start and to go on.",
)
.at_least(0)
.at_most(8_796_093_022_207);

/// How many side writes are applied at once.
pub static DRAIN_BATCH_SIZE: Parameter<i32> = Parameter::new(
    "maxIndexBuildDrainBatchSize",
    1000,
    "How many writes that came during an index build are applied to the index in one unit of work.",
)
.at_least(1);

/// How many bytes of side writes are applied at once.
pub static DRAIN_MEGABYTES: Parameter<i32> = Parameter::new(
    "maxIndexBuildDrainMemoryUsageMegabytes",
    16,
    "How many megabytes of writes that came during an index build are applied to the index in one unit of work.",
)
.at_least(1);

/// Which part of the memory the readers of spilled ranges may take: a merge reads one block of each range, and where there are
/// more ranges than fit it takes several passes.
pub static MAX_ITERATORS_MEMORY_PERCENTAGE: Parameter<f64> = Parameter::new(
    "maxIteratorsMemoryUsagePercentage",
    0.1,
    "Which part of an index build's memory the readers of what it has spilled may take, from 0 to 1.",
)
.above(0.0)
.at_most(1.0);

/// How many keys are loaded between two yields.
pub static LOAD_YIELD_KEYS: Parameter<i32> = Parameter::new(
    "internalIndexBuildBulkLoadYieldIterations",
    5000,
    "How many sorted keys an index build loads before it lets others go on.",
)
.at_least(1);

/// Whether members vote on builds.
pub static COMMIT_QUORUM_ENABLED: Parameter<bool> = Parameter::new(
    "enableIndexBuildCommitQuorum",
    true,
    "Whether index builds wait for the members that vote. If not, clients cannot ask for it either.",
)
.settable(Settable::AtStartup);

/// All of them.
pub const PARAMETERS: &[&dyn AnyParameter] = &[
    &MAX_MEMORY_MEGABYTES,
    &MAX_ACTIVE_BUILDS,
    &MIN_DISK_SPACE_MEGABYTES,
    &DRAIN_BATCH_SIZE,
    &DRAIN_MEGABYTES,
    &MAX_ITERATORS_MEMORY_PERCENTAGE,
    &LOAD_YIELD_KEYS,
    &COMMIT_QUORUM_ENABLED,
];
