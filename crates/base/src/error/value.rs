//! The error that commands return: a code, a reason, labels for drivers, and fields for the reply.

use super::{Category, ErrorCode};
use std::fmt;
use std::sync::Arc;

/// The result of whatever may end in a reply to a client.
pub type Result<T> = std::result::Result<T, Error>;

/// An error a client may see. One pointer wide. Two are equal if a client cannot tell them apart.
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    code: ErrorCode,
    reason: String,
    labels: Vec<&'static str>,
    details: Vec<u8>,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl PartialEq for Inner {
    fn eq(&self, other: &Inner) -> bool {
        let Inner { code, reason, labels, details, source: _ } = self;
        (code, reason, labels, details) == (&other.code, &other.reason, &other.labels, &other.details)
    }
}

impl Eq for Inner {}

impl Error {
    /// An error of this code. The reason is what people read.
    pub fn new(code: ErrorCode, reason: impl Into<String>) -> Error {
        debug_assert!(code != ErrorCode::OK, "success is not an error");
        Error(Box::new(Inner { code, reason: reason.into(), labels: Vec::new(), details: Vec::new(), source: None }))
    }

    /// An error with a number of its own and no name.
    pub fn location(number: i32, reason: impl Into<String>) -> Error {
        Error::new(ErrorCode::location(number), reason)
    }

    /// A value that is not allowed.
    pub fn bad_value(reason: impl Into<String>) -> Error {
        Error::new(ErrorCode::BadValue, reason)
    }

    /// A value of the wrong type.
    pub fn type_mismatch(reason: impl Into<String>) -> Error {
        Error::new(ErrorCode::TypeMismatch, reason)
    }

    /// Text or a document that does not parse.
    pub fn failed_to_parse(reason: impl Into<String>) -> Error {
        Error::new(ErrorCode::FailedToParse, reason)
    }

    /// A defect of ours.
    pub fn internal(reason: impl Into<String>) -> Error {
        Error::new(ErrorCode::InternalError, reason)
    }

    /// Adds a label, once.
    #[must_use]
    pub fn with_label(mut self, label: &'static str) -> Error {
        if !self.has_label(label) {
            self.0.labels.push(label);
        }
        self
    }

    /// Sets the details: the bytes of a BSON document whose fields are added to the reply.
    #[must_use]
    pub fn with_details(mut self, details: Vec<u8>) -> Error {
        self.0.details = details;
        self
    }

    /// Keeps the error of a lower layer that this one was made from.
    #[must_use]
    pub fn with_source(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Error {
        self.0.source = Some(Arc::new(source));
        self
    }

    /// Puts the code in place of the one there was.
    #[must_use]
    pub fn with_code(mut self, code: ErrorCode) -> Error {
        debug_assert!(code != ErrorCode::OK, "success is not an error");
        self.0.code = code;
        self
    }

    /// Says what was being done when this happened: "prefix :: caused by :: reason".
    #[must_use]
    pub fn context(mut self, prefix: impl fmt::Display) -> Error {
        self.0.reason = format!("{prefix} :: caused by :: {}", self.0.reason);
        self
    }

    /// The code.
    pub fn code(&self) -> ErrorCode {
        self.0.code
    }

    /// The reason, sent as `errmsg`.
    pub fn reason(&self) -> &str {
        &self.0.reason
    }

    /// The labels, in the order they were added.
    pub fn labels(&self) -> &[&'static str] {
        &self.0.labels
    }

    /// True if it carries the label.
    pub fn has_label(&self, label: &str) -> bool {
        self.0.labels.contains(&label)
    }

    /// The details document, if there is one.
    pub fn details(&self) -> Option<&[u8]> {
        (!self.0.details.is_empty()).then_some(&self.0.details)
    }

    /// True if the code is in the category.
    pub fn is(&self, category: Category) -> bool {
        self.0.code.is(category)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.code, self.0.reason)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.0.code, self.0.reason)?;
        if !self.0.labels.is_empty() {
            write!(f, " {:?}", self.0.labels)?;
        }
        if !self.0.details.is_empty() {
            write!(f, " with {} bytes of details", self.0.details.len())?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

/// Context on a result; see [`Error::context`].
pub trait Context<T> {
    /// Puts a prefix before the reason of an error.
    fn context(self, prefix: impl fmt::Display) -> Result<T>;
    /// The same with a prefix that costs something to make.
    fn with_context<D: fmt::Display>(self, prefix: impl FnOnce() -> D) -> Result<T>;
}

impl<T, E: Into<Error>> Context<T> for std::result::Result<T, E> {
    fn context(self, prefix: impl fmt::Display) -> Result<T> {
        self.map_err(|error| error.into().context(prefix))
    }

    fn with_context<D: fmt::Display>(self, prefix: impl FnOnce() -> D) -> Result<T> {
        self.map_err(|error| error.into().context(prefix()))
    }
}

/// Returns an error: `bail!(ErrorCode::BadValue, "no {} here", name)`.
#[macro_export]
macro_rules! bail {
    ($code:expr, $($reason:tt)+) => {
        return ::core::result::Result::Err($crate::Error::new($code, ::std::format!($($reason)+)).into())
    };
}

/// Returns an error unless the condition holds: `ensure!(limit >= 0, ErrorCode::BadValue, "limit is {limit}")`.
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $code:expr, $($reason:tt)+) => {
        if !$condition {
            $crate::bail!($code, $($reason)+);
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_one_pointer_wide() {
        assert_eq!(size_of::<Result<()>>(), size_of::<usize>());
    }

    #[test]
    fn says_its_name_and_reason() {
        let error = Error::new(ErrorCode::NoSuchKey, "no 'x'").with_label("A").with_label("B").with_label("A");
        assert_eq!(error.to_string(), "NoSuchKey: no 'x'");
        assert_eq!(error.labels(), ["A", "B"]);
        assert_eq!(error.details(), None);
        assert_eq!(error.clone().with_details(vec![5, 0, 0, 0, 0]).details(), Some(&[5, 0, 0, 0, 0][..]));
        assert_eq!(Error::location(40353, "path").to_string(), "Location40353: path");
    }

    #[test]
    fn context_is_told_in_front() {
        let failed: Result<()> = Err(Error::bad_value("inner"));
        let error = failed.context("middle").with_context(|| format!("outer {}", 1)).unwrap_err();
        assert_eq!(error.reason(), "outer 1 :: caused by :: middle :: caused by :: inner");
        assert_eq!(error.code(), ErrorCode::BadValue);
    }

    #[test]
    fn macros_return_early() {
        fn check(limit: i32) -> Result<i32> {
            ensure!(limit >= 0, ErrorCode::BadValue, "limit is {limit}");
            if limit > 9 {
                bail!(ErrorCode::Overflow, "limit is {}", limit);
            }
            Ok(limit)
        }
        assert_eq!(check(3), Ok(3));
        assert_eq!(check(-3), Err(Error::bad_value("limit is -3")));
        assert_eq!(check(10).unwrap_err().code(), ErrorCode::Overflow);
    }
}
