//! What this node knows of its set and of itself, as a state machine without clock, disk or network: inputs are calls with
//! the time in them, outputs are the new state and what is told of it.
//!
//! Today a set of one elects itself: there is nobody to ask. Elections among several, heartbeats and sync sources will
//! be inputs of the same machine.
//!
//! Invariants: the topology counter grows with every change that clients can see; the term never goes back; writes are
//! accepted only as primary, and only after the new term's first entry.

mod freeze;
mod heartbeat;
mod hello;
mod status;
mod step_down;
mod sync_from;
#[cfg(test)]
mod tests;
mod vote;

pub use heartbeat::{HeartbeatContext, HeartbeatRequest};
pub(crate) use hello::election_id;
pub use hello::{HelloContext, append_hello};
pub use status::{StatusContext, status};
pub use step_down::StepDownRequest;
pub use vote::{Vote, VoteReply, VoteRequest};

use crate::config::{HostAndPort, ReplicaSetConfig};
use crate::member_state::MemberState;
use pando_base::{Error, ErrorCode, Result, Timestamp};
use pando_doc::ObjectId;
use pando_oplog::OpTime;
use std::sync::Arc;

/// How a node was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Without replication: no oplog.
    StandAlone,
    /// As a member of a set that somebody initiates.
    Member {
        /// `--replSet`.
        set_name: String,
    },
    /// As a set of one that initiates itself and follows its address.
    SelfInitiated {
        /// The set's name.
        set_name: String,
    },
}

impl Mode {
    /// Is there an oplog?
    pub fn is_replicated(&self) -> bool {
        *self != Mode::StandAlone
    }

    /// The set's name.
    pub fn set_name(&self) -> Option<&str> {
        match self {
            Mode::StandAlone => None,
            Mode::Member { set_name } | Mode::SelfInitiated { set_name } => Some(set_name),
        }
    }
}

/// How this node became primary.
#[derive(Clone, Debug, PartialEq)]
pub struct Election {
    /// The term it won.
    pub term: i64,
    /// When, on the wall.
    pub date_ms: i64,
    /// Why it stood.
    pub reason: &'static str,
    /// The newest entry that a majority had then.
    pub committed_before: OpTime,
    /// The newest entry it had then.
    pub applied_before: OpTime,
    /// When the term's first entry was written, and where it is.
    pub term_start: Option<(Timestamp, i64)>,
    /// When a majority had that entry.
    pub majority_available_ms: Option<i64>,
}

/// The state of this node in its set.
pub struct Topology {
    mode: Mode,
    config: Option<Arc<ReplicaSetConfig>>,
    /// Its place among the members.
    place: Option<usize>,
    state: MemberState,
    term: i64,
    accepts_writes: bool,
    election: Option<Election>,
    /// Until then it does not stand for election, on the monotonic clock.
    passive_until_ms: u64,
    /// How many want its data hidden.
    maintenance_count: u32,
    last_vote: Vote,
    counter: i64,
    process_id: ObjectId,
}

impl Topology {
    /// A node without a configuration.
    pub fn new(mode: Mode, process_id: ObjectId) -> Topology {
        Topology {
            mode,
            config: None,
            place: None,
            state: MemberState::Startup,
            term: 0,
            accepts_writes: false,
            election: None,
            passive_until_ms: 0,
            maintenance_count: 0,
            last_vote: Vote::default(),
            counter: 0,
            process_id,
        }
    }

    /// How it was started.
    pub fn mode(&self) -> &Mode {
        &self.mode
    }

    /// The set's configuration.
    pub fn config(&self) -> Option<&Arc<ReplicaSetConfig>> {
        self.config.as_ref()
    }

    /// The configuration, or the error that there is none.
    pub fn require_config(&self) -> Result<&Arc<ReplicaSetConfig>> {
        self.require_replicated()?;
        self.config
            .as_ref()
            .ok_or_else(|| Error::new(ErrorCode::NotYetInitialized, "no replset config has been received"))
    }

    /// Fails on a node without replication.
    pub fn require_replicated(&self) -> Result<()> {
        match self.mode {
            Mode::StandAlone => Err(Error::new(ErrorCode::NoReplicationEnabled, "not running with --replSet")),
            _ => Ok(()),
        }
    }

    /// What it is doing.
    pub fn state(&self) -> MemberState {
        self.state
    }

    /// The term it knows.
    pub fn term(&self) -> i64 {
        self.term
    }

    /// Its last victory.
    pub fn election(&self) -> Option<&Election> {
        self.election.as_ref()
    }

    /// May clients write? Stand-alone nodes always let them.
    pub fn accepts_writes(&self) -> bool {
        self.mode == Mode::StandAlone || self.accepts_writes
    }

    /// Its own address, as the configuration has it.
    pub fn own_host(&self) -> Option<&HostAndPort> {
        let config = self.config.as_ref()?;
        Some(&config.members.get(self.place?)?.host)
    }

    /// The run of this process: counters of different ones cannot be compared.
    pub fn process_id(&self) -> ObjectId {
        self.process_id
    }

    /// Grows with every change that clients can see.
    pub fn counter(&self) -> i64 {
        self.counter
    }

    fn changed(&mut self) {
        self.counter += 1;
    }

    // ---- Inputs.

    /// The term that the node remembers from before; never goes back.
    pub fn learn_term(&mut self, term: i64) {
        self.term = self.term.max(term);
    }

    /// A configuration is in force from now on, in which this node has this place.
    pub fn install_config(&mut self, config: Arc<ReplicaSetConfig>, place: usize) {
        debug_assert!(place < config.members.len());
        self.learn_term(config.term);
        self.config = Some(config);
        self.place = Some(place);
        if self.state == MemberState::Startup {
            self.state = MemberState::Startup2;
        }
        self.changed();
    }

    /// The data is as of the newest entry: reads may be served.
    pub fn recovered(&mut self) {
        debug_assert!(self.config.is_some(), "a member has a configuration");
        if self.state != MemberState::Secondary {
            self.state = MemberState::Secondary;
            self.changed();
        }
    }

    /// Can this node be elected now? In a set of one there is nobody to ask.
    pub fn can_elect_itself(&self, now_ms: u64) -> bool {
        let (Some(config), Some(place)) = (&self.config, self.place) else { return false };
        let votes_needed = config.majority_vote_count();
        let Some(own) = config.members.get(place) else { return false };
        self.state == MemberState::Secondary
            && now_ms >= self.passive_until_ms
            && own.is_electable()
            && own.is_voter()
            && votes_needed == 1
    }

    /// Wins the next term, which becomes the configuration's too. Writes are accepted once its first entry is written.
    pub fn elect_itself(&mut self, date_ms: i64, reason: &'static str, applied: OpTime, committed: OpTime) -> i64 {
        debug_assert!(self.state == MemberState::Secondary, "only a secondary stands for election");
        self.term += 1;
        self.last_vote = Vote { term: self.term, candidate: self.place.unwrap_or(0) };
        self.state = MemberState::Primary;
        self.accepts_writes = false;
        if let Some(config) = &mut self.config {
            Arc::make_mut(config).term = self.term;
        }
        self.election = Some(Election {
            term: self.term,
            date_ms,
            reason,
            committed_before: committed,
            applied_before: applied,
            term_start: None,
            majority_available_ms: None,
        });
        self.changed();
        self.term
    }

    /// The term's first entry is written: clients may write.
    pub fn term_started(&mut self, entry: Timestamp, date_ms: i64) {
        debug_assert!(self.state == MemberState::Primary);
        if let Some(election) = &mut self.election {
            election.term_start = Some((entry, date_ms));
        }
        self.accepts_writes = true;
        self.changed();
    }

    /// A majority has everything up to here.
    pub fn majority_has(&mut self, committed: Timestamp, date_ms: i64) {
        if let Some(Election { term_start: Some((start, _)), majority_available_ms: available @ None, .. }) =
            &mut self.election
            && committed >= *start
        {
            *available = Some(date_ms);
        }
    }

    /// The timestamp of the term's first entry, while it is primary.
    pub fn term_start(&self) -> Option<Timestamp> {
        self.election.as_ref().and_then(|election| election.term_start).map(|(entry, _)| entry)
    }
}
