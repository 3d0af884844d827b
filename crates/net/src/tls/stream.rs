//! The two kinds of streams that come of a look at the first bytes.

use pando_env::{Address, Connection};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::server::TlsStream;

/// A connection of which some bytes were read already: they come first.
pub(super) struct Prefixed {
    stream: Box<dyn Connection>,
    prefix: Vec<u8>,
}

impl Prefixed {
    pub(super) fn new(stream: Box<dyn Connection>, prefix: Vec<u8>) -> Prefixed {
        Prefixed { stream, prefix }
    }
}

impl AsyncRead for Prefixed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.prefix.is_empty() {
            return Pin::new(&mut *self.stream).poll_read(context, buffer);
        }
        let count = self.prefix.len().min(buffer.remaining());
        let rest = self.prefix.split_off(count);
        let given = std::mem::replace(&mut self.prefix, rest);
        buffer.put_slice(&given);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Prefixed {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.stream).poll_shutdown(context)
    }
}

impl Connection for Prefixed {
    fn peer_address(&self) -> io::Result<Address> {
        self.stream.peer_address()
    }

    fn local_address(&self) -> io::Result<Address> {
        self.stream.local_address()
    }

    fn move_here(&mut self) -> io::Result<()> {
        self.stream.move_here()
    }
}

/// An encrypted connection.
pub(super) struct TlsConnection {
    stream: TlsStream<Prefixed>,
}

impl TlsConnection {
    pub(super) fn new(stream: TlsStream<Prefixed>) -> TlsConnection {
        TlsConnection { stream }
    }
}

impl AsyncRead for TlsConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_read(context, buffer) {
            // Clients go without saying so; a message that is cut off is noticed by its length.
            Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => Poll::Ready(Ok(())),
            poll => poll,
        }
    }
}

impl AsyncWrite for TlsConnection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl Connection for TlsConnection {
    fn peer_address(&self) -> io::Result<Address> {
        self.stream.get_ref().0.peer_address()
    }

    fn local_address(&self) -> io::Result<Address> {
        self.stream.get_ref().0.local_address()
    }

    fn move_here(&mut self) -> io::Result<()> {
        self.stream.get_mut().0.move_here()
    }
}
