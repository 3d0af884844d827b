//! Blocks: the frame that every stored unit travels in, its compression, and the layout of the entries inside.
//!
//! A run file is a gapless sequence of frames ([`frame`]); data and history frames hold entries ([`entries`]), built by
//! [`builder`]. Nothing here knows of indexes, sections or caches.

pub(crate) mod builder;
pub(crate) mod compression;
pub(crate) mod entries;
pub mod frame;
pub(crate) mod packed;
pub(crate) mod phrases;
