//! Nodes put together without commands, over the real engine on a simulated machine and over the oracle.

mod applying;
mod crashes;
mod entries;
mod retries;
mod starting;
mod support;
mod together;
mod waiting;
