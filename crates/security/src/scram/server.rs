//! The server's side of an exchange.
//!
//! It is driven with the client's messages and says what to answer. Every failure ends it; the caller makes all failures
//! look alike to the client.

use super::credentials::ScramCredentials;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pando_base::{Error, ErrorCode, Result, ensure};
use subtle::ConstantTimeEq;

/// Longer messages are refused unread; what clients send has some hundred bytes.
const MESSAGE_BYTES_MAX: usize = 4096;
/// Shorter nonces of clients are refused.
const NONCE_BYTES_MIN: usize = 4;

/// The first message of a client, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientFirst {
    /// Who it wants to be.
    pub user: String,
    nonce: String,
    bare: String,
    /// What the last message must repeat of the first: the words about channel binding.
    header: String,
}

impl ClientFirst {
    /// Reads it.
    pub fn parse(message: &[u8]) -> Result<ClientFirst> {
        let message = text(message)?;
        let mut parts = message.splitn(3, ',');
        let (Some(binding), Some(identity), Some(bare)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(malformed("the first message has too few parts"));
        };
        ensure!(!binding.starts_with("p="), ErrorCode::BadValue, "Server does not support channel binding");
        ensure!(binding == "y" || binding == "n", ErrorCode::BadValue, "Incorrect SCRAM client message prefix");
        ensure!(!bare.starts_with("m="), ErrorCode::BadValue, "SCRAM mandatory extensions are not supported");
        let mut fields = bare.split(',').filter(|field| !field.is_empty());
        let user = fields.next().and_then(|field| field.strip_prefix("n=")).filter(|user| !user.is_empty());
        let user = decoded_name(user.ok_or_else(|| malformed("the first message names no user"))?)?;
        if !identity.is_empty() {
            let identity = identity.strip_prefix("a=").ok_or_else(|| malformed("Incorrect SCRAM authzid"))?;
            ensure!(
                decoded_name(identity)? == user,
                ErrorCode::BadValue,
                "SCRAM user name does not match the identity that is asked for"
            );
        }
        let nonce = fields.next().and_then(|field| field.strip_prefix("r="));
        let nonce = nonce.filter(|nonce| nonce.len() >= NONCE_BYTES_MIN);
        let nonce = nonce.ok_or_else(|| malformed("the first message has no nonce, or a short one"))?.to_owned();
        let header = format!("{binding},{identity},");
        Ok(ClientFirst { user, nonce, bare: bare.to_owned(), header })
    }
}

/// Commas and equals signs in names are written as `=2C` and `=3D`; nothing else may follow an equals sign.
fn decoded_name(name: &str) -> Result<String> {
    let mut decoded = String::with_capacity(name.len());
    let mut rest = name;
    while let Some((before, after)) = rest.split_once('=') {
        decoded.push_str(before);
        let (character, behind) = match (after.strip_prefix("2C"), after.strip_prefix("3D")) {
            (Some(behind), _) => (',', behind),
            (_, Some(behind)) => ('=', behind),
            _ => return Err(malformed("Invalid SCRAM user name")),
        };
        decoded.push(character);
        rest = behind;
    }
    decoded.push_str(rest);
    Ok(decoded)
}

/// An exchange whose first message was answered.
#[derive(Debug)]
pub struct ScramServer {
    credentials: Vec<ScramCredentials>,
    nonce: String,
    header: String,
    transcript: String,
}

impl ScramServer {
    /// Answers the first message. Several credentials are those of a key that is being changed: each proof is good, but all
    /// must have the same salt and count. The nonce is text without commas that was never used before.
    pub fn begin(first: ClientFirst, credentials: Vec<ScramCredentials>, nonce: &str) -> Result<(ScramServer, String)> {
        let Some(shown) = credentials.first() else {
            return Err(Error::new(ErrorCode::AuthenticationFailed, "there are no credentials"));
        };
        let nonce = format!("{}{nonce}", first.nonce);
        let answer = format!("r={nonce},s={},i={}", STANDARD.encode(&shown.salt), shown.iterations);
        let transcript = format!("{},{answer}", first.bare);
        Ok((ScramServer { credentials, nonce, header: first.header, transcript }, answer))
    }

    /// Checks the last message: the client's proof. Gives the server's.
    pub fn finish(self, message: &[u8]) -> Result<String> {
        let message = text(message)?;
        let (unproven, proof) = message.rsplit_once(",p=").ok_or_else(|| malformed("the last message has no proof"))?;
        let mut fields = unproven.split(',');
        let binding = fields.next().and_then(|field| field.strip_prefix("c="));
        let binding = binding.and_then(|binding| STANDARD.decode(binding).ok());
        ensure!(
            binding.as_deref() == Some(self.header.as_bytes()),
            ErrorCode::BadValue,
            "the last message speaks of another channel than the first"
        );
        let nonce = fields.next().and_then(|field| field.strip_prefix("r="));
        ensure!(nonce == Some(self.nonce.as_str()), ErrorCode::BadValue, "Incorrect SCRAM client nonce");
        let proof = STANDARD.decode(proof).map_err(|_| malformed("Incorrect SCRAM client proof"))?;
        let transcript = format!("{},{unproven}", self.transcript);
        let proven = self.credentials.iter().find(|credentials| is_proven(credentials, &transcript, &proof));
        let failed = || Error::new(ErrorCode::AuthenticationFailed, "SCRAM authentication failed, storedKey mismatch");
        let credentials = proven.ok_or_else(failed)?;
        let signature = credentials.mechanism.keyed(&credentials.server_key, transcript.as_bytes());
        Ok(format!("v={}", STANDARD.encode(signature)))
    }
}

/// Does the proof show knowledge of the password? Takes the same time whether it does or not.
fn is_proven(credentials: &ScramCredentials, transcript: &str, proof: &[u8]) -> bool {
    let mechanism = credentials.mechanism;
    let signature = mechanism.keyed(&credentials.stored_key, transcript.as_bytes());
    if proof.len() != signature.len() {
        return false;
    }
    let client_key: Vec<u8> = proof.iter().zip(&signature).map(|(proof, signature)| proof ^ signature).collect();
    mechanism.hash(&client_key).ct_eq(&credentials.stored_key).into()
}

fn text(message: &[u8]) -> Result<&str> {
    ensure!(message.len() <= MESSAGE_BYTES_MAX, ErrorCode::BadValue, "the SASL message is too long");
    std::str::from_utf8(message).map_err(|_| malformed("the SASL message is not UTF-8"))
}

fn malformed(reason: &str) -> Error {
    Error::bad_value(reason)
}
