//! The rank of a thread: how much of the processor it gets beside others.
//!
//! Lowering it is everybody's right, taking it back is not: it needs a privilege, or a limit that the administrator has raised
//! (`LimitNICE=` of a service). Whoever is to have it back asks first ([`can_be_restored`]).

/// Every thread in a hurry gets nine times the share of one that has stood back, and runs at once when it has something to do.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// Lowers the rank of this thread, and of those that it starts, where the system ranks threads one by one.
pub(super) fn stand_back() {
    #[cfg(target_os = "linux")]
    {
        // Without it the thread only takes more of the processor than it should.
        _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICENESS);
    }
}

/// Takes back what [`stand_back`] gave up; false if the system does not let it.
pub(super) fn restore() -> bool {
    #[cfg(target_os = "linux")]
    return rustix::process::setpriority_process(Some(rustix::thread::gettid()), 0).is_ok();
    #[cfg(not(target_os = "linux"))]
    return false;
}

/// Whether this process's threads can take their rank back: tried once, by a thread that is good for nothing else.
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
