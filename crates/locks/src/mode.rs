//! The modes in which a resource is locked, which of them go together, and which includes which.

/// A way to lock a resource. The order is that of strength in reports: a later one is shown in preference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Mode {
    /// Intent shared: something below is read. Keeps X away.
    IS,
    /// Intent exclusive: something below is written. Keeps S and X away.
    IX,
    /// Shared: the whole resource is read. Keeps IX and X away.
    S,
    /// Exclusive: keeps everybody away.
    X,
}

/// How many modes there are.
pub const MODE_COUNT: usize = 4;

/// A set of modes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ModeSet(u8);

impl Mode {
    /// All of them, weakest first.
    pub const ALL: [Mode; MODE_COUNT] = [Mode::IS, Mode::IX, Mode::S, Mode::X];

    /// Whether one operation may hold this mode while another holds `other`.
    pub fn is_compatible_with(self, other: Mode) -> bool {
        !self.conflicts().contains(other)
    }

    /// Whether whoever holds `other` need not ask for this mode any more: `other` keeps away all that this keeps away.
    pub fn is_covered_by(self, other: Mode) -> bool {
        self.conflicts().is_within(other.conflicts())
    }

    /// The weakest mode that covers both. S and IX have only X above them both.
    #[must_use]
    pub fn joined_with(self, other: Mode) -> Mode {
        let covers_both = |mode: &Mode| self.is_covered_by(*mode) && other.is_covered_by(*mode);
        Mode::ALL.into_iter().find(covers_both).unwrap_or(Mode::X)
    }

    /// IS or IX.
    pub fn is_intent(self) -> bool {
        matches!(self, Mode::IS | Mode::IX)
    }

    /// IS or S: nothing is written under it.
    pub fn is_shared(self) -> bool {
        matches!(self, Mode::IS | Mode::S)
    }

    /// The intent that the parent of a resource is locked with.
    #[must_use]
    pub fn intent(self) -> Mode {
        if self.is_shared() { Mode::IS } else { Mode::IX }
    }

    /// The name in `lockInfo` and in messages.
    pub fn name(self) -> &'static str {
        ["IS", "IX", "S", "X"][self.index()]
    }

    /// The letter in currentOp, in the slow query log and in statistics.
    pub fn letter(self) -> &'static str {
        ["r", "w", "R", "W"][self.index()]
    }

    pub(crate) fn index(self) -> usize {
        self as usize
    }

    pub(crate) fn conflicts(self) -> ModeSet {
        const CONFLICTS: [&[Mode]; MODE_COUNT] =
            [&[Mode::X], &[Mode::S, Mode::X], &[Mode::IX, Mode::X], &[Mode::IS, Mode::IX, Mode::S, Mode::X]];
        const SETS: [ModeSet; MODE_COUNT] = {
            let mut sets = [ModeSet(0); MODE_COUNT];
            let mut row = 0;
            while row < MODE_COUNT {
                let mut column = 0;
                while column < CONFLICTS[row].len() {
                    sets[row].0 |= 1 << CONFLICTS[row][column] as u8;
                    column += 1;
                }
                row += 1;
            }
            sets
        };
        SETS[self.index()]
    }
}

impl std::fmt::Display for Mode {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name())
    }
}

impl ModeSet {
    pub(crate) fn with(self, mode: Mode) -> ModeSet {
        ModeSet(self.0 | 1 << mode.index())
    }

    pub(crate) fn contains(self, mode: Mode) -> bool {
        self.0 & (1 << mode.index()) != 0
    }

    pub(crate) fn is_within(self, other: ModeSet) -> bool {
        self.0 & !other.0 == 0
    }

    pub(crate) fn meets(self, other: ModeSet) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<Mode> for ModeSet {
    fn from_iter<I: IntoIterator<Item = Mode>>(modes: I) -> ModeSet {
        modes.into_iter().fold(ModeSet::default(), ModeSet::with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Mode::{IS, IX, S, X};

    #[test]
    fn x9_matrix() {
        // Rows are what is asked for, columns what is held: IS, IX, S, X.
        let matrix = [
            (IS, [true, true, true, false]),
            (IX, [true, true, false, false]),
            (S, [true, false, true, false]),
            (X, [false, false, false, false]),
        ];
        for (asked, row) in matrix {
            assert_eq!(Mode::ALL.map(|held| asked.is_compatible_with(held)), row, "{asked}");
        }
    }

    #[test]
    fn x9_modes_that_cover_others() {
        let covered = [
            (IS, [true, true, true, true]),
            (IX, [false, true, false, true]),
            (S, [false, false, true, true]),
            (X, [false, false, false, true]),
        ];
        for (mode, row) in covered {
            assert_eq!(Mode::ALL.map(|other| mode.is_covered_by(other)), row, "{mode}");
        }
        assert_eq!((IS.joined_with(IX), IX.joined_with(S), S.joined_with(IX), S.joined_with(IS)), (IX, X, X, S));
        assert_eq!(Mode::ALL.map(Mode::intent), [IS, IX, IS, IX]);
    }

    #[test]
    fn x9_letters_of_modes() {
        assert_eq!(Mode::ALL.map(Mode::letter), ["r", "w", "R", "W"]);
        assert_eq!(Mode::ALL.map(Mode::name), ["IS", "IX", "S", "X"]);
    }
}
