//! Signals that a test sends.

use crate::{BoxedFuture, Signal, Signals};
use tokio::sync::mpsc;

/// Signals from a [`SignalSender`].
pub struct SimulatedSignals {
    received: mpsc::UnboundedReceiver<Signal>,
}

/// The other end: sends signals.
#[derive(Clone)]
pub struct SignalSender {
    sender: mpsc::UnboundedSender<Signal>,
}

impl SimulatedSignals {
    /// Both ends.
    pub fn new() -> (SignalSender, SimulatedSignals) {
        let (sender, received) = mpsc::unbounded_channel();
        (SignalSender { sender }, SimulatedSignals { received })
    }
}

impl SignalSender {
    /// Sends a signal; false if nobody takes it any more.
    pub fn send(&self, signal: Signal) -> bool {
        self.sender.send(signal).is_ok()
    }
}

impl Signals for SimulatedSignals {
    fn next(&mut self) -> BoxedFuture<'_, Signal> {
        Box::pin(async {
            match self.received.recv().await {
                Some(signal) => signal,
                // Nobody is left to send one.
                None => std::future::pending().await,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_come_in_the_order_they_were_sent() {
        let (sender, mut signals) = SimulatedSignals::new();
        assert!(sender.send(Signal::User1) && sender.send(Signal::Terminate));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            assert_eq!(signals.next().await, Signal::User1);
            assert_eq!(signals.next().await, Signal::Terminate);
        });
        drop(signals);
        assert!(!sender.send(Signal::HangUp));
    }
}
