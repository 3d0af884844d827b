//! Families of error codes: what a caller asks before it decides to retry, to close the connection, to give up.

/// A family of codes. A code may be in several, or in none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Category {
    /// The other side could not be reached, or the connection broke.
    NetworkError,
    /// The other side did not answer in time.
    NetworkTimeoutError,
    /// The operation was told to stop: killed, out of time, shut down, stepped down.
    Interruption,
    /// The node was not primary at some point while the command ran.
    NotPrimaryError,
    /// The router's idea of a collection's placement is old.
    StaleShardVersionError,
    /// The request must be sent anew, perhaps elsewhere.
    NeedRetargettingError,
    /// The write was done, but not acknowledged as asked.
    WriteConcernError,
    /// The node is going down.
    ShutdownError,
    /// A scheduled piece of work is told not to run.
    CancellationError,
    /// The message cannot be parsed; the connection cannot go on.
    ConnectionFatalMessageParseError,
    /// Some limit of time was passed.
    ExceededTimeLimitError,
    /// The snapshot asked for is not there.
    SnapshotError,
    /// A participant's answer to prepare that lets the coordinator abort.
    VoteAbortError,
    /// A change stream that met this cannot be resumed.
    NonResumableChangeStreamError,
    /// The same request may succeed if it is sent again.
    RetriableError,
    /// The connection is closed after the answer, so that the client selects a server anew.
    CloseConnectionError,
    /// About the declared API version.
    VersionedAPIError,
    /// The data is not well-formed.
    ValidationError,
    /// A command has an unknown, a missing or a repeated field.
    IDLParseError,
    /// Passes between servers, never to a client.
    InternalOnly,
    /// A tenant is moving.
    TenantMigrationError,
    /// A tenant is moving, and the operation stood in the way.
    TenantMigrationConflictError,
    /// The cursor is gone for good.
    CursorInvalidatedError,
}

impl Category {
    /// The category's bit in a row's mask.
    pub(super) const fn bit(self) -> u32 {
        1 << self as u8
    }
}
