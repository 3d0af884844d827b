//! Which MongoDB this is compatible with.

/// The version that clients see.
pub const VERSION: &str = "7.0.14";
/// The same in parts.
pub const VERSION_PARTS: [i32; 4] = [7, 0, 14, 0];
/// Where the version control stands; clients only show it.
pub const GIT_VERSION: &str = "0000000000000000000000000000000000000000";
/// The oldest wire version that is spoken.
pub const MIN_WIRE_VERSION: i32 = 0;
/// The newest wire version that is spoken.
pub const MAX_WIRE_VERSION: i32 = 21;
