//! What a member of a set is doing.

/// The state of a member, by MongoDB's numbers and names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[repr(i32)]
pub enum MemberState {
    /// It has no configuration yet, or is recovering from a crash.
    #[default]
    Startup = 0,
    /// It takes writes.
    Primary = 1,
    /// It follows the primary and serves reads that allow it.
    Secondary = 2,
    /// It has data, but none that may be read.
    Recovering = 3,
    /// It copies all data from another.
    Startup2 = 5,
    /// Nothing is known of it.
    Unknown = 6,
    /// It has no data and only votes.
    Arbiter = 7,
    /// It cannot be reached.
    Down = 8,
    /// It undoes writes that the set never agreed on.
    Rollback = 9,
    /// The configuration does not have it any more.
    Removed = 10,
}

impl MemberState {
    /// The state of this number.
    pub fn from_number(number: i32) -> Option<MemberState> {
        let all = [
            MemberState::Startup,
            MemberState::Primary,
            MemberState::Secondary,
            MemberState::Recovering,
            MemberState::Startup2,
            MemberState::Unknown,
            MemberState::Arbiter,
            MemberState::Down,
            MemberState::Rollback,
            MemberState::Removed,
        ];
        all.into_iter().find(|state| state.number() == number)
    }

    /// The number in `state` and `myState`.
    pub const fn number(self) -> i32 {
        self as i32
    }

    /// The name in `stateStr`.
    pub const fn name(self) -> &'static str {
        match self {
            MemberState::Startup => "STARTUP",
            MemberState::Primary => "PRIMARY",
            MemberState::Secondary => "SECONDARY",
            MemberState::Recovering => "RECOVERING",
            MemberState::Startup2 => "STARTUP2",
            MemberState::Unknown => "UNKNOWN",
            MemberState::Arbiter => "ARBITER",
            MemberState::Down => "DOWN",
            MemberState::Rollback => "ROLLBACK",
            MemberState::Removed => "REMOVED",
        }
    }

    /// May reads be served?
    pub const fn is_readable(self) -> bool {
        matches!(self, MemberState::Primary | MemberState::Secondary)
    }
}
