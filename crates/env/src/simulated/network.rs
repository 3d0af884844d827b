//! Loopback connections inside one process, which can be cut.
//!
//! Host names are resolved to addresses of their own (10.0.0.1 and up, in the order in which they are first heard), except
//! `localhost`. Nothing is delayed, lost or reordered. There are no sockets in the file system.

use crate::{Address, BoxedFuture, Connection, Listener, Network};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::sync::mpsc;

/// What can be in flight in each direction of a connection.
const BUFFER_BYTES: usize = 64 * 1024;

/// The sockets of a simulation. Clones share them.
#[derive(Clone, Default)]
pub struct SimulatedNetwork {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    hosts: Vec<String>,
    listeners: BTreeMap<SocketAddr, mpsc::UnboundedSender<SimulatedConnection>>,
    links: Vec<Arc<Link>>,
    cut: BTreeSet<SocketAddr>,
    ports_given: u16,
}

impl SimulatedNetwork {
    /// A network without listeners.
    pub fn new() -> SimulatedNetwork {
        SimulatedNetwork::default()
    }

    /// Breaks every connection made to this address and refuses new ones until [`heal`](SimulatedNetwork::heal).
    pub fn cut(&self, address: &str) -> io::Result<()> {
        let mut state = self.state.lock();
        let address = state.resolve(address)?;
        state.cut.insert(address);
        state.forget_closed_links();
        state.links.iter().filter(|link| link.listener == address).for_each(|link| link.break_up());
        Ok(())
    }

    /// Lets new connections to this address through again.
    pub fn heal(&self, address: &str) -> io::Result<()> {
        let mut state = self.state.lock();
        let address = state.resolve(address)?;
        state.cut.remove(&address);
        Ok(())
    }

    fn listen_now(&self, address: &str) -> io::Result<Box<dyn Listener>> {
        let mut state = self.state.lock();
        let mut local = state.resolve(address)?;
        if local.port() == 0 {
            local.set_port(state.next_port());
        }
        if state.listeners.get(&local).is_some_and(|sender| !sender.is_closed()) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        let (sender, incoming) = mpsc::unbounded_channel();
        state.listeners.insert(local, sender);
        Ok(Box::new(SimulatedListener { incoming, local }))
    }

    fn connect_now(&self, address: &str) -> io::Result<Box<dyn Connection>> {
        let mut state = self.state.lock();
        let server = state.resolve(address)?;
        let client = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), state.next_port());
        let sender = match state.listeners.get(&server) {
            Some(sender) if !state.cut.contains(&server) => sender.clone(),
            _ => return Err(io::ErrorKind::ConnectionRefused.into()),
        };
        let link = Arc::new(Link { listener: server, state: Mutex::default() });
        let (near, far) = tokio::io::duplex(BUFFER_BYTES);
        let accepted = SimulatedConnection { stream: far, local: server, peer: client, link: link.clone() };
        sender.send(accepted).map_err(|_| io::ErrorKind::ConnectionRefused)?;
        state.forget_closed_links();
        state.links.push(link.clone());
        Ok(Box::new(SimulatedConnection { stream: near, local: client, peer: server, link }))
    }
}

impl Network for SimulatedNetwork {
    fn listen(&self, address: &str) -> BoxedFuture<'static, io::Result<Box<dyn Listener>>> {
        Box::pin(std::future::ready(self.listen_now(address)))
    }

    fn listen_at_path(&self, _: &Path, _: u32) -> BoxedFuture<'static, io::Result<Box<dyn Listener>>> {
        Box::pin(std::future::ready(Err(io::ErrorKind::Unsupported.into())))
    }

    fn connect(&self, address: &str) -> BoxedFuture<'static, io::Result<Box<dyn Connection>>> {
        Box::pin(std::future::ready(self.connect_now(address)))
    }

    fn send_datagram(&self, _: &Path, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl State {
    /// Ports from 49152 up, in order, for listeners that asked for any and for the near ends of connections.
    fn next_port(&mut self) -> u16 {
        self.ports_given = (self.ports_given + 1) % 16_384;
        49_152 + self.ports_given
    }

    fn forget_closed_links(&mut self) {
        self.links.retain(|link| Arc::strong_count(link) > 1);
    }

    fn resolve(&mut self, address: &str) -> io::Result<SocketAddr> {
        if let Ok(address) = address.parse() {
            return Ok(address);
        }
        let (host, port) = address.rsplit_once(':').ok_or(io::ErrorKind::InvalidInput)?;
        let port = port.parse().map_err(|_| io::ErrorKind::InvalidInput)?;
        Ok(SocketAddr::new(IpAddr::V4(self.address_of_host(host)), port))
    }

    fn address_of_host(&mut self, host: &str) -> Ipv4Addr {
        if host == "localhost" {
            return Ipv4Addr::LOCALHOST;
        }
        let number = self.hosts.iter().position(|known| known == host).unwrap_or_else(|| {
            self.hosts.push(host.to_owned());
            self.hosts.len() - 1
        });
        Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 0, 0, 1)) + number as u32)
    }
}

struct SimulatedListener {
    incoming: mpsc::UnboundedReceiver<SimulatedConnection>,
    local: SocketAddr,
}

impl Listener for SimulatedListener {
    fn accept(&mut self) -> BoxedFuture<'_, io::Result<Box<dyn Connection>>> {
        Box::pin(async move {
            let connection = self.incoming.recv().await.ok_or(io::ErrorKind::NotConnected)?;
            Ok(Box::new(connection) as Box<dyn Connection>)
        })
    }

    fn local_address(&self) -> io::Result<Address> {
        Ok(Address::Internet(self.local))
    }
}

/// What the two ends of a connection share: whether it is broken, and who must hear of it.
struct Link {
    listener: SocketAddr,
    state: Mutex<LinkState>,
}

#[derive(Default)]
struct LinkState {
    broken: bool,
    waiting: Vec<Waker>,
}

impl Link {
    fn break_up(&self) {
        let waiting = {
            let mut state = self.state.lock();
            state.broken = true;
            std::mem::take(&mut state.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Fails if broken; else remembers the caller so that a later break wakes it.
    fn check(&self, context: &Context<'_>) -> io::Result<()> {
        let mut state = self.state.lock();
        if state.broken {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        if !state.waiting.iter().any(|waker| waker.will_wake(context.waker())) {
            state.waiting.push(context.waker().clone());
        }
        Ok(())
    }
}

struct SimulatedConnection {
    stream: DuplexStream,
    local: SocketAddr,
    peer: SocketAddr,
    link: Arc<Link>,
}

impl Connection for SimulatedConnection {
    fn peer_address(&self) -> io::Result<Address> {
        Ok(Address::Internet(self.peer))
    }

    fn local_address(&self) -> io::Result<Address> {
        Ok(Address::Internet(self.local))
    }
}

impl AsyncRead for SimulatedConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.link.check(context)?;
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for SimulatedConnection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        self.link.check(context)?;
        Pin::new(&mut self.stream).poll_write(context, buffer)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.link.check(context)?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    fn run(test: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(test);
    }

    #[test]
    fn bytes_flow_both_ways_and_a_cut_breaks_waiting_readers() {
        run(async {
            let network = SimulatedNetwork::new();
            let mut listener = network.listen("node1:27017").await.unwrap();
            let _other = network.listen("node2:27017").await.unwrap();
            let mut near = network.connect("node1:27017").await.unwrap();
            let mut far = listener.accept().await.unwrap();
            assert_eq!(near.local_address().unwrap(), far.peer_address().unwrap());
            near.write_all(b"ping").await.unwrap();
            let mut bytes = [0; 4];
            far.read_exact(&mut bytes).await.unwrap();
            assert_eq!(&bytes, b"ping");
            let cut = async { network.cut("node1:27017").unwrap() };
            let (read, ()) = tokio::join!(far.read_exact(&mut bytes), cut);
            assert_eq!(read.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
            assert_eq!(near.write_all(b"more").await.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
            let refused = network.connect("node1:27017").await.err().unwrap();
            assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
            network.heal("node1:27017").unwrap();
            assert!(network.connect("node1:27017").await.is_ok());
        });
    }

    #[test]
    fn an_address_is_taken_until_its_listener_is_dropped() {
        run(async {
            let network = SimulatedNetwork::new();
            let first = network.listen("127.0.0.1:0").await.unwrap();
            let address = first.local_address().unwrap().to_string();
            assert_eq!(network.listen(&address).await.err().unwrap().kind(), io::ErrorKind::AddrInUse);
            drop(first);
            assert!(network.connect(&address).await.is_err());
            assert!(network.listen(&address).await.is_ok());
        });
    }
}
