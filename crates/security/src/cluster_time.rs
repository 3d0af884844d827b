//! Signed cluster times. A client tells every server the newest time it has seen; where clients have to prove who they are, nobody
//! may move the clocks of a deployment by a time that no server has given out. So servers sign the times in their replies, with
//! keys that all of them share (`admin.system.keys`), and check what clients bring back.
//!
//! The proof is an HMAC-SHA1 of the time, rounded up: all times within a second and 65,536 steps share one, which is made once.
//! Keys expire one after the other; the one to sign with is that which expires first after the time.

use hmac::{Hmac, KeyInit, Mac};
use pando_base::{Error, ErrorCode, Result, Timestamp};
use parking_lot::{Mutex, RwLock};
use sha1::Sha1;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a key, and of a proof.
pub const TIME_KEY_BYTES: usize = 20;

/// Times that differ in these bits alone have one proof.
const ROUNDED_BITS: u64 = 0xffff;

/// A key that servers share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeKey {
    /// Its name in proofs.
    pub id: i64,
    /// Its bytes.
    pub key: [u8; TIME_KEY_BYTES],
    /// Times after this are not signed with it.
    pub expires: Timestamp,
}

/// Who says that a time was given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeProof {
    /// The signature.
    pub hash: [u8; TIME_KEY_BYTES],
    /// The key that it was made with.
    pub key_id: i64,
}

/// Signs times and checks proofs.
#[derive(Debug, Default)]
pub struct TimeSigner {
    /// By expiry.
    keys: RwLock<Vec<TimeKey>>,
    /// The last proof that was made, with its rounded time.
    last: Mutex<Option<(u64, TimeProof)>>,
    /// Times up to this are known to be true.
    newest_valid: AtomicU64,
}

impl TimeSigner {
    /// Signs with these from now on.
    pub fn set_keys(&self, mut keys: Vec<TimeKey>) {
        keys.sort_by_key(|key| (key.expires, key.id));
        *self.keys.write() = keys;
        *self.last.lock() = None;
    }

    /// The proof of a time that this server gives out; none without a key for it.
    pub fn sign(&self, time: Timestamp) -> Option<TimeProof> {
        let rounded = time.0 | ROUNDED_BITS;
        let mut last = self.last.lock();
        if let Some((of, proof)) = &*last
            && *of == rounded
        {
            self.newest_valid.fetch_max(time.0, Ordering::Relaxed);
            return Some(*proof);
        }
        let keys = self.keys.read();
        let key = keys.iter().find(|key| key.expires > time)?;
        let proof = TimeProof { hash: proof_of(rounded, key), key_id: key.id };
        *last = Some((rounded, proof));
        self.newest_valid.fetch_max(time.0, Ordering::Relaxed);
        Some(proof)
    }

    /// Checks a time that a client brings. What is not newer than a time that was true needs no proof.
    pub fn verify(&self, time: Timestamp, proof: Option<&TimeProof>) -> Result<()> {
        if time.0 <= self.newest_valid.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mismatch = || Error::new(ErrorCode::TimeProofMismatch, "Proof does not match the cluster time");
        let proof = proof.ok_or_else(mismatch)?;
        let keys = self.keys.read();
        let key = keys.iter().find(|key| key.id == proof.key_id && key.expires > time).ok_or_else(|| {
            let reason =
                format!("Cache Reader No keys found for HMAC that is valid for time: {time} with id: {}", proof.key_id);
            Error::new(ErrorCode::KeyNotFound, reason)
        })?;
        // Every byte is looked at, so that the time it takes tells nothing.
        let expected = proof_of(time.0 | ROUNDED_BITS, key);
        let difference = expected.iter().zip(proof.hash).fold(0, |all, (one, other)| all | (one ^ other));
        if difference != 0 {
            return Err(mismatch());
        }
        self.newest_valid.fetch_max(time.0, Ordering::Relaxed);
        Ok(())
    }

    /// The ids and expiries of the keys that have to be made: there is one for now, and one for after that.
    pub fn missing(&self, now: Timestamp, interval_seconds: u32) -> Vec<(i64, Timestamp)> {
        let after = |time: Timestamp| Timestamp::new(time.seconds().saturating_add(interval_seconds), 0);
        let keys = self.keys.read();
        let mut valid = keys.iter().filter(|key| key.expires > now);
        let id = i64::try_from(now.0).unwrap_or(i64::MAX - 1);
        match (valid.next(), valid.next()) {
            (Some(_), Some(_)) => Vec::new(),
            (Some(only), None) => vec![(id, after(only.expires))],
            (None, _) => vec![(id, after(now)), (id + 1, after(after(now)))],
        }
    }
}

fn proof_of(rounded: u64, key: &TimeKey) -> [u8; TIME_KEY_BYTES] {
    // Keys of any length are taken.
    let made = <Hmac<Sha1> as KeyInit>::new_from_slice(&key.key);
    made.map(|mac| mac.chain_update(rounded.to_be_bytes()).finalize().into_bytes().into()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: i64, expires_seconds: u32) -> TimeKey {
        TimeKey { id, key: [id as u8; TIME_KEY_BYTES], expires: Timestamp::new(expires_seconds, 0) }
    }

    #[test]
    fn s13_a_time_that_was_signed_is_believed_and_a_forged_one_is_not() {
        let (signer, other) = (TimeSigner::default(), TimeSigner::default());
        assert_eq!(signer.sign(Timestamp::new(5, 1)), None, "without keys there is no proof");
        signer.set_keys(vec![key(2, 200), key(1, 100)]);
        other.set_keys(vec![key(1, 100), key(2, 200)]);
        let time = Timestamp::new(50, 3);
        let proof = signer.sign(time).unwrap();
        assert_eq!(proof.key_id, 1, "the key that expires first");
        assert_eq!(other.verify(time, Some(&proof)), Ok(()));
        let code = |outcome: Result<()>| outcome.unwrap_err().code();
        let later = Timestamp::new(60, 1);
        assert_eq!(code(other.verify(later, Some(&proof))), ErrorCode::TimeProofMismatch);
        assert_eq!(code(other.verify(later, None)), ErrorCode::TimeProofMismatch);
        assert_eq!(code(other.verify(later, Some(&TimeProof { key_id: 9, ..proof }))), ErrorCode::KeyNotFound);
        assert_eq!(code(other.verify(Timestamp::new(150, 1), Some(&proof))), ErrorCode::KeyNotFound, "it has expired");
        // What is older than a time that was true moves nothing.
        assert_eq!(other.verify(Timestamp::new(49, 1), None), Ok(()));
    }

    #[test]
    fn s13_keys_are_made_ahead_of_their_time() {
        let signer = TimeSigner::default();
        let now = Timestamp::new(1000, 5);
        let made = signer.missing(now, 100);
        assert_eq!(made.iter().map(|(_, expires)| expires.seconds()).collect::<Vec<_>>(), [1100, 1200]);
        assert!(made[0].0 != made[1].0);
        signer.set_keys(vec![key(1, 1100), key(2, 1200)]);
        assert_eq!(signer.missing(now, 100), []);
        let later = Timestamp::new(1150, 1);
        assert_eq!(signer.missing(later, 100).len(), 1);
        assert_eq!(signer.sign(later).unwrap().key_id, 2);
    }
}
