//! Starting a node as what it is: alone, a member that waits, or a set of one that initiates itself; and what changes the
//! set afterwards.
//!
//! The order at start: the configuration is read, the data is recovered, the node finds itself in the configuration, and
//! if it is alone in the set it is elected at once. A set of one that initiates itself follows its address: the
//! configuration has the host and port of this start.
//!
//! Initiation: the configuration is written, the oplog gets its first entry, history begins there, and a checkpoint is
//! taken before anybody can write. From then on every crash finds a checkpoint with a time to recover from.

use crate::apply::Applier;
use crate::config::{HostAndPort, ReplicaSetConfig, check_initiate, check_reconfig, find_self};
use crate::local_store::LocalStore;
use crate::member_state::MemberState;
use crate::node::ReplicationNode;
use crate::oplog_writer::OplogWriter;
use crate::recovery::{RecoveryOutcome, recover, set_min_valid};
use crate::topology::{Mode, Topology, Vote, VoteReply, VoteRequest};
use pando_base::{Error, ErrorCode, Namespace, Result, Timestamp, ensure};
use pando_catalog::{Catalog, ClusteredIndex, CollectionOptions, PreparedIndex};
use pando_doc::{DocRef, ObjectId, doc};
use pando_operation::{Operation, Services};
use pando_session::fields::{Fields, int, whole_number};
use pando_storage::CheckpointKind;
use std::sync::Arc;

/// What a node is made of, as far as replication starts and changes it.
pub struct ReplicationParts {
    /// The node's handles.
    pub services: Services,
    /// Its collections.
    pub catalog: Arc<Catalog>,
    /// Its place in the set.
    pub node: Arc<ReplicationNode>,
    /// Its own documents.
    pub local: LocalStore,
    /// What applies entries.
    pub applier: Applier,
    /// What writes them.
    pub writer: Arc<OplogWriter>,
    /// Where it can be reached.
    pub own_host: HostAndPort,
    /// Other names and addresses of this machine that lead here too.
    pub other_names: Vec<String>,
}

/// The id of a node that has never undone anything.
const ROLLBACK_ID_FIRST: i32 = 1;

/// The collections in `local` that replication keeps its documents in.
fn local_namespaces() -> [&'static Namespace; 5] {
    [
        Namespace::system_replset(),
        Namespace::rollback_id(),
        Namespace::last_vote(),
        Namespace::min_valid(),
        Namespace::oplog_truncate_after_point(),
    ]
}

impl ReplicationParts {
    /// Starts the node; afterwards it may be read, and if it is primary written.
    pub fn start(&self) -> Result<RecoveryOutcome> {
        let mode = self.node.with_topology(|topology| topology.mode().clone());
        let mut operation = self.operation();
        if mode == Mode::StandAlone {
            self.give_up_unfinished_builds(&mut operation)?;
            return Ok(RecoveryOutcome::default());
        }
        self.node.stable().prepared_entries().keep_all()?;
        let stored = self.local.first(&mut operation, Namespace::system_replset())?;
        let Some(stored) = stored else {
            if let Mode::SelfInitiated { set_name } = &mode {
                let config = ReplicaSetConfig::of_one(set_name, self.own_host.clone(), self.new_id());
                self.initiate_with(&mut operation, config, 0)?;
            }
            return Ok(RecoveryOutcome::default());
        };
        ensure!(
            !stored.get("repaired").is_some_and(|repaired| repaired.is_true()),
            ErrorCode::InvalidReplicaSetConfig,
            "This instance has been repaired and may contain modified replicated data that would not match other replica \
             set members. To see your repaired data, start it without replication (--standalone). When you are done, \
             remove its data and let it sync from the other members"
        );
        let outcome = recover(&self.services, &self.node, &self.applier, &self.local)?;
        let config = ReplicaSetConfig::parse(stored.view())?;
        let (config, place) = self.find_place(&mut operation, config, &mode)?;
        self.remember_vote(&mut operation)?;
        self.begin_history_if_needed(&mut operation)?;
        self.install(config, place);
        self.elect_if_alone(&mut operation, "electionTimeout")?;
        self.give_up_unfinished_builds(&mut operation)?;
        Ok(outcome)
    }

    pub(crate) fn operation(&self) -> Operation {
        self.services.internal_operation("Replication")
    }

    fn new_id(&self) -> ObjectId {
        let mut id = [0; 12];
        self.services.env.random().fill(&mut id);
        let seconds = u32::try_from(self.services.env.clock().wall_ms() / 1000).unwrap_or(u32::MAX);
        id[..4].copy_from_slice(&seconds.to_be_bytes());
        ObjectId::from_bytes(id)
    }

    fn is_self(&self, host: &HostAndPort) -> bool {
        let same_place = host.host == self.own_host.host
            || (host.is_localhost() && self.own_host.is_localhost())
            || self.other_names.contains(&host.host);
        same_place && host.port == self.own_host.port
    }

    /// This node's place in the stored configuration. A set of one that nobody else knows follows the node's address.
    fn find_place(
        &self,
        operation: &mut Operation,
        mut config: ReplicaSetConfig,
        mode: &Mode,
    ) -> Result<(ReplicaSetConfig, usize)> {
        if let Mode::Member { set_name } = mode
            && config.name != *set_name
        {
            let reason = format!(
                "Local replica set configuration document reports set name of {}, but command line reports {set_name}",
                config.name
            );
            return Err(Error::new(ErrorCode::InvalidReplicaSetConfig, reason));
        }
        if matches!(mode, Mode::SelfInitiated { .. })
            && let [only] = config.members.as_mut_slice()
        {
            if only.host != self.own_host {
                only.host = self.own_host.clone();
                config.version += 1;
                self.write_config(operation, &config)?;
            }
            return Ok((config, 0));
        }
        let place = find_self(&config, |host| self.is_self(host))?;
        Ok((config, place))
    }

    fn write_config(&self, operation: &mut Operation, config: &ReplicaSetConfig) -> Result<()> {
        self.local.replace(operation, Namespace::system_replset(), config.to_doc().view())
    }

    fn install(&self, config: ReplicaSetConfig, place: usize) {
        self.node.change_topology(|topology| {
            topology.install_config(Arc::new(config), place);
            topology.recovered();
        });
    }

    // ---- Initiation.

    /// replSetInitiate.
    pub fn initiate(&self, config: DocRef<'_>) -> Result<()> {
        let mode = self.node.with_topology(|topology| topology.mode().clone());
        let Some(set_name) = mode.set_name() else {
            let reason = "This node was not started with replication enabled.";
            return Err(Error::new(ErrorCode::NoReplicationEnabled, reason));
        };
        let turn = self.node.try_configure();
        if turn.is_none() || self.node.with_topology(|topology| topology.config().is_some()) {
            return Err(Error::new(ErrorCode::AlreadyInitialized, "already initialized"));
        }
        let invalid = |error: Error| error.with_code(ErrorCode::InvalidReplicaSetConfig);
        let parsed = match config.is_empty() {
            true => ReplicaSetConfig::of_one(set_name, self.own_host.clone(), self.new_id()),
            false => ReplicaSetConfig::parse_for_initiate(config, self.new_id()).map_err(invalid)?,
        };
        if parsed.name != set_name {
            let reason = format!(
                "Rejecting initiate with a set name that differs from command line set name, initiate set name: {}, \
                 command line set name: {set_name}",
                parsed.name
            );
            return Err(Error::new(ErrorCode::InvalidReplicaSetConfig, reason));
        }
        let place = check_initiate(&parsed, |host| self.is_self(host)).map_err(invalid)?;
        if let Some(other) = parsed.members.iter().enumerate().find(|(member, _)| *member != place) {
            let reason = format!(
                "replSetInitiate quorum check failed because not all proposed set members responded affirmatively: {} \
                 cannot be asked yet",
                other.1.host
            );
            return Err(Error::new(ErrorCode::NodeNotFound, reason));
        }
        self.initiate_with(&mut self.operation(), parsed, place)
    }

    fn initiate_with(&self, operation: &mut Operation, config: ReplicaSetConfig, place: usize) -> Result<()> {
        self.ensure_local(operation)?;
        self.write_first_entry(operation)?;
        self.write_config(operation, &config)?;
        self.begin_history_if_needed(operation)?;
        self.install(config, place);
        self.elect_if_alone(operation, "electionTimeout")
    }

    /// The oplog's first entry; one that a crashed attempt has left will do.
    fn write_first_entry(&self, operation: &mut Operation) -> Result<()> {
        let oplog = self.services.engine.oplog().ok_or_else(|| Error::internal("a member needs an oplog"))?;
        if let Some(last) = oplog.last() {
            self.node.clock().advance(last);
            return Ok(());
        }
        // Data that is older than its oplog: that of a member that was repaired.
        self.node.clock().advance(self.services.engine.newest_stored());
        self.node.slots().set_term(pando_oplog::OpTime::NULL.term);
        let message = doc! { "msg": "initiating set" };
        operation.in_unit_of_work(|operation| self.writer.append_noop(operation, message.view()))?;
        Ok(())
    }

    /// Makes the collections of `local` that are not there; true if there were any. The oplog's is a name for the log, and
    /// says how large that may be: the size it was made with, or was given since, counts and not that of the command line.
    fn ensure_local(&self, operation: &mut Operation) -> Result<bool> {
        let mut created = self.local.ensure(operation, &local_namespaces())?;
        if self.local.first(operation, Namespace::rollback_id())?.is_none() {
            let first = doc! { "_id": "rollbackId", "rollbackId": ROLLBACK_ID_FIRST };
            self.local.replace(operation, Namespace::rollback_id(), first.view())?;
        }
        let oplog = self.services.engine.oplog().ok_or_else(|| Error::internal("a member needs an oplog"))?;
        created |= self.local.ensure_capped(operation, Namespace::oplog(), oplog.size_max())?;
        if let Some(collection) = self.catalog.latest().collection(Namespace::oplog()) {
            oplog.set_size_max(u64::try_from(collection.options.capped_size_bytes).unwrap_or(0))?;
        }
        Ok(created)
    }

    /// How often this node has undone what it had, counted from one.
    pub fn rollback_id(&self) -> Result<i32> {
        let stored = self.local.first(&mut self.operation(), Namespace::rollback_id())?;
        let Some(stored) = stored else { return Ok(ROLLBACK_ID_FIRST) };
        Fields::of("rollbackId", stored.view()).required("rollbackId", int)
    }

    /// Without a checkpoint that has a time, one is taken at the oplog's end, before anybody can write.
    fn begin_history_if_needed(&self, operation: &mut Operation) -> Result<()> {
        let created = self.ensure_local(operation)?;
        let engine = &self.services.engine;
        if engine.timestamps().initial_data.is_none() {
            self.write_first_entry(operation)?;
            operation.recovery_unit.abandon_snapshot()?;
            let last = engine.oplog().and_then(|oplog| oplog.last());
            self.node.stable().begin_history(last.ok_or_else(|| Error::internal("the oplog is empty"))?)?;
            engine.checkpoint(CheckpointKind::Automatic)?;
        } else if created {
            engine.checkpoint(CheckpointKind::Automatic)?;
        }
        Ok(())
    }

    // ---- Elections.

    /// Becomes primary if there is nobody to ask.
    pub fn elect_if_alone(&self, operation: &mut Operation, reason: &'static str) -> Result<()> {
        let (now_ms, date_ms, points) = (self.node.now_ms(), self.node.wall_ms(), self.node.points());
        let elected = self.node.change_topology(|topology| {
            let can = topology.can_elect_itself(now_ms);
            can.then(|| topology.elect_itself(date_ms, reason, points.applied.0, points.committed.0))
        });
        let Some(term) = elected else { return Ok(()) };
        self.node.slots().set_term(term);
        self.write_vote(operation, self.node.with_topology(Topology::last_vote))?;
        let config = self.node.with_topology(|topology| topology.require_config().cloned())?;
        self.write_config(operation, &config)?;
        let message = doc! { "msg": "new primary" };
        let entry = operation.in_unit_of_work(|operation| self.writer.append_noop(operation, message.view()))?;
        let date_ms = self.node.wall_ms();
        self.node.change_topology(|topology| topology.term_started(entry.timestamp, date_ms));
        self.create_session_tables(operation)?;
        self.node.flush_blocking()
    }

    fn write_vote(&self, operation: &mut Operation, vote: Vote) -> Result<()> {
        let candidate = i64::try_from(vote.candidate).unwrap_or(0);
        let vote = doc! { "_id": "lastVote", "term": vote.term, "candidateIndex": candidate };
        self.local.replace(operation, Namespace::last_vote(), vote.view())
    }

    fn remember_vote(&self, operation: &mut Operation) -> Result<()> {
        let Some(stored) = self.local.first(operation, Namespace::last_vote())? else { return Ok(()) };
        let fields = Fields::of("lastVote", stored.view());
        let candidate = usize::try_from(fields.required("candidateIndex", whole_number)?).unwrap_or(0);
        let vote = Vote { term: fields.required("term", whole_number)?, candidate };
        self.node.change_topology(|topology| topology.remember_vote(vote));
        Ok(())
    }

    /// replSetRequestVotes: answers a candidate. A new term ends this node's own.
    pub fn request_votes(&self, request: &VoteRequest) -> Result<VoteReply> {
        let applied = self.node.points().applied.0;
        let now_ms = self.node.now_ms();
        let (reply, vote) = self.node.change_topology(|topology| {
            let reply = topology.consider_vote(request, applied)?;
            let is_given = reply.refusal.is_none() && !request.is_dry_run;
            if is_given && request.term > topology.term() {
                if topology.state() == MemberState::Primary {
                    topology.step_down(now_ms);
                }
                topology.learn_term(request.term);
            }
            Ok::<_, Error>((reply, is_given.then(|| topology.last_vote())))
        })?;
        if let Some(vote) = vote {
            self.write_vote(&mut self.operation(), vote)?;
            self.node.flush_blocking()?;
        }
        Ok(reply)
    }

    /// A primary has the tables of sessions, and that of documents before their change; the others get them from the oplog.
    fn create_session_tables(&self, operation: &mut Operation) -> Result<()> {
        for namespace in [Namespace::session_transactions(), Namespace::config_images(), Namespace::pre_images()] {
            if self.catalog.latest().collection(namespace).is_some() {
                continue;
            }
            operation.in_unit_of_work(|operation| {
                let clustered_index = namespace.is_change_stream_pre_images().then(ClusteredIndex::legacy);
                let options = CollectionOptions { clustered_index, ..CollectionOptions::default() };
                let created = self.catalog.create_collection(operation, &*self.writer, namespace, options)?;
                if namespace.is_session_transactions() {
                    let index = doc! {
                        "v": 2, "key": { "parentLsid": 1, "_id.txnNumber": 1, "_id": 1 }, "name": "parent_lsid",
                        "partialFilterExpression": { "parentLsid": { "$exists": true } },
                    };
                    if let PreparedIndex::New(index) = self.catalog.prepare_index(&created, index.view())? {
                        self.catalog.create_index_on_empty(operation, &*self.writer, &created, &index)?;
                    }
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Before the node is started without replication: the data is brought up to the oplog's end and all of it is put into
    /// a checkpoint, since nobody will look at the oplog then. The engine is to be shut down and opened stand-alone next.
    pub fn leave_replication(&self) -> Result<RecoveryOutcome> {
        let outcome = recover(&self.services, &self.node, &self.applier, &self.local)?;
        set_min_valid(&mut self.operation(), &self.local, outcome.to)?;
        // Also the checkpoint that the shutdown takes: one at stable would forget what lies after it.
        self.services.engine.set_initial_data(Timestamp::NONE);
        self.services.engine.checkpoint(CheckpointKind::Full)?;
        Ok(outcome)
    }

    // ---- Reconfiguration.

    /// replSetReconfig: safe, or forced.
    pub fn reconfig(&self, config: DocRef<'_>, is_forced: bool) -> Result<()> {
        let Some(_turn) = self.node.try_configure() else {
            let reason = "Cannot run replSetReconfig because the node is currently updating its configuration";
            return Err(Error::new(ErrorCode::ConfigurationInProgress, reason));
        };
        let old = self.node.with_topology(|topology| topology.require_config().cloned())?;
        let (state, term) = self.node.with_topology(|topology| (topology.state(), topology.term()));
        if !is_forced && !self.node.is_writable_primary() {
            let reason =
                format!("replSetReconfig should only be run on a writable PRIMARY. Current state {};", state.name());
            return Err(Error::new(ErrorCode::NotWritablePrimary, reason));
        }
        let mut new =
            ReplicaSetConfig::parse(config).map_err(|error| error.with_code(ErrorCode::InvalidReplicaSetConfig))?;
        new.settings.replica_set_id = new.settings.replica_set_id.or(old.settings.replica_set_id);
        if is_forced {
            // Far ahead, so that it wins over whatever others have made meanwhile.
            let random = i64::try_from(self.services.env.random().below(100_000)).unwrap_or(0);
            new.version = old.version.max(new.version) + 10_000 + random;
            new.term = crate::config::NO_TERM;
        } else {
            new.term = term;
        }
        let place =
            check_reconfig(&old, &new, is_forced, |host| self.is_self(host)).map_err(|error| match error.code() {
                ErrorCode::BadValue => error.with_code(ErrorCode::InvalidReplicaSetConfig),
                _ => error,
            })?;
        let mut operation = self.operation();
        self.write_config(&mut operation, &new)?;
        if self.node.is_writable_primary() {
            let message = doc! { "msg": "Reconfig set", "version": new.version };
            operation.in_unit_of_work(|operation| self.writer.append_noop(operation, message.view()))?;
        }
        self.node.change_topology(|topology| topology.install_config(Arc::new(new), place));
        self.node.flush_blocking()
    }

    /// replSetStepUp: stands for election at once, whatever it was told before.
    pub fn step_up(&self) -> Result<()> {
        self.node.change_topology(Topology::thaw);
        self.elect_if_alone(&mut self.operation(), "stepUpRequest")
    }

    /// A tick: whoever is alone and may stand for election does. To be called now and then.
    pub fn tick(&self) -> Result<()> {
        self.elect_if_alone(&mut self.operation(), "singleNodePromptElection")
    }
}
