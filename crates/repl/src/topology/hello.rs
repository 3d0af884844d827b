//! What hello says of the set. The command adds limits and versions of its own.

use super::{Mode, Topology};
use crate::config::HostAndPort;
use crate::member_state::MemberState;
use pando_doc::{DocBuilder, ObjectId, Value};
use pando_oplog::OpTime;

/// What hello needs from outside.
#[derive(Clone, Debug)]
pub struct HelloContext<'a> {
    /// The old name: `ismaster` in place of `isWritablePrimary`.
    pub is_legacy: bool,
    /// The address under which the client reached this node: a set that initiated itself goes by it.
    pub reached: Option<&'a HostAndPort>,
    /// The newest entry and its date.
    pub last_write: (OpTime, i64),
    /// The newest entry that a majority has, and its date.
    pub majority_write: (OpTime, i64),
    /// The node is about to go: clients are to look elsewhere.
    pub is_shutting_down: bool,
}

/// Appends the fields of the set, `topologyVersion` first.
pub fn append_hello(topology: &Topology, context: &HelloContext<'_>, builder: &mut DocBuilder) {
    append_topology_version(topology, builder);
    let writable = if context.is_legacy { "ismaster" } else { "isWritablePrimary" };
    let Some(config) = &topology.config else {
        builder.append(writable, topology.mode == Mode::StandAlone);
        if topology.mode.is_replicated() {
            builder.append("secondary", false);
            builder.append("info", "Does not have a valid replica set config");
            builder.append("isreplicaset", true);
        }
        return;
    };
    let shown = Shown::of(topology, context);
    append_hosts(topology, &shown, builder);
    builder.append("setName", &config.name);
    match i32::try_from(config.version) {
        Ok(version) => builder.append("setVersion", version),
        Err(_) => builder.append("setVersion", config.version),
    }
    let is_primary = topology.state == MemberState::Primary && topology.accepts_writes && !context.is_shutting_down;
    builder.append(writable, is_primary);
    builder.append("secondary", topology.state == MemberState::Secondary && !context.is_shutting_down);
    if topology.state == MemberState::Primary {
        builder.append_some("primary", shown.own());
    }
    append_own(topology, builder);
    builder.append_some("me", shown.own());
    if topology.state == MemberState::Primary {
        builder.append("electionId", election_id(topology.term));
    }
    append_last_write(context, builder);
}

/// `topologyVersion`, which awaited hellos wait on.
pub(super) fn append_topology_version(topology: &Topology, builder: &mut DocBuilder) {
    builder.document("topologyVersion", |version| {
        version.append("processId", topology.process_id);
        version.append("counter", topology.counter);
    });
}

/// The members' addresses as this client should see them.
struct Shown<'a> {
    topology: &'a Topology,
    /// What this node's own address is replaced by.
    own: Option<&'a HostAndPort>,
}

impl<'a> Shown<'a> {
    fn of(topology: &'a Topology, context: &HelloContext<'a>) -> Shown<'a> {
        let follows = matches!(topology.mode, Mode::SelfInitiated { .. });
        Shown { topology, own: context.reached.filter(|_| follows) }
    }

    fn host(&self, place: usize) -> Option<String> {
        let configured = &self.topology.config.as_ref()?.members.get(place)?.host;
        let own = self.own.filter(|_| self.topology.place == Some(place));
        Some(own.unwrap_or(configured).to_string())
    }

    fn own(&self) -> Option<String> {
        self.host(self.topology.place?)
    }
}

fn append_hosts(topology: &Topology, shown: &Shown<'_>, builder: &mut DocBuilder) {
    let Some(config) = &topology.config else { return };
    let visible = || config.members.iter().enumerate().filter(|(_, member)| !member.is_hidden);
    let mut list = |name: &str, picks: &dyn Fn(&crate::config::Member) -> bool| {
        let hosts: Vec<String> =
            visible().filter(|(_, member)| picks(member)).filter_map(|(place, _)| shown.host(place)).collect();
        if !hosts.is_empty() {
            builder.array(name, |array| hosts.iter().for_each(|host| array.push(host)));
        }
    };
    list("hosts", &|member| !member.is_arbiter && member.effective_priority() > 0.0);
    list("passives", &|member| !member.is_arbiter && member.effective_priority() == 0.0);
    list("arbiters", &|member| member.is_arbiter);
}

/// What is special about this member.
fn append_own(topology: &Topology, builder: &mut DocBuilder) {
    let member = topology.config.as_ref().zip(topology.place).and_then(|(config, place)| config.members.get(place));
    let Some(member) = member else { return };
    builder.append_some("arbiterOnly", member.is_arbiter.then_some(true));
    builder.append_some("passive", (!member.is_arbiter && member.effective_priority() == 0.0).then_some(true));
    builder.append_some("secondaryDelaySecs", Some(member.delay_seconds).filter(|delay| *delay > 0));
    builder.append_some("hidden", member.is_hidden.then_some(true));
    builder.append_some("buildIndexes", (!member.builds_indexes).then_some(false));
    builder.append_some("tags", Some(&member.tags).filter(|tags| !tags.is_empty()));
}

/// Greater for later terms, and greater than the random ones of old.
pub(crate) fn election_id(term: i64) -> ObjectId {
    let mut bytes = [0; 12];
    bytes[..4].copy_from_slice(&0x7fff_ffff_u32.to_be_bytes());
    bytes[4..].copy_from_slice(&term.to_be_bytes());
    ObjectId::from_bytes(bytes)
}

fn append_last_write(context: &HelloContext<'_>, builder: &mut DocBuilder) {
    builder.document("lastWrite", |write| {
        context.last_write.0.append_as("opTime", write);
        write.append("lastWriteDate", Value::DateTime(context.last_write.1));
        context.majority_write.0.append_as("majorityOpTime", write);
        write.append("majorityWriteDate", Value::DateTime(context.majority_write.1));
    });
}
