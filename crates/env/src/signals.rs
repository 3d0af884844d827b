//! Signals of the operating system, as a trait: the ways in which somebody outside asks this process for something.

use crate::BoxedFuture;

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM: end in good order.
    Terminate,
    /// SIGINT: somebody at the terminal wants it to end.
    Interrupt,
    /// SIGHUP: the terminal is gone, or the configuration changed.
    HangUp,
    /// SIGUSR1: for the program to define.
    User1,
}

impl Signal {
    /// The number on Linux.
    pub const fn number(self) -> i32 {
        match self {
            Signal::HangUp => 1,
            Signal::Interrupt => 2,
            Signal::User1 => 10,
            Signal::Terminate => 15,
        }
    }
}

/// Where signals come from. While one of these lives, the signals it takes no longer end the process by themselves.
pub trait Signals: Send {
    /// The next signal. Several of one kind that come at once may be told as one.
    fn next(&mut self) -> BoxedFuture<'_, Signal>;
}
