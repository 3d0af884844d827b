//! TCP sockets.

use crate::{BoxedFuture, Connection, Listener, Network};
use std::io;
use std::net::SocketAddr;
use tokio::net::{TcpListener, TcpStream};

/// TCP of this machine.
pub struct RealNetwork;

impl Network for RealNetwork {
    fn listen(&self, address: &str) -> BoxedFuture<'static, io::Result<Box<dyn Listener>>> {
        let address = address.to_owned();
        Box::pin(async move {
            let listener = TcpListener::bind(address).await?;
            Ok(Box::new(RealListener { listener }) as Box<dyn Listener>)
        })
    }

    fn connect(&self, address: &str) -> BoxedFuture<'static, io::Result<Box<dyn Connection>>> {
        let address = address.to_owned();
        Box::pin(async move { without_delay(TcpStream::connect(address).await?) })
    }
}

struct RealListener {
    listener: TcpListener,
}

impl Listener for RealListener {
    fn accept(&mut self) -> BoxedFuture<'_, io::Result<Box<dyn Connection>>> {
        Box::pin(async move {
            let (stream, _) = self.listener.accept().await?;
            without_delay(stream)
        })
    }

    fn local_address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// Requests and replies are small and waited for, so they must not sit in the kernel until more bytes come.
fn without_delay(stream: TcpStream) -> io::Result<Box<dyn Connection>> {
    stream.set_nodelay(true)?;
    Ok(Box::new(stream))
}

impl Connection for TcpStream {
    fn peer_address(&self) -> io::Result<SocketAddr> {
        self.peer_addr()
    }

    fn local_address(&self) -> io::Result<SocketAddr> {
        self.local_addr()
    }
}
