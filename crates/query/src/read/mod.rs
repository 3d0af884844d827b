//! Reads that return something else than documents: `count` and `distinct`.

mod count;
mod distinct;
