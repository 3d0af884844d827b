//! An accepted socket, which can move from the runtime that accepted it to another.

use crate::{Address, Connection};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// Something that a runtime watches.
pub(super) trait Watched: Sized {
    /// The same, watched by the runtime of the caller.
    fn watched_here(self) -> io::Result<Self>;
}

impl Watched for TcpStream {
    fn watched_here(self) -> io::Result<TcpStream> {
        TcpStream::from_std(self.into_std()?)
    }
}

impl Watched for UnixStream {
    fn watched_here(self) -> io::Result<UnixStream> {
        UnixStream::from_std(self.into_std()?)
    }
}

impl Watched for TcpListener {
    fn watched_here(self) -> io::Result<TcpListener> {
        TcpListener::from_std(self.into_std()?)
    }
}

impl Watched for UnixListener {
    fn watched_here(self) -> io::Result<UnixListener> {
        UnixListener::from_std(self.into_std()?)
    }
}

/// Something that can move; nothing, if a move has failed.
pub(super) struct Movable<S>(Option<S>);

impl<S: Watched> Movable<S> {
    pub(super) fn new(watched: S) -> Movable<S> {
        Movable(Some(watched))
    }

    pub(super) fn get(&self) -> io::Result<&S> {
        self.0.as_ref().ok_or_else(lost)
    }

    pub(super) fn inner(&mut self) -> io::Result<&mut S> {
        self.0.as_mut().ok_or_else(lost)
    }

    pub(super) fn move_here(&mut self) -> io::Result<()> {
        let moved = self.0.take().ok_or_else(lost)?.watched_here()?;
        self.0 = Some(moved);
        Ok(())
    }
}

fn lost() -> io::Error {
    io::ErrorKind::NotConnected.into()
}

impl<S: Watched + AsyncRead + Unpin> AsyncRead for Movable<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(self.inner()?).poll_read(context, buffer)
    }
}

impl<S: Watched + AsyncWrite + Unpin> AsyncWrite for Movable<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(self.inner()?).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.inner()?).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.inner()?).poll_shutdown(context)
    }
}

impl Connection for Movable<TcpStream> {
    fn peer_address(&self) -> io::Result<Address> {
        self.get()?.peer_address()
    }

    fn local_address(&self) -> io::Result<Address> {
        self.get()?.local_address()
    }

    fn move_here(&mut self) -> io::Result<()> {
        Movable::move_here(self)
    }
}

impl Connection for Movable<UnixStream> {
    fn peer_address(&self) -> io::Result<Address> {
        self.get()?.peer_address()
    }

    fn local_address(&self) -> io::Result<Address> {
        self.get()?.local_address()
    }

    fn move_here(&mut self) -> io::Result<()> {
        Movable::move_here(self)
    }
}
