//! Names that stand twice in one document.
//!
//! BSON allows it. Whoever reads such a document by a name sees the first or the last of the two,
//! and two readers need not see the same: what decides something must not be written so.

use crate::view::DocRef;
use bstr::{BStr, ByteSlice};

/// So many names are compared one by one; more are sorted.
const FEW: usize = 16;

impl<'a> DocRef<'a> {
    /// A name that two of the fields here have, if there is one. What is inside of the fields is
    /// not looked at.
    pub fn repeated_name(self) -> Option<&'a BStr> {
        let mut seen: [&BStr; FEW] = [b"".as_bstr(); FEW];
        for (count, element) in self.raw_elements().enumerate() {
            let before = seen.get(..count).unwrap_or_default();
            if before.contains(&element.name) {
                return Some(element.name);
            }
            match seen.get_mut(count) {
                Some(place) => *place = element.name,
                None => return self.repeated_among_many(),
            }
        }
        None
    }

    #[cold]
    fn repeated_among_many(self) -> Option<&'a BStr> {
        let mut names: Vec<&BStr> = self.raw_elements().map(|element| element.name).collect();
        names.sort_unstable();
        names.windows(2).find_map(|pair| match pair {
            [one, next] if one == next => Some(*one),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::{Doc, DocBuilder, doc};

    /// A document of these many fields, and one more with the name of the one at a place.
    fn with_repeated(count: usize, repeated: Option<usize>) -> Doc {
        let mut builder = DocBuilder::new();
        (0..count).for_each(|number| builder.append(format!("f{number}"), 1));
        repeated.into_iter().for_each(|number| builder.append(format!("f{number}"), 2));
        builder.finish()
    }

    #[test]
    fn names_that_stand_twice_are_found_in_short_and_long_documents() {
        assert_eq!(doc! {}.view().repeated_name(), None);
        assert_eq!(doc! { "a": 1, "b": { "a": 1 }, "c": ["a", "a"] }.view().repeated_name(), None);
        for count in [1, 2, 15, 16, 17, 18, 100] {
            assert_eq!(with_repeated(count, None).view().repeated_name(), None, "{count}");
            for place in [0, count / 2, count - 1] {
                let found = with_repeated(count, Some(place));
                assert_eq!(found.view().repeated_name().unwrap(), format!("f{place}").as_str(), "{count} {place}");
            }
        }
    }
}
