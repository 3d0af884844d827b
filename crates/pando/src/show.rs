//! Bytes and figures for human eyes.

use std::fmt::Write;

/// A byte string as text where it is text, with everything else escaped; cut after `length_max` bytes.
pub fn bytes(bytes: &[u8], length_max: usize) -> String {
    let shown = bytes.get(..length_max).unwrap_or(bytes);
    let mut text = String::with_capacity(shown.len());
    for chunk in shown.utf8_chunks() {
        chunk.valid().chars().for_each(|character| push_character(&mut text, character));
        chunk.invalid().iter().for_each(|byte| _ = write!(text, "\\x{byte:02x}"));
    }
    if shown.len() < bytes.len() {
        _ = write!(text, "… ({} bytes)", bytes.len());
    }
    text
}

/// A character that a terminal shows as one is itself.
fn push_character(text: &mut String, character: char) {
    match character {
        '\\' => text.push_str("\\\\"),
        control if control.is_control() => _ = write!(text, "\\x{:02x}", u32::from(control)),
        other => text.push(other),
    }
}

/// The bytes that a person typed: `0x…` is hexadecimal, anything else is itself.
pub fn parse_bytes(text: &str) -> Result<Vec<u8>, String> {
    let Some(digits) = text.strip_prefix("0x") else { return Ok(text.as_bytes().to_vec()) };
    let is_sound = digits.len().is_multiple_of(2) && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let pairs = (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok());
    let parsed: Option<Vec<u8>> = if is_sound { pairs.collect() } else { None };
    parsed.ok_or_else(|| format!("'{text}' is not an even number of hexadecimal digits"))
}

/// A number of bytes in the largest unit that leaves at least one.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KB", "MB", "GB", "TB", "PB", "EB"];
    let mut value = bytes as f64 / 1024.0;
    let mut units = UNITS.iter().peekable();
    while let Some(unit) = units.next() {
        if value < 1.0 {
            return format!("{bytes} B");
        }
        if value < 1024.0 || units.peek().is_none() {
            return format!("{value:.1} {unit}");
        }
        value /= 1024.0;
    }
    format!("{bytes} B")
}

/// Rows as columns: the first to the left, all others to the right.
pub fn columns(rows: &[Vec<String>]) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..count).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            _ = if column == 0 { write!(line, "{cell:<width$}") } else { write!(line, "  {cell:>width$}") };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_to_their_unit() {
        let cases = [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KB"), (3 << 30, "3.0 GB"), (u64::MAX, "16.0 EB")];
        for (given, expected) in cases {
            assert_eq!(size(given), expected);
        }
    }

    #[test]
    fn bytes_are_escaped_and_cut() {
        assert_eq!(bytes("a'é\\\0".as_bytes(), 100), "a'é\\\\\\x00");
        assert_eq!(bytes(b"a\xff\xfe", 100), "a\\xff\\xfe");
        assert_eq!(bytes(b"abcdef", 2), "ab… (6 bytes)");
    }

    #[test]
    fn typed_bytes_are_text_or_hexadecimal() {
        assert_eq!(parse_bytes("ab"), Ok(b"ab".to_vec()));
        assert_eq!(parse_bytes("0x00ff"), Ok(vec![0, 255]));
        for bad in ["0x0", "0xzz", "0x+1", "0xéé"] {
            assert!(parse_bytes(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn columns_line_up() {
        let rows = [vec!["a".to_owned(), "10".to_owned()], vec!["long".to_owned(), "5".to_owned()]];
        assert_eq!(columns(&rows), "a     10\nlong   5\n");
    }
}
