//! Cutting a connection's bytes into messages, without owning a buffer while nothing comes.
//!
//! Bytes are read into the stack of whoever polls. If they are one whole message, as nearly always,
//! they become that message with one copy into a block of its size. If not, they are collected
//! until the message is whole: the rest of a long one is read straight to its place, for which room
//! is made as bytes come, not as they are announced. What belongs to the next message stays.
//!
//! How long a message may be is said with each call: who has not logged in may send short ones
//! only. While a request is served, which may be the login itself, a message that is too long for
//! now is not judged, only not read on.

use bytes::Bytes;
use pando_base::{Error, ErrorCode, Result};
use pando_env::Connection;
use pando_wire::limits::HEADER_SIZE_BYTES;
use pando_wire::next_length;
use std::io;
use std::mem::MaybeUninit;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncReadExt, ReadBuf};

/// What one call to the system can bring.
const READ_BYTES: usize = 32 * 1024;
/// So much room is made at once for the rest of a message; for more once as much has come.
const ROOM_BYTES: usize = 2 << 20;
/// How much is taken in while the request before is still being served: enough to notice that the client went away.
const AHEAD_BYTES_MAX: usize = 64 * 1024;

/// What was read and not given out.
#[derive(Default)]
pub(crate) struct MessageReader {
    pending: Vec<u8>,
    ended: bool,
}

impl MessageReader {
    /// The next whole message; none when the client has closed between two messages. After an error the connection
    /// cannot go on.
    pub(crate) fn poll_message(
        &mut self,
        stream: &mut dyn Connection,
        size_bytes_max: usize,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>>> {
        loop {
            if let Some(message) = self.take_message(size_bytes_max)? {
                return Poll::Ready(Ok(Some(message)));
            }
            if self.ended {
                return Poll::Ready(if self.pending.is_empty() { Ok(None) } else { Err(cut_off()) });
            }
            if let Some(message) = ready!(self.poll_fill(stream, size_bytes_max, context))? {
                return Poll::Ready(Ok(Some(message)));
            }
        }
    }

    /// True once the client has closed.
    pub(crate) fn is_at_end(&self) -> bool {
        self.ended
    }

    /// Ready if the client went away. Reads ahead a little, because that is the only way to know.
    pub(crate) fn poll_gone(
        &mut self,
        stream: &mut dyn Connection,
        size_bytes_max: usize,
        context: &mut Context<'_>,
    ) -> Poll<()> {
        while self.pending.len() < AHEAD_BYTES_MAX && !self.ended {
            if announced(&self.pending, size_bytes_max).is_err() {
                return Poll::Pending;
            }
            match ready!(self.poll_fill(stream, size_bytes_max, context)) {
                Ok(None) => {}
                Ok(Some(message)) => self.pending = message.into(),
                Err(_) => self.ended = true,
            }
        }
        if self.ended { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Reads once. A whole message that nothing waits before is given back at once.
    fn poll_fill(
        &mut self,
        stream: &mut dyn Connection,
        size_bytes_max: usize,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>>> {
        let missing =
            announced(&self.pending, size_bytes_max)?.map_or(0, |length| length.saturating_sub(self.pending.len()));
        if missing > READ_BYTES {
            return self.poll_rest(missing, stream, context).map_ok(|()| None);
        }
        let mut space = [const { MaybeUninit::<u8>::uninit() }; READ_BYTES];
        let mut buffer = ReadBuf::uninit(&mut space);
        if let Err(error) = ready!(Pin::new(stream).poll_read(context, &mut buffer)) {
            return Poll::Ready(Err(unreachable(&error)));
        }
        let bytes = buffer.filled();
        self.ended = bytes.is_empty();
        // An impossible length is told when the message is taken.
        let length = announced(bytes, size_bytes_max).ok().flatten();
        if self.pending.is_empty() && length == Some(bytes.len()) {
            return Poll::Ready(Ok(Some(Bytes::from(bytes.to_vec()))));
        }
        self.pending.extend_from_slice(bytes);
        Poll::Ready(Ok(None))
    }

    /// Reads more of a long message to where it belongs.
    fn poll_rest(
        &mut self,
        missing: usize,
        stream: &mut dyn Connection,
        context: &mut Context<'_>,
    ) -> Poll<Result<()>> {
        if self.pending.len() == self.pending.capacity() {
            self.pending.reserve_exact(missing.min(ROOM_BYTES.max(self.pending.len())));
        }
        let mut read = pin!(stream.read_buf(&mut self.pending));
        let read = ready!(read.as_mut().poll(context)).map_err(|error| unreachable(&error));
        self.ended = read? == 0;
        Poll::Ready(Ok(()))
    }

    /// The message at the start of what was collected, if it is whole.
    fn take_message(&mut self, size_bytes_max: usize) -> Result<Option<Bytes>> {
        let Some(length) = announced(&self.pending, size_bytes_max)?.filter(|length| *length <= self.pending.len())
        else {
            return Ok(None);
        };
        let rest = self.pending.split_off(length);
        Ok(Some(Bytes::from(std::mem::replace(&mut self.pending, rest))))
    }
}

/// The length of the message that begins these bytes, if its header is there.
fn announced(bytes: &[u8], size_bytes_max: usize) -> Result<Option<usize>> {
    bytes.first_chunk::<HEADER_SIZE_BYTES>().map(|header| next_length(header, size_bytes_max)).transpose()
}

fn unreachable(error: &io::Error) -> Error {
    Error::new(ErrorCode::HostUnreachable, error.to_string())
}

fn cut_off() -> Error {
    Error::new(ErrorCode::ProtocolError, "The connection ended inside a message")
}
