//! See `pando_fuzz::fuzz_wire`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pando_fuzz::fuzz_wire(bytes));
