//! The write path over both engines: the oracle, and the real one on a simulated disk.

mod building;
mod capped;
mod random;
mod support;
mod timestamps;
mod with_catalog;
mod writes;
