//! One fail point.

use super::mode::FailPointMode;
use crate::{OperationContext, Result};
use bytes::Bytes;
use parking_lot::Mutex;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::Notify;

/// A place where a test makes something go wrong. `T` is what its data means.
pub struct FailPoint<T: 'static = ()> {
    name: &'static str,
    decode: fn(&[u8]) -> Result<T>,
    is_on: AtomicBool,
    times_entered: AtomicU64,
    setting: Mutex<Setting<T>>,
    /// Told of entries and of new modes.
    changed: Notify,
}

struct Setting<T> {
    mode: FailPointMode,
    /// The data as it was given, and as it is meant; there as long as the point is on.
    data: Option<FailPointHit<T>>,
    random: SplitMix,
}

/// What a point that did its work was given.
pub struct FailPointHit<T> {
    bytes: Bytes,
    data: Arc<T>,
}

/// What a point shows of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct FailPointStatus {
    /// The mode, with what is left of its count.
    pub mode: FailPointMode,
    /// The data document's bytes.
    pub data: Bytes,
    /// How often it did its work since the process began.
    pub times_entered: u64,
}

impl FailPoint {
    /// A point that needs no data.
    pub const fn new(name: &'static str) -> FailPoint {
        FailPoint::with_data(name, |_| Ok(()))
    }
}

impl<T: Send + Sync> FailPoint<T> {
    /// A point whose data is read so.
    pub const fn with_data(name: &'static str, decode: fn(&[u8]) -> Result<T>) -> FailPoint<T> {
        FailPoint {
            name,
            decode,
            is_on: AtomicBool::new(false),
            times_entered: AtomicU64::new(0),
            setting: Mutex::new(Setting { mode: FailPointMode::Off, data: None, random: SplitMix(0) }),
            changed: Notify::const_new(),
        }
    }

    /// Whether to fail now.
    #[inline]
    pub fn should_fail(&self) -> bool {
        self.is_on() && self.enter(|_| true).is_some()
    }

    /// The data, if it is to fail now.
    #[inline]
    pub fn hit(&self) -> Option<FailPointHit<T>> {
        self.hit_if(|_| true)
    }

    /// The data, if it is to fail now and the predicate, which sees the data, agrees. If it does not, the point was not
    /// entered, and its count stays.
    #[inline]
    pub fn hit_if(&self, predicate: impl FnOnce(&T) -> bool) -> Option<FailPointHit<T>> {
        if self.is_on() { self.enter(predicate) } else { None }
    }

    /// True if it is on in any mode.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    #[cold]
    fn enter(&self, predicate: impl FnOnce(&T) -> bool) -> Option<FailPointHit<T>> {
        let mut setting = self.setting.lock();
        let data = setting.data.clone()?;
        if !predicate(&data) || !setting.weigh() {
            return None;
        }
        if setting.mode == FailPointMode::Off {
            setting.data = None;
            self.is_on.store(false, Ordering::Relaxed);
        }
        self.times_entered.fetch_add(1, Ordering::Relaxed);
        drop(setting);
        self.changed.notify_waiters();
        Some(data)
    }

    /// Sets mode and data, and says how often the point was entered before.
    pub fn set(&self, mode: FailPointMode, data: Bytes, seed: u64) -> Result<u64> {
        let meant = (self.decode)(&data)?;
        let mut setting = self.setting.lock();
        let is_on = mode != FailPointMode::Off;
        setting.mode = mode;
        setting.data = is_on.then(|| FailPointHit { bytes: data, data: Arc::new(meant) });
        setting.random = SplitMix(seed);
        self.is_on.store(is_on, Ordering::Relaxed);
        drop(setting);
        self.changed.notify_waiters();
        Ok(self.times_entered())
    }

    /// Turns it off.
    pub fn turn_off(&self) {
        let mut setting = self.setting.lock();
        (setting.mode, setting.data) = (FailPointMode::Off, None);
        self.is_on.store(false, Ordering::Relaxed);
        drop(setting);
        self.changed.notify_waiters();
    }

    /// How often it did its work.
    pub fn times_entered(&self) -> u64 {
        self.times_entered.load(Ordering::Relaxed)
    }

    /// Ends when the point was entered so often. It is for the caller to be interruptible meanwhile.
    pub async fn entered(&self, times: u64) {
        loop {
            let changed = self.changed.notified();
            if self.times_entered() >= times {
                return;
            }
            changed.await;
        }
    }

    /// If the point is on, enters it and stays until it is off.
    pub async fn pause_while_on(&self) {
        if self.should_fail() {
            self.until_off().await;
        }
    }

    /// Has an operation rest here while the point is on, and shows where it rests.
    pub async fn rest(&self, context: &OperationContext) -> Result<()> {
        self.rest_if(context, |_| true).await
    }

    /// The same, if the predicate, which sees the data, agrees.
    pub async fn rest_if(&self, context: &OperationContext, predicate: impl FnOnce(&T) -> bool) -> Result<()> {
        if self.hit_if(predicate).is_none() {
            return Ok(());
        }
        context.describe(|description| description.fail_point = self.name);
        let rested = context.interruptible(self.until_off()).await;
        context.describe(|description| description.fail_point = "");
        rested
    }

    /// Ends when the point is off: for a place that has entered it.
    pub async fn until_off(&self) {
        loop {
            let changed = self.changed.notified();
            if !self.is_on() {
                return;
            }
            changed.await;
        }
    }
}

impl<T> Setting<T> {
    /// Whether the mode says yes this time.
    fn weigh(&mut self) -> bool {
        match &mut self.mode {
            FailPointMode::Off => false,
            FailPointMode::AlwaysOn => true,
            FailPointMode::Times(left) => {
                *left = left.saturating_sub(1);
                if *left == 0 {
                    self.mode = FailPointMode::Off;
                }
                true
            }
            FailPointMode::Skip(0) => true,
            FailPointMode::Skip(left) => {
                *left -= 1;
                false
            }
            FailPointMode::Probability(probability) => self.random.next_unit() < *probability,
        }
    }
}

impl<T> FailPointHit<T> {
    /// The data document's bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }
}

impl<T> Clone for FailPointHit<T> {
    fn clone(&self) -> FailPointHit<T> {
        FailPointHit { bytes: self.bytes.clone(), data: Arc::clone(&self.data) }
    }
}

impl<T> Deref for FailPointHit<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.data
    }
}

/// Chance from a seed: the SplitMix64 sequence, which is plenty for failing now and then.
struct SplitMix(u64);

impl SplitMix {
    /// A number from 0 up to, but not, 1.
    fn next_unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        (mixed >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// A fail point of any data, as lists hold it.
pub trait AnyFailPoint: Send + Sync {
    /// The name.
    fn name(&self) -> &'static str;
    /// Sets mode and data; see [`FailPoint::set`].
    fn set(&self, mode: FailPointMode, data: Bytes, seed: u64) -> Result<u64>;
    /// Turns it off.
    fn turn_off(&self);
    /// What it shows of itself.
    fn status(&self) -> FailPointStatus;
    /// Ends when the point was entered so often.
    fn entered(&self, times: u64) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

impl<T: Send + Sync> AnyFailPoint for FailPoint<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn set(&self, mode: FailPointMode, data: Bytes, seed: u64) -> Result<u64> {
        FailPoint::set(self, mode, data, seed)
    }

    fn turn_off(&self) {
        FailPoint::turn_off(self);
    }

    fn status(&self) -> FailPointStatus {
        let setting = self.setting.lock();
        let data = setting.data.as_ref().map(|hit| hit.bytes.clone()).unwrap_or_default();
        FailPointStatus { mode: setting.mode, data, times_entered: self.times_entered() }
    }

    fn entered(&self, times: u64) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(FailPoint::entered(self, times))
    }
}
