//! The two hashes behind one type.

use hmac::{KeyInit, Mac};
use sha1::Sha1;
use sha2::{Digest, Sha256};

/// How a client proves who it is with a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mechanism {
    /// With SHA-1, as clients before MongoDB 4.0 do.
    ScramSha1,
    /// With SHA-256.
    ScramSha256,
}

impl Mechanism {
    /// Both, in the order in which they are offered.
    pub const ALL: [Mechanism; 2] = [Mechanism::ScramSha1, Mechanism::ScramSha256];

    /// The name in SASL.
    pub const fn name(self) -> &'static str {
        match self {
            Mechanism::ScramSha1 => "SCRAM-SHA-1",
            Mechanism::ScramSha256 => "SCRAM-SHA-256",
        }
    }

    /// The mechanism of this name.
    pub fn named(name: &str) -> Option<Mechanism> {
        Mechanism::ALL.into_iter().find(|mechanism| mechanism.name() == name)
    }

    /// How many bytes its hash has.
    pub const fn hash_bytes(self) -> usize {
        match self {
            Mechanism::ScramSha1 => 20,
            Mechanism::ScramSha256 => 32,
        }
    }

    /// How many bytes a salt has: the hash with the block number of PBKDF2 fill one block.
    pub const fn salt_bytes(self) -> usize {
        self.hash_bytes() - 4
    }

    /// The hash.
    pub(super) fn hash(self, data: &[u8]) -> Vec<u8> {
        match self {
            Mechanism::ScramSha1 => Sha1::digest(data).to_vec(),
            Mechanism::ScramSha256 => Sha256::digest(data).to_vec(),
        }
    }

    /// The keyed hash.
    pub(crate) fn keyed(self, key: &[u8], data: &[u8]) -> Vec<u8> {
        fn of<M: Mac + KeyInit>(key: &[u8], data: &[u8]) -> Vec<u8> {
            // Keys of any length are taken.
            <M as KeyInit>::new_from_slice(key)
                .map(|mac| mac.chain_update(data).finalize().into_bytes().to_vec())
                .unwrap_or_default()
        }
        match self {
            Mechanism::ScramSha1 => of::<hmac::Hmac<Sha1>>(key, data),
            Mechanism::ScramSha256 => of::<hmac::Hmac<Sha256>>(key, data),
        }
    }

    /// The password, salted and hashed as often as wanted.
    pub(super) fn salted(self, password: &[u8], salt: &[u8], iterations: u32) -> Vec<u8> {
        let mut salted = vec![0; self.hash_bytes()];
        match self {
            Mechanism::ScramSha1 => pbkdf2::pbkdf2_hmac::<Sha1>(password, salt, iterations, &mut salted),
            Mechanism::ScramSha256 => pbkdf2::pbkdf2_hmac::<Sha256>(password, salt, iterations, &mut salted),
        }
        salted
    }
}
