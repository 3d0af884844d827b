//! Giving up being primary.

use super::Topology;
use crate::member_state::MemberState;
use pando_base::{Error, ErrorCode, Result};
use pando_doc::{DocRef, Number, iso_8601};
use pando_session::extract;

/// What replSetStepDown was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepDownRequest {
    /// For so long it does not stand for election.
    pub seconds: i64,
    /// So long it waits for another that could take over.
    pub catch_up_seconds: i64,
    /// It goes even if there is none.
    pub is_forced: bool,
}

const SECONDS_DEFAULT: i64 = 60;
const CATCH_UP_SECONDS_DEFAULT: i64 = 10;

impl StepDownRequest {
    /// Reads the command.
    pub fn parse(command: DocRef<'_>) -> Result<StepDownRequest> {
        let is_forced = command.get("force").is_some_and(|force| force.is_true());
        let seconds = command.first().and_then(|first| first.value.as_number()).map_or(0, Number::truncated_i64);
        // Zero, and what is no number, stand for the default, as ever.
        let seconds = match seconds {
            0 => SECONDS_DEFAULT,
            seconds if seconds < 0 => return Err(Error::bad_value("stepdown period must be a positive integer")),
            seconds => seconds,
        };
        let usual = if is_forced { 0 } else { CATCH_UP_SECONDS_DEFAULT };
        let catch_up_seconds = extract::number(command, "secondaryCatchUpPeriodSecs")?.unwrap_or(usual);
        if catch_up_seconds < 0 {
            return Err(Error::bad_value("secondaryCatchUpPeriodSecs period must be a positive or absent"));
        }
        if seconds < catch_up_seconds {
            let reason = "stepdown period must be longer than secondaryCatchUpPeriodSecs";
            return Err(Error::bad_value(reason));
        }
        Ok(StepDownRequest { seconds, catch_up_seconds, is_forced })
    }
}

impl Topology {
    /// May it step down now? `waited` says that the time for others to catch up is over, which is
    /// told with the date. None: wait on.
    pub fn can_step_down(&self, request: &StepDownRequest, waited: bool, date_ms: i64) -> Result<Option<()>> {
        self.require_config()?;
        if self.state != MemberState::Primary {
            return Err(Error::new(ErrorCode::NotWritablePrimary, "not primary so can't step down"));
        }
        match (request.is_forced, waited) {
            (true, true) => Ok(Some(())),
            (false, true) => Err(Error::new(
                ErrorCode::ExceededTimeLimit,
                format!(
                    "No electable secondaries caught up as of {}. Please use the replSetStepDown command with the \
                     argument {{force: true}} to force node to step down.",
                    iso_8601(date_ms)
                ),
            )),
            (_, false) => Ok(None),
        }
    }

    /// Steps down; until then (on the monotonic clock) it does not stand again.
    pub fn step_down(&mut self, until_ms: u64) {
        debug_assert!(self.state == MemberState::Primary);
        self.state = MemberState::Secondary;
        self.accepts_writes = false;
        self.passive_until_ms = self.passive_until_ms.max(until_ms);
        self.changed();
    }
}
