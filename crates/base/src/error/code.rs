//! A numbered error, and what can be asked of it.

use super::{Category, table::ROWS};
use std::borrow::Cow;
use std::fmt;

/// A numbered error of MongoDB's. Named ones are associated constants (`ErrorCode::WriteConflict`), which also work as
/// patterns; any other number is a "Location".
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ErrorCode(pub(super) i32);

/// A named code.
pub(super) struct Row {
    pub(super) code: ErrorCode,
    pub(super) name: &'static str,
    pub(super) categories: u32,
}

impl ErrorCode {
    /// A code by its number: one place in the code that complains, without a name in the table.
    pub const fn location(number: i32) -> ErrorCode {
        ErrorCode(number)
    }

    /// The number sent as `code`.
    pub const fn number(self) -> i32 {
        self.0
    }

    /// The name sent as `codeName`: the table's, else "Location" and the number.
    pub fn name(self) -> Cow<'static, str> {
        self.named().map_or_else(|| Cow::Owned(format!("Location{}", self.0)), Cow::Borrowed)
    }

    /// The name in the table, if it has one.
    pub fn named(self) -> Option<&'static str> {
        self.row().map(|row| row.name)
    }

    /// The code of this name.
    pub fn from_name(name: &str) -> Option<ErrorCode> {
        ROWS.iter().find(|row| row.name == name).map(|row| row.code)
    }

    /// Every named code, ascending by number.
    pub fn all() -> impl Iterator<Item = ErrorCode> {
        ROWS.iter().map(|row| row.code)
    }

    /// True if the code is in the category.
    pub fn is(self, category: Category) -> bool {
        self.row().is_some_and(|row| row.categories & category.bit() != 0)
    }

    fn row(self) -> Option<&'static Row> {
        ROWS.binary_search_by_key(&self, |row| row.code).ok().map(|index| &ROWS[index])
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.named() {
            Some(name) => f.write_str(name),
            None => write!(f, "Location{}", self.0),
        }
    }
}

impl fmt::Debug for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}({})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_table_ascends_and_names_are_unique() {
        assert!(ROWS.is_sorted_by(|left, right| left.code < right.code));
        let names: HashSet<&str> = ROWS.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), ROWS.len());
        for row in ROWS {
            assert_eq!(ErrorCode::from_name(row.name), Some(row.code));
            assert_eq!(row.code.name(), row.name);
        }
    }

    #[test]
    fn names_and_numbers() {
        assert_eq!(
            (ErrorCode::WriteConflict.number(), ErrorCode::WriteConflict.name().as_ref()),
            (112, "WriteConflict")
        );
        assert_eq!(ErrorCode::location(40415), ErrorCode::IDLUnknownField);
        assert_eq!(ErrorCode::location(17276).name(), "Location17276");
        assert_eq!(ErrorCode::location(17276).named(), None);
        assert_eq!(ErrorCode::from_name("Location17276"), None);
        assert_eq!(format!("{:?}", ErrorCode::DuplicateKey), "DuplicateKey(11000)");
        let matched = match ErrorCode::location(26) {
            ErrorCode::NamespaceExists => "exists",
            ErrorCode::NamespaceNotFound => "not found",
            _ => "other",
        };
        assert_eq!(matched, "not found");
    }

    #[test]
    fn categories() {
        let shutdown = ErrorCode::InterruptedAtShutdown;
        for category in [Category::Interruption, Category::ShutdownError, Category::CancellationError] {
            assert!(shutdown.is(category));
        }
        assert!(!shutdown.is(Category::NotPrimaryError));
        assert!(ErrorCode::MaxTimeMSExpired.is(Category::ExceededTimeLimitError));
        assert!(ErrorCode::CursorNotFound.is(Category::CursorInvalidatedError));
        assert!(!ErrorCode::location(-1).is(Category::Interruption));
    }
}
