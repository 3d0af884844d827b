//! replSetRequestVotes: whether this member votes for another.
//!
//! Invariant: in a term it votes once. The vote is on disk before it is told, so that a restart does not forget it.

use super::Topology;
use crate::config::{ConfigVersionAndTerm, NO_TERM};
use pando_base::{Error, Result};
use pando_doc::DocRef;
use pando_oplog::OpTime;
use pando_session::extract;

/// The member's last vote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vote {
    /// In this term.
    pub term: i64,
    /// For the member at this place.
    pub candidate: usize,
}

/// What a candidate says of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct VoteRequest {
    /// Its set's name.
    pub set_name: String,
    /// It only wants to know whether it could win.
    pub is_dry_run: bool,
    /// The term it stands for.
    pub term: i64,
    /// Its place among the members.
    pub candidate: i64,
    /// Its configuration.
    pub config: ConfigVersionAndTerm,
    /// Its newest entry.
    pub applied: OpTime,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VoteReply {
    /// The term of this member when it was asked.
    pub term: i64,
    /// Why it does not vote for the candidate; none if it does.
    pub refusal: Option<String>,
}

impl VoteRequest {
    /// Reads the command.
    pub fn parse(command: DocRef<'_>) -> Result<VoteRequest> {
        let number = |field: &str| extract::number(command, field)?.ok_or_else(|| extract::missing(field));
        let term = number("term")?;
        let candidate = number("candidateIndex")?;
        let version = number("configVersion")?;
        let config_term = extract::number(command, "configTerm")?.unwrap_or(NO_TERM);
        let set_name = extract::text(command, "setName")?.ok_or_else(|| extract::missing("setName"))?;
        let is_dry_run = extract::boolean(command, "dryRun")?.ok_or_else(|| extract::missing("dryRun"))?;
        let applied = extract::document(command, "lastAppliedOpTime")?;
        Ok(VoteRequest {
            set_name: set_name.to_owned(),
            is_dry_run,
            term,
            candidate,
            config: ConfigVersionAndTerm { version, term: config_term },
            applied: OpTime::parse(applied.ok_or_else(|| extract::missing("lastAppliedOpTime"))?)?,
        })
    }
}

impl Topology {
    /// The last vote, as it was found on disk.
    pub fn remember_vote(&mut self, vote: Vote) {
        self.learn_term(vote.term);
        self.last_vote = vote;
    }

    /// The last vote.
    pub fn last_vote(&self) -> Vote {
        self.last_vote
    }

    /// Answers a candidate. A vote that is given counts from now on; it has to be on disk before the candidate hears of it.
    pub fn consider_vote(&mut self, request: &VoteRequest, applied: OpTime) -> Result<VoteReply> {
        let config = self.require_config()?;
        let count = config.members.len();
        let candidate = usize::try_from(request.candidate).ok().filter(|candidate| *candidate < count);
        let Some(candidate) = candidate else {
            let reason = format!(
                "Invalid candidateIndex: {}. Must be between 0 and {} inclusive",
                request.candidate,
                count.saturating_sub(1)
            );
            return Err(Error::bad_value(reason));
        };
        let own = config.version_and_term();
        let (term, vote) = (self.term, self.last_vote);
        let voted_for = config.members.get(vote.candidate).map(|member| member.host.to_string()).unwrap_or_default();
        let refusals = [
            (request.config < own, format!("candidate's config with {} is older than mine with {own}", request.config)),
            (request.term < term, format!("candidate's term ({}) is lower than mine ({term})", request.term)),
            (
                request.set_name != config.name,
                format!("candidate's set name ({}) differs from mine ({})", request.set_name, config.name),
            ),
            (
                request.applied < applied,
                format!(
                    "candidate's data is staler than mine. candidate's last applied OpTime: {}, my last applied OpTime: \
                     {}",
                    op_time_text(request.applied),
                    op_time_text(applied)
                ),
            ),
            (
                !request.is_dry_run && vote.term == request.term,
                format!("already voted for another candidate ({voted_for}) this term ({})", vote.term),
            ),
        ];
        let refusal = refusals.into_iter().find(|(refused, _)| *refused).map(|(_, reason)| reason);
        if refusal.is_none() && !request.is_dry_run {
            self.last_vote = Vote { term: request.term, candidate };
        }
        Ok(VoteReply { term, refusal })
    }
}

fn op_time_text(op_time: OpTime) -> String {
    format!("{{ ts: {}, t: {} }}", op_time.timestamp, op_time.term)
}
