//! Builders of keys.
//!
//! A key is begun with [`Builder::reset`], gets its components one after the other, ends with a [`Discriminator`] and may
//! then get a record id. The three kinds differ in where the bytes go:
//!
//! * [`StackBuilder`]: inline while the key is short; for keys that do not outlive their scope, like a query's bounds. It is
//!   reused by resetting.
//! * [`HeapBuilder`]: into a vector that becomes the [`KeyString`] without a copy.
//! * [`PooledBuilder`]: many keys tightly packed into large blocks, for index builds and sorts. A block lives until the last
//!   of its keys is dropped.

use crate::buffer::{KeyBuffer, StackBuffer};
use crate::encode::Encoder;
use crate::type_bits::{EncodedTypeBits, TypeBits};
use crate::{Discriminator, KeyOrdering, KeyString, Result, Version, canonical};
use bytes::{Bytes, BytesMut};
use pando_base::RecordId;
use pando_base::record_id::suffix;
use pando_doc::{Collator, DocRef, Value};

/// Builds keys of one version.
#[derive(Debug)]
pub struct Builder<B> {
    buffer: B,
    type_bits: TypeBits,
    version: Version,
    ordering: KeyOrdering,
    component_count: usize,
    record_id_length: usize,
    state: State,
}

/// What may come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Components,
    RecordId,
    Nothing,
}

/// For keys that do not outlive their scope.
pub type StackBuilder = Builder<StackBuffer>;
/// For keys that are kept one by one.
pub type HeapBuilder = Builder<Vec<u8>>;
/// For many keys that are kept.
pub type PooledBuilder = Builder<BytesMut>;

impl StackBuilder {
    /// A builder whose short keys need no allocation.
    #[inline]
    pub fn new(version: Version, ordering: KeyOrdering) -> StackBuilder {
        Builder::over(StackBuffer::new(), version, ordering)
    }
}

impl HeapBuilder {
    /// A builder that becomes its key.
    pub fn new(version: Version, ordering: KeyOrdering) -> HeapBuilder {
        Builder::over(Vec::with_capacity(64), version, ordering)
    }

    /// The key, without a copy.
    pub fn into_key_string(mut self) -> KeyString {
        let key_length = self.buffer.len();
        self.type_bits.encode_with(|bytes| self.buffer.extend_from_slice(bytes));
        KeyString::from_parts(Bytes::from(self.buffer), key_length, self.record_id_length, self.version)
    }
}

impl PooledBuilder {
    /// A builder that packs keys into blocks of this size.
    pub fn new(version: Version, ordering: KeyOrdering, block_size_bytes: usize) -> PooledBuilder {
        Builder::over(BytesMut::with_capacity(block_size_bytes), version, ordering)
    }

    /// The key, which keeps its block alive; the builder is ready for the next one of the same ordering.
    pub fn take_key_string(&mut self) -> KeyString {
        let key_length = self.buffer.len();
        let buffer = &mut self.buffer;
        self.type_bits.encode_with(|bytes| buffer.extend_from_slice(bytes));
        let bytes = self.buffer.split().freeze();
        let key = KeyString::from_parts(bytes, key_length, self.record_id_length, self.version);
        self.reset(self.ordering);
        key
    }
}

impl<B: KeyBuffer> Builder<B> {
    fn over(buffer: B, version: Version, ordering: KeyOrdering) -> Builder<B> {
        Builder {
            buffer,
            type_bits: TypeBits::new(),
            version,
            ordering,
            component_count: 0,
            record_id_length: 0,
            state: State::Components,
        }
    }

    /// Begins a new key; the memory is kept.
    pub fn reset(&mut self, ordering: KeyOrdering) {
        self.buffer.truncate(0);
        self.type_bits.clear();
        self.ordering = ordering;
        self.component_count = 0;
        self.record_id_length = 0;
        self.state = State::Components;
    }

    /// Begins a new key whose components are the document's values, and ends it.
    pub fn reset_to_key(
        &mut self,
        values: DocRef<'_>,
        ordering: KeyOrdering,
        discriminator: Discriminator,
    ) -> Result<()> {
        self.reset(ordering);
        for element in values.elements() {
            self.append(element.value)?;
        }
        self.finish(discriminator);
        Ok(())
    }

    /// Appends a component. After an error the key has to be begun anew.
    #[inline]
    pub fn append(&mut self, value: Value<'_>) -> Result<()> {
        self.append_with(value, None)
    }

    /// Appends a component whose strings are replaced by their sort keys.
    pub fn append_collated(&mut self, value: Value<'_>, collator: &dyn Collator) -> Result<()> {
        self.append_with(value, Some(collator))
    }

    #[inline]
    fn append_with(&mut self, value: Value<'_>, collator: Option<&dyn Collator>) -> Result<()> {
        debug_assert_eq!(self.state, State::Components, "a key that has ended gets no more components");
        let start = self.buffer.bytes().len();
        let (out, type_bits) = (&mut self.buffer, &mut self.type_bits);
        Encoder { out, type_bits, version: self.version, collator }.value(value)?;
        if self.ordering.is_descending(self.component_count) {
            self.buffer.bytes_mut()[start..].iter_mut().for_each(|byte| *byte = !*byte);
        }
        self.component_count += 1;
        Ok(())
    }

    /// Appends a component as it lies in another key of the same ordering, at the same place. Its type bits are not known,
    /// so the key is fit for comparisons only.
    pub fn append_component(&mut self, component: &[u8]) {
        debug_assert_eq!(self.state, State::Components, "a key that has ended gets no more components");
        self.buffer.extend(component);
        self.component_count += 1;
    }

    /// Ends the components.
    #[inline]
    pub fn finish(&mut self, discriminator: Discriminator) {
        debug_assert_eq!(self.state, State::Components, "a key ends once");
        self.buffer.push(match discriminator {
            Discriminator::Inclusive => canonical::END,
            Discriminator::ExclusiveBefore => canonical::BEFORE,
            Discriminator::ExclusiveAfter => canonical::AFTER,
        });
        self.state = State::RecordId;
    }

    /// Appends the record id to a key that has ended.
    pub fn append_record_id(&mut self, id: &RecordId) {
        debug_assert_eq!(self.state, State::RecordId, "a record id follows the end of the key");
        let start = self.buffer.bytes().len();
        suffix::append(id, &mut |bytes| self.buffer.extend(bytes));
        self.record_id_length = self.buffer.bytes().len() - start;
        self.state = State::Nothing;
    }

    /// The bytes so far.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.buffer.bytes()
    }

    /// How many components there are so far.
    pub fn component_count(&self) -> usize {
        self.component_count
    }

    /// The number format.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The type bits of the components.
    pub fn type_bits(&self) -> &TypeBits {
        &self.type_bits
    }

    /// The type bits as they are stored; empty in most cases.
    pub fn encoded_type_bits(&self) -> EncodedTypeBits {
        self.type_bits.encode()
    }

    /// A copy of the key.
    pub fn to_key_string(&self) -> KeyString {
        let key = self.buffer.bytes();
        let mut bytes = Vec::with_capacity(key.len() + 16);
        bytes.extend_from_slice(key);
        self.type_bits.encode_with(|piece| bytes.extend_from_slice(piece));
        KeyString::from_parts(Bytes::from(bytes), key.len(), self.record_id_length, self.version)
    }
}
