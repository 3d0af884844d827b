//! Index builds that let readers and writers in.
//!
//! A build makes one or more indexes of a collection in one scan:
//!
//! 1. **Set up**, under X: the indexes enter the catalog, not ready, together with `startIndexBuild` in the oplog; an
//!    [`Interceptor`] is installed for each. From here on every writer puts its keys into the interceptor's *side-writes
//!    table* instead of the index.
//! 2. **Collection scan**, under IX, batch by batch, each in a snapshot of its own: the keys of every document go into one
//!    external sorter an index. A document that cannot be indexed is noted in the *skipped-records table*.
//! 3. **Bulk load**: the sorted keys become the index's first run. Where keys must be unique and are not, they are noted in the
//!    *duplicate-keys table*.
//! 4. **Drain**, under IX: side writes are applied to the index in their order. When little is left, the node votes for the
//!    commit, drains again, and waits until the commit quorum is there.
//! 5. **Commit**, under X: the last side writes are drained, skipped records and duplicate keys are looked at again, and the
//!    indexes become ready, together with `commitIndexBuild`. What fails here or before ends in `abortIndexBuild`, and the
//!    indexes are gone.
//!
//! Why the result is right: take a document with the states d0 .. dn since the set up, of which the scan saw di. Its keys are
//! loaded, then the differences of all steps are applied in order. A key that is in no difference is in all states or in
//! none; for any other the last difference that has it decides, and says what dn says. Writers number their side writes after
//! they have written the document, and two writers of one document come one after the other; so the numbers of one document's
//! side writes are in the order of its states.
//!
//! The layers: [`Builder`] does the work of one build, in bounded steps, without locks and without waiting. [`IndexBuilds`] is
//! the node's: it takes locks, yields between steps, knows which builds are under way, ends them, keeps their votes
//! ([`quorum`], which is a pure function), and takes them up again at start. [`ResumeInfo`] is what a clean shutdown leaves of a
//! build. After a crash, or if that does not fit, the build begins anew. A rollback to stable puts builds down in the same way and
//! takes them up at once (`rollback`).
//!
//! Invariants: an index becomes ready only in the unit that also says so in the oplog, under X, with an empty side table; while
//! its interceptor is installed nobody but the builder writes to the index; the temporary tables and files of a build go with
//! it, or at the next start.
//!
//! Lock order: the lock manager's locks; the list of builds; a build's state. The last two are never held over an await or a call
//! into storage.
//!
//! This crate must not know queries, commands, sockets, or how entries are replicated: who is in the set is a [`Members`].

mod active;
mod arrays;
mod builder;
mod builds;
mod counters;
mod drain;
mod drive;
mod entries;
mod fail_points;
mod interceptor;
mod load;
mod parameters;
mod progress;
pub mod quorum;
mod resume;
mod rollback;
mod scan;
mod take_up;
mod temporary;
#[cfg(test)]
mod tests;
mod votes;

pub use active::{ActiveBuild, Finished};
pub use builder::{BatchLimits, Builder, Phase};
pub use builds::{BuildParts, IndexBuilds, StartBuild};
pub use counters::{BuildCounters, SortingCounters};
pub use fail_points::FAIL_POINTS;
pub use interceptor::Interceptor;
pub use parameters::{COMMIT_QUORUM_ENABLED, MAX_MEMORY_MEGABYTES, PARAMETERS};
pub use quorum::{CommitQuorum, Member, Members, Membership};
pub use resume::ResumeInfo;
pub use rollback::PutDown;
