//! Compiles the WiredTiger layer where its header is found, and says so with `cfg(wiredtiger)`.
//!
//! The script `bench` puts what it found into `PANDO_BENCH_WIREDTIGER`, so that this runs again when the library was installed.

use std::path::PathBuf;

const SHIM: &str = "src/peers/wiredtiger.c";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rustc-check-cfg=cfg(wiredtiger)");
    println!("cargo::rerun-if-env-changed=PANDO_BENCH_WIREDTIGER");
    println!("cargo::rerun-if-changed={SHIM}");
    println!("cargo::rerun-if-changed=build.rs");
    if has_header()? {
        cc::Build::new().file(SHIM).opt_level(2).compile("pando_bench_wiredtiger");
        println!("cargo::rustc-link-lib=dylib=wiredtiger");
        println!("cargo::rustc-cfg=wiredtiger");
    }
    Ok(())
}

fn has_header() -> Result<bool, Box<dyn std::error::Error>> {
    let probe = PathBuf::from(std::env::var("OUT_DIR")?).join("has_wiredtiger.c");
    #[allow(clippy::disallowed_methods, reason = "a build script has no environment handle")]
    std::fs::write(&probe, "#include <wiredtiger.h>\n")?;
    Ok(cc::Build::new().file(&probe).cargo_metadata(false).cargo_warnings(false).try_expand().is_ok())
}
