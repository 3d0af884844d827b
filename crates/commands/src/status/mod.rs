//! What serverStatus is made of: a list of sections, each with a name, to which other crates add theirs.

mod api_versions;
mod indexes;
mod latencies;
mod locks;
mod memory;
mod metrics;
mod read_concerns;
mod sections;
mod storage;
mod transactions;

use crate::Invocation;
use pando_doc::{DocBuilder, Value};

pub use api_versions::ApiVersions;
pub(crate) use locks::{append_flow_stats, append_lock_section};
pub use metrics::{append_metrics, register_commands};
pub use read_concerns::ReadConcernCounters;
pub use sections::sections;

/// A part of the reply to serverStatus.
pub trait StatusSection: Send + Sync {
    /// The field it goes under.
    fn name(&self) -> &'static str;

    /// Is it there without being asked for?
    fn is_included_by_default(&self) -> bool {
        true
    }

    /// Fills it in. `wish` is what the client gave under the section's name. A section that stays empty is left out.
    fn fill(&self, invocation: &Invocation, wish: Option<Value<'_>>, section: &mut DocBuilder);
}
