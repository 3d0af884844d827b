//! BSON documents as the server handles them: raw bytes, validated once, seen in place.
//!
//! A document is never turned into a tree of objects. `DocRef` and `Value` are views into the bytes that came from a
//! client or from disk; builders write new bytes. On top of that: MongoDB's order of values, its arithmetic, its dotted
//! paths, and the texts in which it shows documents.
//!
//! Invariants:
//! - Bytes from outside enter through `parse` alone. Everything else may rely on their structure, and nothing else: text
//!   may be invalid UTF-8, names may repeat, deprecated types occur, and all of it is given back unchanged.
//! - No view panics, whatever its bytes are; on damaged bytes a walk ends early.
//! - `compare` is a total order, and values that it finds equal hash alike.
//!
//! This crate knows nothing of collections, commands or storage.

mod builder;
mod column;
mod compare;
mod convert;
mod decimal;
mod doc;
mod index_hash;
mod insert;
mod macros;
mod number;
mod object_id;
mod owned_value;
mod path;
mod repeated;
mod text;
mod validate;
mod value;
mod value_type;
mod view;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use builder::{ArrayBuilder, DocBuilder, Open};
pub use column::is_column;
pub use compare::{
    Collator, CompareOptions, SharedCollator, StringComparator, compare, compare_docs, compare_numbers, compare_with,
    hash_value, hash_value_with,
};
pub use convert::ToValue;
pub use decimal::{Decimal128, NotADecimal, Parts as DecimalParts, Rounding};
pub use doc::{Array, Doc};
pub use index_hash::{HASH_SEED, hash_element, hash_null};
pub use insert::{
    USER_DEPTH_MAX, check_id, check_user_depth, fill_empty_timestamps, prepare_for_insert, with_id_first,
};
pub use number::Number;
pub use object_id::{NotAnObjectId, ObjectId};
pub use owned_value::{OwnedCodeWithScope, OwnedRegex, OwnedValue};
pub use pando_base::date::{DateParts, iso_8601, parse_iso_8601};
pub use path::{
    FieldPath, LeafArrays, NonLeafArrays, PathOptions, Visit, check_field_name, get_path, get_path_with_indexes,
    visit_path,
};
pub use text::{JsonFormat, doc_from_json, doc_to_json, short_double, value_from_json, value_to_json};
pub use validate::{
    DEPTH_MAX, DEPTH_MOST, INTERNAL_SIZE_BYTES_MAX, Limits, USER_SIZE_BYTES_MAX, depth_max, set_depth_max, too_large,
};
pub use value::Value;
pub use value_type::ValueType;
pub use view::{ArrayRef, DocRef, Element, Elements, RawElement, RawElements};
