//! What a client may ask for as an index: pure functions over specifications.
//!
//! A specification passes three gates. [`validate_index_spec`] checks fields, types and the key pattern by themselves.
//! [`complete_index_spec`] brings it into the form that is stored, with what the collection and the plugin add.
//! [`compare_with_existing`] tells whether the collection has it already, or something that conflicts with it.
//!
//! Whether a partial filter or a projection makes sense is checked by those who can parse them.

mod complete;
mod conflict;
mod expiry;
mod key_pattern;
mod signature;
#[cfg(test)]
mod tests;
mod validate;
mod wildcard_projection;

pub use complete::{complete_index_spec, default_id_index_spec};
pub use conflict::{INDEXES_MAX, SpecFit, compare_with_existing};
pub use expiry::{FAIL_POINTS, is_expiry_usable, with_usable_expiry};
pub use key_pattern::{default_index_name, validate_key_pattern};
pub use validate::{INDEX_VERSION, known_fields_of_index, validate_id_index_spec, validate_index_spec};

/// `expireAfterSeconds` where it was given, but is no number that could be used: such an index never expires anything.
pub const EXPIRE_AFTER_SECONDS_INACTIVE: i32 = i32::MAX;
