//! MongoDB's error codes: one row each, the number and the name that clients see.

macro_rules! error_codes {
    ($($(#[$doc:meta])* $name:ident = $number:literal),* $(,)?) => {
        /// A numbered error of MongoDB's table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs)]
        #[non_exhaustive]
        pub enum ErrorCode { $($(#[$doc])* $name = $number),* }

        impl ErrorCode {
            /// Every row of the table.
            pub const ALL: &'static [ErrorCode] = &[$(ErrorCode::$name),*];

            /// The name sent as `codeName`.
            pub const fn name(self) -> &'static str {
                match self { $(ErrorCode::$name => stringify!($name)),* }
            }
        }
    };
}

error_codes! {
    InternalError = 1,
    BadValue = 2,
    NoSuchKey = 4,
    UnknownError = 8,
    IllegalOperation = 20,
    NamespaceNotFound = 26,
    NamespaceExists = 48,
    WriteConflict = 112,
    InterruptedAtShutdown = 11600,
    CappedPositionLost = 136,
    NoMatchingDocument = 47,
    ObjectIsBusy = 314,
    SnapshotTooOld = 239,
    KeyTooLong = 17280,
    DuplicateKey = 11000,
    OutOfDiskSpace = 14031,
    DataCorruptionDetected = 369,
    TemporarilyUnavailable = 365,
    TransactionTooLargeForCache = 388,
    BSONObjectTooLarge = 10334,
    UnrecoverableRollbackError = 127,
    InvalidOptions = 72,
    NotImplemented = 238,
}

impl ErrorCode {
    /// The number sent as `code`.
    pub const fn number(self) -> i32 {
        self as i32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn numbers_are_unique() {
        let numbers: HashSet<i32> = ErrorCode::ALL.iter().map(|code| code.number()).collect();
        assert_eq!(numbers.len(), ErrorCode::ALL.len());
        assert_eq!((ErrorCode::WriteConflict.number(), ErrorCode::WriteConflict.name()), (112, "WriteConflict"));
    }
}
