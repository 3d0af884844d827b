//! Which names a command may have declared, by a few bits: most fields of a request are what every command takes, and are passed
//! over without being compared with each declared name.

use bstr::BStr;

const WORDS: usize = 4;
const BITS: usize = WORDS * 64;

/// A set of names that says of a few others that it has them, and never of its own that it does not.
#[derive(Clone, Copy, Debug)]
pub struct Names([u64; WORDS]);

impl Names {
    /// The set of these.
    pub const fn of(names: &[&str]) -> Names {
        let mut words = [0; WORDS];
        let mut place = 0;
        while place < names.len() {
            let bit = bit(names[place].as_bytes());
            words[bit / 64] |= 1 << (bit % 64);
            place += 1;
        }
        Names(words)
    }

    /// False if the name is none of them.
    #[inline]
    pub fn may_have(&self, name: &BStr) -> bool {
        let bit = bit(name);
        self.0.get(bit / 64).is_some_and(|word| word >> (bit % 64) & 1 == 1)
    }
}

/// A number from the length and the outermost bytes.
#[inline]
const fn bit(name: &[u8]) -> usize {
    match name {
        [first, .., last] => (name.len() * 7 + *first as usize * 3 + *last as usize * 5) % BITS,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_knows_its_own_and_few_others() {
        let own = ["filter", "", "a", "sort", "$_resumeAfter"];
        let names = Names::of(&own);
        assert!(own.iter().all(|name| names.may_have(BStr::new(name))));
        let others = ["lsid", "txnNumber", "$db", "autocommit", "readConcern", "writeConcern"];
        assert!(others.iter().all(|name| !names.may_have(BStr::new(name))));
        assert!(!Names::of(&[]).may_have(BStr::new("lsid")));
    }
}
