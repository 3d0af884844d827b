//! Cutting a stream of bytes into messages.
//!
//! `FrameDecoder` collects what arrives and gives out whole messages. It reserves no more than what has arrived and never
//! believes a length over the limit, so a peer pays for every byte it makes us hold. A reader that fills a buffer of its
//! own uses `next_length` alone.
//!
//! After an error the stream has lost its frame: the same error comes again and the connection must be closed.

use crate::header::next_length;
use crate::limits::{HEADER_SIZE_BYTES, MESSAGE_SIZE_BYTES_MAX};
use bytes::{Bytes, BytesMut};
use pando_base::Result;

/// Collects bytes and gives out messages.
#[derive(Debug, Default)]
pub struct FrameDecoder {
    buffer: BytesMut,
}

impl FrameDecoder {
    /// Nothing collected yet.
    pub fn new() -> FrameDecoder {
        FrameDecoder::default()
    }

    /// Adds what arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole message, header included, if it has arrived.
    pub fn next_message(&mut self) -> Result<Option<Bytes>> {
        let Some(header) = self.buffer.first_chunk::<HEADER_SIZE_BYTES>() else {
            return Ok(None);
        };
        let length = next_length(header, MESSAGE_SIZE_BYTES_MAX)?;
        if self.buffer.len() < length {
            return Ok(None);
        }
        Ok(Some(self.buffer.split_to(length).freeze()))
    }

    /// How many bytes wait for the rest of their message.
    pub fn pending_bytes(&self) -> usize {
        self.buffer.len()
    }
}
