//! The key that members of a deployment share: a file with one key, or a list of two while the key is being changed.
//!
//! A key is 6 to 1024 characters of base64; blanks do not count. The first key of a list is the one that a member uses
//! itself; the others are only accepted from members that do not know the new one yet.

use crate::scram::{Mechanism, ScramCredentials, digested_password};
use pando_base::{Error, ErrorCode, Result, ensure};

const LENGTH_MIN: usize = 6;
const LENGTH_MAX: usize = 1024;
const KEYS_MAX: usize = 2;
/// The key is long and by chance: there is nothing to guess.
const ITERATIONS: u32 = 10_000;

/// The keys of a file.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyFile {
    keys: Vec<String>,
}

/// Nothing of it belongs into a log.
impl std::fmt::Debug for KeyFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeyFile of {} keys", self.keys.len())
    }
}

impl KeyFile {
    /// Reads the text of a file: one key, or a YAML list.
    pub fn read(text: &str) -> Result<KeyFile> {
        let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let items: Option<Vec<&str>> = lines().map(|line| line.strip_prefix("- ")).collect();
        let keys: Vec<String> = match items.filter(|items| !items.is_empty()) {
            Some(items) => items.into_iter().map(|item| without_blanks(item.trim_matches(['"', '\'', ' ']))).collect(),
            None => vec![without_blanks(text)],
        };
        ensure!(
            keys.len() <= KEYS_MAX,
            ErrorCode::InvalidOptions,
            "Only two keys are supported in the security key file"
        );
        for key in &keys {
            ensure!(
                (LENGTH_MIN..=LENGTH_MAX).contains(&key.len()),
                ErrorCode::InvalidLength,
                "security key has length {}, must be between {LENGTH_MIN} and {LENGTH_MAX} characters",
                key.len()
            );
            let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
            ensure!(key.bytes().all(is_base64), ErrorCode::InvalidPath, "invalid char in key file");
        }
        match keys.is_empty() {
            true => Err(Error::new(ErrorCode::InvalidLength, "the security key file has no key")),
            false => Ok(KeyFile { keys }),
        }
    }

    /// The credentials of members for a mechanism, all with the same salt.
    pub fn credentials(&self, mechanism: Mechanism, salt: &[u8]) -> Vec<ScramCredentials> {
        let password = |key: &String| password_of_key(mechanism, key);
        self.keys.iter().map(|key| ScramCredentials::new(mechanism, &password(key), salt, ITERATIONS)).collect()
    }

    /// The key that this member proves itself with.
    pub fn own_key(&self) -> &str {
        self.keys.first().map_or("", String::as_str)
    }
}

/// The password of the internal user that a key is.
pub fn password_of_key(mechanism: Mechanism, key: &str) -> String {
    match mechanism {
        Mechanism::ScramSha1 => digested_password("__system", key),
        Mechanism::ScramSha256 => key.to_owned(),
    }
}

fn without_blanks(text: &str) -> String {
    text.chars().filter(|character| !character.is_whitespace()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u10_key_files_hold_one_key_or_two() {
        assert_eq!(KeyFile::read("abc def\nghi\n").unwrap().keys, ["abcdefghi"]);
        assert_eq!(KeyFile::read("- abcdef\n- \"ghijkl\"\n").unwrap().keys, ["abcdef", "ghijkl"]);
        for bad in ["", "abc", "abcdef!", "- abcdef\n- ghijkl\n- mnopqr"] {
            assert!(KeyFile::read(bad).is_err(), "{bad}");
        }
        assert!(KeyFile::read(&"x".repeat(1025)).is_err());
        assert_eq!(format!("{:?}", KeyFile::read("abcdef").unwrap()), "KeyFile of 1 keys");
    }
}
