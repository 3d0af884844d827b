//! How the members of a deployment prove to each other that they are members: by the key that they share, or by certificates.
//!
//! A certificate is a member's if its subject has the same organisation (`O`), units (`OU`) and domain components (`DC`) as the node's own, and
//! at least one of these. A deployment goes from keys to certificates in steps, one node after the other: first a node takes
//! both, then it sends the other, then it takes nothing else.

use std::collections::BTreeSet;

/// How members authenticate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClusterAuthMode {
    /// Nobody has said so: by the key, if there is one.
    #[default]
    Undefined,
    /// By the key alone.
    KeyFile,
    /// A node sends the key and takes both.
    SendKeyFile,
    /// A node sends its certificate and takes both.
    SendX509,
    /// By certificates alone.
    X509,
}

impl ClusterAuthMode {
    /// By its name.
    pub fn parse(name: &str) -> Option<ClusterAuthMode> {
        use ClusterAuthMode::{KeyFile, SendKeyFile, SendX509, Undefined, X509};
        [Undefined, KeyFile, SendKeyFile, SendX509, X509].into_iter().find(|mode| mode.name() == name)
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            ClusterAuthMode::Undefined => "undefined",
            ClusterAuthMode::KeyFile => "keyFile",
            ClusterAuthMode::SendKeyFile => "sendKeyFile",
            ClusterAuthMode::SendX509 => "sendX509",
            ClusterAuthMode::X509 => "x509",
        }
    }

    /// Is the key a proof?
    pub fn allows_key(self) -> bool {
        self != ClusterAuthMode::X509
    }

    /// Is a member's certificate a proof?
    pub fn allows_certificate(self) -> bool {
        matches!(self, ClusterAuthMode::SendKeyFile | ClusterAuthMode::SendX509 | ClusterAuthMode::X509)
    }

    /// May a running node go on in this mode? One step at a time.
    pub fn may_become(self, next: ClusterAuthMode) -> bool {
        matches!(
            (self, next),
            (ClusterAuthMode::SendKeyFile, ClusterAuthMode::SendX509)
                | (ClusterAuthMode::SendX509, ClusterAuthMode::X509)
        )
    }
}

/// What the subjects of members have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberNames(BTreeSet<(String, String)>);

impl MemberNames {
    /// Of the node's own subject; none if it says nothing of where it belongs.
    pub fn of(subject: &str) -> Option<MemberNames> {
        let names = attributes(subject);
        (!names.is_empty()).then_some(MemberNames(names))
    }

    /// Is this a member's subject?
    pub fn include(&self, subject: &str) -> bool {
        attributes(subject) == self.0
    }
}

/// The parts of a subject, as RFC 2253 writes it, that say where it belongs.
fn attributes(subject: &str) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    for part in parts(subject) {
        if let Some((kind, value)) = part.split_once('=')
            && matches!(kind.trim(), "O" | "OU" | "DC")
        {
            found.insert((kind.trim().to_owned(), value.to_owned()));
        }
    }
    found
}

/// Splits at commas and plus signs that no backslash protects.
fn parts(subject: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut is_protected = false;
    for character in subject.chars() {
        if !is_protected && matches!(character, ',' | '+') {
            parts.push(String::new());
            continue;
        }
        is_protected = !is_protected && character == '\\';
        if let Some(part) = parts.last_mut() {
            part.push(character);
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u10_members_have_their_organisation_in_common() {
        let own = MemberNames::of("CN=node1,OU=db,O=Pando\\, Inc.,C=DE").unwrap();
        assert!(own.include("C=US,O=Pando\\, Inc.,OU=db,CN=node2"));
        for other in ["CN=node1,O=Pando\\, Inc.", "CN=x,OU=db,O=Pando", "CN=x,OU=db,OU=db2,O=Pando\\, Inc.", "", "CN=x"]
        {
            assert!(!own.include(other), "{other}");
        }
        assert!(MemberNames::of("CN=node1,C=DE").is_none());
    }

    #[test]
    fn u10_modes_change_one_step_at_a_time() {
        use ClusterAuthMode::{KeyFile, SendKeyFile, SendX509, X509};
        assert!(SendKeyFile.may_become(SendX509) && SendX509.may_become(X509));
        assert!(!KeyFile.may_become(X509) && !X509.may_become(SendX509) && !SendKeyFile.may_become(X509));
        assert!(KeyFile.allows_key() && !KeyFile.allows_certificate());
        assert!(X509.allows_certificate() && !X509.allows_key());
        assert_eq!(ClusterAuthMode::parse("sendX509"), Some(SendX509));
        assert_eq!(ClusterAuthMode::parse("sendx"), None);
    }
}
