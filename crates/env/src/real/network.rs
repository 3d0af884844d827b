//! Sockets of this machine: TCP, and those in the file system.

use super::stream::Movable;
use crate::{Address, BoxedFuture, Connection, Listener, Network};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// The network of this machine.
pub struct RealNetwork;

impl Network for RealNetwork {
    fn listen(&self, address: &str) -> BoxedFuture<'static, io::Result<Box<dyn Listener>>> {
        let address = address.to_owned();
        Box::pin(async move {
            let listener = TcpListener::bind(address).await?;
            Ok(Box::new(RealListener { listener: Movable::new(listener) }) as Box<dyn Listener>)
        })
    }

    fn listen_at_path(&self, path: &Path, permissions: u32) -> BoxedFuture<'static, io::Result<Box<dyn Listener>>> {
        let path = path.to_owned();
        Box::pin(async move { Ok(Box::new(PathListener::bind(path, permissions)?) as Box<dyn Listener>) })
    }

    fn connect(&self, address: &str) -> BoxedFuture<'static, io::Result<Box<dyn Connection>>> {
        let address = address.to_owned();
        Box::pin(async move {
            match address.starts_with('/') {
                true => Ok(Box::new(UnixStream::connect(address).await?) as Box<dyn Connection>),
                false => Ok(Box::new(without_delay(TcpStream::connect(address).await?)?) as Box<dyn Connection>),
            }
        })
    }

    fn send_datagram(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let socket = UnixDatagram::unbound()?;
        // A log that does not take lines must not keep the server waiting.
        socket.set_nonblocking(true)?;
        socket.send_to(bytes, path).map(|_| ())
    }
}

struct RealListener {
    listener: Movable<TcpListener>,
}

impl Listener for RealListener {
    fn accept(&mut self) -> BoxedFuture<'_, io::Result<Box<dyn Connection>>> {
        Box::pin(async move {
            let (stream, _) = self.listener.get()?.accept().await?;
            Ok(Box::new(Movable::new(without_delay(stream)?)) as Box<dyn Connection>)
        })
    }

    fn local_address(&self) -> io::Result<Address> {
        self.listener.get()?.local_addr().map(Address::Internet)
    }

    fn move_here(&mut self) -> io::Result<()> {
        self.listener.move_here()
    }
}

/// Requests and replies are small and waited for, so they must not sit in the kernel until more bytes come.
fn without_delay(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    Ok(stream)
}

impl Connection for TcpStream {
    fn peer_address(&self) -> io::Result<Address> {
        self.peer_addr().map(Address::Internet)
    }

    fn local_address(&self) -> io::Result<Address> {
        self.local_addr().map(Address::Internet)
    }
}

/// A socket in the file system. Its file goes with it.
struct PathListener {
    listener: Movable<UnixListener>,
    path: PathBuf,
}

impl PathListener {
    fn bind(path: PathBuf, permissions: u32) -> io::Result<PathListener> {
        // Only a socket gives way: whatever else has the name is somebody's file.
        if fs::symlink_metadata(&path).is_ok_and(|found| found.file_type().is_socket()) {
            fs::remove_file(&path)?;
        }
        let listener = PathListener { listener: Movable::new(UnixListener::bind(&path)?), path };
        fs::set_permissions(&listener.path, Permissions::from_mode(permissions))?;
        Ok(listener)
    }
}

impl Drop for PathListener {
    fn drop(&mut self) {
        // The server is ending; there is nobody to tell, and the next start removes it.
        let _ = fs::remove_file(&self.path);
    }
}

impl Listener for PathListener {
    fn accept(&mut self) -> BoxedFuture<'_, io::Result<Box<dyn Connection>>> {
        Box::pin(async move {
            let (stream, _) = self.listener.get()?.accept().await?;
            Ok(Box::new(Movable::new(stream)) as Box<dyn Connection>)
        })
    }

    fn local_address(&self) -> io::Result<Address> {
        Ok(Address::Unix(Some(self.path.as_path().into())))
    }

    fn move_here(&mut self) -> io::Result<()> {
        self.listener.move_here()
    }
}

impl Connection for UnixStream {
    fn peer_address(&self) -> io::Result<Address> {
        Ok(Address::Unix(self.peer_addr()?.as_pathname().map(Into::into)))
    }

    fn local_address(&self) -> io::Result<Address> {
        Ok(Address::Unix(self.local_addr()?.as_pathname().map(Into::into)))
    }
}
