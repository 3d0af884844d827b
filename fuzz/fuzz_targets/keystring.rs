//! See `pando_fuzz::fuzz_keystring`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pando_fuzz::fuzz_keystring(bytes));
