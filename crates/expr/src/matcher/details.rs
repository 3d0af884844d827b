//! What a match tells beside yes: the index in an array that fulfilled it.

use bstr::{BStr, BString};

/// How a document matched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MatchDetails {
    array_index: Option<BString>,
}

impl MatchDetails {
    /// The place in the outermost array that the path did not name; what `$` stands for.
    pub fn array_index(&self) -> Option<&BStr> {
        self.array_index.as_ref().map(BStr::new)
    }

    pub(super) fn set(&mut self, index: &BStr) {
        self.array_index = Some(index.to_owned());
    }
}
