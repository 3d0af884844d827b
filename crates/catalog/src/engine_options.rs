//! `storageEngine` of collections and indexes: options of the engine by which MongoDB stores, which are checked and kept, and mean
//! nothing here. What is wrong is refused now, so that a script written for MongoDB learns of its mistakes.
//!
//! The names and ranges are those of `WT_SESSION.create`.

use pando_base::{ErrorCode, Result, bail, ensure};
use pando_doc::{DocRef, Value};

/// Engines whose options are known; all have the same.
const ENGINES: [&str; 1] = ["wiredTiger"];
/// An engine that keeps nothing; it takes any options.
const NULL_ENGINE: &str = "devnull";
const CONFIGURATION: &str = "configString";

/// What an option can be.
#[derive(Clone, Copy)]
enum Kind {
    Flag,
    Text,
    Choice(&'static [&'static str]),
    /// A size or count, at least and at most.
    Number(i64, i64),
    /// Options or names in parentheses.
    Group,
}

const ANY: Kind = Kind::Number(0, i64::MAX);
const MEBIBYTE: i64 = 1 << 20;

/// The options of a table, ordered by name.
const OPTIONS: [(&str, Kind); 44] = [
    ("access_pattern_hint", Kind::Choice(&["none", "random", "sequential"])),
    ("allocation_size", Kind::Number(512, 128 * MEBIBYTE)),
    ("app_metadata", Kind::Text),
    ("assert", Kind::Group),
    ("block_allocation", Kind::Choice(&["best", "first"])),
    ("block_compressor", Kind::Text),
    ("cache_resident", Kind::Flag),
    ("checksum", Kind::Choice(&["on", "off", "uncompressed", "unencrypted"])),
    ("colgroups", Kind::Group),
    ("collator", Kind::Text),
    ("columns", Kind::Group),
    ("dictionary", ANY),
    ("encryption", Kind::Group),
    ("exclusive", Kind::Flag),
    ("extractor", Kind::Text),
    ("format", Kind::Choice(&["btree"])),
    ("huffman_key", Kind::Text),
    ("huffman_value", Kind::Text),
    ("ignore_in_memory_cache_size", Kind::Flag),
    ("immutable", Kind::Flag),
    ("import", Kind::Group),
    ("internal_item_max", ANY),
    ("internal_key_max", ANY),
    ("internal_key_truncate", Kind::Flag),
    ("internal_page_max", Kind::Number(512, 512 * MEBIBYTE)),
    ("key_format", Kind::Text),
    ("key_gap", ANY),
    ("leaf_item_max", ANY),
    ("leaf_key_max", ANY),
    ("leaf_page_max", Kind::Number(512, 512 * MEBIBYTE)),
    ("leaf_value_max", ANY),
    ("log", Kind::Group),
    ("lsm", Kind::Group),
    ("memory_page_image_max", ANY),
    ("memory_page_max", Kind::Number(512, 10 * MEBIBYTE * MEBIBYTE)),
    ("os_cache_dirty_max", ANY),
    ("os_cache_max", ANY),
    ("prefix_compression", Kind::Flag),
    ("prefix_compression_min", ANY),
    ("source", Kind::Text),
    ("split_deepen_min_child", Kind::Number(i64::MIN, i64::MAX)),
    ("split_deepen_per_child", Kind::Number(i64::MIN, i64::MAX)),
    ("split_pct", Kind::Number(50, 100)),
    ("tiered_storage", Kind::Group),
];
/// More of them.
const MORE_OPTIONS: [(&str, Kind); 4] = [
    ("type", Kind::Text),
    ("value_format", Kind::Text),
    ("verbose", Kind::Group),
    ("write_timestamp_usage", Kind::Choice(&["always", "key_consistent", "mixed_mode", "never", "none", "ordered"])),
];

/// Refuses options of engines that nobody knows, and unknown or malformed options of one that is known.
pub(crate) fn check_engine_options(engines: DocRef<'_>) -> Result<()> {
    for engine in engines.elements() {
        let name = engine.name;
        let Value::Document(options) = engine.value else {
            bail!(ErrorCode::BadValue, "'storageEngine.{name}' has to be an embedded document.");
        };
        if name == NULL_ENGINE {
            continue;
        }
        ensure!(
            ENGINES.iter().any(|known| name == *known),
            ErrorCode::InvalidOptions,
            "{name} is not a registered storage engine for this server"
        );
        for option in options.elements() {
            let name = option.name;
            ensure!(name == CONFIGURATION, ErrorCode::InvalidOptions, "'{name}' is not a supported option.");
            let Value::String(configuration) = option.value else {
                bail!(ErrorCode::TypeMismatch, "'configString' must be a string.");
            };
            check_configuration(configuration)?;
        }
    }
    Ok(())
}

fn check_configuration(configuration: &[u8]) -> Result<()> {
    ensure!(!configuration.contains(&0), ErrorCode::FailedToParse, "malformed 'configString' value.");
    let text = String::from_utf8_lossy(configuration);
    ensure!(!text.contains("type=lsm"), ErrorCode::location(6627201), "Configuration 'type=lsm' is not supported.");
    match Reader(&text).check() {
        Ok(()) => Ok(()),
        Err(reason) => bail!(ErrorCode::BadValue, "22: Invalid argument. {reason}."),
    }
}

/// What is left of a configuration string.
struct Reader<'a>(&'a str);

impl<'a> Reader<'a> {
    fn check(&mut self) -> std::result::Result<(), String> {
        loop {
            self.0 = self.0.trim_start_matches([',', ' ', '\t', '\n', '\r']);
            if self.0.is_empty() {
                return Ok(());
            }
            let key = self.word()?;
            let value = match self.0.strip_prefix(['=', ':']) {
                Some(rest) => {
                    self.0 = rest;
                    self.word()?
                }
                None => match self.0.starts_with('(') {
                    true => self.word()?,
                    false => "",
                },
            };
            check_option(key.trim_matches('"'), value)?;
        }
    }

    /// Up to the next separator: something quoted, something in parentheses, or a bare word.
    fn word(&mut self) -> std::result::Result<&'a str, String> {
        let (mut depth, mut quoted) = (0_usize, false);
        let mut end = self.0.len();
        for (place, letter) in self.0.char_indices() {
            match letter {
                '"' => quoted = !quoted,
                _ if quoted => {}
                '(' | '[' | '{' if place == 0 || depth > 0 => depth += 1,
                ')' | ']' | '}' if depth > 0 => depth -= 1,
                ',' | '=' | ':' | '(' | ' ' | '\t' | '\n' | '\r' if depth == 0 => {
                    end = place;
                    break;
                }
                _ => {}
            }
        }
        if depth > 0 || quoted {
            return Err(format!("Unbalanced brackets or quotes in '{}'", self.0));
        }
        let (word, rest) = self.0.split_at_checked(end).unwrap_or((self.0, ""));
        if word.is_empty() {
            return Err(format!("Unexpected character in '{}'", self.0));
        }
        self.0 = rest;
        Ok(word)
    }
}

fn check_option(key: &str, value: &str) -> std::result::Result<(), String> {
    let Some((_, kind)) = OPTIONS.iter().chain(&MORE_OPTIONS).find(|(name, _)| *name == key) else {
        return Err(format!("unknown configuration key: '{key}'"));
    };
    let value = value.trim_matches('"');
    let expected = |what: &str| Err(format!("Invalid value for key '{key}': expected {what}"));
    match *kind {
        Kind::Flag if !matches!(value, "" | "true" | "false" | "0" | "1") => expected("a boolean"),
        Kind::Choice(choices) if !choices.contains(&value) => {
            Err(format!("Value '{value}' not a permitted choice for key '{key}'"))
        }
        Kind::Group if !value.starts_with(['(', '[', '{']) => expected("a category or list"),
        Kind::Number(least, most) => match number(value) {
            None => expected("an integer"),
            Some(number) if number < least => Err(format!("Value too small for key '{key}' the minimum is {least}")),
            Some(number) if number > most => Err(format!("Value too large for key '{key}' the maximum is {most}")),
            Some(_) => Ok(()),
        },
        Kind::Flag | Kind::Choice(_) | Kind::Group | Kind::Text => Ok(()),
    }
}

/// A number, perhaps of kibibytes and so on.
fn number(text: &str) -> Option<i64> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let scale = match text.strip_prefix(digits).unwrap_or_default().to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" => 10,
        "M" | "MB" => 20,
        "G" | "GB" => 30,
        "T" | "TB" => 40,
        "P" | "PB" => 50,
        _ => return None,
    };
    digits.parse::<i64>().ok()?.checked_mul(1 << scale)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::{Doc, doc};

    fn code(engines: Doc) -> Option<ErrorCode> {
        check_engine_options(engines.view()).err().map(|error| error.code())
    }

    fn of(configuration: &str) -> Doc {
        doc! { "wiredTiger": { "configString": configuration } }
    }

    #[test]
    fn options_that_wired_tiger_takes_are_taken() {
        for configuration in [
            "",
            "block_compressor=zlib",
            "block_compressor=zstd,leaf_page_max=64KB, checksum=on",
            "prefix_compression",
            "log=(enabled=false),split_pct=90,type=file",
            "columns=(a,b),app_metadata=\"a,b=c\"",
        ] {
            assert_eq!(code(of(configuration)), None, "{configuration}");
        }
        assert_eq!(code(doc! {}), None);
        assert_eq!(code(doc! { "devnull": { "x": 1 } }), None);
    }

    #[test]
    fn options_that_wired_tiger_refuses_are_refused() {
        for configuration in [
            "invalid=bad",
            "unknown",
            "checksum=perhaps",
            "leaf_page_max=1",
            "leaf_page_max=1GB",
            "split_pct=many",
            "prefix_compression=maybe",
            "log=(enabled=false",
            "=1",
        ] {
            assert_eq!(code(of(configuration)), Some(ErrorCode::BadValue), "{configuration}");
        }
        assert_eq!(code(of("a\0b")), Some(ErrorCode::FailedToParse));
        assert_eq!(code(of("type=lsm")), Some(ErrorCode::location(6627201)));
        assert_eq!(code(doc! { "wiredTiger": { "configString": 1 } }), Some(ErrorCode::TypeMismatch));
        assert_eq!(code(doc! { "wiredTiger": { "bad": 1 } }), Some(ErrorCode::InvalidOptions));
        assert_eq!(code(doc! { "wiredTiger": 1 }), Some(ErrorCode::BadValue));
        assert_eq!(code(doc! { "unknown": {} }), Some(ErrorCode::InvalidOptions));
    }
}
