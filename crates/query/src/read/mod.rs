//! Reads that return something else than documents, `count` and `distinct`, and those of plans that tests give.

mod count;
mod distinct;
mod given_plan;
