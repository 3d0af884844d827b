//! Giving up being primary.

use super::Topology;
use crate::member_state::MemberState;
use pando_base::{Error, ErrorCode, Result};
use pando_doc::DocRef;
use pando_session::fields::{Fields, safe_boolean, whole_number};

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
        let fields = Fields::of("replSetStepDown", command);
        let is_forced = fields.optional("force", safe_boolean)?.unwrap_or(false);
        // Zero stands for the default, as ever.
        let seconds = match fields.required("replSetStepDown", whole_number)? {
            0 => SECONDS_DEFAULT,
            seconds if seconds < 0 => return Err(Error::bad_value("stepdown period must be a positive integer")),
            seconds => seconds,
        };
        let given = fields.optional("secondaryCatchUpPeriodSecs", whole_number)?;
        let usual = if is_forced { 0 } else { CATCH_UP_SECONDS_DEFAULT.min(seconds) };
        let catch_up_seconds = given.unwrap_or(usual);
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
    /// May it step down now? `waited` says that the time for others to catch up is over. None: wait on.
    pub fn can_step_down(&self, request: &StepDownRequest, waited: bool) -> Result<Option<()>> {
        self.require_config()?;
        if self.state != MemberState::Primary {
            return Err(Error::new(ErrorCode::NotWritablePrimary, "not primary so can't step down"));
        }
        match (request.is_forced, waited) {
            (true, true) => Ok(Some(())),
            (false, true) => Err(Error::new(
                ErrorCode::ExceededTimeLimit,
                "No electable secondaries caught up; please use the replSetStepDown command with the argument \
                 {force: true} to force node to step down.",
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
