//! `doc!` and `array!`: documents written as they look.
//!
//! Values are anything that implements `ToValue`; braces and brackets nest.

/// A document: `doc! { "ok": 1.0, "list": [1, "two"], "sub": { "x": null }, "n": count }`.
#[macro_export]
macro_rules! doc {
    () => { $crate::Doc::new() };
    ($($fields:tt)+) => {{
        let mut builder = $crate::DocBuilder::new();
        $crate::__append_fields!(builder, $($fields)+);
        builder.finish()
    }};
}

/// An array: `array![1, "two", { "three": 3 }]`.
#[macro_export]
macro_rules! array {
    () => { $crate::Array::new() };
    ($($values:tt)+) => {{
        let mut builder = $crate::ArrayBuilder::new();
        $crate::__push_values!(builder, $($values)+);
        builder.finish()
    }};
}

/// One field after the other, into the builder.
#[doc(hidden)]
#[macro_export]
macro_rules! __append_fields {
    ($builder:ident,) => {};
    ($builder:ident, $name:literal : null $(, $($rest:tt)*)?) => {
        $builder.append($name, $crate::Value::Null);
        $crate::__append_fields!($builder, $($($rest)*)?);
    };
    ($builder:ident, $name:literal : { $($fields:tt)* } $(, $($rest:tt)*)?) => {
        $builder.document($name, |_nested| { $crate::__append_fields!(_nested, $($fields)*); });
        $crate::__append_fields!($builder, $($($rest)*)?);
    };
    ($builder:ident, $name:literal : [ $($values:tt)* ] $(, $($rest:tt)*)?) => {
        $builder.array($name, |_nested| { $crate::__push_values!(_nested, $($values)*); });
        $crate::__append_fields!($builder, $($($rest)*)?);
    };
    ($builder:ident, $name:literal : $value:expr $(, $($rest:tt)*)?) => {
        $builder.append($name, $value);
        $crate::__append_fields!($builder, $($($rest)*)?);
    };
    ($builder:ident, ($name:expr) : null $(, $($rest:tt)*)?) => {
        $builder.append($name, $crate::Value::Null);
        $crate::__append_fields!($builder, $($($rest)*)?);
    };
    ($builder:ident, ($name:expr) : { $($fields:tt)* } $(, $($rest:tt)*)?) => {
        $builder.document($name, |_nested| { $crate::__append_fields!(_nested, $($fields)*); });
        $crate::__append_fields!($builder, $($($rest)*)?);
    };
    ($builder:ident, ($name:expr) : [ $($values:tt)* ] $(, $($rest:tt)*)?) => {
        $builder.array($name, |_nested| { $crate::__push_values!(_nested, $($values)*); });
        $crate::__append_fields!($builder, $($($rest)*)?);
    };
    ($builder:ident, ($name:expr) : $value:expr $(, $($rest:tt)*)?) => {
        $builder.append($name, $value);
        $crate::__append_fields!($builder, $($($rest)*)?);
    };
}

/// One value after the other, into the builder.
#[doc(hidden)]
#[macro_export]
macro_rules! __push_values {
    ($builder:ident,) => {};
    ($builder:ident, null $(, $($rest:tt)*)?) => {
        $builder.push($crate::Value::Null);
        $crate::__push_values!($builder, $($($rest)*)?);
    };
    ($builder:ident, { $($fields:tt)* } $(, $($rest:tt)*)?) => {
        $builder.document(|_nested| { $crate::__append_fields!(_nested, $($fields)*); });
        $crate::__push_values!($builder, $($($rest)*)?);
    };
    ($builder:ident, [ $($values:tt)* ] $(, $($rest:tt)*)?) => {
        $builder.array(|_nested| { $crate::__push_values!(_nested, $($values)*); });
        $crate::__push_values!($builder, $($($rest)*)?);
    };
    ($builder:ident, $value:expr $(, $($rest:tt)*)?) => {
        $builder.push($value);
        $crate::__push_values!($builder, $($($rest)*)?);
    };
}
