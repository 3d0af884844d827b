//! As much of HTTP as one page needs: a request line and headers in, one answer out, and the connection closes.

use pando_env::Connection;
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Requests of scrapers are a few hundred bytes.
const REQUEST_BYTES_MAX: usize = 8 * 1024;
const PAGE_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Reads a request and answers it; `page` is asked for if it is the page that is wanted.
pub(super) async fn exchange(
    connection: &mut dyn Connection,
    page: impl Future<Output = Option<String>>,
) -> io::Result<()> {
    let request = read(connection).await?;
    let answer = match wanted(&request) {
        Wanted::Page { with_body } => match page.await {
            Some(text) => answer("200 OK", PAGE_TYPE, &text, with_body),
            None => plain("503 Service Unavailable", "the node cannot say now\n"),
        },
        Wanted::Elsewhere => plain("404 Not Found", "there is only /metrics\n"),
        Wanted::OtherMethod => plain("405 Method Not Allowed", "use GET\n"),
        Wanted::Nonsense => plain("400 Bad Request", "this is no request\n"),
    };
    connection.write_all(answer.as_bytes()).await?;
    connection.flush().await?;
    connection.shutdown().await
}

async fn read(connection: &mut dyn Connection) -> io::Result<Vec<u8>> {
    let mut request = Vec::new();
    let mut part = [0; 1024];
    while request.len() < REQUEST_BYTES_MAX && !is_whole(&request) {
        let count = connection.read(&mut part).await?;
        if count == 0 {
            break;
        }
        request.extend_from_slice(part.get(..count).unwrap_or_default());
    }
    Ok(request)
}

fn is_whole(request: &[u8]) -> bool {
    request.windows(4).any(|end| end == b"\r\n\r\n")
}

#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    Page { with_body: bool },
    Elsewhere,
    OtherMethod,
    Nonsense,
}

fn wanted(request: &[u8]) -> Wanted {
    let line = request.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let mut words = std::str::from_utf8(line).unwrap_or_default().split(' ');
    let (Some(method), Some(target), Some(version)) = (words.next(), words.next(), words.next()) else {
        return Wanted::Nonsense;
    };
    let path = target.split('?').next().unwrap_or_default();
    match (method, path) {
        _ if !version.starts_with("HTTP/1.") || !is_whole(request) => Wanted::Nonsense,
        ("GET", "/metrics") => Wanted::Page { with_body: true },
        ("HEAD", "/metrics") => Wanted::Page { with_body: false },
        ("GET" | "HEAD", _) => Wanted::Elsewhere,
        _ => Wanted::OtherMethod,
    }
}

fn plain(status: &str, text: &str) -> String {
    answer(status, "text/plain; charset=utf-8", text, true)
}

fn answer(status: &str, kind: &str, body: &str, with_body: bool) -> String {
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    if with_body { head + body } else { head }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u11_only_the_page_is_served() {
        let check = |line: &str| wanted(format!("{line}\r\nHost: x\r\n\r\n").as_bytes());
        assert_eq!(check("GET /metrics HTTP/1.1"), Wanted::Page { with_body: true });
        assert_eq!(check("GET /metrics?x=1 HTTP/1.0"), Wanted::Page { with_body: true });
        assert_eq!(check("HEAD /metrics HTTP/1.1"), Wanted::Page { with_body: false });
        assert_eq!(check("GET / HTTP/1.1"), Wanted::Elsewhere);
        assert_eq!(check("POST /metrics HTTP/1.1"), Wanted::OtherMethod);
        assert_eq!(check("GET /metrics HTTP/2"), Wanted::Nonsense);
        assert_eq!(wanted(b"\xff\xfe\r\n\r\n"), Wanted::Nonsense);
        assert_eq!(wanted(b"GET /metrics HTTP/1.1\r\n"), Wanted::Nonsense, "it was cut off");
    }
}
