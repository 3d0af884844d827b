//! What only the process can do: end, begin a new log file, and read its certificates again.

use crate::logging::LogTarget;
use pando_base::{Error, ErrorCode, Result};
use pando_commands::{Control, ShownCertificate};
use pando_net::Tls;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// How long connections have to finish unless somebody says otherwise.
const PATIENCE_SECONDS: u64 = 15;

/// The switch that ends the process, and the log that it writes.
pub struct ProcessControl {
    is_stopping: AtomicBool,
    patience_ms: AtomicU64,
    stopping: Notify,
    log_target: Arc<dyn LogTarget>,
    tls: Mutex<Option<Arc<Tls>>>,
}

impl ProcessControl {
    /// A process that logs there.
    pub fn new(log_target: Arc<dyn LogTarget>) -> ProcessControl {
        ProcessControl {
            is_stopping: AtomicBool::new(false),
            patience_ms: AtomicU64::new(PATIENCE_SECONDS * 1000),
            stopping: Notify::new(),
            log_target,
            tls: Mutex::default(),
        }
    }

    /// Keeps what encrypts connections, for when its certificates change.
    pub(crate) fn set_tls(&self, tls: Option<Arc<Tls>>) {
        *self.tls.lock() = tls;
    }

    /// Ends when the process is to end.
    pub async fn stopped(&self) {
        loop {
            let notified = self.stopping.notified();
            if self.is_stopping.load(Ordering::SeqCst) {
                return;
            }
            notified.await;
        }
    }

    /// How long connections have to finish.
    pub fn patience(&self) -> Duration {
        Duration::from_millis(self.patience_ms.load(Ordering::SeqCst))
    }

    /// Connections have so long to finish.
    pub(crate) fn set_patience(&self, patience: Duration) {
        let patience_ms = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
        self.patience_ms.store(patience_ms, Ordering::SeqCst);
    }
}

impl Control for ProcessControl {
    fn shut_down(&self, timeout_seconds: u64) {
        self.set_patience(Duration::from_secs(timeout_seconds.min(PATIENCE_SECONDS)));
        self.is_stopping.store(true, Ordering::SeqCst);
        self.stopping.notify_waiters();
    }

    fn rotate_certificates(&self) -> Result<()> {
        let tls = self.tls.lock().clone();
        match tls {
            Some(tls) => tls.rotate(),
            None => Err(Error::new(pando_base::ErrorCode::IllegalOperation, "TLS is not enabled on this server")),
        }
    }

    fn certificate(&self) -> Option<ShownCertificate> {
        let (subject, expires_ms, has_authorities) = self.tls.lock().as_ref()?.shown_certificate();
        Some(ShownCertificate { subject: subject.unwrap_or_default(), expires_ms: expires_ms?, has_authorities })
    }

    fn rotate_logs(&self, kind: Option<&str>) -> Result<()> {
        match kind {
            None | Some("server") => self.log_target.rotate().map_err(|error| {
                let reason = format!("Failed to rotate the log: {error}");
                Error::new(ErrorCode::FileRenameFailed, reason)
            }),
            Some(other) => {
                let reason = format!("Unknown log type for rotate: {other}");
                Err(Error::new(ErrorCode::NoSuchKey, reason))
            }
        }
    }
}
