//! The handle that the server logs through.

use super::component::{Component, Severity};
use super::line::LogLine;
use super::ring::Ring;
use super::value::LogValue;
use parking_lot::Mutex;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI8, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// The wall clock: milliseconds since 1970.
pub type WallClock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// Where lines go.
pub trait LogSink: Send + Sync {
    /// Takes a line; `json` is the line as JSON, made already.
    fn write(&self, line: &LogLine, json: &str);

    /// Shows, to whoever waits at a terminal, how far a piece of work has come; none when it is over. `id` tells pieces apart.
    fn show_progress(&self, _id: u64, _progress: Option<Progress<'_>>) {}
}

/// How far a piece of work has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// What is done.
    pub what: &'a str,
    /// How much of it was.
    pub done: u64,
    /// How much there is, as far as that is known.
    pub total: u64,
}

impl Progress<'_> {
    /// In hundredths; all of it, if there is nothing to do.
    pub fn percent(&self) -> u64 {
        self.done.saturating_mul(100).checked_div(self.total).unwrap_or(100).min(100)
    }
}

/// A sink for lines that only the rings keep.
pub struct NoSink;

impl LogSink for NoSink {
    fn write(&self, _: &LogLine, _: &str) {}
}

const COMPONENT_COUNT: usize = Component::ALL.len();

/// No verbosity of its own.
const INHERITED: i8 = -1;

/// How much of an attribute is written, in bytes, until a parameter says otherwise.
const ATTRIBUTE_BYTES_MAX: usize = 10 * 1024;

/// A handle of a log. Clones write to the same one.
#[derive(Clone)]
pub struct Log {
    shared: Arc<Shared>,
    context: Arc<str>,
}

struct Shared {
    clock: WallClock,
    sink: Box<dyn LogSink>,
    /// What each component was set to.
    set: Mutex<[i8; COMPONENT_COUNT]>,
    /// What holds for each, parents considered.
    effective: [AtomicI8; COMPONENT_COUNT],
    attribute_bytes_max: AtomicUsize,
    is_quiet: AtomicBool,
    rings: Mutex<Rings>,
}

#[derive(Default)]
struct Rings {
    global: Ring,
    startup_warnings: Ring,
}

impl Log {
    /// A log with this clock that writes there.
    pub fn new(clock: WallClock, sink: Box<dyn LogSink>) -> Log {
        let mut set = [INHERITED; COMPONENT_COUNT];
        set[Component::Default.index()] = 0;
        let shared = Shared {
            clock,
            sink,
            set: Mutex::new(set),
            effective: [const { AtomicI8::new(0) }; COMPONENT_COUNT],
            attribute_bytes_max: AtomicUsize::new(ATTRIBUTE_BYTES_MAX),
            is_quiet: AtomicBool::new(false),
            rings: Mutex::default(),
        };
        Log { shared: Arc::new(shared), context: Arc::from("main") }
    }

    /// A log that says nothing to anybody; its clock stands still.
    pub fn silent() -> Log {
        Log::new(Arc::new(|| 0), Box::new(NoSink))
    }

    /// The same log for another speaker.
    pub fn with_context(&self, context: impl Into<Arc<str>>) -> Log {
        Log { shared: Arc::clone(&self.shared), context: context.into() }
    }

    /// Makes this the log of the process, unless there is one; says whether it was done.
    pub fn install(self) -> bool {
        PROCESS_LOG.set(self).is_ok()
    }

    /// The log of the process; a silent one if none was installed.
    pub fn process() -> Log {
        PROCESS_LOG.get().cloned().unwrap_or_else(Log::silent)
    }

    /// Whether a line of this kind is written.
    #[inline]
    pub fn is_enabled(&self, component: Component, severity: Severity) -> bool {
        let effective = self.shared.effective[component.index()].load(Ordering::Relaxed);
        i16::from(severity.verbosity()) <= i16::from(effective)
    }

    /// Writes a line. It does not ask whether the line is wanted; [`log!`](crate::log!) does.
    pub fn write(
        &self,
        severity: Severity,
        component: Component,
        id: i32,
        message: &'static str,
        attributes: Vec<(&'static str, LogValue)>,
    ) {
        self.write_line(self.line(severity, component, id, message, attributes));
    }

    /// Writes a warning that shells show when they connect.
    pub fn startup_warning(
        &self,
        component: Component,
        id: i32,
        message: &'static str,
        attributes: Vec<(&'static str, LogValue)>,
    ) {
        let line = self.line(Severity::Warning, component, id, message, attributes);
        self.write_line(LogLine { is_startup_warning: true, ..line });
    }

    fn line(
        &self,
        severity: Severity,
        component: Component,
        id: i32,
        message: &'static str,
        attributes: Vec<(&'static str, LogValue)>,
    ) -> LogLine {
        let context = Arc::clone(&self.context);
        let time_ms = self.now_ms();
        LogLine { time_ms, severity, component, id, context, message, attributes, is_startup_warning: false }
    }

    fn write_line(&self, line: LogLine) {
        let json: Arc<str> = line.to_json(self.shared.attribute_bytes_max.load(Ordering::Relaxed)).into();
        self.shared.sink.write(&line, &json);
        let mut rings = self.shared.rings.lock();
        if line.is_startup_warning {
            rings.startup_warnings.push(Arc::clone(&json));
        }
        rings.global.push(json);
    }

    /// Shows how far a piece of work has come, where a person waits; that is no line of the log.
    pub fn show_progress(&self, id: u64, progress: Option<Progress<'_>>) {
        self.shared.sink.show_progress(id, progress);
    }

    /// The wall clock's time now.
    pub fn now_ms(&self) -> u64 {
        (self.shared.clock)()
    }

    /// Sets how much a component says, 0 to 5; `None` for as much as its parent. The root cannot inherit: it falls to 0.
    pub fn set_verbosity(&self, component: Component, verbosity: Option<u8>) {
        let mut set = self.shared.set.lock();
        set[component.index()] = verbosity.map_or(INHERITED, |verbosity| verbosity.min(5) as i8);
        if component == Component::Default {
            set[component.index()] = set[component.index()].max(0);
        }
        // Parents come before their children, so one pass is enough.
        for component in Component::ALL {
            let effective = match set[component.index()] {
                INHERITED => self.shared.effective[component.parent().index()].load(Ordering::Relaxed),
                own => own,
            };
            self.shared.effective[component.index()].store(effective, Ordering::Relaxed);
        }
    }

    /// What a component was set to; `None` if it says as much as its parent.
    pub fn verbosity(&self, component: Component) -> Option<u8> {
        u8::try_from(self.shared.set.lock()[component.index()]).ok()
    }

    /// Sets how much of an attribute is written.
    pub fn set_attribute_bytes_max(&self, bytes_max: usize) {
        self.shared.attribute_bytes_max.store(bytes_max, Ordering::Relaxed);
    }

    /// Has those who log that clients come and go leave it.
    pub fn set_quiet(&self, is_quiet: bool) {
        self.shared.is_quiet.store(is_quiet, Ordering::Relaxed);
    }

    /// How grave it is that a client comes or goes: a detail, if nobody wants to hear of it.
    pub fn client_severity(&self) -> Severity {
        if self.shared.is_quiet.load(Ordering::Relaxed) { Severity::Debug(2) } else { Severity::Info }
    }

    /// The last lines, as JSON.
    pub fn recent_lines(&self) -> Vec<Arc<str>> {
        self.shared.rings.lock().global.lines()
    }

    /// How many lines were written.
    pub fn lines_written(&self) -> u64 {
        self.shared.rings.lock().global.lines_written()
    }

    /// The warnings of start-up, as JSON.
    pub fn startup_warnings(&self) -> Vec<Arc<str>> {
        self.shared.rings.lock().startup_warnings.lines()
    }

    /// Forgets the last lines.
    pub fn clear_recent_lines(&self) {
        self.shared.rings.lock().global.clear();
    }
}

static PROCESS_LOG: OnceLock<Log> = OnceLock::new();

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Log({})", self.context)
    }
}

/// Writes a line, if one of its kind is wanted; otherwise the attributes are not evaluated. The log may be a [`Log`] or a
/// reference to one.
///
/// ```
/// use pando_base::{Component, Log, Severity, log};
/// # let log = Log::silent();
/// log!(log, Severity::Info, Component::Network, 22943, "Connection accepted", "remote" = "10.0.0.1:4711", "connectionId" = 7);
/// ```
#[macro_export]
macro_rules! log {
    ($log:expr, $severity:expr, $component:expr, $id:expr, $message:expr $(, $name:literal = $value:expr)* $(,)?) => {{
        let (log, severity, component) = (&$log, $severity, $component);
        if log.is_enabled(component, severity) {
            log.write(severity, component, $id, $message, ::std::vec![$(($name, ::core::convert::Into::<$crate::LogValue>::into($value))),*]);
        }
    }};
}
