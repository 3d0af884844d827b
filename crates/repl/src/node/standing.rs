//! What the log tells of a node's place in its set: its state, its term, the configuration.

use crate::member_state::MemberState;
use crate::topology::Topology;
use pando_base::{Component, Log, Severity, log};

/// What a change of the topology may change of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    state: MemberState,
    accepts_writes: bool,
    term: i64,
    /// Version and term of the configuration.
    config: Option<(i64, i64)>,
}

impl Standing {
    pub(super) fn of(topology: &Topology) -> Standing {
        Standing {
            state: topology.state(),
            accepts_writes: topology.state() == MemberState::Primary && topology.accepts_writes(),
            term: topology.term(),
            config: topology.config().map(|config| (config.version, config.term)),
        }
    }

    /// Writes down what is different from before.
    pub(super) fn tell(&self, before: &Standing, log: &Log) {
        let (severity, component) = (Severity::Info, Component::Replication);
        if let Some((version, term)) = self.config.filter(|config| Some(*config) != before.config) {
            let message = "New replica set config in use";
            log!(log, severity, component, 21392, message, "version" = version, "term" = term);
        }
        if self.state != before.state {
            let (new, old) = (self.state.name(), before.state.name());
            let message = "Replica set state transition";
            log!(log, severity, component, 21358, message, "newState" = new, "oldState" = old);
        }
        if self.accepts_writes && !before.accepts_writes {
            let message = "Transition to primary complete; database writes are now permitted";
            log!(log, severity, component, 21331, message, "term" = self.term);
        }
        if before.accepts_writes && !self.accepts_writes {
            let message = "Stepping down from primary: database writes are no longer permitted";
            log!(log, severity, component, 21343, message, "term" = self.term);
        }
    }
}
