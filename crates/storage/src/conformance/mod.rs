//! The suite that any engine can run.
//!
//! An engine crate says how its stores are made (an [`EngineFactoryMaker`]) and writes
//! `pando_storage::conformance_tests!(maker);` in a test file: that becomes one `#[test]` for each case. A case is a
//! function that takes the maker, makes fresh stores of either mode and asserts. Cases are grouped by idea, one file each,
//! and named after the feature rows that they prove.
//!
//! Cases use the engine interface only, and what this crate builds over it. They are deterministic: no threads, no time,
//! the same numbers in each run. Where the interface leaves something open, a case takes every answer that fits.

// Cases are tests: they panic.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod backup;
mod basics;
mod bulk;
mod cases;
mod checkpoints;
mod conflicts;
mod cursors;
mod drops;
mod factory;
mod limits;
mod oplog;
mod prepared;
mod record_store;
mod recovery;
mod recovery_unit;
mod rollback;
mod sizes;
mod snapshots;
mod sorted_data;
mod support;
mod timestamps;
mod truncate;

pub use factory::{EngineFactory, EngineFactoryMaker, Mode};

/// A case: its group, its name and its body.
#[derive(Clone, Copy)]
pub struct Case {
    /// The idea it belongs to.
    pub group: &'static str,
    /// What it shows.
    pub name: &'static str,
    /// Runs it; panics if the engine does not conform.
    pub run: fn(&dyn EngineFactoryMaker),
}

/// Makes the table of cases out of their list.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_table {
    (() $($group:ident { $($name:ident,)* })*) => {
        /// Every case.
        pub const CASES: &[Case] = &[
            $($(Case { group: stringify!($group), name: stringify!($name), run: $group::$name },)*)*
        ];
    };
}

crate::conformance_case_list!(conformance_table());

/// Runs the case of this group and name.
pub fn run(group: &str, name: &str, maker: &dyn EngineFactoryMaker) {
    let case = CASES.iter().find(|case| case.group == group && case.name == name);
    (case.expect("a case of the list").run)(maker);
}

/// Makes one `#[test]` for each case of the suite, in modules by group. The argument is an expression for the maker.
#[macro_export]
macro_rules! conformance_tests {
    ($maker:expr) => {
        $crate::conformance_case_list!(conformance_test_functions($maker));
    };
}

/// Makes the test functions out of the list of cases.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_test_functions {
    (($maker:expr) $($group:ident { $($name:ident,)* })*) => {
        $(mod $group {
            #[allow(unused_imports)]
            use super::*;

            $(#[test]
            fn $name() {
                $crate::conformance::run(stringify!($group), stringify!($name), &$maker);
            })*
        })*
    };
}
