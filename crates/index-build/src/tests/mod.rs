//! Builds beside random writers, step by step; put down and taken up between any two steps.

mod against_model;
mod constraints;
mod support;
mod votes;
