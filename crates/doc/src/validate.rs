//! One pass over untrusted bytes that decides whether they are a document.
//!
//! After it the views may walk without checks. The pass keeps a stack of the documents it is inside of and never calls
//! itself, so that nesting costs a few bytes each level and no stack. What is checked is MongoDB's "default" level:
//! lengths, terminators, types, booleans, depth. What it leaves alone has to survive as it is: invalid UTF-8,
//! deprecated types, duplicate names, array indexes out of order.

use crate::view::name_length;
use crate::{DocRef, Value};
use bstr::BStr;
use pando_base::{Error, ErrorCode, Result};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The largest document a user may store.
pub const USER_SIZE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The largest document inside the server: room for what is put around a user's.
pub const INTERNAL_SIZE_BYTES_MAX: usize = USER_SIZE_BYTES_MAX + 16 * 1024;
/// How deep documents may be nested inside the outermost one, unless it is said otherwise.
pub const DEPTH_MAX: usize = 200;
/// How deep they may be at most, whatever is said.
pub const DEPTH_MOST: usize = 250;

/// The depth that is in force: one for the process, as what is nested more deeply must not get in anywhere. Set when a server starts.
static DEPTH: AtomicUsize = AtomicUsize::new(DEPTH_MAX);

/// Says how deep documents may be nested.
pub fn set_depth_max(depth: usize) {
    DEPTH.store(depth.min(DEPTH_MOST), Ordering::Relaxed);
}

/// How deep documents may be nested.
#[inline]
pub fn depth_max() -> usize {
    DEPTH.load(Ordering::Relaxed)
}

/// Bounds that validation enforces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many levels there may be below the outermost document.
    pub depth_max: usize,
    /// How long the encoded document may be.
    pub size_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { depth_max: depth_max(), size_bytes_max: INTERNAL_SIZE_BYTES_MAX }
    }
}

/// The error for a document of this size.
pub fn too_large(size_bytes: usize, size_bytes_max: usize) -> Error {
    let megabytes = size_bytes_max / (1024 * 1024);
    Error::new(
        ErrorCode::BSONObjectTooLarge,
        format!(
            "BSONObj size: {size_bytes} (0x{size_bytes:X}) is invalid. Size must be between 0 and \
             {size_bytes_max}({megabytes}MB)"
        ),
    )
}

/// Checks that the bytes are exactly one document.
pub fn validate(bytes: &[u8], limits: &Limits) -> Result<()> {
    let size_bytes = validate_prefix(bytes, limits)?;
    if size_bytes != bytes.len() {
        let reason = format!("Incorrect BSON length {size_bytes} should be equal to {}", bytes.len());
        return Err(Error::new(ErrorCode::InvalidBSON, reason));
    }
    Ok(())
}

/// Checks that the bytes start with a document; returns its length.
pub fn validate_prefix(bytes: &[u8], limits: &Limits) -> Result<usize> {
    let invalid = |reason: String| Err(Error::new(ErrorCode::InvalidBSON, reason));
    let Some(length) = bytes.first_chunk().map(|length| i32::from_le_bytes(*length)) else {
        return invalid("BSON data has to be at least 5 bytes".into());
    };
    let size_bytes = match usize::try_from(length) {
        Ok(size_bytes) if size_bytes >= 5 => size_bytes,
        _ => return invalid("BSON data has to be at least 5 bytes".into()),
    };
    if size_bytes > limits.size_bytes_max {
        return Err(too_large(size_bytes, limits.size_bytes_max));
    }
    let Some(document) = bytes.get(..size_bytes) else {
        return invalid(format!("Incorrect BSON length {size_bytes} should be less or equal to {}", bytes.len()));
    };
    let mut pass = Pass::new(document, limits.depth_max);
    pass.run().map_err(|fault| pass.describe(fault)).map(|()| size_bytes)
}

/// What is wrong, without the words.
#[derive(Clone, Copy, Debug)]
enum Fault {
    NotTerminated,
    BeyondTheBuffer,
    StringNotTerminated,
    LengthDiffers,
    NestedTooShort(i32),
    NeitherFalseNorTrue,
    UnknownType(u8),
    TooDeep,
}

type Checked<T> = std::result::Result<T, Fault>;

/// A document that the pass is inside of.
#[derive(Clone, Copy, Default)]
struct Frame {
    /// Where the document says that it ends.
    end: usize,
    /// Where its element starts, for error messages.
    element: usize,
    /// True for the frame of code with scope, which lies around the frame of the scope.
    is_code: bool,
}

/// Nesting that needs no allocation.
const FRAMES_INLINE: usize = 16;

struct Pass<'a> {
    bytes: &'a [u8],
    position: usize,
    element: usize,
    depth_max: usize,
    depth: usize,
    inline: [Frame; FRAMES_INLINE],
    spilled: Vec<Frame>,
}

impl<'a> Pass<'a> {
    fn new(bytes: &'a [u8], depth_max: usize) -> Pass<'a> {
        let mut inline = [Frame::default(); FRAMES_INLINE];
        inline[0] = Frame { end: bytes.len(), element: 0, is_code: false };
        Pass { bytes, position: 4, element: 0, depth_max, depth: 0, inline, spilled: Vec::new() }
    }

    fn run(&mut self) -> Checked<()> {
        if self.bytes.last() != Some(&0) {
            return Err(Fault::NotTerminated);
        }
        loop {
            match *self.bytes.get(self.position).ok_or(Fault::BeyondTheBuffer)? {
                0 => {
                    if self.close()? {
                        return Ok(());
                    }
                }
                code => self.element(code)?,
            }
        }
    }

    /// At the zero that ends a document: checks its length; true after the outermost.
    fn close(&mut self) -> Checked<bool> {
        self.position += 1;
        loop {
            if self.position != self.frame(self.depth).end {
                return Err(Fault::LengthDiffers);
            }
            if self.depth == 0 {
                return Ok(true);
            }
            self.depth -= 1;
            if !self.frame(self.depth).is_code {
                return Ok(false);
            }
        }
    }

    #[inline]
    fn element(&mut self, code: u8) -> Checked<()> {
        self.element = self.position;
        self.position += 1;
        self.skip_c_string()?;
        match code {
            0x06 | 0x0A | 0x7F | 0xFF => self.skip(0),
            0x10 => self.skip(4),
            0x01 | 0x09 | 0x11 | 0x12 => self.skip(8),
            0x07 => self.skip(12),
            0x13 => self.skip(16),
            0x02 | 0x0D | 0x0E => self.skip_string(),
            0x03 | 0x04 => self.open(false),
            0x08 => self.boolean(),
            0x05 => {
                let length = self.length()?;
                self.skip(1)?;
                self.skip(length)
            }
            0x0B => {
                self.skip_c_string()?;
                self.skip_c_string()
            }
            0x0C => {
                self.skip_string()?;
                self.skip(12)
            }
            0x0F => {
                self.open(true)?;
                self.skip_string()?;
                self.open(false)
            }
            _ => Err(Fault::UnknownType(code)),
        }
    }

    /// Enters a nested document whose length is next. Whether the length is right shows at its end.
    fn open(&mut self, is_code: bool) -> Checked<()> {
        if self.depth >= self.depth_max {
            return Err(Fault::TooDeep);
        }
        let start = self.position;
        let length = self.length()?;
        if length < 5 || length > i32::MAX as usize {
            return Err(Fault::NestedTooShort(length as u32 as i32));
        }
        self.depth += 1;
        let frame = Frame { end: start + length, element: self.element, is_code };
        match self.inline.get_mut(self.depth) {
            Some(place) => *place = frame,
            None => {
                self.spilled.truncate(self.depth - FRAMES_INLINE);
                self.spilled.push(frame);
            }
        }
        Ok(())
    }

    fn frame(&self, depth: usize) -> Frame {
        let spilled = || self.spilled.get(depth - FRAMES_INLINE);
        self.inline.get(depth).or_else(spilled).copied().unwrap_or_default()
    }

    /// Moves on; at least the outermost document's final zero has to be left.
    #[inline]
    fn skip(&mut self, length: usize) -> Checked<()> {
        self.position += length;
        if self.position < self.bytes.len() { Ok(()) } else { Err(Fault::BeyondTheBuffer) }
    }

    #[inline]
    fn length(&mut self) -> Checked<usize> {
        let field =
            self.bytes.get(self.position..).and_then(|rest| rest.first_chunk()).ok_or(Fault::BeyondTheBuffer)?;
        self.skip(4)?;
        Ok(u32::from_le_bytes(*field) as usize)
    }

    #[inline]
    fn skip_string(&mut self) -> Checked<()> {
        let length = self.length()?;
        self.skip(length)?;
        if length > 0 && self.bytes.get(self.position - 1) == Some(&0) {
            Ok(())
        } else {
            Err(Fault::StringNotTerminated)
        }
    }

    #[inline]
    fn skip_c_string(&mut self) -> Checked<()> {
        let rest = self.bytes.get(self.position..).unwrap_or_default();
        let length = name_length(rest).ok_or(Fault::BeyondTheBuffer)?;
        self.skip(length + 1)
    }

    fn boolean(&mut self) -> Checked<()> {
        match self.bytes.get(self.position) {
            Some(0 | 1) => self.skip(1),
            Some(_) => Err(Fault::NeitherFalseNorTrue),
            None => Err(Fault::BeyondTheBuffer),
        }
    }

    /// The fault in MongoDB's words, with the path to where it is.
    fn describe(&self, fault: Fault) -> Error {
        let (code, what) = match fault {
            Fault::NotTerminated => (ErrorCode::InvalidBSON, "BSON object not terminated with EOO".to_owned()),
            Fault::BeyondTheBuffer => (ErrorCode::InvalidBSON, "BSON size is larger than buffer size".to_owned()),
            Fault::StringNotTerminated => (ErrorCode::InvalidBSON, "Not null terminated string".to_owned()),
            Fault::LengthDiffers => (ErrorCode::InvalidBSON, "incorrect BSON length".to_owned()),
            Fault::NestedTooShort(length) => (
                ErrorCode::InvalidBSON,
                format!("Nested BSON object has to be at least 5 bytes (decoded length: {length})"),
            ),
            Fault::NeitherFalseNorTrue => (ErrorCode::InvalidBSON, "BSON bool is neither false nor true".to_owned()),
            Fault::UnknownType(code) => (ErrorCode::InvalidBSON, format!("Unrecognized BSON type {code}")),
            Fault::TooDeep => (ErrorCode::Overflow, "BSONObj exceeds maximum nested object depth".to_owned()),
        };
        let path = self.path();
        let id = match self.id() {
            Some(id) => format!("_id: {id}"),
            None => "unknown _id".to_owned(),
        };
        Error::new(code, format!("{what} in element with field name '{path}' in object with {id}"))
    }

    fn path(&self) -> String {
        let mut path = String::new();
        for depth in 1..=self.depth {
            let frame = self.frame(depth);
            if frame.element != self.element {
                path.push_str(&self.name_at(frame.element));
                path.push('.');
            }
        }
        path.push_str(&if self.element == 0 { "?".to_owned() } else { self.name_at(self.element) });
        path
    }

    fn name_at(&self, element: usize) -> String {
        let rest = self.bytes.get(element + 1..).unwrap_or_default();
        let length = rest.iter().position(|&byte| byte == 0).unwrap_or(rest.len());
        BStr::new(rest.get(..length).unwrap_or_default()).to_string()
    }

    /// The `_id` of the outermost document, if it was reached and is sound.
    fn id(&self) -> Option<Value<'a>> {
        let end = if self.depth == 0 { self.element } else { self.frame(1).element };
        let mut before = RawPrefix { bytes: self.bytes, end };
        before.find_id()
    }
}

/// The elements before the faulty one: those were validated.
struct RawPrefix<'a> {
    bytes: &'a [u8],
    end: usize,
}

impl<'a> RawPrefix<'a> {
    fn find_id(&mut self) -> Option<Value<'a>> {
        let prefix = DocRef::trusted(self.bytes.get(..self.end)?);
        prefix.raw_elements().find(|element| element.name == "_id").and_then(|element| element.value())
    }
}
