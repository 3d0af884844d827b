//! Keys whose bytes sort as MongoDB sorts values.
//!
//! An index compares keys with `memcmp`, so a key is written such that the order of the bytes is the order of the values:
//! first by canonical type, then within the type, numbers of all four types by value. The format is MongoDB's KeyString,
//! byte for byte, because it shows outside: in change streams' resume tokens and in `$_internalKeyStringValue`.
//!
//! ```text
//! key       = component* end [record id]
//! component = type byte, value                 (all inverted if the component descends)
//! end       = 04 | 01 before | FE after        (never inverted)
//! ```
//!
//! What is equal has the same bytes. Which of several equal values was written is kept beside the key, as [`TypeBits`].
//!
//! Invariants:
//!
//! * For keys of one [`KeyOrdering`] and [`Version`] the order of bytes is `pando_doc::compare` component by component,
//!   turned around where the component descends.
//! * No key is a proper prefix of another with as many components, and no component of another; so a record id behind the
//!   key, a discriminator, or one more component never disturbs the order.
//! * A key and its type bits give back the values as they were written, except for the payload and sign of NaN and for
//!   non-canonical decimals. Collated strings come back as their sort keys.
//! * Nothing here panics on bytes from disk or from a client.
//!
//! This crate must not know tables, indexes or collections.

mod buffer;
mod builder;
mod canonical;
mod components;
mod decode;
mod encode;
mod error;
mod key_string;
mod number;
mod ordering;
mod reader;
mod record_id;
mod type_bits;

#[cfg(test)]
mod tests;

pub use buffer::{KeyBuffer, StackBuffer};
pub use builder::{Builder, HeapBuilder, PooledBuilder, StackBuilder};
pub use components::{Components, component_count, components, discriminator, key_size, prefix_size};
pub use decode::{Decoder, to_doc, to_values};
pub use error::{Error, Result};
pub use key_string::KeyString;
pub use ordering::{Discriminator, KeyOrdering, Version};
pub use pando_base::RecordIdKind;
pub use record_id::{decode_record_id_at_end, size_without_record_id, split_record_id};
pub use type_bits::{EncodedTypeBits, TypeBits, TypeBitsReader};
