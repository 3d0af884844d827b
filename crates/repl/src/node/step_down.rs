//! replSetStepDown: waits for another that could take over, then goes.

use super::ReplicationNode;
use crate::topology::StepDownRequest;
use pando_base::{OperationContext, Result};
use std::time::Duration;

/// A step-down that may go ahead. Whoever carries it out first keeps writers out and ends what they have begun: that is for
/// the caller, who knows operations and locks.
#[derive(Clone, Copy, Debug)]
pub struct StepDown {
    request: StepDownRequest,
    until_ms: u64,
}

impl ReplicationNode {
    /// Waits until the node may step down, or says why not.
    pub async fn await_step_down(&self, context: &OperationContext, request: StepDownRequest) -> Result<StepDown> {
        let begin_ms = self.now_ms();
        let catch_up_ms = u64::try_from(request.catch_up_seconds).unwrap_or(0).saturating_mul(1000);
        let waited = catch_up_ms == 0;
        if self.with_topology(|topology| topology.can_step_down(&request, waited, self.wall_ms()))?.is_none() {
            // In a set of one there is nobody to catch up: the wait is for the time alone.
            let pause = self.env.clock().sleep(Duration::from_millis(catch_up_ms));
            self.wait_bounded(context, None, pause).await?;
        }
        let date_ms = self.wall_ms();
        self.with_topology(|topology| topology.can_step_down(&request, true, date_ms))?;
        let seconds_ms = u64::try_from(request.seconds).unwrap_or(0).saturating_mul(1000);
        Ok(StepDown { request, until_ms: begin_ms.saturating_add(seconds_ms) })
    }

    /// Steps down.
    pub fn step_down(&self, step_down: StepDown) -> Result<()> {
        let date_ms = self.wall_ms();
        self.change_topology(|topology| {
            topology.can_step_down(&step_down.request, true, date_ms)?;
            topology.step_down(step_down.until_ms);
            Ok(())
        })
    }
}
