//! replSetStepDown: waits for another that could take over, then goes.

use super::ReplicationNode;
use crate::topology::StepDownRequest;
use pando_base::{OperationContext, Result};
use std::time::Duration;

impl ReplicationNode {
    /// Steps down, or says why not. Whoever writes is turned away from then on; ending what they have begun is for the
    /// caller, who knows operations and locks.
    pub async fn step_down(&self, context: &OperationContext, request: &StepDownRequest) -> Result<()> {
        let begin_ms = self.now_ms();
        let catch_up_ms = u64::try_from(request.catch_up_seconds).unwrap_or(0).saturating_mul(1000);
        if self.with_topology(|topology| topology.can_step_down(request, catch_up_ms == 0))?.is_none() {
            // In a set of one there is nobody to catch up: the wait is for the time alone.
            let pause = self.env.clock().sleep(Duration::from_millis(catch_up_ms));
            self.wait_bounded(context, None, pause).await?;
        }
        let seconds_ms = u64::try_from(request.seconds).unwrap_or(0).saturating_mul(1000);
        self.change_topology(|topology| {
            topology.can_step_down(request, true)?;
            topology.step_down(begin_ms.saturating_add(seconds_ms));
            Ok(())
        })
    }
}
