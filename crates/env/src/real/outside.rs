//! What other programs and servers say: the output of a command, the answer of a server to one request. For the time before a node
//! runs, when its configuration is put together; so it waits where it is called.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Runs a command in the system's shell and gives what it writes. One that takes longer, or writes more, is ended.
pub fn output_of(command: &str, bytes_max: usize, patience: Duration) -> io::Result<Vec<u8>> {
    let began = Instant::now();
    let mut child =
        Command::new("/bin/sh").args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let Some(output) = child.stdout.take() else { return Err(ErrorKind::BrokenPipe.into()) };
    let (sender, receiver) = mpsc::channel();
    // It ends with the child's output; what a child leaves behind that keeps its output open keeps this thread.
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = output.take(bytes_max as u64 + 1).read_to_end(&mut bytes);
        // Nobody waits for it any more.
        let _ = sender.send(read.map(|_| bytes));
    });
    let read = receiver.recv_timeout(patience).unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()));
    let is_too_much = read.as_ref().is_ok_and(|bytes| bytes.len() > bytes_max);
    if read.is_err() || is_too_much {
        child.kill()?;
        child.wait()?;
        return read.and(Err(ErrorKind::FileTooLarge.into()));
    }
    while began.elapsed() < patience {
        if let Some(status) = child.try_wait()? {
            return if status.success() { read } else { Err(io::Error::other(format!("it ended with {status}"))) };
        }
        thread::sleep(Duration::from_millis(5));
    }
    child.kill()?;
    child.wait()?;
    Err(ErrorKind::TimedOut.into())
}

/// Sends a request to a server and gives its answer, as far as `is_whole` wants it or until the server has no more to say.
pub fn answer_of(
    place: &str,
    request: &[u8],
    bytes_max: usize,
    patience: Duration,
    is_whole: impl Fn(&[u8]) -> bool,
) -> io::Result<Vec<u8>> {
    let began = Instant::now();
    let left = || {
        let left = patience.saturating_sub(began.elapsed());
        if left.is_zero() { Err(io::Error::from(ErrorKind::TimedOut)) } else { Ok(left) }
    };
    let mut stream = Err(io::Error::from(ErrorKind::AddrNotAvailable));
    for address in place.to_socket_addrs()? {
        stream = TcpStream::connect_timeout(&address, left()?);
        if stream.is_ok() {
            break;
        }
    }
    let mut stream = stream?;
    stream.set_write_timeout(Some(left()?))?;
    stream.write_all(request)?;
    let (mut answer, mut part) = (Vec::new(), [0; 16 * 1024]);
    while !is_whole(&answer) {
        stream.set_read_timeout(Some(left()?))?;
        let count = match stream.read(&mut part) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Err(ErrorKind::TimedOut.into());
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        answer.extend_from_slice(part.get(..count).unwrap_or_default());
        if answer.len() > bytes_max {
            return Err(ErrorKind::FileTooLarge.into());
        }
    }
    Ok(answer)
}
