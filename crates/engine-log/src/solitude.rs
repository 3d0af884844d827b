//! Whether anything else happens on the node while a lone committer waits for the disk.
//!
//! If nothing does, it may wait on its worker, although nobody watches the sockets then; handing the worker over to another thread costs a quarter of an
//! insert's processor time. It is found out by trying: while the worker is handed over, whatever comes wakes a worker. When nothing came in [`TRIES`] flushes in a row,
//! as many are waited for on the worker, then one is handed over again. So whoever comes meets few flushes that hold it up, each of them short; and if
//! others come so seldom that hardly a flush meets them, hardly one is held up.

use std::sync::atomic::{AtomicU32, Ordering};

/// So many flushes in a row show that nothing else happens, and so many are taken on trust.
const TRIES: u32 = 16;

/// See the module. Used by who leads a flush; where the leader changes two may use it at once, and at worst one flush is counted wrongly.
#[derive(Default)]
pub(crate) struct Solitude {
    /// So many in a row met nobody, up to [`TRIES`].
    undisturbed: AtomicU32,
    /// So many may be taken on trust.
    trusted: AtomicU32,
}

impl Solitude {
    /// Whether the next flush may be waited for on the worker. Called once for each.
    pub(crate) fn is_likely(&self) -> bool {
        let trusted = self.trusted.load(Ordering::Relaxed);
        self.trusted.store(trusted.saturating_sub(1), Ordering::Relaxed);
        trusted > 0
    }

    /// A flush for which the worker was handed over met somebody, or nobody.
    pub(crate) fn note(&self, is_disturbed: bool) {
        let undisturbed = match is_disturbed {
            true => 0,
            false => TRIES.min(self.undisturbed.load(Ordering::Relaxed) + 1),
        };
        self.undisturbed.store(undisturbed, Ordering::Relaxed);
        self.trusted.store(if undisturbed == TRIES { TRIES } else { 0 }, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many flushes are waited for on the worker until one is not.
    fn trusted(solitude: &Solitude) -> usize {
        std::iter::repeat_with(|| solitude.is_likely()).take_while(|is_likely| *is_likely).count()
    }

    #[test]
    fn it_is_shown_by_many_undisturbed_flushes_and_looked_at_again() {
        let solitude = Solitude::default();
        for _ in 1..TRIES {
            solitude.note(false);
            assert_eq!(trusted(&solitude), 0);
        }
        for _ in 0..3 {
            solitude.note(false);
            assert_eq!(trusted(&solitude), TRIES as usize);
        }
    }

    #[test]
    fn one_disturbed_flush_ends_it() {
        let solitude = Solitude::default();
        (0..TRIES).for_each(|_| solitude.note(false));
        assert!(solitude.is_likely());
        solitude.note(true);
        assert_eq!(trusted(&solitude), 0);
        (1..TRIES).for_each(|_| solitude.note(false));
        assert_eq!(trusted(&solitude), 0);
    }
}
