//! What flow control is told of this node and its set.

use super::ReplicationNode;
use crate::flow_control::{FlowControlParameters, FlowDecision, FlowInput, FlowStatus};

impl ReplicationNode {
    /// A second is over: how many locks for writing the next may have, after so many so far.
    pub fn step_flow_control(&self, lock_count: u64, parameters: &FlowControlParameters) -> FlowDecision {
        let points = self.points();
        let mut flow = self.flow.lock();
        // The majority's point stands where its last member has applied to: in a set of one, where this node has.
        let sustained = points.committed.0.timestamp;
        let before = flow.sustained();
        let (entry_count, sustained_count) = self.progress.with_samples(|samples| {
            samples.configure(parameters.sample_period, parameters.samples_max);
            let between = samples.between(before, sustained);
            samples.trim(sustained);
            (samples.entry_count(), between)
        });
        let input = FlowInput {
            is_primary: self.is_writable_primary(),
            now_ns: self.env.clock().monotonic_ns(),
            applied: points.applied,
            committed: points.committed,
            sustained,
            sustained_count,
            entry_count,
            lock_count,
        };
        flow.step(&input, parameters)
    }

    /// What flow control has done.
    pub fn flow_status(&self) -> FlowStatus {
        self.flow.lock().status()
    }
}
