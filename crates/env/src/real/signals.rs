//! Signals of this process.

use crate::{BoxedFuture, Signal, Signals};
use std::future::poll_fn;
use std::io;
use std::task::Poll;
use tokio::signal::unix::{self, SignalKind};

/// The signals that the operating system sends to this process.
pub struct RealSignals {
    streams: [(Signal, unix::Signal); 4],
}

impl RealSignals {
    /// Takes the signals over. To be called inside a tokio runtime.
    pub fn new() -> io::Result<RealSignals> {
        Ok(RealSignals {
            streams: [
                (Signal::Terminate, unix::signal(SignalKind::terminate())?),
                (Signal::Interrupt, unix::signal(SignalKind::interrupt())?),
                (Signal::HangUp, unix::signal(SignalKind::hangup())?),
                (Signal::User1, unix::signal(SignalKind::user_defined1())?),
            ],
        })
    }
}

impl Signals for RealSignals {
    fn next(&mut self) -> BoxedFuture<'_, Signal> {
        Box::pin(poll_fn(|context| {
            for (signal, stream) in &mut self.streams {
                if stream.poll_recv(context).is_ready() {
                    return Poll::Ready(*signal);
                }
            }
            Poll::Pending
        }))
    }
}
