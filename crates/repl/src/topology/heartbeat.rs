//! replSetHeartbeat: what this member tells another that asks how it is.

use super::Topology;
use crate::config::{ConfigVersionAndTerm, HostAndPort, NO_TERM};
use crate::member_state::MemberState;
use crate::progress::Points;
use pando_base::{Error, ErrorCode, Result, Timestamp};
use pando_doc::{DocBuilder, DocRef, Value};
use pando_session::extract;

/// What another member says of itself when it asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeartbeatRequest {
    /// Its set's name.
    pub set_name: String,
    /// Its configuration.
    pub config: ConfigVersionAndTerm,
    /// Its place's id; −1 if it has none.
    pub sender_id: i64,
    /// Its term.
    pub term: i64,
}

impl HeartbeatRequest {
    /// Reads the command.
    pub fn parse(command: DocRef<'_>) -> Result<HeartbeatRequest> {
        extract::safe_boolean(command, "checkEmpty")?;
        let required = |field: &str| extract::number(command, field)?.ok_or_else(|| extract::missing(field));
        let version = required("configVersion")?;
        let term = extract::number(command, "configTerm")?.unwrap_or(NO_TERM);
        if let Some(heartbeat) = extract::number(command, "hbv")?.filter(|version| *version != 1) {
            return Err(Error::location(40666, format!("Found invalid value for field hbv: {heartbeat}")));
        }
        let sender_id = extract::number(command, "fromId")?.unwrap_or(-1);
        let sender = extract::text(command, "from")?.ok_or_else(|| extract::missing("from"))?;
        if !sender.is_empty() {
            HostAndPort::parse(sender)?;
        }
        extract::number(command, "primaryId")?;
        Ok(HeartbeatRequest {
            set_name: extract::text(command, "replSetHeartbeat")?
                .ok_or_else(|| extract::missing("replSetHeartbeat"))?
                .to_owned(),
            config: ConfigVersionAndTerm { version, term },
            sender_id,
            term: required("term")?,
        })
    }
}

/// What the answer needs from outside.
#[derive(Clone, Copy, Debug)]
pub struct HeartbeatContext {
    /// How far the node has come.
    pub points: Points,
    /// The monotonic clock.
    pub now_ms: u64,
}

impl Topology {
    /// Appends the answer to a heartbeat.
    pub fn answer_heartbeat(
        &self,
        request: &HeartbeatRequest,
        context: &HeartbeatContext,
        reply: &mut DocBuilder,
    ) -> Result<()> {
        let Some(set_name) = self.mode.set_name() else {
            return Err(Error::new(ErrorCode::NoReplicationEnabled, "not running using replication"));
        };
        if request.set_name != set_name {
            let reason =
                format!("Our set name of {set_name} does not match name {} reported by remote node", request.set_name);
            return Err(Error::new(ErrorCode::InconsistentReplicaSetNames, reason));
        }
        let own = self.config.as_ref().zip(self.place).and_then(|(config, place)| config.members.get(place));
        if own.is_some_and(|own| own.id == request.sender_id) {
            let reason =
                format!("Received heartbeat from member with the same member ID as ourself: {}", request.sender_id);
            return Err(Error::bad_value(reason));
        }
        if let Some(election) = self.election.as_ref().filter(|_| self.state == MemberState::Primary) {
            let seconds = u32::try_from(election.date_ms / 1000).unwrap_or(u32::MAX);
            let time = i64::try_from(Timestamp::new(seconds, 1).0).unwrap_or(i64::MAX);
            reply.append("electionTime", Value::DateTime(time));
        }
        if let Some(config) = self.config.as_ref().filter(|config| config.version_and_term() > request.config) {
            reply.append("config", config.to_doc());
        }
        reply.append("state", f64::from(self.state.number()));
        let known = self.config.as_ref().map(|config| config.version_and_term());
        let told = known.unwrap_or(ConfigVersionAndTerm { version: -2, term: NO_TERM });
        reply.append("v", told.version);
        reply.append("configTerm", told.term);
        reply.append("set", set_name);
        reply.append("term", self.term);
        if self.state == MemberState::Primary {
            reply.append_some("primaryId", own.map(|own| own.id));
        }
        context.points.durable.0.append_as("durableOpTime", reply);
        reply.append("durableWallTime", Value::DateTime(context.points.durable.1));
        context.points.applied.0.append_as("opTime", reply);
        reply.append("wallTime", Value::DateTime(context.points.applied.1));
        if self.config.is_some() {
            reply.append("electable", self.can_elect_itself(context.now_ms));
        }
        Ok(())
    }
}
