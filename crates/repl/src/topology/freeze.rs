//! Not standing for election for a while, on request, and maintenance.

use super::Topology;
use crate::member_state::MemberState;
use pando_base::{Error, ErrorCode, Result};

impl Topology {
    /// replSetFreeze: no election for so many seconds; zero ends that. Gives a field for the reply, if there is one.
    pub fn freeze(&mut self, seconds: i64, now_ms: u64) -> Result<Option<(&'static str, &'static str)>> {
        self.require_config()?;
        if seconds == 0 {
            self.passive_until_ms = 0;
            return Ok(Some(("info", "unfreezing")));
        }
        if self.state == MemberState::Primary {
            let reason = "cannot freeze node when primary or running for election. state: Primary";
            return Err(Error::new(ErrorCode::NotSecondary, reason));
        }
        let seconds_ms = u64::try_from(seconds).unwrap_or(0).saturating_mul(1000);
        self.passive_until_ms = now_ms.saturating_add(seconds_ms);
        let warning = ("warning", "you really want to freeze for only 1 second?");
        Ok((seconds == 1).then_some(warning))
    }

    /// replSetMaintenance: only a secondary can hide its data.
    pub fn maintenance(&mut self, on: bool) -> Result<()> {
        self.require_config()?;
        match (self.state, on) {
            (MemberState::Primary, _) => {
                Err(Error::new(ErrorCode::NotSecondary, "primaries can't be in maintenance mode"))
            }
            (MemberState::Secondary, true) => {
                self.state = MemberState::Recovering;
                self.changed();
                Ok(())
            }
            (MemberState::Recovering, false) => {
                self.state = MemberState::Secondary;
                self.changed();
                Ok(())
            }
            (_, true) => Ok(()),
            (_, false) => Err(Error::new(ErrorCode::OperationFailed, "already out of maintenance mode")),
        }
    }

    /// Until when it does not stand for election, on the monotonic clock.
    pub fn passive_until_ms(&self) -> u64 {
        self.passive_until_ms
    }
}
