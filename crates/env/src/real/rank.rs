//! The rank of a thread: how much of the processor it gets beside others.
//!
//! Lowering it is everybody's right, taking it back is not: it needs a privilege, or a limit that
//! the administrator has raised (`LimitNICE=` of a service). Whoever is to have it back asks first
//! ([`can_be_restored`]).

/// How much nicer than others a thread becomes: those in a hurry get nine times its share, and run
/// at once when they have something to do.
#[cfg(target_os = "linux")]
const NICER_BY: i32 = 10;

/// What the process was started with.
#[cfg(target_os = "linux")]
fn usual() -> i32 {
    static USUAL: std::sync::OnceLock<i32> = std::sync::OnceLock::new();
    *USUAL.get_or_init(|| rustix::process::getpriority_process(None).unwrap_or(0))
}

/// Lowers the rank of this thread, and of those that it starts, where the system ranks threads one
/// by one.
pub(super) fn stand_back() {
    #[cfg(target_os = "linux")]
    {
        // Without it the thread only takes more of the processor than it should.
        _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), usual() + NICER_BY);
    }
}

/// Takes back what [`stand_back`] gave up; false if the system does not let it.
pub(super) fn restore() -> bool {
    #[cfg(target_os = "linux")]
    return rustix::process::setpriority_process(Some(rustix::thread::gettid()), usual()).is_ok();
    #[cfg(not(target_os = "linux"))]
    return false;
}

/// Whether this process's threads can take their rank back: tried once, by a thread that is good
/// for nothing else.
pub(super) fn can_be_restored() -> bool {
    static CAN: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *CAN.get_or_init(|| {
        let tried = std::thread::Builder::new().name("pando-rank".to_owned()).spawn(|| {
            stand_back();
            restore()
        });
        tried.is_ok_and(|thread| thread.join().unwrap_or(false))
    })
}
