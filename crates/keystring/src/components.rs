//! Finding where components end, without type bits and without decoding.
//!
//! Skip scans and prefix bounds cut keys after some components and put a discriminator there. The bytes may be damaged: a
//! walk then ends with an error.

use crate::reader::Reader;
use crate::{Discriminator, Error, KeyOrdering, Result, Version, canonical, number};
use pando_doc::{DEPTH_MOST, ObjectId};

/// The components of a key, each as its bytes lie there. Ends at the key's end or at the first error.
#[derive(Clone)]
pub struct Components<'a> {
    rest: &'a [u8],
    ordering: KeyOrdering,
    version: Version,
    index: usize,
}

/// Walks the components of a key.
pub fn components(key: &[u8], ordering: KeyOrdering, version: Version) -> Components<'_> {
    Components { rest: key, ordering, version, index: 0 }
}

impl<'a> Components<'a> {
    /// The bytes from here on: those of the end and of a record id, if all components have been taken.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Components<'a> {
    type Item = Result<&'a [u8]>;

    fn next(&mut self) -> Option<Result<&'a [u8]>> {
        if end_of_key(self.rest.first().copied()).is_some() {
            return None;
        }
        let mut reader = Reader::new(self.rest);
        reader.set_inverted(self.ordering.is_descending(self.index));
        let skipped = skip_component(&mut reader, self.version, 0);
        let length = self.rest.len() - reader.remaining();
        let (component, rest) = self.rest.split_at(length);
        self.index += 1;
        self.rest = if skipped.is_ok() { rest } else { &[] };
        Some(skipped.map(|()| component))
    }
}

/// How a key ends if it ends before this byte. A key may end with its bytes.
pub(crate) fn end_of_key(raw_byte: Option<u8>) -> Option<Discriminator> {
    match raw_byte {
        None | Some(canonical::END) => Some(Discriminator::Inclusive),
        Some(canonical::BEFORE) => Some(Discriminator::ExclusiveBefore),
        Some(canonical::AFTER) => Some(Discriminator::ExclusiveAfter),
        Some(_) => None,
    }
}

/// How many bytes the first components take; all of them if there are no more.
pub fn prefix_size(key: &[u8], ordering: KeyOrdering, version: Version, component_count: usize) -> Result<usize> {
    let mut walk = components(key, ordering, version);
    for component in walk.by_ref().take(component_count) {
        component?;
    }
    Ok(key.len() - walk.rest().len())
}

/// How many components a key has.
pub fn component_count(key: &[u8], ordering: KeyOrdering, version: Version) -> Result<usize> {
    components(key, ordering, version).try_fold(0, |count, component| component.map(|_| count + 1))
}

/// How many bytes a key takes up to and with its end, whatever follows; an error if it does not end.
pub fn key_size(bytes: &[u8], ordering: KeyOrdering, version: Version) -> Result<usize> {
    let start = prefix_size(bytes, ordering, version, usize::MAX)?;
    if start < bytes.len() { Ok(start + 1) } else { Err(Error::TooShort) }
}

/// How a key ends.
pub fn discriminator(key: &[u8], ordering: KeyOrdering, version: Version) -> Result<Discriminator> {
    let start = prefix_size(key, ordering, version, usize::MAX)?;
    Ok(end_of_key(key.get(start).copied()).unwrap_or_default())
}

fn skip_component(reader: &mut Reader<'_>, version: Version, depth: usize) -> Result<()> {
    let component_type = reader.byte()?;
    skip_value(component_type, reader, version, depth)
}

fn skip_value(component_type: u8, reader: &mut Reader<'_>, version: Version, depth: usize) -> Result<()> {
    match component_type {
        canonical::MIN_KEY | canonical::MAX_KEY | canonical::NULL | canonical::UNDEFINED => Ok(()),
        canonical::BOOL_FALSE | canonical::BOOL_TRUE => Ok(()),
        canonical::DATE | canonical::TIMESTAMP => reader.skip(size_of::<u64>()),
        canonical::OBJECT_ID => reader.skip(ObjectId::LENGTH_BYTES),
        canonical::STRING | canonical::CODE => reader.skip_text(),
        canonical::CODE_WITH_SCOPE => {
            reader.skip_text()?;
            skip_document(reader, version, depth)
        }
        canonical::OBJECT => skip_document(reader, version, depth),
        canonical::ARRAY => skip_array(reader, version, depth),
        canonical::BINARY => {
            let (length, _subtype) = read_binary_header(reader)?;
            reader.skip(length)
        }
        canonical::REGEX => {
            reader.skip_name()?;
            reader.skip_name()
        }
        canonical::DB_POINTER => {
            let length = reader.u32()? as usize;
            reader.skip(length)?;
            reader.skip(ObjectId::LENGTH_BYTES)
        }
        _ if number::is_number(component_type) => number::parse(component_type, reader, version).map(|_| ()),
        _ => Err(Error::UnknownType(component_type)),
    }
}

/// The length and the subtype of binary data.
pub(crate) fn read_binary_header(reader: &mut Reader<'_>) -> Result<(usize, u8)> {
    let length = match reader.byte()? {
        u8::MAX => reader.u32()? as usize,
        length => length.into(),
    };
    Ok((length, reader.byte()?))
}

/// One level down, unless that is too deep.
pub(crate) fn deeper(depth: usize) -> Result<usize> {
    if depth < DEPTH_MOST { Ok(depth + 1) } else { Err(Error::TooDeep) }
}

fn skip_document(reader: &mut Reader<'_>, version: Version, depth: usize) -> Result<()> {
    let depth = deeper(depth)?;
    while reader.byte()? != canonical::TERMINATOR {
        reader.skip_name()?;
        skip_component(reader, version, depth)?;
    }
    Ok(())
}

fn skip_array(reader: &mut Reader<'_>, version: Version, depth: usize) -> Result<()> {
    let depth = deeper(depth)?;
    loop {
        match reader.byte()? {
            canonical::TERMINATOR => return Ok(()),
            component_type => skip_value(component_type, reader, version, depth)?,
        }
    }
}
