//! Time-series collections: measurements into buckets.
//!
//! What a bucket is and which one takes a measurement is told by `pando_timeseries`; here buckets are read and written. A bucket is read
//! in the unit of work that writes it, so writers that meet on one conflict and try again.

mod close;
mod fail_points;
mod indexes;
mod insert;
mod modify;
mod options;
mod partial;
mod search;
mod translate;

pub use fail_points::FAIL_POINTS;
pub use indexes::measurements_index;
pub(crate) use modify::{Deletion, PlannedDeletion};
pub use options::{
    PARAMETERS, STRICT_VALIDATOR_DISABLED, hint_on_buckets, is_out_of_range, is_timeseries, options_of, options_of_view,
};
pub use partial::filter_on_buckets;
