//! `expireAfterSeconds`: which values can be used, and what is made of those that an old version has stored.
//!
//! Old versions took anything that is a number, NaN too. Such an index stays as it is until the node is primary, which puts it
//! right for the whole set; those who ask are told the value that it will have.

use super::EXPIRE_AFTER_SECONDS_INACTIVE;
use pando_base::FailPoint;
use pando_doc::{Doc, DocBuilder, DocRef};

/// NaN is stored as it was given.
pub(super) static KEEP_AS_GIVEN: FailPoint = FailPoint::new("skipTTLIndexValidationOnCreateIndex");
/// Nothing is said against the value.
pub(super) static SKIP_CHECK: FailPoint =
    FailPoint::new("skipTTLIndexInvalidExpireAfterSecondsValidationForCreateIndex");

/// Have an index stored as an old version would have done.
pub static FAIL_POINTS: &[&dyn pando_base::AnyFailPoint] = &[&KEEP_AS_GIVEN, &SKIP_CHECK];

/// False if the specification lets documents expire after a time that cannot be reckoned with.
pub fn is_expiry_usable(specification: DocRef<'_>) -> bool {
    let Some(seconds) = specification.get("expireAfterSeconds") else { return true };
    let is_nan = seconds.to_double().is_some_and(f64::is_nan);
    !is_nan && (0..=i64::from(i32::MAX)).contains(&seconds.to_i64_or_zero())
}

/// The specification with an expiry that can be used: never, if it had another.
pub fn with_usable_expiry(specification: DocRef<'_>) -> Doc {
    if is_expiry_usable(specification) {
        return specification.to_doc();
    }
    let mut builder = DocBuilder::with_capacity(specification.size_bytes());
    for element in specification.elements() {
        match element.name == "expireAfterSeconds" {
            true => builder.append("expireAfterSeconds", EXPIRE_AFTER_SECONDS_INACTIVE),
            false => builder.append_element(element),
        }
    }
    builder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::doc;

    #[test]
    fn x15_expiries_of_old_versions_become_never() {
        for usable in [doc! { "v": 2 }, doc! { "expireAfterSeconds": 0 }, doc! { "expireAfterSeconds": (i32::MAX) }] {
            assert!(is_expiry_usable(usable.view()));
            assert_eq!(with_usable_expiry(usable.view()), usable);
        }
        for seconds in [f64::NAN, f64::MAX, f64::MIN, -1.0] {
            let old = doc! { "v": 2, "expireAfterSeconds": seconds, "name": "a" };
            assert!(!is_expiry_usable(old.view()), "{seconds}");
            assert_eq!(with_usable_expiry(old.view()), doc! { "v": 2, "expireAfterSeconds": (i32::MAX), "name": "a" });
        }
    }
}
