//! What is stored of a password: enough to check a proof, too little to make one.

use super::hash::Mechanism;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest, Md5};
use pando_base::{Error, ErrorCode, Result};
use pando_doc::{Doc, DocBuilder, DocRef};

/// Fewer iterations are refused, as SCRAM demands.
pub const ITERATIONS_MIN: u32 = 4096;

/// What is stored of a password for one mechanism.
#[derive(Clone, PartialEq, Eq)]
pub struct ScramCredentials {
    /// For which.
    pub mechanism: Mechanism,
    /// How often the password was hashed.
    pub iterations: u32,
    /// With what.
    pub salt: Vec<u8>,
    /// Checks the client's proof.
    pub(super) stored_key: Vec<u8>,
    /// Makes the server's.
    pub(super) server_key: Vec<u8>,
}

/// Nothing of them belongs into a log.
impl std::fmt::Debug for ScramCredentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScramCredentials").field("mechanism", &self.mechanism).finish_non_exhaustive()
    }
}

impl ScramCredentials {
    /// Makes them from a password that is digested or prepared as the mechanism wants. Slow on purpose.
    pub fn new(mechanism: Mechanism, password: &str, salt: &[u8], iterations: u32) -> ScramCredentials {
        let salted = mechanism.salted(password.as_bytes(), salt, iterations.max(1));
        let client_key = mechanism.keyed(&salted, b"Client Key");
        ScramCredentials {
            mechanism,
            iterations,
            salt: salt.to_vec(),
            stored_key: mechanism.hash(&client_key),
            server_key: mechanism.keyed(&salted, b"Server Key"),
        }
    }

    /// Credentials of somebody who is not there. No proof fits them, but to a client they look like those of a user, and
    /// they look the same each time.
    pub fn of_nobody(mechanism: Mechanism, user: &str, secret: &[u8], iterations: u32) -> ScramCredentials {
        let derived = |purpose: &str| mechanism.keyed(secret, format!("{purpose}:{user}").as_bytes());
        let mut salt = derived("salt");
        salt.truncate(mechanism.salt_bytes());
        ScramCredentials { mechanism, iterations, salt, stored_key: derived("stored"), server_key: derived("server") }
    }

    /// Reads the document of one mechanism.
    pub fn read(mechanism: Mechanism, document: DocRef<'_>) -> Result<ScramCredentials> {
        let damaged = || {
            let reason = format!("the {} credentials of a user are damaged", mechanism.name());
            Error::new(ErrorCode::UnsupportedFormat, reason)
        };
        let bytes = |field: &str| {
            let text = document.get(field).and_then(|value| value.as_str())?;
            STANDARD.decode(text).ok().filter(|bytes| !bytes.is_empty())
        };
        let iterations = document.get("iterationCount").and_then(|count| count.as_number());
        let iterations = iterations.and_then(|count| u32::try_from(count.truncated_i64()).ok());
        let is_hash = |bytes: &Vec<u8>| bytes.len() == mechanism.hash_bytes();
        Ok(ScramCredentials {
            mechanism,
            iterations: iterations.filter(|count| *count > 0).ok_or_else(damaged)?,
            salt: bytes("salt").ok_or_else(damaged)?,
            stored_key: bytes("storedKey").filter(is_hash).ok_or_else(damaged)?,
            server_key: bytes("serverKey").filter(is_hash).ok_or_else(damaged)?,
        })
    }

    /// The document of one mechanism.
    pub fn to_doc(&self) -> Doc {
        let mut document = DocBuilder::new();
        document.append("iterationCount", i32::try_from(self.iterations).unwrap_or(i32::MAX));
        document.append("salt", STANDARD.encode(&self.salt));
        document.append("storedKey", STANDARD.encode(&self.stored_key));
        document.append("serverKey", STANDARD.encode(&self.server_key));
        document.finish()
    }
}

/// A password as SCRAM-SHA-1 wants it: the digest that MongoDB has always made.
pub fn digested_password(user: &str, password: &str) -> String {
    let digest = Md5::digest(format!("{user}:mongo:{password}").as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A password as SCRAM-SHA-256 wants it: in its normal form.
pub fn prepared_password(password: &str) -> Result<String> {
    let refused = |_| Error::bad_value("the password contains characters that SASLprep does not allow");
    stringprep::saslprep(password).map(std::borrow::Cow::into_owned).map_err(refused)
}
