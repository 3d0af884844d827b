//! Lines to the system's log, by datagrams to its socket (RFC 3164).

use super::LogTarget;
use pando_base::{LogLine, Severity};
use pando_doc::DateParts;
use pando_env::Env;
use std::path::Path;

/// Where the system's log listens.
const SOCKET: &str = "/dev/log";

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The names of facilities, in the order of their numbers.
const FACILITIES: [&str; 12] =
    ["kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv", "ftp"];

/// The first of the facilities local0 to local7.
const FIRST_LOCAL: u8 = 16;

/// The number of a facility: "user", "daemon", "local0".
pub fn syslog_facility(name: &str) -> Option<u8> {
    if let Some(place) = FACILITIES.iter().position(|known| *known == name) {
        return u8::try_from(place).ok();
    }
    let local: u8 = name.strip_prefix("local")?.parse().ok()?;
    (local < 8).then_some(FIRST_LOCAL + local)
}

/// The system's log.
pub struct SyslogSink {
    env: Env,
    facility: u8,
    /// The program's name and number: "mongod.27017[7]".
    tag: String,
}

impl SyslogSink {
    /// Lines of this facility, from a program of this name and number.
    pub fn new(env: &Env, facility: u8, program: &str, process_id: u32) -> SyslogSink {
        SyslogSink { env: env.clone(), facility, tag: format!("{program}[{process_id}]") }
    }

    fn message(&self, line: &LogLine, json: &str) -> String {
        let severity = match line.severity {
            Severity::Fatal => 2,
            Severity::Error => 3,
            Severity::Warning => 4,
            Severity::Info => 6,
            Severity::Debug(_) => 7,
        };
        let priority = u16::from(self.facility) * 8 + severity;
        let parts = DateParts::from_milliseconds(i64::try_from(line.time_ms).unwrap_or(0));
        let month = usize::try_from(parts.month).ok().and_then(|month| MONTHS.get(month.checked_sub(1)?));
        let (month, day) = (month.copied().unwrap_or("Jan"), parts.day);
        let time = format!("{:02}:{:02}:{:02}", parts.hour, parts.minute, parts.second);
        format!("<{priority}>{month} {day:>2} {time} {}: {json}", self.tag)
    }
}

impl LogTarget for SyslogSink {
    fn write(&self, line: &LogLine, json: &str) {
        // A log that takes no lines must not stop the server.
        let _ = self.env.network().send_datagram(Path::new(SOCKET), self.message(line, json).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_base::{Component, Log, LogSink, log};
    use pando_env::simulated::Simulation;
    use std::sync::Arc;

    #[test]
    fn u12_facilities_have_their_numbers() {
        let found = ["kern", "user", "daemon", "local0", "local7", "local8", "nonsense"].map(syslog_facility);
        assert_eq!(found, [Some(0), Some(1), Some(3), Some(16), Some(23), None, None]);
    }

    #[test]
    fn u12_lines_have_the_form_of_the_systems_log() {
        struct Catch(Arc<parking_lot::Mutex<String>>, SyslogSink);
        impl LogSink for Catch {
            fn write(&self, line: &LogLine, json: &str) {
                *self.0.lock() = self.1.message(line, json);
            }
        }
        let caught = Arc::new(parking_lot::Mutex::new(String::new()));
        let sink = SyslogSink::new(&Simulation::new(1).env(), 1, "mongod.27017", 7);
        let log = Log::new(Arc::new(|| 1_136_214_245_678), Box::new(Catch(Arc::clone(&caught), sink)));
        log!(log, Severity::Warning, Component::Control, 1, "hello");
        let line = caught.lock().clone();
        assert!(line.starts_with("<12>Jan  2 15:04:05 mongod.27017[7]: {\"t\":"), "{line}");
    }
}
