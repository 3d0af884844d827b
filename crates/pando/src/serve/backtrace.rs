//! What is left of a defect: where `backtraceLogFile` says, the backtrace of a thread that panicked. Those who start servers and look for
//! the file afterwards see that one has failed, also if it went on.

use pando_env::{Env, OpenMode};
use std::backtrace::Backtrace;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// A thread of the process has panicked.
static HAS_FAILED: AtomicBool = AtomicBool::new(false);

/// Notes panics from now on.
pub(super) fn watch() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        HAS_FAILED.store(true, Ordering::Relaxed);
        before(panic);
    }));
}

/// Whether a thread has panicked since [`watch`].
pub(super) fn has_failed() -> bool {
    HAS_FAILED.load(Ordering::Relaxed)
}

/// Has panics written to the file, after what was told of them before. The first one counts: it is the cause.
pub(super) fn keep_in(env: &Env, path: &str) {
    if path.is_empty() {
        return;
    }
    let (env, path) = (env.clone(), PathBuf::from(path));
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let text = format!("{panic}\n{}\n", Backtrace::force_capture());
        // Nobody is left who could do something about a file that cannot be written.
        let _ = env.disk().open(&path, OpenMode::CreateNew).and_then(|file| file.write_at(text.as_bytes(), 0));
        before(panic);
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_env::simulated::Simulation;

    #[test]
    fn u12_the_first_backtrace_is_kept() {
        let env = Simulation::new(1).env();
        keep_in(&env, "");
        keep_in(&env, "defect.stacktrace");
        for reason in ["the cause", "what followed"] {
            assert!(std::panic::catch_unwind(|| panic!("{reason}")).is_err());
        }
        drop(std::panic::take_hook());
        let kept = env.disk().read_all(&PathBuf::from("defect.stacktrace")).unwrap();
        let kept = String::from_utf8(kept).unwrap();
        assert!(kept.contains("the cause") && kept.contains("backtrace") && !kept.contains("what followed"), "{kept}");
    }
}
