//! A member's address.

use pando_base::{Error, Result};
use std::fmt;

/// The port where none is given.
pub const DEFAULT_PORT: u16 = 27017;

/// A host name or address, and a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostAndPort {
    /// The name or address, without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl HostAndPort {
    /// An address from its parts.
    pub fn new(host: impl Into<String>, port: u16) -> HostAndPort {
        HostAndPort { host: host.into(), port }
    }

    /// Reads "host", "host:port", "[address]:port".
    pub fn parse(text: &str) -> Result<HostAndPort> {
        let text = text.trim();
        let (host, port) = split(text)?;
        if host.is_empty() {
            return Err(Error::failed_to_parse(format!("Empty host component parsing HostAndPort from \"{text}\"")));
        }
        let port = match port {
            None => DEFAULT_PORT,
            Some(port) => port.parse().ok().filter(|port| *port != 0).ok_or_else(|| {
                let reason = format!("Port number \"{port}\" out of range parsing HostAndPort from \"{text}\"");
                Error::failed_to_parse(reason)
            })?,
        };
        Ok(HostAndPort::new(host, port))
    }

    /// Does it name this very machine, for nobody else?
    pub fn is_localhost(&self) -> bool {
        self.host == "localhost"
            || self.host == "::1"
            || self.host == "anonymous unix socket"
            || self.host.starts_with("127.")
            || self.host.starts_with('/')
    }
}

fn split(text: &str) -> Result<(&str, Option<&str>)> {
    let malformed = || Error::failed_to_parse(format!("Malformed address parsing HostAndPort from \"{text}\""));
    if let Some(rest) = text.strip_prefix('[') {
        let (host, port) = rest.split_once(']').ok_or_else(malformed)?;
        let port = match port {
            "" => None,
            port => Some(port.strip_prefix(':').ok_or_else(malformed)?),
        };
        return Ok((host, port));
    }
    match text.matches(':').count() {
        0 => Ok((text, None)),
        1 => text.split_once(':').map(|(host, port)| (host, Some(port))).ok_or_else(malformed),
        _ => Err(Error::failed_to_parse(format!(
            "More than one ':' detected. If this is an ipv6 address, it needs to be surrounded by '[' and ']'; {text}"
        ))),
    }
}

impl fmt::Display for HostAndPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}
