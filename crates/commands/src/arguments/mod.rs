//! The strict parser of requests: declared fields with types, and MongoDB's words about everything
//! else.
//!
//! ```
//! use pando_commands::arguments::SafeLong;
//!
//! pando_commands::arguments! {
//!     /// What `count` takes.
//!     pub struct CountArguments<'a> of "count" {
//!         /// Which documents.
//!         query: Option<pando_doc::DocRef<'a>> = "query",
//!         /// How many to leave out.
//!         skip: SafeLong = "skip" or SafeLong(0),
//!     }
//! }
//! # let body = pando_doc::doc! { "count": "c", "skip": 3.0, "lsid": 1 };
//! let arguments = CountArguments::parse_document(body.view()).unwrap();
//! assert_eq!(arguments.skip.0, 3);
//! ```
//!
//! A field of a plain type is required, an `Option` may be absent, and `or` gives a default. Null
//! and undefined count as absent where they are not of the type. `lenient` before the braces lets
//! unknown fields pass. The first field of a command is its name and not an argument; what every
//! command takes ([`GenericArguments`]) is passed over. A declared struct can be the type of a
//! field of another one (then all its fields are its own).
//!
//! Before any of this dispatch looks for fields that stand twice ([`refuse_repeated`]): what is
//! read of a command has one meaning.

mod cluster;
mod field;
mod generic;
mod names;
mod repeated;
mod types;

pub use field::{Argument, Place, Slot, at_least};
pub use generic::{ApiParameters, GenericArguments, SessionId, is_generic};
#[doc(hidden)]
pub use names::Names;
pub use repeated::{refuse_repeated, refuse_repeated_in_command};
pub use types::{CountLimit, PlainBool, PlainDoc, SafeBool, SafeDouble, SafeInt, SafeLong, Truth};

#[doc(hidden)]
pub use pando_base::Result as ResultOf;
#[doc(hidden)]
pub use pando_doc::{DocRef, Value, ValueType};
#[doc(hidden)]
pub use pando_wire::Command;

/// Declares what a command takes; see the module.
#[macro_export]
macro_rules! arguments {
    ($(#[$doc:meta])* $visible:vis struct $name:ident<$a:lifetime> of $command:literal {
        $($(#[$field_doc:meta])* $field:ident : $type:ty = $wire_name:literal $(or $default:expr)?,)*
    }) => {
        $crate::arguments!(@make true, $(#[$doc])* $visible struct $name<$a> of $command {
            $($(#[$field_doc])* $field : $type = $wire_name $(or $default)?,)*
        });
    };
    ($(#[$doc:meta])* $visible:vis struct $name:ident<$a:lifetime> of $command:literal lenient {
        $($(#[$field_doc:meta])* $field:ident : $type:ty = $wire_name:literal $(or $default:expr)?,)*
    }) => {
        $crate::arguments!(@make false, $(#[$doc])* $visible struct $name<$a> of $command {
            $($(#[$field_doc])* $field : $type = $wire_name $(or $default)?,)*
        });
    };
    (@finish $field:ident, $place:expr) => { $field.finish($place) };
    (@finish $field:ident, $place:expr, $default:expr) => { $field.finish_or($place, || $default) };
    (@make $strict:literal, $(#[$doc:meta])* $visible:vis struct $name:ident<$a:lifetime> of $command:literal {
        $($(#[$field_doc:meta])* $field:ident : $type:ty = $wire_name:literal $(or $default:expr)?,)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        #[allow(dead_code, reason = "some fields are only checked")]
        $visible struct $name<$a> {
            $($(#[$field_doc])* pub $field: $type,)*
            #[doc(hidden)]
            pub _lifetime: ::core::marker::PhantomData<&$a ()>,
        }

        #[allow(unused_variables, unused_mut, dead_code)]
        impl<$a> $name<$a> {
            /// Parses a request, document sequences included.
            $visible fn parse(request: &$a $crate::arguments::Command) -> $crate::arguments::ResultOf<$name<$a>> {
                $name::parse_as(request, $command)
            }

            /// Parses a request of one of several commands that take the same.
            $visible fn parse_as(
                request: &$a $crate::arguments::Command,
                command: &str,
            ) -> $crate::arguments::ResultOf<$name<$a>> {
                let place = $crate::arguments::Place::of_command(command);
                $(let mut $field = $crate::arguments::Slot::<$type>::new($wire_name);)*
                for (name, documents) in request.sequences() {
                    $(if name == $wire_name {
                        $field.take_sequence(&place, documents)?;
                        continue;
                    })*
                    return Err(place.unknown(name));
                }
                const OWN: $crate::arguments::Names = $crate::arguments::Names::of(&[$($wire_name),*]);
                for element in request.body().raw_elements().skip(1) {
                    if OWN.may_have(element.name) {
                        $(if element.name == $wire_name {
                            $field.take(&place, element)?;
                            continue;
                        })*
                    }
                    if $strict && !$crate::arguments::is_generic(element.name) {
                        return Err(place.unknown(element.name));
                    }
                }
                Ok($name {
                    $($field: $crate::arguments!(@finish $field, &place $(, $default)?)?,)*
                    _lifetime: ::core::marker::PhantomData,
                })
            }

            /// Parses a command document alone.
            $visible fn parse_document(body: $crate::arguments::DocRef<$a>) -> $crate::arguments::ResultOf<$name<$a>> {
                $name::parse_fields(body, &$crate::arguments::Place::of_command($command), true)
            }

            /// Parses the fields of a document that stands at a place.
            $visible fn parse_fields(
                body: $crate::arguments::DocRef<$a>,
                place: &$crate::arguments::Place<'_>,
                is_command: bool,
            ) -> $crate::arguments::ResultOf<$name<$a>> {
                $(let mut $field = $crate::arguments::Slot::<$type>::new($wire_name);)*
                for element in body.raw_elements().skip(usize::from(is_command)) {
                    $(if element.name == $wire_name {
                        $field.take(place, element)?;
                        continue;
                    })*
                    if $strict && !(is_command && $crate::arguments::is_generic(element.name)) {
                        return Err(place.unknown(element.name));
                    }
                }
                Ok($name {
                    $($field: $crate::arguments!(@finish $field, place $(, $default)?)?,)*
                    _lifetime: ::core::marker::PhantomData,
                })
            }
        }

        impl<$a> $crate::arguments::Argument<$a> for $name<$a> {
            const TYPES: &'static [$crate::arguments::ValueType] = &[$crate::arguments::ValueType::Document];

            fn read(
                place: &$crate::arguments::Place<'_>,
                value: $crate::arguments::Value<$a>,
            ) -> $crate::arguments::ResultOf<$name<$a>> {
                let body = value.as_document().unwrap_or($crate::arguments::DocRef::EMPTY);
                $name::parse_fields(body, place, false)
            }
        }
    };
}

#[cfg(test)]
mod tests;
