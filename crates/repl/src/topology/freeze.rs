//! Not standing for election for a while, on request, and maintenance.

use super::Topology;
use crate::member_state::MemberState;
use pando_base::{Error, ErrorCode, Result};

impl Topology {
    /// replSetFreeze: no election for so many seconds; zero ends that. Gives a field for the reply, if there is one.
    pub fn freeze(&mut self, seconds: i64, now_ms: u64) -> Result<Option<(&'static str, &'static str)>> {
        self.require_config()?;
        if self.state == MemberState::Primary {
            let reason = "Cannot freeze node when primary or running for election, state: Primary";
            return Err(Error::new(ErrorCode::NotSecondary, reason));
        }
        if seconds == 0 {
            self.passive_until_ms = 0;
            return Ok(Some(("info", "unfreezing")));
        }
        let seconds_ms = u64::try_from(seconds).unwrap_or(0).saturating_mul(1000);
        self.passive_until_ms = self.passive_until_ms.max(now_ms.saturating_add(seconds_ms));
        let warning = ("warning", "you really want to freeze for only 1 second?");
        Ok((seconds == 1).then_some(warning))
    }

    /// replSetMaintenance: only a secondary can hide its data. It does as long as anybody wants it to.
    pub fn maintenance(&mut self, on: bool) -> Result<()> {
        self.require_config()?;
        if self.state == MemberState::Primary {
            return Err(Error::new(ErrorCode::NotSecondary, "primaries can't modify maintenance mode"));
        }
        self.maintenance_count = match (on, self.maintenance_count.checked_sub(1)) {
            (true, _) => self.maintenance_count.saturating_add(1),
            (false, Some(left)) => left,
            (false, None) => {
                return Err(Error::new(ErrorCode::OperationFailed, "already out of maintenance mode"));
            }
        };
        let state = match (self.state, self.maintenance_count) {
            (MemberState::Recovering, 0) => MemberState::Secondary,
            (MemberState::Secondary, 1..) => MemberState::Recovering,
            (other, _) => other,
        };
        if std::mem::replace(&mut self.state, state) != state {
            self.changed();
        }
        Ok(())
    }

    /// Whatever kept it from standing for election does not count any more.
    pub fn thaw(&mut self) {
        self.passive_until_ms = 0;
    }

    /// Until when it does not stand for election, on the monotonic clock.
    pub fn passive_until_ms(&self) -> u64 {
        self.passive_until_ms
    }
}
