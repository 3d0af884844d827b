//! The reply of replSetGetStatus.

use super::{Election, Topology};
use crate::config::Member;
use crate::member_state::MemberState;
use pando_base::{Result, Timestamp};
use pando_doc::{DocBuilder, Value};
use pando_oplog::OpTime;

/// What the reply needs from outside.
#[derive(Clone, Copy, Debug)]
pub struct StatusContext {
    /// The clock on the wall.
    pub now_ms: i64,
    /// How long the process runs.
    pub uptime_seconds: i64,
    /// The newest entry that was applied, and its date.
    pub applied: (OpTime, i64),
    /// The newest entry on disk, and its date.
    pub durable: (OpTime, i64),
    /// The newest entry that a majority has, and its date.
    pub committed: (OpTime, i64),
    /// The newest entry that majority reads see.
    pub majority_snapshot: OpTime,
    /// The timestamp that a checkpoint stands at.
    pub last_stable_recovery: Timestamp,
}

/// Appends the reply; fails where there is no set.
pub fn status(topology: &Topology, context: &StatusContext, builder: &mut DocBuilder) -> Result<()> {
    let config = topology.require_config()?;
    builder.append("set", &config.name);
    builder.append("date", Value::DateTime(context.now_ms));
    builder.append("myState", topology.state.number());
    builder.append("term", topology.term);
    builder.append("syncSourceHost", "");
    builder.append("syncSourceId", -1);
    builder.append("heartbeatIntervalMillis", config.settings.heartbeat_interval_ms);
    let count = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
    builder.append("majorityVoteCount", count(config.majority_vote_count()));
    builder.append("writeMajorityCount", count(config.write_majority_count()));
    builder.append("votingMembersCount", count(config.voters().count()));
    builder.append("writableVotingMembersCount", count(config.writable_voter_count()));
    append_op_times(context, builder);
    if context.last_stable_recovery.is_some() {
        builder.append("lastStableRecoveryTimestamp", context.last_stable_recovery);
    }
    if let Some(election) = topology.election.as_ref().filter(|_| topology.state == MemberState::Primary) {
        append_election(topology, election, builder);
    }
    let members = builder.begin_array("members");
    for (place, member) in config.members.iter().enumerate() {
        let open = builder.begin_document_indexed(u32::try_from(place).unwrap_or(u32::MAX));
        match topology.place == Some(place) {
            true => append_self(topology, member, context, builder),
            false => append_other(member, builder),
        }
        builder.end(open);
    }
    builder.end(members);
    Ok(())
}

fn append_op_times(context: &StatusContext, builder: &mut DocBuilder) {
    builder.document("optimes", |times| {
        context.committed.0.append_as("lastCommittedOpTime", times);
        times.append("lastCommittedWallTime", Value::DateTime(context.committed.1));
        context.majority_snapshot.append_as("readConcernMajorityOpTime", times);
        context.applied.0.append_as("appliedOpTime", times);
        context.durable.0.append_as("durableOpTime", times);
        times.append("lastAppliedWallTime", Value::DateTime(context.applied.1));
        times.append("lastDurableWallTime", Value::DateTime(context.durable.1));
    });
}

fn append_election(topology: &Topology, election: &Election, builder: &mut DocBuilder) {
    let Some(config) = &topology.config else { return };
    let priority = topology.place.and_then(|place| config.members.get(place)).map_or(0.0, |member| member.priority);
    builder.document("electionCandidateMetrics", |metrics| {
        metrics.append("lastElectionReason", election.reason);
        metrics.append("lastElectionDate", Value::DateTime(election.date_ms));
        metrics.append("electionTerm", election.term);
        election.committed_before.append_as("lastCommittedOpTimeAtElection", metrics);
        election.applied_before.append_as("lastSeenOpTimeAtElection", metrics);
        metrics.append("numVotesNeeded", i32::try_from(config.majority_vote_count()).unwrap_or(i32::MAX));
        metrics.append("priorityAtElection", priority);
        metrics.append("electionTimeoutMillis", config.settings.election_timeout_ms);
        metrics.append_some("newTermStartDate", election.term_start.map(|(_, date_ms)| Value::DateTime(date_ms)));
        metrics.append_some("wMajorityWriteAvailabilityDate", election.majority_available_ms.map(Value::DateTime));
    });
}

fn append_self(topology: &Topology, member: &Member, context: &StatusContext, builder: &mut DocBuilder) {
    append_small(builder, "_id", member.id);
    builder.append("name", member.host.to_string());
    builder.append("health", 1.0);
    builder.append("state", topology.state.number());
    builder.append("stateStr", topology.state.name());
    append_small(builder, "uptime", context.uptime_seconds);
    context.applied.0.append_as("optime", builder);
    builder.append("optimeDate", Value::DateTime(i64::from(context.applied.0.timestamp.seconds()) * 1000));
    builder.append("lastAppliedWallTime", Value::DateTime(context.applied.1));
    builder.append("lastDurableWallTime", Value::DateTime(context.durable.1));
    builder.append("syncSourceHost", "");
    builder.append("syncSourceId", -1);
    builder.append("infoMessage", "");
    if let Some(election) = topology.election.as_ref().filter(|_| topology.state == MemberState::Primary) {
        let seconds = u32::try_from(election.date_ms / 1000).unwrap_or(u32::MAX);
        builder.append("electionTime", Timestamp::new(seconds, 1));
        builder.append("electionDate", Value::DateTime(i64::from(seconds) * 1000));
    }
    if let Some(config) = &topology.config {
        append_small(builder, "configVersion", config.version);
        append_small(builder, "configTerm", config.term);
    }
    builder.append("self", true);
    builder.append("lastHeartbeatMessage", "");
}

/// Nothing is known of others until there are heartbeats.
fn append_other(member: &Member, builder: &mut DocBuilder) {
    append_small(builder, "_id", member.id);
    builder.append("name", member.host.to_string());
    builder.append("health", 0.0);
    builder.append("state", MemberState::Unknown.number());
    builder.append("stateStr", MemberState::Unknown.name());
    builder.append("uptime", 0);
}

fn append_small(builder: &mut DocBuilder, name: &str, number: i64) {
    match i32::try_from(number) {
        Ok(number) => builder.append(name, number),
        Err(_) => builder.append(name, number),
    }
}
