//! The client's side of an exchange: for members of a deployment, which authenticate to each other, and for tests.

use super::hash::Mechanism;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pando_base::{Error, ErrorCode, Result, ensure};
use subtle::ConstantTimeEq;

/// A client in an exchange.
#[derive(Debug)]
pub struct ScramClient {
    mechanism: Mechanism,
    password: String,
    nonce: String,
    bare: String,
    signature: Vec<u8>,
}

impl ScramClient {
    /// Begins: gives the first message. The password is digested or prepared as the mechanism wants.
    pub fn begin(mechanism: Mechanism, user: &str, password: &str, nonce: &str) -> (ScramClient, String) {
        let bare = format!("n={},r={nonce}", user.replace('=', "=3D").replace(',', "=2C"));
        let first = format!("n,,{bare}");
        let (password, nonce) = (password.to_owned(), nonce.to_owned());
        (ScramClient { mechanism, password, nonce, bare, signature: Vec::new() }, first)
    }

    /// Answers the server's first message with the proof.
    pub fn prove(&mut self, message: &str) -> Result<String> {
        let mut fields = message.split(',');
        let mut field = |prefix: &str| fields.next().and_then(|field| field.strip_prefix(prefix));
        let (nonce, salt, iterations) = (field("r="), field("s="), field("i="));
        let salt = salt.and_then(|salt| STANDARD.decode(salt).ok());
        let iterations: Option<u32> = iterations.and_then(|count| count.parse().ok());
        let (Some(nonce), Some(salt), Some(iterations)) = (nonce, salt, iterations) else {
            return Err(refused("the server's first message makes no sense"));
        };
        ensure!(
            nonce.len() > self.nonce.len() && nonce.starts_with(&self.nonce),
            ErrorCode::AuthenticationFailed,
            "the server's nonce is not for this exchange"
        );
        let mechanism = self.mechanism;
        let unproven = format!("c={},r={nonce}", STANDARD.encode("n,,"));
        let transcript = format!("{},{message},{unproven}", self.bare);
        let salted = mechanism.salted(self.password.as_bytes(), &salt, iterations.max(1));
        let client_key = mechanism.keyed(&salted, b"Client Key");
        let signature = mechanism.keyed(&mechanism.hash(&client_key), transcript.as_bytes());
        let proof: Vec<u8> = client_key.iter().zip(&signature).map(|(key, signature)| key ^ signature).collect();
        let server_key = mechanism.keyed(&salted, b"Server Key");
        self.signature = mechanism.keyed(&server_key, transcript.as_bytes());
        Ok(format!("{unproven},p={}", STANDARD.encode(proof)))
    }

    /// Checks the server's proof.
    pub fn verify(&self, message: &str) -> Result<()> {
        let signature = message.strip_prefix("v=").and_then(|signature| STANDARD.decode(signature).ok());
        let is_right = signature.is_some_and(|signature| signature.ct_eq(&self.signature).into());
        ensure!(is_right, ErrorCode::AuthenticationFailed, "the server does not know the password");
        Ok(())
    }
}

fn refused(reason: &str) -> Error {
    Error::new(ErrorCode::AuthenticationFailed, reason)
}
